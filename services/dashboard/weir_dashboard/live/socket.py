"""One live socket: the websocket protocol over a transport, without a task of its own.

uvicorn hands over every connection that asks for an upgrade. Frames are written
straight to the transport, so that one serialised frame goes to any number of clients
and what is unsent can be seen. The protocol itself (handshake, masks, limits, UTF-8,
close) is the `websockets` package's, used without its I/O.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Protocol, cast

from uvicorn import Config
from uvicorn.server import ServerState
from websockets.exceptions import InvalidState
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.typing import Origin, Subprotocol
from weir import live

from weir_dashboard import instruments

PATH = "/api/v1/live"
MAX_FRAME_BYTES = 65_536
# Kernel buffers hide a client that does not read; small ones show it sooner.
SEND_BUFFER_BYTES = 131_072
CLOSE_TIMEOUT_S = 2.0


def framed(text: bytes) -> bytes:
    """Return a text message as the bytes that go over the wire, for any client."""
    return Frame(Opcode.TEXT, text).serialize(mask=False)


class Listener(Protocol):
    """Who is told what happens on a socket."""

    def opened(self, socket: LiveSocket) -> None:
        """Take a socket whose handshake is done."""

    def received(self, socket: LiveSocket, text: str) -> None:
        """Take one text message."""

    def closed(self, socket: LiveSocket) -> None:
        """Forget a socket."""

    def goodbye(self, socket: LiveSocket) -> None:
        """Say good-bye to a client: the server stops."""


class LiveSocket(asyncio.Protocol):
    """A websocket connection of the live protocol.

    Attributes:
        origin: The page's origin, one of the allowed ones, or None without one.
        cookie_header: The request's `Cookie`; empty where no origin vouches for it.
        address: The client's address.
        pong_s: Loop time of the newest pong, or of the opening.
        is_open: Whether frames can be written; kept, since every write looks at it.
    """

    def __init__(
        self, listener: Listener, origins: tuple[str, ...], connections: set[object]
    ) -> None:
        self._listener = listener
        self._connections = connections
        self._origins = origins
        self._conn = ServerProtocol(
            origins=[*(Origin(origin) for origin in origins), None],
            subprotocols=[Subprotocol(live.PROTOCOL)],
            max_size=MAX_FRAME_BYTES,
        )
        self._transport: asyncio.Transport | None = None
        self._fragments: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self.is_open = False
        self.origin: str | None = None
        self.cookie_header = ""
        self.address = ""
        self.pong_s = self._loop.time()

    # ── what the hub calls ──────────────────────────────────────────────────

    @property
    def unsent_bytes(self) -> int:
        """Return how much was written that the kernel has not yet taken."""
        return self._transport.get_write_buffer_size() if self._transport else 0

    def write(self, frame: bytes) -> None:
        """Write a frame made by `framed`; after the close nothing is written."""
        if self.is_open and self._transport is not None:
            self._transport.write(frame)

    def ping(self) -> None:
        """Send a protocol ping."""
        if self.is_open:
            self._conn.send_ping(b"weir")
            self._flush()

    def close(self, code: int, reason: str) -> None:
        """Close with a code; a client that does not answer is cut off after 2 s."""
        if not self.is_open:
            return
        try:
            self._conn.send_close(code, reason)
        except InvalidState:
            return
        instruments.sockets_closed.labels(str(code)).inc()
        self._flush()
        self._loop.call_later(CLOSE_TIMEOUT_S, self._abort)

    def shutdown(self) -> None:
        """Close because the server stops; uvicorn calls this."""
        if self.is_open:
            self._listener.goodbye(self)
        elif self._transport is not None:
            self._transport.close()

    # ── what the transport calls ────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if isinstance(peer, tuple) else ""
        _small_send_buffer(transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes from the wire."""
        self._conn.receive_data(data)
        for event in self._conn.events_received():
            if isinstance(event, Request):
                self._handshake(event)
            else:
                self._frame(cast("Frame", event))
        self._flush()

    def eof_received(self) -> None:
        """Take the end of what the client sends."""
        self._conn.receive_eof()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Forget the connection."""
        self._connections.discard(self)
        self._transport, self.is_open = None, False
        self._listener.closed(self)

    # ── inside ──────────────────────────────────────────────────────────────

    def _handshake(self, request: Request) -> None:
        if request.path != PATH:
            # Also with a query: a credential in a URL ends in logs.
            response = self._conn.reject(404, f"the live socket is at {PATH}, without a query\n")
        else:
            response = self._conn.accept(request)
        self._conn.send_response(response)
        if response.status_code != 101:
            return
        self.origin = request.headers.get("Origin")
        if self.origin is not None:
            self.cookie_header = request.headers.get("Cookie", "")
        self.pong_s = self._loop.time()
        self._flush()
        self._listener.opened(self)

    def _frame(self, frame: Frame) -> None:
        if frame.opcode is Opcode.PONG:
            self.pong_s = self._loop.time()
        elif frame.opcode is Opcode.BINARY:
            self.close(4400, "frames must be JSON text")
        elif frame.opcode in (Opcode.TEXT, Opcode.CONT):
            self._fragments.append(bytes(frame.data))
            if frame.fin:
                message, self._fragments = b"".join(self._fragments), []
                self._message(message)

    def _message(self, message: bytes) -> None:
        if not self.is_open:
            return
        try:
            text = message.decode()
        except UnicodeDecodeError:
            self._conn.fail(1007, "invalid UTF-8")
            self._flush()
            return
        self._listener.received(self, text)

    def _flush(self) -> None:
        transport = self._transport
        self.is_open = self._conn.state is State.OPEN and transport is not None
        if transport is None:
            return
        for data in self._conn.data_to_send():
            if data:
                transport.write(data)
            else:
                self._finish(transport)

    def _finish(self, transport: asyncio.Transport) -> None:
        """End our side; a reset before the client read the close frame would lose its code."""
        if transport.can_write_eof():
            transport.write_eof()
            self._loop.call_later(CLOSE_TIMEOUT_S, self._abort)
        else:
            transport.close()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def live_protocol(listener: Listener, origins: tuple[str, ...]) -> type[asyncio.Protocol]:
    """Return what uvicorn makes for each connection that asks for an upgrade."""

    class Upgraded(LiveSocket):
        def __init__(
            self,
            config: Config,  # noqa: ARG002  uvicorn names these
            server_state: ServerState,
            app_state: dict[str, Any],  # noqa: ARG002
        ) -> None:
            super().__init__(listener, origins, cast("set[object]", server_state.connections))

    return Upgraded


def _small_send_buffer(transport: asyncio.BaseTransport) -> None:
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
