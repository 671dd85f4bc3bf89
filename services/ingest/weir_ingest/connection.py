"""One HTTP/1.1 connection: uvicorn's h11 protocol, with the bounds that it lacks.

h11, because uvicorn's httptools protocol loses the body of a POST that carries
`Upgrade: h2c` and still answers 200 (Kludex/uvicorn#2722); Java's HTTP client
sends that header. Added here: a time limit for a request's head, and a cap of
connections for each peer address.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol
from weir.problems import ProblemError, Reason


class Connection(H11Protocol):
    """A connection whose client must get on with it.

    The class attributes are set once, by `limited`.
    """

    head_timeout_s: ClassVar[float]
    max_per_address: ClassVar[int]
    open_by_address: ClassVar[Counter[str]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._address = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, unless its address has too many."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self.open_by_address[self._address] += 1
        if self.open_by_address[self._address] > self.max_per_address:
            self._refuse(429, Reason.RATE_LIMITED, "too many connections; use fewer of them")
            return
        self._head_timer = self.loop.call_later(self.head_timeout_s, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        self.open_by_address[self._address] -= 1
        if not self.open_by_address[self._address]:
            del self.open_by_address[self._address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; while a head is not whole, its timer runs."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.head_timeout_s, self._head_is_late)

    def on_response_complete(self) -> None:
        """Let uvicorn's keep-alive timer watch the quiet connection."""
        super().on_response_complete()
        if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
            self._stop_timer()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            message = f"a request's head must arrive within {self.head_timeout_s:g} s"
            self._refuse(408, Reason.REQUEST_TIMEOUT, message)

    def _refuse(self, status: int, reason: Reason, message: str) -> None:
        body = msgspec.json.encode(ProblemError(status, reason, message).body())
        phrase = {408: "Request Timeout", 429: "Too Many Requests"}[status]
        head = (
            f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def limited(head_timeout_s: float, max_per_address: int) -> type[Connection]:
    """Return the protocol class with its limits."""
    return type(
        "LimitedConnection",
        (Connection,),
        {
            "head_timeout_s": head_timeout_s,
            "max_per_address": max_per_address,
            "open_by_address": Counter(),
        },
    )
