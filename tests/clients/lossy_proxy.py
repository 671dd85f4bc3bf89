"""An HTTP proxy that loses answers: what it lets through is stored, and its sender hears nothing.

Bytes pass unchanged: a client is proxied as it is, with its own framing and coding.
"""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

import h11

_READ = 65_536
_BUSY_BODY = b'{"code":"log_unavailable","message":"try again"}'
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_BUSY_BODY), _BUSY_BODY)
)


class LossyProxy:
    """Loses each so many-th answer, and answers 503 itself for some seconds from a request on.

    Use it as a context: it serves from a thread of its own.
    """

    def __init__(self, port: int, *, lose_each: int, busy_from: int, busy_s: float) -> None:
        """Prepare.

        Args:
            port: Where the service listens, on loopback.
            lose_each: Of so many answers one is lost.
            busy_from: The number of the request that starts the time of 503.
            busy_s: How long that is, seconds.
        """
        self._port = port
        self._lose_each = lose_each
        self._busy_from = busy_from
        self._busy_s = busy_s
        self._busy_until: float | None = None
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._listen()), daemon=True)
        self._listening = threading.Event()
        self.requests = self.passed = self.lost = self.refused = 0
        self.url = ""

    def __enter__(self) -> LossyProxy:
        self._thread.start()
        self._listening.wait(10)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _listen(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._listening.set()
        await self._stop.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, h11.RemoteProtocolError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Pass one request on and its answer back; return whether another may follow."""
        request = await _message(h11.Connection(h11.SERVER), reader)
        if not request:
            return False
        self.requests += 1
        if self._is_busy():
            self.refused += 1
            writer.write(_BUSY)
            await writer.drain()
            return False
        answer = await self._asked(request)
        self.passed += 1
        if self.passed % self._lose_each == 0:
            self.lost += 1
            writer.transport.abort()
            return False
        writer.write(answer)
        await writer.drain()
        return True

    def _is_busy(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._busy_until is None and self.requests >= self._busy_from:
            self._busy_until = now + self._busy_s
        return self._busy_until is not None and now < self._busy_until

    async def _asked(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(request)
            await writer.drain()
            connection = h11.Connection(h11.CLIENT)
            method = request.split(b" ", 1)[0]
            connection.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
            connection.send(h11.EndOfMessage())
            return await _message(connection, reader)
        finally:
            writer.close()


async def _message(connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    """Return the bytes of one message; of one that breaks off nothing."""
    taken = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            data = await reader.read(_READ)
            taken += data
            connection.receive_data(data)
        elif isinstance(event, h11.EndOfMessage):
            return taken
        elif isinstance(event, h11.ConnectionClosed):
            return b""
