"""A TCP proxy for one link between two parts, which can be made as bad as a network is.

It carries bytes in both directions and changes none. What it can do to them: delay with
jitter, a bounded rate, silence (in one direction or in both; connections stay open), resets,
the loss of one reply, of a share of them, an end after so many bytes of replies, bytes that
vanish, as behind a router that has forgotten a connection, and a request that comes late.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

CHUNK = 65_536
# A reply is lost whole: of a pipeline, the last answer comes some time after the first.
SWALLOW_S = 0.2
LOOK_S = 0.02


@dataclass
class Conditions:
    """How the link is now; each may be changed at any time.

    Attributes:
        delay_s: Added to each piece, in each direction.
        jitter_s: At most that much more, or less, at random; order is kept.
        bytes_per_s: Most bytes a second in each direction; 0: no bound.
        silent: Directions in which nothing passes: "up" (to the server), "down".
        swallowed: Directions in which what is sent vanishes. A connection that has lost
            bytes carries none in that direction any more, also when the link is healed; nor
            does a client learn that the server has ended it.
        lose_reply_to: The reply to the next request that holds these bytes is lost, and
            the connection with it; once.
        lose_share: Share of the replies that are lost so.
        held: A request that holds these bytes waits until this is taken back, and all that
            follows on its connection, whether or not its client is still there; "": none.
        cut_after: Bytes of replies after which the next connection ends; 0: never; once.
    """

    delay_s: float = 0.0
    jitter_s: float = 0.0
    bytes_per_s: int = 0
    silent: frozenset[str] = frozenset()
    swallowed: frozenset[str] = frozenset()
    lose_reply_to: bytes = b""
    lose_share: float = 0.0
    held: bytes = b""
    cut_after: int = 0


@dataclass(eq=False)
class _Connection:
    """One connection through the proxy.

    Attributes:
        loses: Whether the reply that comes next is lost.
        asked: Whether something was sent since the last reply.
        replied: Bytes of replies.
        dead: Directions that have lost bytes.
    """

    front: asyncio.StreamWriter
    back: asyncio.StreamWriter
    loses: bool = False
    asked: bool = False
    replied: int = 0
    tail: bytes = b""
    dead: set[str] = field(default_factory=set)

    def reset(self) -> None:
        """End both sides at once, as a crash of the other end does."""
        for writer in (self.front, self.back):
            _reset(writer)


@dataclass
class Proxy:
    """A listener on loopback whose connections all go to one address.

    Attributes:
        target: Host and port of the server.
        port: Where it listens.
        now: How the link is.
        lost: How many replies were lost.
        swallowed: How many directions of connections have lost bytes for good.
        carried: Bytes carried in both directions.
        waiting: How many requests are held now.
    """

    target: tuple[str, int]
    port: int = 0
    seed: int = 0
    now: Conditions = field(default_factory=Conditions)
    lost: int = 0
    swallowed: int = 0
    carried: int = 0
    waiting: int = 0
    _open: set[_Connection] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)  # noqa: S311
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=256)
        self.port = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def heal(self) -> None:
        """Let everything pass again."""
        self.now = Conditions()

    def reset(self) -> int:
        """Reset every connection; return how many."""
        return asyncio.run_coroutine_threadsafe(self._reset(), self._loop).result(10)

    @property
    def connections(self) -> int:
        """Return how many connections are open."""
        return len(self._open)

    def close(self) -> None:
        """End the proxy and all its connections."""
        if self._thread.is_alive():
            self.reset()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
        self._listener.close()

    def _run(self) -> None:
        self._loop.run_until_complete(self._listen())
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _listen(self) -> None:
        await asyncio.start_server(self._accept, sock=self._listener)

    async def _reset(self) -> int:
        found = list(self._open)
        for connection in found:
            connection.reset()
        return len(found)

    async def _accept(self, reader: asyncio.StreamReader, front: asyncio.StreamWriter) -> None:
        try:
            replies, back = await asyncio.open_connection(*self.target)
        except OSError:
            _reset(front)
            return
        connection = _Connection(front, back)
        self._open.add(connection)
        try:
            await _first_to_end(
                self._up(reader, connection),
                self._down(replies, connection),
            )
        finally:
            self._open.discard(connection)
            connection.front.close()
            connection.back.close()

    async def _up(self, reader: asyncio.StreamReader, to: _Connection) -> None:
        while piece := await reader.read(CHUNK):
            await self._passage("up", len(piece))
            if self._vanishes("up", to):
                continue
            self._note_request(piece, to)
            await self._release(piece)
            to.back.write(piece)
            await to.back.drain()

    async def _down(self, reader: asyncio.StreamReader, to: _Connection) -> None:
        while piece := await reader.read(CHUNK):
            if self._vanishes("down", to):
                continue
            if to.asked and not to.loses:
                to.loses = self._chance.random() < self.now.lose_share
            if to.loses:
                self.lost += 1
                await asyncio.sleep(SWALLOW_S)
                to.reset()
                return
            to.asked = False
            await self._passage("down", len(piece))
            to.replied += len(piece)
            if self.now.cut_after and to.replied >= self.now.cut_after:
                self.now.cut_after = 0
                self.lost += 1
                to.reset()
                return
            to.front.write(piece)
            await to.front.drain()
        if "down" in to.dead | self.now.swallowed:
            # That the server has ended is lost as well, until whoever waits for it ends.
            to.dead.add("down")
            await asyncio.Event().wait()

    def _vanishes(self, direction: str, of: _Connection) -> bool:
        if direction in self.now.swallowed and direction not in of.dead:
            of.dead.add(direction)
            self.swallowed += 1
        return direction in of.dead

    def _note_request(self, piece: bytes, to: _Connection) -> None:
        to.asked = True
        wanted = self.now.lose_reply_to
        if wanted and wanted in to.tail + piece:
            self.now.lose_reply_to = b""
            to.loses = True
        to.tail = piece[-(len(wanted) - 1) :] if len(wanted) > 1 else b""

    async def _release(self, piece: bytes) -> None:
        """Return once a request may go on."""
        if not self.now.held or self.now.held not in piece:
            return
        self.waiting += 1
        try:
            while self.now.held:  # noqa: ASYNC110 - set from another thread
                await asyncio.sleep(LOOK_S)
        finally:
            self.waiting -= 1

    async def _passage(self, direction: str, size: int) -> None:
        """Take the time that a piece takes on this link."""
        while direction in self.now.silent:  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(LOOK_S)
        now = self.now
        wait_s = now.delay_s + self._chance.uniform(-now.jitter_s, now.jitter_s)
        if now.bytes_per_s:
            wait_s += size / now.bytes_per_s
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        self.carried += size

    def await_lost(self, count: int, timeout_s: float = 30.0) -> None:
        """Return once so many replies were lost.

        Raises:
            TimeoutError: If they were not in time.
        """
        deadline_s = time.monotonic() + timeout_s
        while self.lost < count:
            if time.monotonic() > deadline_s:
                msg = f"{count} replies must be lost within {timeout_s:g} s, got {self.lost}"
                raise TimeoutError(msg)
            time.sleep(LOOK_S)


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with RST: who waits for bytes gets an error, not an end."""
    found: socket.socket | None = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _first_to_end(*pumps: Coroutine[Any, Any, None]) -> None:
    """Run both directions until one ends, and end the other."""
    tasks = [asyncio.ensure_future(pump) for pump in pumps]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
