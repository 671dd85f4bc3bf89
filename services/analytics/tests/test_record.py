"""S5: what the record of a batch tells, in bounded room, and who may append it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest
from weir import names
from weir.batches import BatchRecord, Opening
from weir.changed import MOST_LISTED, PaneSpan
from weir.clock import SystemClock
from weir.commit import Verdict
from weir.definitions.records import NewRecord
from weir.rows import Row
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.commit_job import CommitJob, Limits, Part
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.outcome import Outcome
from weir_analytics.panes.plans import Plans
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.shard_wire import StoreError
from weir_analytics.panes.start import OwnStart, Stores, take_over
from weir_analytics.panes.store import ShardStore
from weir_analytics.settings import Settings

from .installation import Installation, close_stores, entries_after, open_stores
from .log_frames import HORIZONS

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

START_S = 2_000_000_040
NOBODY: Any = None


@contextmanager
def driver(settings: Settings, own: OwnStart | None = None) -> Iterator[Cycle]:
    """Start a driver as far as before its first batch."""
    stores = open_stores(settings)
    try:
        yield cycle_of(settings, stores, own)
    finally:
        close_stores(stores)


def cycle_of(settings: Settings, stores: Stores, own: OwnStart | None = None) -> Cycle:
    """Return what counts its batches; nothing that needs Spark may be asked of it."""
    footing = take_over(stores, settings, SystemClock(), own=own)
    plans = Plans(stores.definitions.fold, footing.events_id, HORIZONS, NOBODY)
    book = LaneBook(stores.shards, footing.events_id)
    return Cycle(NOBODY, settings, stores, footing, plans, book, SystemClock())


def committed(cycle: Cycle, number: int, parts: Sequence[Part] = ()) -> Batch:
    """Commit a batch of one event to every shard (S4); the parts go to the first."""
    batch = cycle.range_of({0: number}, {0: number + 1}, number)
    for shard in range(cycle.settings.shards):
        job = CommitJob(
            shard=shard,
            shards=batch.shards,
            fence=cycle.footing.fence,
            epoch=batch.epoch,
            batch=number,
            topic_id=batch.topic_id,
            from_offsets=batch.start,
            to_offsets=batch.end,
            limits={vid: Limits({60: 86_400_000}) for vid in (5, 6)},
        )
        store = ShardStore(cycle.settings.redis_url, shard)
        done = store.commit(job, list(parts) if shard == 0 else [])
        store.close()
        assert done.verdict is Verdict.OK
    return batch


def recorded(cycle: Cycle, batch: Batch) -> BatchRecord:
    """Record a batch (S5)."""
    outcome = Outcome(Verdict.OK, 1, {0: 1}, (), (), {"counted": 1})
    return cycle._record(batch, outcome)


def entries(installation: Installation) -> list[BatchRecord | Opening]:
    """Return what the stream holds."""
    return [entry for _, entry in entries_after(installation.client)]


class TestBound:
    @pytest.mark.parametrize("beyond", [0, 1])
    def test_a_record_lists_no_more_panes_than_its_bound(
        self, installation: Installation, beyond: int
    ) -> None:
        """Beyond it the version with the most of them is told by its first and its last pane."""
        late = [START_S + 120 * n for n in range(MOST_LISTED - 1)]
        parts = [Part(5, 60, start_s, "=a", Row(1)) for start_s in late]
        parts += [Part(6, 60, START_S + 60 * n, "=a", Row(1)) for n in range(1 + beyond)]
        with driver(installation.settings) as cycle:
            recorded(cycle, committed(cycle, 0, parts))

        found = entries(installation)[-1]
        assert isinstance(found, BatchRecord)
        few = [(6, 60, START_S + 60 * n, 0) for n in range(1 + beyond)]
        if beyond:
            assert (found.v, found.changed) == (2, few)
            assert found.spans == [PaneSpan(5, 60, late[0], late[-1])]
        else:
            listed = {(5, 60, start_s, 0) for start_s in late} | set(few)
            assert (found.v, set(found.changed), found.spans) == (1, listed, [])


class TestWhoMayAppend:
    @pytest.mark.parametrize(
        ("kept", "counts"),
        [(True, True), (False, True), (False, False)],
        ids=["one epoch", "another epoch", "another epoch without a batch"],
    )
    def test_a_driver_that_was_paused_before_it_ends(
        self, installation: Installation, kept: bool, counts: bool
    ) -> None:
        """One that has taken over meanwhile goes on: no start record of the older one follows."""
        with driver(installation.settings) as paused:
            installation.append(3)
            batch = committed(paused, 0)
            if kept:
                installation.plan(1)
            with driver(installation.settings) as newer:
                assert (newer.footing.epoch == paused.footing.epoch) is kept
                if kept:
                    recorded(newer, batch_of(newer, batch))
                if counts:
                    recorded(newer, committed(newer, 1))
                with pytest.raises(VerdictError) as caught:
                    recorded(paused, batch)
                assert caught.value.verdict is Verdict.FENCED
                recorded(newer, committed(newer, 1 + counts))

    def test_also_where_the_store_was_emptied_since(self, installation: Installation) -> None:
        """The shards know of no driver then; the definitions do."""
        with driver(installation.settings) as paused:
            installation.append(3)
            batch = committed(paused, 0)
            with driver(installation.settings):
                installation.client.flushall()
                with pytest.raises(VerdictError) as caught:
                    recorded(paused, batch)

        assert caught.value.verdict is Verdict.FENCED

    def test_nor_does_one_whose_connections_are_gone_begin_again(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who else counts is not found out then; the process knows its own start, and looks."""
        own, gone = OwnStart(), MagicMock(side_effect=StoreError("redis is away"))
        with driver(installation.settings, own) as paused:
            installation.append(3)
            batch = committed(paused, 0)
            with driver(installation.settings) as newer:
                monkeypatch.setattr(paused.stores.shards, "check_fence", gone)
                with pytest.raises(StoreError, match="redis is away"):
                    recorded(paused, batch)
                before = installation.fold().next_offset
                for _ in range(2):
                    with pytest.raises(VerdictError, match="another driver runs") as caught:
                        installation.start(own=own)
                    assert caught.value.verdict is Verdict.FENCED
                assert installation.fold().next_offset == before
                recorded(newer, committed(newer, 1))
                assert own.fence == paused.footing.fence.fence

    def test_who_started_right_behind_is_not_taken_for_oneself(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Reading one's own record back may bring another's with it; that one goes on."""
        own, append, offsets = OwnStart(), DefinitionsLog.append, list[int]()

        def followed(log: DefinitionsLog, record: NewRecord) -> int:
            offset = append(log, record)
            if not offsets:
                offsets.append(offset)
                installation.start()
                log.read_to(log.end())
            return offset

        monkeypatch.setattr(DefinitionsLog, "append", followed)
        for _ in range(2):
            with pytest.raises(VerdictError, match="another driver runs") as caught:
                installation.start(own=own)
            assert caught.value.verdict is Verdict.FENCED
            assert own.fence == offsets[0]

    def test_who_is_alone_begins_a_new_epoch(self, installation: Installation) -> None:
        """Where the stream was lost, readers must not believe that they have seen everything."""
        with driver(installation.settings) as alone:
            batch = committed(alone, 0)
            installation.client.delete(names.BATCHES)
            with pytest.raises(VerdictError, match="must end before revision 1 of epoch") as caught:
                recorded(alone, batch)

        assert caught.value.verdict is Verdict.LOST


def batch_of(cycle: Cycle, other: Batch) -> Batch:
    """Return another driver's batch as one's own."""
    return replace(other, fence=cycle.footing.fence.fence, epoch=cycle.footing.epoch)
