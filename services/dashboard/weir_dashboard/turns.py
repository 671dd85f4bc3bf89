"""Turns: how many queries over HTTP are worked on at once, of a session and of all.

A turn lasts until the work has really ended, also where its caller was told after 10 s
that it took too long: a thread cannot be stopped, and what it holds is still held. Work
that nobody waits for any more ends at its next step: a page that asks anew on every
change leaves no queue of old questions behind.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from weir.problems import ProblemError, Reason

TIMEOUT_S = 10.0
A_SESSION = 6
# Of all sessions: each may hold much memory, and shares the interpreter with the live hub.
AT_ONCE = 4

T = TypeVar("T")


async def while_there(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what work returns; cancel it if its client goes away.

    Args:
        request: Whose body has been read: what still can come is that the client has gone.
        work: What the client waits for; must have no effect that it would miss.

    Raises:
        ClientDisconnect: If the client has gone; nobody sees an answer.
    """
    working = asyncio.create_task(work)
    gone = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        gone.cancel()
        working.cancel()


async def _gone(request: Request) -> None:
    """Return once the client has closed its connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


class Turns:
    """Hands out turns.

    Attributes:
        pool: The threads that queries over HTTP are worked on, none of the live hub's.
    """

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="query")
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._running: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()

    async def take(self, who: str, work: Coroutine[Any, Any, Any]) -> Any:
        """Return what work returns, within 10 s.

        Raises:
            ProblemError: 429 if six of this caller are under way, 503 `query_timeout`.
        """
        if self._running[who] >= A_SESSION:
            work.close()
            msg = f"at most {A_SESSION} queries at once a session; wait for one to end"
            raise ProblemError(429, Reason.RATE_LIMITED, msg, retry_after_s=1)
        self._running[who] += 1
        task = asyncio.create_task(self._through_gate(work))
        task.add_done_callback(partial(self._end, who, work))
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await asyncio.shield(task)
        except TimeoutError:
            msg = (
                "the query took longer than 10 s; "
                "ask for a shorter range, longer steps or fewer groups"
            )
            raise ProblemError(503, Reason.QUERY_TIMEOUT, msg, retry_after_s=1) from None
        finally:
            task.cancel()

    @contextmanager
    def waiting(self, who: str) -> Iterator[None]:
        """Count one more of a caller's queries that wait for events to be counted.

        Raises:
            ProblemError: 429 if six of this caller wait.
        """
        if self._waiting[who] >= A_SESSION:
            msg = f"at most {A_SESSION} queries a session may wait; wait for one to end"
            raise ProblemError(429, Reason.RATE_LIMITED, msg, retry_after_s=1)
        self._waiting[who] += 1
        try:
            yield
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who]

    def close(self) -> None:
        """Begin nothing more."""
        self.pool.shutdown(wait=False, cancel_futures=True)

    async def _through_gate(self, work: Coroutine[Any, Any, Any]) -> Any:
        async with self._gate:
            return await work

    def _end(self, who: str, work: Coroutine[Any, Any, Any], task: asyncio.Task[Any]) -> None:
        work.close()  # of one that was never begun
        if not task.cancelled():
            task.exception()  # told already, or told as a timeout
        self._running[who] -= 1
        if not self._running[who]:
            del self._running[who]
