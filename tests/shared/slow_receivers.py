"""Receivers on loopback that take a call and do not let it end."""

from __future__ import annotations

import select
import socket
import threading
from dataclasses import dataclass
from socketserver import BaseRequestHandler, ThreadingTCPServer
from types import TracebackType
from typing import Final

LOOK_S: Final = 0.02
# A caller that neither reads nor ends its connection is waited for no longer.
PATIENCE_S: Final = 30.0
CHUNK: Final = 65_536
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
# A handshake record of TLS 1.2 that is announced whole, 16 KB, and comes byte by byte.
_RECORD: Final = b"\x16\x03\x03\x40\x00"


@dataclass(frozen=True)
class Way:
    """How a receiver keeps a call from ending.

    Attributes:
        first: What it says at once.
        again: What it says then, again and again; empty: nothing any more.
        every_s: How long it waits before each time.
        scheme: What it is called by.
    """

    first: bytes = b""
    again: bytes = b""
    every_s: float = LOOK_S
    scheme: str = "http"


HANGS: Final = {
    "says nothing": Way(),
    "says nothing in TLS": Way(scheme="https"),
    "shakes hands byte by byte": Way(_RECORD, b"\x00", scheme="https"),
    "begins byte by byte": Way(b"HTTP/1.1 200 OK\r\nx-name: ", b"x"),
    "answers byte by byte": Way(_HEAD + b"content-length: 1000000000\r\n\r\n", b"x"),
    "says to go on, again and again": Way(again=b"HTTP/1.1 100 Continue\r\n\r\n"),
}
"""Whoever waits for the end of these waits for ever, though most of them never fall silent."""
FLOODS: Final = {
    "of a length": Way(_HEAD + b"content-length: 1000000000000\r\n\r\n", b"x" * CHUNK, 0.0),
    "without a length": Way(_HEAD + b"\r\n", b"x" * CHUNK, 0.0),
    "in chunks": Way(
        _HEAD + b"transfer-encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * CHUNK + b"\r\n", 0.0
    ),
}
"""Answers that have no end, as fast as they are read."""


class SlowReceiver(ThreadingTCPServer):
    """Takes calls in one way, until it is closed.

    Attributes:
        calls: How many connections there were.
        held: Those that their caller has not ended.
        sent_bytes: How much of its answers was taken from it.
    """

    daemon_threads = True

    def __init__(self, way: Way) -> None:
        """Listen."""
        super().__init__(("127.0.0.1", 0), _Call)
        self._way, self._over = way, threading.Event()
        self.calls, self.sent_bytes = 0, 0
        self.held: set[socket.socket] = set()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self) -> int:
        """Return where it listens."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """Return what it is called by."""
        return f"{self._way.scheme}://127.0.0.1:{self.port}/"

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()
        self.shutdown()
        self.server_close()

    def answer(self, call: socket.socket) -> None:
        """Answer one call until whoever called ends it."""
        self.calls += 1
        self.held.add(call)
        call.settimeout(PATIENCE_S)
        try:
            call.sendall(self._way.first)
            while self._goes_on(call):
                call.sendall(self._way.again)
                self.sent_bytes += len(self._way.again)
        except OSError:
            pass  # ended by a reset, which is an end as well
        finally:
            self.held.discard(call)

    def _goes_on(self, call: socket.socket) -> bool:
        """Wait until it is time to say more; return whether anybody is there."""
        came, _, _ = select.select([call], [], [], self._way.every_s)
        return not self._over.is_set() and (not came or call.recv(CHUNK) != b"")


class _Call(BaseRequestHandler):
    server: SlowReceiver

    def handle(self) -> None:
        self.server.answer(self.request)
