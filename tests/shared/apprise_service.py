"""A service that Apprise posts JSON to, on loopback."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Service:
    """Takes what is posted, and answers as it is told.

    Attributes:
        bodies: What came.
        statuses: What to answer next; 200 when it is empty.
        redirect: Where a 302 leads.
        answer: What to answer besides.
        host, port: Where it listens; 0 for any port that is free.
    """

    bodies: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    redirect: str = ""
    answer: bytes = b""
    host: str = "127.0.0.1"
    port: int = 0

    def __post_init__(self) -> None:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                service.bodies.append(json.loads(body))
                self.send_response(service.statuses.pop(0) if service.statuses else 200)
                self.send_header("Location", service.redirect)
                self.send_header("Content-Length", str(len(service.answer)))
                self.end_headers()
                self.wfile.write(service.answer)

            def do_GET(self) -> None:
                service.bodies.append({"method": "GET"})
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Log nothing."""

        self._server = ThreadingHTTPServer((self.host, self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
