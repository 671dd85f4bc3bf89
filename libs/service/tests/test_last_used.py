"""When keys were last used: noted once a minute, on a real Redis, and nothing lost but notes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import names
from weir.clock import ManualClock
from weir_local.ports import free_port
from weir_service import last_used
from weir_service.last_used import EVERY_S, EXPIRES_S, LastUsed
from weir_service.redis import connect

NOW_MS = 1_800_000_000_000
MINUTE_MS = round(EVERY_S * 1000)


@dataclass(frozen=True)
class World:
    """What a test works with."""

    used: LastUsed
    clock: ManualClock
    redis: Redis


Work = Callable[[World], Awaitable[None]]


def on_redis(url: str, work: Work) -> None:
    """Do something with notes on a Redis that has none of the tenants `a` and `b`."""

    async def run() -> None:
        redis, clock = connect(url, None), ManualClock(NOW_MS)
        await redis.delete(names.used_key("a"), names.used_key("b"))
        await work(World(LastUsed(redis, clock), clock, redis))
        await redis.aclose()

    asyncio.run(run())


def away() -> Redis:
    """Return the client of a Redis that is not there."""
    return connect(f"redis://127.0.0.1:{free_port()}/0", None)


async def until(claim: Callable[[], bool]) -> None:
    """Poll until a claim holds."""
    async with asyncio.timeout(10):
        while not claim():  # noqa: ASYNC110  it is not for the code to tell a test
            await asyncio.sleep(0.01)


@pytest.mark.redis
class TestNotes:
    def test_a_use_is_noted(self, redis_url: str) -> None:
        """By tenant and id, with when it was; nothing else is, and it does not stay for ever."""

        async def work(at: World) -> None:
            at.used.note("a", "key00001")
            at.clock.advance(5)
            at.used.note("a", "key00002")
            at.used.note("b", "key00001")
            assert await at.used.read("a") == {}
            await at.used.flush()

            assert await at.used.read("a") == {"key00001": NOW_MS, "key00002": NOW_MS + 5}
            assert await at.used.read("b") == {"key00001": NOW_MS + 5}
            assert names.used_key("a") == "weir:1:used:a"
            stored: Any = await at.redis.hgetall("weir:1:used:a")
            assert set(stored) == {b"key00001", b"key00002"}
            assert EXPIRES_S - 60 <= await at.redis.ttl("weir:1:used:a") <= EXPIRES_S

        on_redis(redis_url, work)

    def test_once_a_minute(self, redis_url: str) -> None:
        """Not before the minute is over, by a clock that never steps; others' uses do not count."""

        async def work(at: World) -> None:
            at.used.note("a", "key00001")
            await at.used.flush()
            at.clock.step(-10 * MINUTE_MS)
            at.clock.advance(MINUTE_MS - 1)
            at.used.note("a", "key00001")
            at.used.note("a", "key00002")
            await at.used.flush()
            second = NOW_MS - 9 * MINUTE_MS
            assert await at.used.read("a") == {"key00001": NOW_MS, "key00002": second - 1}
            at.clock.advance(1)
            at.used.note("a", "key00001")
            await at.used.flush()
            assert await at.used.read("a") == {"key00001": second, "key00002": second - 1}

        on_redis(redis_url, work)

    def test_nothing_is_written_of_no_use(self, redis_url: str) -> None:
        """A flush that nobody's use came before asks nothing of Redis."""

        async def work(at: World) -> None:
            at.used.note("a", "key00001")
            await at.used.flush()
            await at.redis.delete(names.used_key("a"))
            at.used.note("a", "key00001")
            await at.used.flush()
            assert await at.used.read("a") == {}

            # What a wiped Redis has lost is known again by the next use after a minute.
            at.clock.advance(MINUTE_MS)
            at.used.note("a", "key00001")
            await at.used.flush()
            assert await at.used.read("a") == {"key00001": NOW_MS + MINUTE_MS}

        on_redis(redis_url, work)

    def test_their_number_is_bounded(self, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """One key more than a tenant may have notes of, and they begin anew; others' stay."""
        monkeypatch.setattr(last_used, "MOST_KEYS", 3)

        async def work(at: World) -> None:
            at.used.note("b", "key00001")
            for number in range(3):
                at.used.note("a", f"key0000{number}")
            await at.used.flush()
            assert len(await at.used.read("a")) == 3
            at.used.note("a", "key00003")
            await at.used.flush()
            assert (await at.used.read("a"), len(await at.used.read("b"))) == ({}, 1)
            at.used.note("a", "key00004")
            await at.used.flush()
            assert set(await at.used.read("a")) == {"key00004"}

        on_redis(redis_url, work)

    def test_what_is_kept_in_memory_is_bounded(self, redis_url: str) -> None:
        """A key that came a minute ago is forgotten with the next flush."""

        async def work(at: World) -> None:
            for number in range(5):
                at.used.note("a", f"key0000{number}")
            at.clock.advance(MINUTE_MS)
            at.used.note("a", "key00001")
            await at.used.flush()
            assert (len(at.used._noted_s), at.used._pending) == (1, {})

        on_redis(redis_url, work)

    def test_a_use_while_others_are_written(
        self, redis_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is written with the next flush."""
        write = LastUsed._write

        async def work(at: World) -> None:
            async def write_late(self: LastUsed, *given: Any) -> None:
                await write(self, *given)
                at.clock.advance(MINUTE_MS)
                at.used.note("a", "key00001")
                at.used.note("a", "key00002")

            at.used.note("a", "key00001")
            with monkeypatch.context() as patch:
                patch.setattr(LastUsed, "_write", write_late)
                await at.used.flush()
            assert await at.used.read("a") == {"key00001": NOW_MS}
            await at.used.flush()
            later = NOW_MS + MINUTE_MS
            assert await at.used.read("a") == {"key00001": later, "key00002": later}

        on_redis(redis_url, work)

    def test_it_is_written_by_itself(self, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also once a Redis that was away is back: each time told once, and nothing is lost."""
        monkeypatch.setattr(last_used, "FLUSH_S", 0.0)
        monkeypatch.setattr(last_used, "_PAUSE_AFTER_ERROR_S", 0.01)
        tries: list[int] = []
        flush = LastUsed.flush

        async def counted(self: LastUsed) -> None:
            tries.append(1)
            await flush(self)

        monkeypatch.setattr(LastUsed, "flush", counted)

        async def work(at: World) -> None:
            at.used._redis = away()
            task = asyncio.create_task(at.used.run())
            at.used.note("a", "key00001")
            await until(lambda: len(tries) >= 3)
            assert await at.used.read("a") == {}
            at.used._redis = at.redis
            await until(lambda: not at.used._pending)
            assert await at.used.read("a") == {"key00001": NOW_MS}
            at.used._redis, before = away(), len(tries)
            at.used.note("a", "key00002")
            await until(lambda: len(tries) >= before + 2)
            at.used._redis = at.redis
            await until(lambda: not at.used._pending)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        with structlog.testing.capture_logs() as said:
            on_redis(redis_url, work)
        assert [line["event"] for line in said] == ["key_use_unwritten"] * 2


def test_redis_away() -> None:
    """Who notes waits for nothing; who reads is told nothing, and who writes is told."""

    async def run() -> None:
        used = LastUsed(away(), ManualClock(NOW_MS))
        used.note("a", "key00001")
        assert await used.read("a") == {}
        with pytest.raises(RedisError):
            await used.flush()
        assert used._pending == {("a", "key00001"): NOW_MS}

    asyncio.run(run())


def test_a_redis_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of keys waits for it a moment only, not as long as a query does."""
    monkeypatch.setattr(last_used, "_READ_S", 0.05)

    async def run() -> None:
        async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(meet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        redis = connect(f"redis://127.0.0.1:{port}/0", None)
        async with asyncio.timeout(4):
            assert await LastUsed(redis, ManualClock(NOW_MS)).read("a") == {}
        await redis.aclose()
        server.close()
        await server.wait_closed()

    asyncio.run(run())
