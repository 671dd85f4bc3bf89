"""What a shard's mark says of what is read from it, and the names of series."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
import pytest
import redis
from weir import names, rows
from weir.batches import BatchRecord
from weir.changed import PaneSpan
from weir.clock import SystemClock
from weir.commit import Mark
from weir.rows import Row
from weir.series import OTHER, OTHER_ID
from weir_reading import panes as reading
from weir_reading.batches import Batches
from weir_reading.panes import PaneId, Panes, has_counted
from weir_reading.redis import read_hashes_then
from weir_service.redis import connect

RECORD = BatchRecord(
    epoch=3,
    batch=7,
    rev=8,
    shards=2,
    from_offsets={0: 10, 1: 5},
    to_offsets={0: 20, 1: 5},
    processed_through_ms=0,
    at_ms=0,
)

T = TypeVar("T")


def mark(end: Mapping[int, int], epoch: int = 3) -> bytes:
    """Return a mark as it is stored."""
    at = Mark(epoch=epoch, batch=7, topic_id="t", end=dict(end), shards=2)
    return msgspec.json.encode(at)


@pytest.mark.parametrize(
    ("stored", "holds"),
    [
        pytest.param(mark({0: 20, 1: 5}), True, id="as far as the record"),
        pytest.param(mark({0: 31, 1: 5}), True, id="a batch ahead, which has no record yet"),
        pytest.param(mark({0: 20, 1: 5, 2: 4}), True, id="a partition that is new"),
        pytest.param(mark({0: 20, 1: 5}, epoch=2), True, id="not written since the epoch began"),
        pytest.param(mark({0: 20, 1: 5}, epoch=4), True, id="counted again up to there"),
        pytest.param(None, False, id="emptied"),
        pytest.param(mark({}), False, id="emptied, and to be counted again"),
        pytest.param(mark({0: 19, 1: 5}), False, id="put back from before"),
        pytest.param(mark({0: 20}), False, id="a partition not yet counted again"),
        pytest.param(mark({0: 12, 1: 5}, epoch=4), False, id="being counted again"),
    ],
)
def test_a_shard_holds_what_a_record_tells_of(stored: bytes | None, holds: bool) -> None:
    """By its offsets alone, whoever wrote them."""
    assert has_counted(stored, RECORD) is holds


@pytest.fixture
def client(redis_url: str) -> Any:
    """Return a client of a server with the names of 20 series and the one without dimensions."""
    found: Any = redis.Redis.from_url(redis_url)
    for vid in (5, 6):
        texts = {n.to_bytes(2, "big"): f"={n}" for n in range(1, 21)} | {b"\x00\x63": ""}
        found.hset(names.names_key(0, vid), mapping=texts)
    return found


def ask(url: str, question: Callable[[Panes], Awaitable[T]]) -> T:
    """Return what a reader that has kept nothing yet answers."""

    async def asked() -> T:
        store = connect(url, None)
        panes = Panes(store, Batches(store, SystemClock()), cache_bytes=2**20, query_bytes=2**20)
        try:
            return await question(panes)
        finally:
            await store.aclose()

    return asyncio.run(asked())


def calls(client: Any, command: str) -> int:
    """Return how often the server was asked something."""
    told = client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})
    return int(told["calls"])


@pytest.mark.redis
class TestNames:
    def test_only_what_is_wanted_is_read(self, client: Any, redis_url: str) -> None:
        """What is known is not asked for again; the row `other` has no name to ask for."""

        async def question(panes: Panes) -> None:
            assert await panes.names(5, 0, [b"\x00\x01", OTHER_ID]) == {b"\x00\x01": "=1"}
            both = await panes.names(5, 0, [b"\x00\x01", b"\x00\x63"])
            assert both == {b"\x00\x01": "=1", b"\x00\x63": ""}
            assert await panes.names(5, 0, [b"\x00\x63", OTHER_ID]) == {b"\x00\x63": ""}
            assert both == {b"\x00\x01": "=1", b"\x00\x63": ""}

        client.config_resetstat()
        ask(redis_url, question)

        assert (calls(client, "hmget"), calls(client, "hgetall")) == (2, 0)

    def test_what_is_kept_has_a_bound(
        self, client: Any, redis_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Beyond it all are forgotten, and read again when they are asked for."""
        monkeypatch.setattr(reading, "KEPT_NAMES", 3)
        monkeypatch.setattr(reading, "ROUND_ROWS", 2)
        some = [n.to_bytes(2, "big") for n in range(1, 6)]

        async def question(panes: Panes) -> None:
            for _ in range(2):
                five = await panes.names(5, 0, some)
                assert five == {short: f"={at}" for at, short in enumerate(some, 1)}
                assert await panes.names(6, 0, some[:1]) == {b"\x00\x01": "=1"}

        client.config_resetstat()
        ask(redis_url, question)

        assert calls(client, "hmget") == 2 * (3 + 1)

    def test_a_row_whose_name_is_gone_counts_in_other(self, client: Any, redis_url: str) -> None:
        """A series that lost its row while the pane was read: totals stay whole."""
        packed = {b"\x00\x01": rows.encode(Row(2)), b"\x00\x77": rows.encode(Row(3))}
        client.hset(names.pane_key(0, 5, 10, 0), mapping=packed)

        found = ask(redis_url, lambda panes: panes.together([(5, 10, 0)], 1, 0))

        assert found == {(5, 10, 0): {"=1": Row(2), OTHER: Row(3)}}


@pytest.mark.redis
class TestOneOwner:
    def test_its_rows_alone_are_counted(
        self, client: Any, redis_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In all panes together, however many rounds that takes; nothing else is asked for."""
        monkeypatch.setattr(reading, "ROUND_ROWS", 3)
        panes = [PaneId(5, 10, start_s, shard) for start_s in (0, 10, 20) for shard in (0, 1)]
        for pane in panes[:-1]:
            packed = {n.to_bytes(2, "big"): rows.encode(Row(n)) for n in range(1, 21)}
            client.hset(names.pane_key(pane.shard, 5, 10, pane.start_s), mapping=packed)
        own = [n.to_bytes(2, "big") for n in (1, 2, 3, 4, 30)]
        client.sadd(names.listed_key(0, 5, "a"), *own)
        client.sadd(names.listed_key(1, 5, "a"), own[0])
        client.sadd(names.listed_key(0, 5, "b"), b"\x00\x09")

        async def question(store: Panes) -> None:
            assert await store.listed_sizes(5, 2, "a") == [5, 1]
            found = await store.counted_of("a", panes)
            assert found == {
                (5, 0): {own[0]: 3, own[1]: 6, own[2]: 9, own[3]: 12},
                (5, 1): {own[0]: 2},
            }
            assert await store.counted_of("nobody", panes) == {(5, 0): {}, (5, 1): {}}

        client.config_resetstat()
        ask(redis_url, question)

        assert (calls(client, "hgetall"), calls(client, "hmget")) == (0, 6 + 3)


# ── what is kept of panes that change ───────────────────────────────────────

START_S = 600
MANY = PaneSpan(5, 10, START_S - 300, START_S)  # more than a reader lists
FEW = PaneSpan(5, 10, START_S - 10, START_S)
TOLD: dict[str, dict[str, Any]] = {
    "listed": {"changed": [(5, 10, START_S, 1)]},
    "a short span": {"spans": [FEW]},
    "a long span": {"spans": [MANY]},
    "a record that was missed": {"rev": 99},
    "nothing": {},
    "another shard": {"changed": [(5, 10, START_S, 0)]},
    "another resolution": {"spans": [PaneSpan(5, 60, 0, 6_000)]},
    "another version": {"spans": [PaneSpan(6, 10, 0, 6_000)]},
    "a span that ends before": {"spans": [PaneSpan(5, 10, 0, START_S - 10)]},
    "a short span beside": {"spans": [PaneSpan(5, 10, START_S + 10, START_S + 20)]},
}
UNTOUCHED = [name for name in TOLD if name.startswith(("another", "nothing"))]
UNTOUCHED += ["a span that ends before", "a short span beside"]


@pytest.mark.redis
@pytest.mark.parametrize("told", TOLD)
class TestChanged:
    PANE = PaneId(5, 10, START_S, 1)

    def write(self, client: Any, n: int) -> None:
        """Have the pane hold so many events."""
        client.set(names.mark_key(1), mark({0: 40, 1: 5}))
        client.hset(names.pane_key(1, 5, 10, START_S), mapping={b"\0\1": rows.encode(Row(n))})

    def record(self, rev: int, **members: Any) -> BatchRecord:
        """Return the record of a batch."""
        return msgspec.structs.replace(RECORD, **{"rev": rev, **members})

    async def count(self, panes: Panes) -> int:
        """Return how many events a reader finds."""
        found = await panes.read([self.PANE])
        return found[self.PANE][b"\0\1"].n

    @pytest.mark.parametrize("others", [0, 200])
    def test_it_is_read_again(self, client: Any, redis_url: str, told: str, others: int) -> None:
        """And what did not change is not, however much else is kept."""

        async def question(panes: Panes) -> None:
            panes.on_batch(self.record(8))
            self.write(client, 1)
            assert await self.count(panes) == 1
            await panes.read([PaneId(7, 10, 10 * n, 0) for n in range(others)])
            self.write(client, 2)
            panes.on_batch(self.record(**{"rev": 9, **TOLD[told]}))

            assert await self.count(panes) == (1 if told in UNTOUCHED else 2)
            assert len(panes._panes) == 1 + (others if told != "a record that was missed" else 0)
            assert panes.bytes_kept == sum(kept.cost for kept in panes._panes.values())

        ask(redis_url, question)

    def test_what_changes_while_it_is_read_is_not_kept(
        self, client: Any, redis_url: str, told: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It may be from before the batch: the next who asks reads it."""

        async def question(panes: Panes) -> None:
            async def read_and_change(*asked: Any) -> Any:
                found = await read_hashes_then(*asked)
                self.write(client, 2)
                panes.on_batch(self.record(**{"rev": 9, **TOLD[told]}))
                return found

            panes.on_batch(self.record(8))
            self.write(client, 1)
            monkeypatch.setattr(reading, "read_hashes_then", read_and_change)
            assert await self.count(panes) == 1
            monkeypatch.undo()

            assert await self.count(panes) == (1 if told in UNTOUCHED else 2)
            assert not panes._readings

        ask(redis_url, question)
