"""A paced load sends what was made beforehand, in order, until all of it is accepted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from paced import Paced


@contextmanager
def answering(*statuses: int) -> Iterator[tuple[str, list[bytes]]]:
    """Serve each request with the next status, the last again and again; yield what came."""
    came: list[bytes] = []
    left = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Keep the body and answer."""
            came.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", came
    finally:
        server.shutdown()
        server.server_close()


def test_what_is_refused_for_a_while_is_sent_again() -> None:
    """The same bytes, and before what follows; each body was due on schedule all the same."""
    with answering(200, 429, 503, 200) as (url, came):
        load = Paced(url, "key", [b"1", b"2", b"3"], 0.01)
        load.start()
        load.join()
    assert came == [b"1", b"2", b"2", b"2", b"3"]
    assert (load.accepted, load.refused) == (3, 2)
    steps = [later - due for due, later in zip(load.due_ms, load.due_ms[1:], strict=False)]
    assert steps == pytest.approx([10, 10])


def test_what_is_refused_for_good_ends_the_benchmark() -> None:
    """Whoever waits for the load learns of it."""
    with answering(200, 400) as (url, came):
        load = Paced(url, "key", [b"1", b"2", b"3"], 0.01)
        load.start()
        with pytest.raises(httpx.HTTPStatusError, match="400"):
            load.join()
    assert came == [b"1", b"2"]
    assert load.accepted == 1


def test_a_load_that_is_stopped_sends_no_more() -> None:
    """What was accepted by then is known."""
    with answering(200) as (url, came):
        load = Paced(url, "key", [b"1", b"2"], 60)
        load.start()
        while not load.accepted:
            pass
        load.stop()
    assert came == [b"1"]
