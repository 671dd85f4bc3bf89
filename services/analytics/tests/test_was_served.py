"""What is served of sampled panes, each at one revision, and of a ledger that is everybody's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import redis
from weir import names, rows
from weir.batches import FIELD, BatchRecord, LaneProgress, encode
from weir.commit import Offsets
from weir_analytics.jobs.ledger_audit import LedgerAudit
from weir_analytics.jobs.sample import PaneAt
from weir_analytics.jobs.was_served import OwnSeries, Reader
from weir_analytics.panes.accounts import LEDGER

from .conftest import settings_for


def over() -> bool:
    """End a slice: there is time for one thing."""
    return True


@pytest.fixture
def store(redis_url: str) -> Iterator[Any]:
    """Return a client of a Redis of one shard, in which one metric has panes."""
    client: Any = redis.Redis.from_url(redis_url)
    yield client
    client.close()


class Shards:
    """Where the shards stand."""

    def __init__(self) -> None:
        self.end: Offsets = {0: 9}

    def read_marks(self) -> list[Any]:
        """Return the mark of the one shard."""
        return [SimpleNamespace(end=self.end)]


@pytest.mark.redis
class TestReader:
    def test_a_slice_takes_what_it_has_time_for(
        self, store: Any, redis_url: str, tmp_path: Path
    ) -> None:
        """Each at the revision of its slice; where the shards differ nothing is taken."""
        panes = [PaneAt(5, 10, 10 * i) for i in range(3)]
        for pane in panes:
            key = names.pane_key(0, pane.vid, pane.res_s, pane.start_s)
            store.hset(key, b"a", rows.encode(rows.Row(20)))
        shards = Shards()
        cycle: Any = SimpleNamespace(
            footing=SimpleNamespace(epoch=3), stores=SimpleNamespace(shards=shards)
        )
        reader = Reader(settings_for(tmp_path, redis_url=redis_url))
        seen = reader.begin("amount", (), 1)
        try:
            told: list[tuple[bool | None, int, int]] = []
            for rev, end, stands in ((1, 9, 9), (2, 12, 9), (2, 12, 12), (3, 15, 15)):
                record(store, rev, {0: end})
                shards.end = {0: stands}
                left = [pane for pane in panes if pane not in seen.panes]
                told.append((reader.look(cycle, seen, left, over), len(seen.panes), seen.rev))
        finally:
            reader.close()

        assert told == [(False, 1, 1), (None, 1, 1), (False, 2, 2), (True, 3, 3)]
        assert seen.ends == {panes[0]: {0: 9}, panes[1]: {0: 12}, panes[2]: {0: 15}}

    @pytest.mark.parametrize(
        ("kind", "vids", "is_taken"),
        [
            ("backfill", (8,), True),
            ("backfill", (5,), False),
            ("backfill", (8, 5), False),
            ("rebuild", (), False),
        ],
    )
    def test_what_is_still_being_counted_is_not_looked_at(
        self,
        store: Any,
        redis_url: str,
        tmp_path: Path,
        kind: Literal["backfill", "rebuild"],
        vids: tuple[int, ...],
        is_taken: bool,
    ) -> None:
        """Of a lane that fills one of the versions that serve, or one that fills what was lost."""
        pane = PaneAt(5, 10, 0)
        store.hset(names.pane_key(0, 5, 10, 0), b"a", rows.encode(rows.Row(20)))
        lane = LaneProgress(9, kind, next(iter(vids), None), None, 1, 2, vids=vids[1:])
        record(store, 1, {0: 9}, [lane])
        cycle: Any = SimpleNamespace(
            footing=SimpleNamespace(epoch=3), stores=SimpleNamespace(shards=Shards())
        )
        reader = Reader(settings_for(tmp_path, redis_url=redis_url))
        served: Any = SimpleNamespace(vid=5)
        try:
            assert reader.look(cycle, reader.begin("amount", (served,), 1), [pane]) is (
                True if is_taken else None
            )
        finally:
            reader.close()

    def test_what_is_let_go_leaves_room(self, store: Any, redis_url: str, tmp_path: Path) -> None:
        """As if it had never been looked at."""
        pane = PaneAt(5, 10, 0)
        store.hset(names.pane_key(0, 5, 10, 0), b"a", rows.encode(rows.Row(20)))
        record(store, 1, {0: 9})
        cycle: Any = SimpleNamespace(
            footing=SimpleNamespace(epoch=3), stores=SimpleNamespace(shards=Shards())
        )
        reader = Reader(settings_for(tmp_path, redis_url=redis_url))
        try:
            before = reader.begin("amount", (), 1).room
            seen = reader.begin("amount", (), 1)
            assert reader.look(cycle, seen, [pane])
            assert reader.begin("amount", (), 1).room["events"] == before["events"] - 20
            reader.drop(seen)
            assert reader.begin("amount", (), 1).room == before
        finally:
            reader.close()

    def test_others_traffic_leaves_room_for_a_tenants_minutes(
        self, store: Any, redis_url: str, tmp_path: Path
    ) -> None:
        """A minute of the ledger holds all tenants' rows; one's own are read, and cost room."""
        minutes = [PaneAt(LEDGER, 60, 60 * i) for i in range(3)]
        key, row = "", rows.encode(rows.Row(10_000))
        texts = {b"%d" % n: f"=big|=web{n}|=counted" for n in range(30_000)}
        texts |= {b"mine": "=acme|=web|=counted", b"too": "=acme|=app|=counted"}
        store.hset(names.names_key(0, LEDGER), mapping=texts)
        for minute in minutes:
            key = names.pane_key(0, LEDGER, 60, minute.start_s)
            store.hset(key, mapping={short: row for short in texts if short != b"too"})
        store.hset(key, b"nobody's", row)
        record(store, 1, {0: 9})
        cycle: Any = SimpleNamespace(
            footing=SimpleNamespace(epoch=3), stores=SimpleNamespace(shards=Shards())
        )
        before = store.info("commandstats").get("cmdstat_hgetall", {"calls": 0})["calls"]
        reader = Reader(settings_for(tmp_path, redis_url=redis_url))
        ledger, slices = LedgerAudit("acme"), 0
        try:
            while not ledger.is_seen:
                ledger.look(cycle, reader, minutes, 10_000, over)
                slices += 1
        finally:
            reader.close()
        seen = ledger._seen
        assert seen is not None
        assert (set(seen.panes), seen.left_out) == (set(minutes), set())
        mine = [{"=acme|=web|=counted": rows.Row(10_000)}]
        assert all(served == mine for served in seen.panes.values())
        # Names are looked through a part a slice, and of a minute one's own rows are read alone.
        assert slices > 20
        after = store.info("commandstats").get("cmdstat_hgetall", {"calls": 0})["calls"]
        assert after == before

    @pytest.mark.parametrize(("most", "taken"), [(9_999, 0), (10_000, 2)])
    def test_minutes_of_which_none_has_room_are_left_out(
        self, store: Any, redis_url: str, tmp_path: Path, most: int, taken: int
    ) -> None:
        """Where one has room all are counted again: one of them may have too much by mistake."""
        minutes = [PaneAt(LEDGER, 60, 60 * i) for i in range(2)]
        store.hset(names.names_key(0, LEDGER), b"mine", "=acme|=web|=counted")
        for minute, n in zip(minutes, (10_000, 10_000_000), strict=True):
            key = names.pane_key(0, LEDGER, 60, minute.start_s)
            store.hset(key, b"mine", rows.encode(rows.Row(n)))
        record(store, 1, {0: 9})
        cycle: Any = SimpleNamespace(
            footing=SimpleNamespace(epoch=3), stores=SimpleNamespace(shards=Shards())
        )
        reader = Reader(settings_for(tmp_path, redis_url=redis_url))
        ledger = LedgerAudit("acme")
        try:
            ledger.look(cycle, reader, minutes, most, lambda: False)
        finally:
            reader.close()
        assert ledger.is_seen
        assert len(list(ledger.ends)) == taken


class TestOwnSeries:
    def test_every_shard_is_looked_through(self) -> None:
        """Each to its end; what others have there is not kept."""
        own = OwnSeries("acme")
        for found, cursor, ids in (
            ({b"1": b"=acme|=a"}, 7, [{b"1": "=acme|=a"}]),
            ({b"2": b"=acme2|=a", b"3": b"*"}, 0, [{b"1": "=acme|=a"}, {}]),
            ({b"1": b"=acme|=b"}, 0, [{b"1": "=acme|=a"}, {b"1": "=acme|=b"}]),
        ):
            assert not own.is_whole
            own.take(found, cursor, shards=2)
            assert own.ids == ids
        assert own.is_whole


def record(store: Any, rev: int, end: Offsets, lanes: Sequence[LaneProgress] = ()) -> None:
    """Append the record of a batch, unless it is there."""
    batch = BatchRecord(
        epoch=3,
        batch=rev - 1,
        rev=rev,
        shards=1,
        from_offsets={},
        to_offsets=dict(end),
        processed_through_ms=0,
        at_ms=0,
        lanes=list(lanes),
    )
    if not store.xrange(names.BATCHES, min=f"3-{rev}", max=f"3-{rev}"):
        store.xadd(names.BATCHES, {FIELD: encode(batch)}, id=f"3-{rev}")
