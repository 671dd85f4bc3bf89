"""A log in memory, taken for ingest: it judges by the code that ingest judges by.

It may lose requests and answers, refuse, and say afterwards what it has: by identity, each time
that an event was stored.
"""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from weir.admission import Admitted, Refused, Terms, admit
from weir.event import read_event
from weir_cli.api import Answer
from weir_cli.sending.posting import Fate, Tried, meant

Fault = str
"""`lost` before it was stored, `unheard` after that, a status such as `503`, or empty for none."""
TERMS = Terms(tenant="t", source="s", arrived_ms=1_800_000_000_000, protocol="ndjson", seed=7)


@dataclass
class Log:
    """What was stored.

    Attributes:
        faults: What goes wrong with the next requests, one after the other.
        always: What goes wrong with all that follow.
        most_events: More at once are refused.
        most_bytes: Likewise.
        events: Each event as it is in the log, in order, each time that it was stored.
        quarantined: Likewise, what is unusable.
        keys: Idempotency-Key of each request.
        sizes: How many events each request had.
        at_s: When each came.
    """

    faults: list[Fault] = field(default_factory=list)
    always: Fault = ""
    most_events: int = 10_000
    most_bytes: int = 5_000_000
    events: list[dict[str, Any]] = field(default_factory=list)
    quarantined: list[bytes] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    at_s: list[float] = field(default_factory=list)

    @property
    def identities(self) -> Counter[tuple[str, str]]:
        """How often each event was stored, by source and id."""
        return Counter((one["source"], one["id"]) for one in self.events)

    def fault(self) -> Fault:
        """Return what goes wrong with the request that has come."""
        return self.faults.pop(0) if self.faults else self.always

    def take(self, body: bytes, key: str) -> Answer:
        """Store a body, unless it is too large; return the answer."""
        lines = [line for line in body.split(b"\n") if line.strip()]
        self.keys.append(key)
        self.sizes.append(len(lines))
        self.at_s.append(time.monotonic())
        if len(lines) > self.most_events or len(body) > self.most_bytes:
            code = "too_many_events" if len(lines) > self.most_events else "body_too_large"
            return Answer(413, {"code": code, "message": "a request must hold less; send parts"})
        judged = [admit(line, at, TERMS) for at, line in enumerate(lines)]
        items = []
        for at, (line, one) in enumerate(zip(lines, judged, strict=True)):
            if isinstance(one, Refused):
                told = {"index": at, "status": "quarantined", "code": one.reason.value}
                items.append({**told, "detail": one.detail})
                self.quarantined.append(line)
            else:
                self.events.append(read_event(one.value))
        safe = all(one.retry_safe for one in judged if isinstance(one, Admitted))
        told = {"accepted": len(lines) - len(items), "quarantined": len(items)}
        position = f"0:{len(self.events) + len(self.quarantined)}"
        return Answer(200, {**told, "position": position, "retry_safe": safe, "items": items})

    def post(self, body: bytes, events: int, key: str) -> Tried:
        """Take the place of `Ingest.post`."""
        fault = self.fault()
        if fault == "lost":
            return Tried(Fate.UNKNOWN, "could not be reached (a test)")
        if fault.isdigit():
            return meant(Answer(int(fault), {"code": "x", "message": "come later"}), events)
        answer = self.take(body, key)
        return Tried(Fate.UNKNOWN, "broke off") if fault == "unheard" else meant(answer, events)


@dataclass
class Served:
    """A log behind a socket.

    Attributes:
        url: `http://host:port`.
        log: The log.
        paths: Path of each request.
        headers: Header fields of each.
        hook: Called before each request is taken.
        fields: More header fields of each refusal.
    """

    url: str
    log: Log
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    hook: Callable[[], None] = lambda: None
    fields: dict[str, str] = field(default_factory=dict)


@contextmanager
def serving(log: Log | None = None) -> Iterator[Served]:
    """Serve a log as ingest does."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            served.paths.append(self.path)
            served.headers.append({name.lower(): text for name, text in self.headers.items()})
            served.hook()
            fault = served.log.fault()
            if fault.isdigit():
                self._say(Answer(int(fault), {"code": "x", "message": "come later"}))
            elif fault != "lost":
                answer = served.log.take(body, self.headers["Idempotency-Key"])
                if fault != "unheard":
                    self._say(answer)

        def _say(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in served.fields.items() if answer.status != 200 else ():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(answer.body).encode())

        def log_message(self, *_: Any) -> None:
            """Write nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        # Who is killed hears no answer.
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        served = Served(f"http://127.0.0.1:{server.server_port}", log or Log())
        yield served
        server.shutdown()
