"""Whose turn it is to have a process: there is memory for four.

What hangs must not hold up what works. A channel whose last try failed waits for the one
process of its like, and so does a message in its midst that takes long. If that one is taken
and others wait, it is ended, and tried again as one that failed. Tests that people ask for
have a process of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from weir_analytics.alerts.channels.answer import Answer

STEADY: Final = 2
FAILING: Final = 1
TESTS: Final = 1
HANGS_S: Final = 2.0
"""A service takes half a second; the fourth that hangs at once is told of within 5 s still."""
TEST_WAITS_S: Final = 5.0
"""Somebody waits for a test: if there is no process for it by then, they are told so."""

_Call = Callable[[], Awaitable[Answer]]


class Turns:
    """The processes of a job, and which channels failed last."""

    def __init__(self) -> None:
        self._steady = asyncio.Semaphore(STEADY)
        self._failing = asyncio.Semaphore(FAILING)
        self._tests = asyncio.Semaphore(TESTS)
        self._failed: set[tuple[str, str]] = set()
        self._waiting = 0

    async def message(self, place: tuple[str, str], call: _Call) -> Answer:
        """Send a message when it is its turn.

        Args:
            place: Tenant and name of its channel.
            call: Sends it; may be cancelled.
        """
        if place in self._failed:
            async with self._failing:
                answer = await call()
        else:
            answer = await self._steadily(call)
        self._note(place, answer)
        return answer

    async def test(self, place: tuple[str, str], call: _Call) -> Answer:
        """Send a test, unless others take too long."""
        try:
            async with asyncio.timeout(TEST_WAITS_S):
                await self._tests.acquire()
        except TimeoutError:
            return Answer(None, 0, "other tests took too long; ask again")
        try:
            answer = await call()
        finally:
            self._tests.release()
        self._note(place, answer)
        return answer

    async def _steadily(self, call: _Call) -> Answer:
        self._waiting += 1
        try:
            await self._steady.acquire()
        finally:
            self._waiting -= 1
        held, sending = self._steady, asyncio.ensure_future(call())
        try:
            while not (await asyncio.wait({sending}, timeout=HANGS_S))[0]:
                if held is self._steady and not self._failing.locked():
                    await self._failing.acquire()
                    self._steady.release()
                    held = self._failing
                elif held is self._steady and self._waiting:
                    took_ms = int(HANGS_S * 1000)
                    return Answer(None, took_ms, f"no answer within {HANGS_S:g} s; others waited")
            return sending.result()
        finally:
            sending.cancel()
            # Until it has ended its process has its memory.
            await asyncio.wait({sending})
            held.release()

    def _note(self, place: tuple[str, str], answer: Answer) -> None:
        if answer.delivered:
            self._failed.discard(place)
        elif not answer.barred:
            # What must not be sent at all says nothing of the service.
            self._failed.add(place)
