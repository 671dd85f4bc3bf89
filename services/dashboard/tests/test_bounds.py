"""Bounds: what one query may hold in memory, and how many are worked on at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message
from weir import names
from weir.problems import ProblemError, Reason
from weir.rows import Row, encode
from weir_dashboard import turns
from weir_dashboard.turns import Turns, while_there
from weir_reading import panes as store
from weir_reading.panes import PaneId, Panes
from weir_reading.threads import in_thread

from .watching import METRIC, asked, ten_seconds_ago, total

PANE = PaneId(vid=900_001, res_s=10, start_s=0, shard=0)


def stored(running: Any, pane: PaneId, rows: int, sketch: bytes | None = None) -> None:
    """Put a pane into the store."""
    packed = {at.to_bytes(2, "big"): encode(Row(1, kll=sketch)) for at in range(1, rows + 1)}
    key = names.pane_key(pane.shard, pane.vid, pane.res_s, pane.start_s)
    running.redis.delete(key)
    running.redis.hset(key, mapping=packed)


def limited(running: Any, *, query_bytes: int, cache_bytes: int = 2**30) -> Panes:
    """Return panes that may hold little."""
    context = running.dashboard.context
    return Panes(context.redis, context.batches, cache_bytes=cache_bytes, query_bytes=query_bytes)


@pytest.mark.kafka
@pytest.mark.redis
class TestMemory:
    def test_rows_are_counted_before_they_are_read(
        self, running: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pane with too many rows is refused by its size alone."""
        stored(running, PANE, 100)
        monkeypatch.setattr(store, "read_hashes_then", None)
        panes = limited(running, query_bytes=100 * store.ROW_BYTES - 1)
        with pytest.raises(ProblemError) as caught:
            running.run(panes.read([PANE]))
        assert caught.value.reason is Reason.QUERY_TOO_LARGE
        assert "at most 34,999 bytes of rows to read, got 35,000; ask for" in caught.value.message

    def test_sketches_count_as_they_come(
        self, running: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Few rows with large sketches are refused before the next round is read."""
        some = [PANE._replace(start_s=10 * at) for at in range(6)]
        for pane in some:
            stored(running, pane, 2, b"x" * 10_000)
        monkeypatch.setattr(store, "ROUND_ROWS", 4)
        panes = limited(running, query_bytes=50_000)
        with pytest.raises(ProblemError) as caught:
            running.run(panes.read(some))
        assert caught.value.reason is Reason.QUERY_TOO_LARGE
        assert 80_000 < panes.bytes_kept < 90_000
        assert len(running.run(panes.read(some[4:]))) == 2

    def test_what_is_kept_counts_too(self, running: Any) -> None:
        """A query over kept panes holds them just as well."""
        some = [PANE._replace(start_s=10 * at) for at in range(2)]
        for pane in some:
            stored(running, pane, 2, b"x" * 10_000)
        panes = limited(running, query_bytes=30_000)
        for pane in some:
            running.run(panes.read([pane]))
        with pytest.raises(ProblemError):
            running.run(panes.read(some))

    def test_the_cache_is_bounded_by_bytes(self, running: Any) -> None:
        """The oldest used go first, also where there are few large rows."""
        some = [PANE._replace(start_s=10 * at) for at in range(6)]
        for pane in some:
            stored(running, pane, 2, b"x" * 10_000)
        panes = limited(running, query_bytes=2**30, cache_bytes=50_000)
        assert len(running.run(panes.read(some))) == 6
        assert 40_000 < panes.bytes_kept <= 50_000

    def test_a_large_answer_is_made_beside_the_loop(
        self, running: Any, engine: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Rows are decoded, joined and merged on the threads of queries over HTTP."""
        vid = running.put("default", "metric", "many_rows", METRIC.format(name="many_rows"))
        rows = {f"=r{at}": Row(1) for at in range(store.DECODED_AT_ONCE + 1)}
        engine.commit({(vid, 10, ten_seconds_ago(1)): rows})
        names_seen: set[str] = set()
        for name in ("_decoded", "_joined"):
            monkeypatch.setattr(store, name, _noting(getattr(store, name), names_seen))
        with running.client() as http:
            query = asked("many_rows", limit={"top": 1, "other": True})
            body = http.post("/query", json=query).json()
        assert sum(n or 0 for s in body["series"] for n in s["count"]) == len(rows)
        assert total(body, "r0") == 1
        assert {name.split("_")[0] for name in names_seen} == {"query"}


def _noting(work: Any, seen: set[str]) -> Any:
    def noted(*args: Any) -> Any:
        seen.add(threading.current_thread().name)
        return work(*args)

    return noted


@pytest.fixture
def going_on() -> Iterator[threading.Event]:
    """Return what ends the work of a thread; set at the end, whatever happens."""
    event = threading.Event()
    yield event
    event.set()


class TestTurns:
    def test_a_turn_lasts_until_the_thread_ends(
        self, monkeypatch: pytest.MonkeyPatch, going_on: threading.Event
    ) -> None:
        """Who was told that it took too long still has the work, and the turn."""
        monkeypatch.setattr(turns, "TIMEOUT_S", 0.05)
        monkeypatch.setattr(turns, "A_SESSION", 1)

        async def tried() -> None:
            queue = Turns()
            assert await self._refusal(queue, "a", going_on) == (503, Reason.QUERY_TIMEOUT)
            assert await self._refusal(queue, "a", going_on) == (429, Reason.RATE_LIMITED)
            going_on.set()
            monkeypatch.setattr(turns, "TIMEOUT_S", 10.0)
            deadline = asyncio.get_running_loop().time() + 10
            while await self._refusal(queue, "a", going_on) is not None:
                assert asyncio.get_running_loop().time() < deadline, "the turn never came back"
                await asyncio.sleep(0.01)

        asyncio.run(tried())

    def test_few_at_once_whoever_asks(
        self, monkeypatch: pytest.MonkeyPatch, going_on: threading.Event
    ) -> None:
        """With all threads at work the next one waits, and does not begin to read."""
        monkeypatch.setattr(turns, "TIMEOUT_S", 0.05)
        begun = []

        async def noted() -> None:
            begun.append(1)

        async def tried() -> None:
            queue = Turns()
            asks = [self._refusal(queue, str(at), going_on) for at in range(turns.AT_ONCE)]
            assert set(await asyncio.gather(*asks)) == {(503, Reason.QUERY_TIMEOUT)}
            with pytest.raises(ProblemError):
                await queue.take("last", noted())
            assert begun == []
            going_on.set()
            monkeypatch.setattr(turns, "TIMEOUT_S", 10.0)
            await queue.take("last", noted())
            assert begun == [1]

        asyncio.run(tried())

    def test_a_turn_ends_with_who_waited_for_it(self) -> None:
        """A page that asks anew on each change, and drops the old question, is never refused."""

        async def left(queue: Turns) -> None:
            gone = asyncio.Event()

            async def receive() -> Message:
                await gone.wait()
                return {"type": "http.disconnect"}

            begun, ended = asyncio.Event(), asyncio.Event()

            async def worked() -> None:
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    ended.set()

            request = Request({"type": "http"}, receive)
            asking = asyncio.create_task(while_there(request, queue.take("a", worked())))
            await begun.wait()
            gone.set()
            with pytest.raises(ClientDisconnect):
                await asking
            await ended.wait()

        async def tried() -> None:
            queue = Turns()
            for _ in range(3 * turns.A_SESSION):
                async with asyncio.timeout(5):
                    await left(queue)

        asyncio.run(tried())

    async def _refusal(
        self, queue: Turns, who: str, going_on: threading.Event
    ) -> tuple[int, Reason] | None:
        try:
            await queue.take(who, in_thread(queue.pool, going_on.wait, 20))
        except ProblemError as problem:
            return problem.status, problem.reason
        return None
