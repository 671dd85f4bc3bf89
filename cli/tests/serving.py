"""A server that answers what a test says, in place of a dashboard."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from weir import names

# Status, body, and header fields; a body is sent as JSON, unless these say it is text. They are
# the dashboard's, unless they say of which API they are.
Given = tuple[int, Any, dict[str, str]]
# Returns it for a method, a path and a body.
Answering = Callable[[str, str, Any], Given]


@dataclass
class Served:
    """What was asked, and where.

    Attributes:
        url: `http://host:port`.
        at_s: When each request came.
        asked: Method, path and body of each.
        keys: The key that came with each.
    """

    url: str
    at_s: list[float] = field(default_factory=list)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)


@contextmanager
def serving(*given: Given, by: Answering | None = None) -> Iterator[Served]:
    """Serve answers.

    Args:
        given: One after the other, the last for ever.
        by: What answers in place of them.
    """
    answers = list(given)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "0")
            asked = (self.command, self.path, body)
            served.at_s.append(time.monotonic())
            served.asked.append(asked)
            served.keys.append(str(self.headers["Authorization"]).removeprefix("Bearer "))
            status, told, fields = by(*asked) if by else answers[0]
            if len(answers) > 1:
                answers.pop(0)
            self.send_response(status)
            for name, value in {names.HTTP_API: names.API_VERSION, **fields}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            is_text = fields.get("Content-Type", "").startswith("text/")
            self.wfile.write((told if is_text else json.dumps(told)).encode())

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  the server looks for these

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        served = Served(f"http://127.0.0.1:{server.server_port}")
        yield served
        server.shutdown()
