"""Looks up the addresses of hosts, so that a name server that hangs holds up its own host alone.

The loop's own look-ups share four threads with each other and cannot be broken off: four
hosts whose name server does not answer would hold up every channel. Here whoever asks for
a host joins the look-up of it that is under way, and each look-up has a thread of its own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from typing import Final

AT_ONCE: Final = 64
"""Hosts that may hang at once before others wait for them."""


class Names:
    """Look-ups under way, by host; what they find is not kept: a name may move."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(AT_ONCE)
        self._under_way: dict[str, asyncio.Task[list[str]]] = {}

    async def addresses(self, host: str) -> list[str]:
        """Return the addresses of a host, as the system's resolver orders them.

        Raises:
            OSError: If the name does not resolve.
        """
        try:
            return [str(ipaddress.ip_address(host))]
        except ValueError:
            pass  # a name, or a number that only the resolver reads as an address
        task = self._under_way.get(host)
        if task is None:
            task = self._under_way[host] = asyncio.create_task(self._look_up(host))
            task.add_done_callback(lambda done: self._done(host, done))
        # Whoever gives up waiting leaves it to the others.
        return await asyncio.shield(task)

    def close(self) -> None:
        """Wait for no look-up any more; threads that hang end with the process."""
        for task in self._under_way.values():
            task.cancel()

    async def _look_up(self, host: str) -> list[str]:
        async with self._room:
            found: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
            # Not of a pool: the process would wait for those of a pool before it ends.
            threading.Thread(target=_resolve, args=(host, found), daemon=True).start()
            return await found

    def _done(self, host: str, task: asyncio.Task[list[str]]) -> None:
        del self._under_way[host]
        if not task.cancelled():
            task.exception()  # nobody may be left to be told


def _resolve(host: str, found: asyncio.Future[list[str]]) -> None:
    addresses: list[str] | OSError
    try:
        told = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        addresses = [str(one[4][0]) for one in told]
    except (OSError, UnicodeError) as error:
        addresses = error if isinstance(error, OSError) else socket.gaierror("no host name")
    loop = found.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(_settle, found, addresses)


def _settle(found: asyncio.Future[list[str]], addresses: list[str] | OSError) -> None:
    if found.done():
        return
    if isinstance(addresses, OSError):
        found.set_exception(addresses)
    else:
        found.set_result(addresses)
