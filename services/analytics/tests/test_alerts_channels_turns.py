"""Turns of processes: what hangs holds up nothing that works."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest
from weir_analytics.alerts.channels import turns
from weir_analytics.alerts.channels.answer import Answer
from weir_analytics.alerts.channels.turns import Turns

TIMEOUT_S = 2.0
# A busy machine may hold up the loop for a good part of it.
HANGS_S = 0.5
TAKEN = Answer(None, 0, taken=True)
BARRED = Answer(None, 0, "not there", barred=True)
HUNG = Answer(None, 2_000, "no answer")


class Services:
    """Services that hang, or take what they get.

    Attributes:
        most: How many were called at once.
    """

    def __init__(self) -> None:
        self.most = self._now = 0

    async def hang(self) -> Answer:
        """Say nothing until time is up."""
        return await self._called(TIMEOUT_S, HUNG)

    async def take(self) -> Answer:
        """Take it at once."""
        return await self._called(0.01, TAKEN)

    async def refuse(self) -> Answer:
        """Fail at once."""
        return await self._called(0, HUNG)

    async def bar(self) -> Answer:
        """Send nothing, as is right."""
        return await self._called(0, BARRED)

    async def _called(self, for_s: float, answer: Answer) -> Answer:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await asyncio.sleep(for_s)
        finally:
            self._now -= 1
        return answer


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all times be a small part of what they are."""
    monkeypatch.setattr(turns, "HANGS_S", HANGS_S)
    monkeypatch.setattr(turns, "TEST_WAITS_S", 0.5)


async def timed(sending: Coroutine[None, None, Answer]) -> tuple[Answer, float]:
    """Return what came of a message, and after how many seconds."""
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    return await sending, loop.time() - begun_s


def test_channels_that_failed_hold_up_only_their_like() -> None:
    """However many of them hang; and one that works again is with the others again."""

    async def played() -> None:
        services, shared = Services(), Turns()
        for n in range(4):
            await shared.message(("t", f"bad{n}"), services.refuse)
        hanging = [
            asyncio.create_task(shared.message(("t", f"bad{n}"), services.hang)) for n in range(4)
        ]
        await asyncio.sleep(0.05)
        for _ in range(3):
            answer, took_s = await timed(shared.message(("t", "good"), services.take))
            assert answer.delivered
            assert took_s < HANGS_S
        answer, took_s = await timed(shared.test(("t", "bad3"), services.take))
        assert answer.delivered
        assert took_s < HANGS_S
        _, took_s = await timed(shared.message(("t", "bad3"), services.take))
        assert took_s < HANGS_S
        assert services.most <= 4
        for one in hanging:
            one.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)

    asyncio.run(played())


def test_what_must_not_be_sent_says_nothing_of_the_service() -> None:
    """A heartbeat that is refused puts no alerts behind those that hang."""

    async def played() -> None:
        services, shared = Services(), Turns()
        await shared.message(("t", "bad"), services.refuse)
        hanging = asyncio.create_task(shared.message(("t", "bad"), services.hang))
        await asyncio.sleep(0.05)
        await shared.message(("t", "good"), services.bar)
        _, took_s = await timed(shared.message(("t", "good"), services.take))
        assert took_s < HANGS_S
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)

    asyncio.run(played())


def test_four_that_begin_to_hang_at_once() -> None:
    """Others go on within twice the time after which it counts as hanging."""

    async def played() -> None:
        services, shared = Services(), Turns()
        hanging = [
            asyncio.create_task(shared.message(("t", f"bad{n}"), services.hang)) for n in range(4)
        ]
        await asyncio.sleep(0.01)
        answer, took_s = await timed(shared.message(("t", "good"), services.take))
        assert answer.delivered
        # A third such time would be too much.
        assert took_s < 3 * HANGS_S
        answers = await asyncio.gather(*hanging)
        # One has the process of those that fail, the others are told why they were ended.
        assert [one.why.partition(" within")[0] for one in answers] == ["no answer"] * 4
        assert sum("others waited" in one.why for one in answers) >= 2
        assert services.most <= 3

    asyncio.run(played())


def test_what_takes_long_is_ended_only_for_others() -> None:
    """Alone it has all its time, also two of them."""

    async def played() -> None:
        services, shared = Services(), Turns()
        places = [("t", "a"), ("t", "b")]
        answers = await asyncio.gather(*(shared.message(one, services.hang) for one in places))
        assert answers == [HUNG, HUNG]

    asyncio.run(played())


def test_tests_wait_for_tests_and_not_for_long() -> None:
    """Whoever asks is told in time."""

    async def played() -> None:
        services, shared = Services(), Turns()
        first = asyncio.create_task(shared.test(("t", "a"), services.hang))
        await asyncio.sleep(0.01)
        answer, took_s = await timed(shared.test(("t", "b"), services.take))
        assert answer == Answer(None, 0, "other tests took too long; ask again")
        assert took_s < TIMEOUT_S - HANGS_S
        assert await first == HUNG

    asyncio.run(played())
