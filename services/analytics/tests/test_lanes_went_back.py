"""A Redis that fails over may have lost the last slice of a lane, and nothing that came later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from structlog.testing import capture_logs
from weir import names, rows
from weir.commit import Fence, Mark, Verdict
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    OpenLane,
    activation_record,
    lane_record,
    put_record,
    start_record,
)
from weir.lanes import Slice
from weir.rows import Row
from weir_analytics.panes.activation import counting
from weir_analytics.panes.commit_job import CommitJob, Limits, Pane, Part, Untold
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.recovery import Shards
from weir_analytics.panes.store import ShardStore

from .live_job import METRIC, Job, assert_equal_to_the_log, running_world, wait_for
from .test_fault_job import send_some

FENCE, LOG, START_S = Fence(7, "definitions"), "events", 2_000_000_040
TEXT = "kind: metric\nname: m\nevents: {type: t}\nresolution: 1m\nkeep: {1m: 1d}"


class World:
    """One shard of a driver that counts live from offset 100 on, and lanes of what lies before."""

    def __init__(self, url: str) -> None:
        self.redis: Any = redis.Redis.from_url(url)
        self.shards = Shards(url, 1, timeout_s=5)
        self.shards.raise_fence(FENCE, 8)
        self.store = ShardStore(url, 0, timeout_s=5)
        self._mark({0: 100})
        self.at = 100
        self.fold = Definitions()
        self.fence = self._add(start_record(DriverStart("a", 1, "start"), at_ms=0))
        self.vid = self._add(put_record(Edit("acme", "metric", "m", None, "test", 0), TEXT))
        definition = self.fold.by_vid(self.vid)
        assert definition is not None
        said = counting(definition, {0: 100}, LOG, fills=True)
        self._add(activation_record(said, op="start", fence=self.fence, at_ms=0))
        self.book = LaneBook(self.shards, LOG)

    def lane(self, kind: Any) -> Lane:
        """Open a lane of either kind."""
        vids, shards = ((self.vid,), ()) if kind == "backfill" else ((), (0,))
        wanted = OpenLane(kind, LOG, {0: 0}, {0: 100}, vids, shards, until_ms=50_000)
        lane = self.fold.lanes[self._add(lane_record(wanted, fence=self.fence, at_ms=0))]
        if kind == "rebuild":
            self._mark({0: 0}, lane.name)
        return lane

    def slice(self) -> Slice:
        """Count the next slice of all: of each half a lane's events."""
        found = self.book.next(self.fold, 50)
        assert found is not None
        lane = found.lane
        assert self._commit(found.start[0], found.end[0], lane.name, lane.start) is Verdict.OK
        self.book.moved(found, self.fold)
        return found

    def live(self) -> None:
        """Count a live batch; the driver confirms then what lanes have come to their end."""
        assert self._commit(self.at, self.at + 1, names.LIVE_LANE, {}) is Verdict.OK
        self.at += 1
        self.book.confirm(self.fold)

    def under_way(self) -> list[tuple[int, int]]:
        """Return how far the lanes are that a batch record tells of."""
        return [(one.at, one.of) for one in self.book.progress(self.fold)]

    def counted(self) -> int:
        """Return how many events the version has."""
        found = self.redis.hvals(names.pane_key(0, self.vid, 60, START_S))
        return sum(rows.decode(row).n for row in found)

    def dump(self) -> dict[bytes, bytes]:
        """Return all that the shard holds."""
        return {key: self.redis.dump(key) for key in self.redis.scan_iter()}

    def restore(self, before: dict[bytes, bytes]) -> None:
        """Put it back to what it held."""
        self.redis.flushall()
        for key, value in before.items():
            self.redis.restore(key, 0, value)

    def close(self) -> None:
        """Close all connections."""
        self.redis.close()
        self.shards.close()
        self.store.close()

    def _commit(self, start: int, end: int, lane: str, lane_start: Any) -> Verdict:
        job = CommitJob(
            shard=0,
            shards=1,
            fence=FENCE,
            epoch=7,
            batch=-1,
            topic_id=LOG,
            from_offsets={0: start},
            to_offsets={0: end},
            limits={self.vid: Limits({60: 86_400})},
            lane=lane,
            lane_start=lane_start,
        )
        part = Part(*Pane(self.vid, 60, START_S), "=a", Row(end - start))
        return self.store.commit(job, [part]).verdict

    def _mark(self, end: dict[int, int], lane: str = names.LIVE_LANE) -> None:
        mark = Mark(epoch=7, batch=-1, topic_id=LOG, end=end, shards=1)
        self.redis.set(names.mark_key(0, lane), msgspec.json.encode(mark))

    def _add(self, record: NewRecord) -> int:
        change = self.fold.apply(self.fold.next_offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return change.offset


@pytest.fixture
def world(redis_url: str) -> Iterator[World]:
    """Return it on an empty Redis."""
    opened = World(redis_url)
    yield opened
    opened.close()


@pytest.mark.redis
@pytest.mark.parametrize("kind", ["backfill", "rebuild"])
class TestFailover:
    def test_a_last_slice_that_was_lost_is_counted_again(self, world: World, kind: str) -> None:
        """Until a live batch came after it nothing is told as done, and no version takes over."""
        lane = world.lane(kind)
        world.slice()
        before = world.dump()
        world.slice()
        assert world.under_way() == [(100, 100)], "nobody knows yet whether it is kept"
        assert world.book.filled(world.fold) == []
        assert world.book.untold(world.fold) != ()
        assert world.book.next(world.fold, 50) is None
        world.restore(before)

        with capture_logs() as logs:
            world.live()
        assert [(line["event"], line["lane"]) for line in logs] == [("lane_went_back", lane.offset)]
        assert world.under_way() == [(50, 100)]
        assert world.slice().start == {0: 50}
        world.live()
        assert (world.under_way(), world.counted()) == ([], 102)

    def test_one_that_is_kept_is_done_with_the_next_live_batch(
        self, world: World, kind: str
    ) -> None:
        """And told no more; a version takes over then, of a rebuild there is none."""
        lane = world.lane(kind)
        world.slice()
        world.live()
        world.slice()
        world.live()
        assert (world.under_way(), world.counted()) == ([], 102)
        filled = [(lane, world.vid)] if kind == "backfill" else []
        assert world.book.filled(world.fold) == filled
        assert world.book.untold(world.fold) == ()


@pytest.mark.redis
@pytest.mark.parametrize("kind", ["backfill", "rebuild"])
def test_what_the_newest_record_tells_to_be_under_way_is_so_in_the_next_life(
    world: World, kind: str
) -> None:
    """Its last slice was counted, and no record has told that: readers have seen nothing of it."""
    lane = world.lane(kind)
    world.slice()
    told = {one.lane for one in world.book.progress(world.fold)}
    assert told == {lane.offset}
    world.slice()

    world.book = LaneBook(world.shards, LOG)
    world.book.doubt(told)
    shard = Untold(0, world.vid if kind == "backfill" else None, None)
    assert [one._replace(before_ms=None) for one in world.book.untold(world.fold)] == [shard]
    assert world.under_way() == [(100, 100)]
    assert world.book.next(world.fold, 50) is None
    world.live()
    assert (world.book.untold(world.fold), world.under_way()) == ((), [])

    world.book = LaneBook(world.shards, LOG)
    world.book.doubt(())
    assert world.book.untold(world.fold) == ()


@pytest.mark.redis
def test_until_the_takeover_is_recorded_marks_are_read_with_each_batch(world: World) -> None:
    """Whatever takes the lane back while its version waits for a plan."""
    world.lane("backfill")
    world.slice()
    before = world.dump()
    world.slice()
    world.live()
    assert len(world.book.filled(world.fold)) == 1
    after = world.dump()
    kept = names.mark_key(0).encode(), names.token_key(0).encode()
    world.restore(before | {key: after[key] for key in kept})
    world.live()
    assert world.book.filled(world.fold) == []
    assert world.under_way() == [(50, 100)]


# As in `test_fault_job.py`. The Redis of this driver fails over right after a lane's last slice.
FAILS_OVER = """
import sys

if "weir_analytics.panes" in sys.orig_argv:
    import redis
    from weir_analytics.panes import lanes

    count, done = lanes.Filler._count, []

    def failing(self, cycle, slices, plan):
        client = redis.Redis.from_url(cycle.settings.redis_url)
        before = {key: client.dump(key) for key in client.scan_iter("weir:1:{*")}
        found = count(self, cycle, slices, plan)
        ends = any(dict(one.end) == dict(one.lane.end) for one, _ in found)
        if ends and not done:
            done.append(True)
            client.delete(*client.scan_iter("weir:1:{*"))
            for key, value in before.items():
                client.restore(key, 0, value)
            print('{"event": "failed_over"}', flush=True)
        return found

    lanes.Filler._count = failing
"""


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.redis
@pytest.mark.parametrize("wiped", [False, True], ids=["backfill", "rebuild"])
def test_the_job_counts_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wiped: bool
) -> None:
    """The job itself: every pane and the account are equal to the log."""
    (tmp_path / "sitecustomize.py").write_text(FAILS_OVER)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    with running_world(tmp_path / "world") as world:
        job = Job(world.bootstrap, world.redis_url, tmp_path / "job")
        try:
            if wiped:
                world.define("amount", METRIC)
                job.start()
            send_some(world, "before")
            if wiped:
                world.wait_serving("amount")
                world.wait_counted()
                assert job.stop() == 0
                world.redis.flushall()
            monkeypatch.setenv("PYTHONPATH", path)
            job.start()
            if not wiped:
                world.wait_counted()
                world.define("amount", METRIC)
            wait_for(lambda: job.lines("failed_over") != [], "the failover")
            assert_equal_to_the_log(world)
        finally:
            job.kill()
    assert job.lines("lane_went_back") != []
