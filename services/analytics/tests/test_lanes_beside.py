"""Rebuilds that are counted side by side: which slices, by what, and what a refusal does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from weir.clock import ManualClock
from weir.commit import Verdict
from weir.definitions.fold import Definitions
from weir.definitions.records import (
    DriverStart,
    NewRecord,
    OpenLane,
    lane_record,
    start_record,
)
from weir_analytics.panes import lanes
from weir_analytics.panes.arrow_plan import ArrowPlan
from weir_analytics.panes.batch import Batch, Offsets
from weir_analytics.panes.between import Step, quiet
from weir_analytics.panes.holes import Hole, HoleError
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.lanes import Filler
from weir_analytics.panes.plans import Counting
from weir_analytics.panes.recovery import Shards, VerdictError
from weir_analytics.panes.slice_size import LEAST_RECORDS

from .test_lanes_overtaken import _batch

LOG = "events"
SIZE = 40_000
EVERYTHING = Counting((), guarded=False, erased=frozenset(), horizons=())


class Shard:
    """One shard that has a part in each rebuild, at its start."""

    def read_lane_marks(self, opened: Sequence[Any]) -> list[list[Any]]:
        """Return the marks as they were set when the shard was emptied."""
        return [[SimpleNamespace(end=lane.start)] for lane in opened]


class World:
    """Two partitions, each with a rebuild of its own, and a driver that counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, start: Offsets | None = None) -> None:
        self.fold = Definitions()
        self.fence = self._add(start_record(DriverStart("a", 1, "start"), at_ms=0))
        self.book = LaneBook(cast(Shards, Shard()), LOG)
        self.lanes = [self.lane({p: 0}, {p: SIZE}) for p in (0, 1)]
        self.evaluated: list[list[Batch]] = []
        self.refusals: list[Verdict | None] = []
        self.fails: Exception | None = None
        self.plan: Any = ArrowPlan.__new__(ArrowPlan)
        self.planned: list[Counting] = []
        self.made = [EVERYTHING]
        self.events = LEAST_RECORDS
        log = SimpleNamespace(start=lambda: dict(start or {}))
        monkeypatch.setattr(lanes, "LogOffsets", lambda *_: log)
        monkeypatch.setattr(lanes, "forget_lanes", lambda *_: None)
        plans: Any = SimpleNamespace(
            columns=False,
            plan_of=self._plan_of,
            is_made=lambda counting: counting in self.made,
            erased=lambda start, end: self.erased(start, end),
            rebuilding=lambda start, end, *_: self.counting(start, end),
        )
        self.clock, told = ManualClock(0), lambda: quiet(0.0)
        self.filler = Filler(plans, lambda *_: None, self.clock, SIZE, told, beside=2)  # type: ignore[arg-type]
        self.book.waits = self.filler.waits
        self.filler._open = {lane.name for lane in self.lanes}

    def counting(self, start: Offsets, end: Offsets) -> Counting:
        """Return what a range is counted for: everywhere the same."""
        del start, end
        return EVERYTHING

    def erased(self, start: Offsets, end: Offsets) -> frozenset[tuple[str, str]]:
        """Return without whom a range is counted: nobody."""
        del start, end
        return frozenset()

    def _plan_of(self, counting: Counting) -> Any:
        self.planned.append(counting)
        self.made.append(counting)
        return self.plan

    def lane(self, start: Offsets, end: Offsets) -> Any:
        """Open a rebuild."""
        wanted = OpenLane("rebuild", LOG, start, end, (), (0,), until_ms=50_000)
        return self.fold.lanes[self._add(lane_record(wanted, fence=self.fence, at_ms=0))]

    def _add(self, record: NewRecord) -> int:
        change = self.fold.apply(self.fold.next_offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return change.offset

    def step(self) -> None:
        """Count what is next; its plan is there."""
        before = len(self.evaluated)
        for _ in range(3):  # a new plan is made first
            self.filler.prepare()
            assert self.filler.step(self._cycle())
            if len(self.evaluated) > before:
                return
        pytest.fail("nothing was counted")

    def at(self) -> list[Offsets]:
        """Return where the shard stands in each lane, as the book has it."""
        self.book.open(self.fold)
        return [self.book._at[lane.offset][0] for lane in self.lanes]

    def _cycle(self) -> Any:
        return SimpleNamespace(
            spark=None,
            stores=SimpleNamespace(definitions=SimpleNamespace(fold=self.fold)),
            footing=SimpleNamespace(events_id=LOG, cut_epoch=0),
            settings=SimpleNamespace(kafka=None, dedup_dir=Path("f")),
            book=self.book,
            end={0: SIZE, 1: SIZE},
            through_ms=0,
            range_of=lambda start, end, _n: _ranged(start, end),
            evaluate=self._alone,
            evaluate_beside=self._beside,
        )

    def _alone(self, _log: object, batch: Batch, _plan: object) -> Any:
        (found,) = self._beside([batch], self.plan)
        if isinstance(found, VerdictError):
            raise found
        return found

    def _beside(self, batches: Sequence[Batch], plan: object) -> list[Any]:
        assert plan is self.plan
        self.evaluated.append(list(batches))
        if self.fails is not None:
            raise self.fails
        said = self.refusals or [None] * len(batches)
        done = SimpleNamespace(received=self.events)
        return [done if one is None else VerdictError(one, "refused") for one in said]


def _ranged(start: Offsets, end: Offsets) -> Batch:
    batch: Batch = _batch()
    return replace(batch, start=dict(start), end=dict(end), single=False)


def test_two_lanes_have_a_task_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of each at a time, of as many records; a task counts and commits all of its own."""
    world = World(monkeypatch)
    world.step()
    (batches,) = world.evaluated
    assert [(one.start, one.end) for one in batches] == [
        ({1: 0}, {1: LEAST_RECORDS}),
        ({0: 0}, {0: LEAST_RECORDS}),
    ]
    assert {one.lane for one in batches} == {lane.name for lane in world.lanes}
    assert all(one.single and one.accounts for one in batches)
    assert world.at() == [{0: LEAST_RECORDS}, {1: LEAST_RECORDS}]


def test_a_plan_is_made_before_the_turn_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may take seconds, in which live counting goes on."""
    world = World(monkeypatch)
    world.made = []
    assert world.filler.step(world._cycle()) is Step.SOON
    assert (world.planned, world.evaluated) == ([], [])
    world.filler.prepare()
    assert world.planned == [EVERYTHING]
    assert world.filler.step(world._cycle()) is Step.DONE
    assert len(world.evaluated) == 1


def test_no_more_at_a_time_than_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third lane waits; with one core each is counted alone, as a batch is."""
    world = World(monkeypatch)
    world.lanes.append(world.lane({2: 0}, {2: SIZE}))
    world.step()
    assert len(world.evaluated[-1]) == 2
    world.filler.beside = 1
    world.step()
    assert [one.single for one in world.evaluated[-1]] == [False]


def test_what_is_left_is_counted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a batch is."""
    world = World(monkeypatch)
    world.book.open(world.fold)
    world.book._at[world.lanes[0].offset] = {0: {0: SIZE}}
    world.step()
    assert [one.end for one in world.evaluated[-1]] == [{1: LEAST_RECORDS}]


def test_the_book_is_told_of_lanes_that_are_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks at the log finds there of which lanes no turn comes."""
    world = World(monkeypatch)
    world.filler._refused = {world.lanes[0].offset: "no plan"}
    world.step()
    assert world.book.left_out(world.lanes) == world.lanes[:1]


@pytest.mark.parametrize("refusal", [Verdict.BEHIND, Verdict.REWIND])
def test_where_a_shard_moved_one_lane_is_read_again(
    monkeypatch: pytest.MonkeyPatch, refusal: Verdict
) -> None:
    """The other one is committed and goes on."""
    world = World(monkeypatch)
    world.refusals = [refusal, None]
    world.step()
    assert world.lanes[1].offset not in world.book._at
    assert world.at() == [{0: LEAST_RECORDS}, {1: 0}]


@pytest.mark.parametrize("first", [None, Verdict.LOST, Verdict.BEHIND])
def test_what_else_refuses_one_ends_the_life(
    monkeypatch: pytest.MonkeyPatch, first: Verdict | None
) -> None:
    """Whichever of them it was, and the gravest: after LOST a driver would begin again."""
    world = World(monkeypatch)
    world.refusals = [first, Verdict.FENCED]
    with pytest.raises(VerdictError, match="refused") as raised:
        world.step()
    assert raised.value.verdict is Verdict.FENCED


def test_a_hole_in_one_ends_the_life_and_moves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one may be committed: its marks say so, once the next life has read them."""
    world = World(monkeypatch)
    before = world.filler.last
    world.fails = HoleError([Hole(0, 7, 9)])
    with pytest.raises(HoleError):
        world.step()
    assert len(world.evaluated[-1]) == 2
    assert world.at() == [{0: 0}, {1: 0}]
    assert world.filler.last == before


def test_lanes_come_to_where_a_metric_begins_by_different_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One plan counts both: what is counted somewhere in all of it, each event by its place."""
    world, ranges = World(monkeypatch), list[tuple[Offsets, Offsets]]()

    def counting(start: Offsets, end: Offsets) -> Counting:
        ranges.append((start, end))
        return EVERYTHING._replace(guarded=0 in start, versions=tuple(map(str, start)))  # type: ignore[arg-type]

    monkeypatch.setattr(world, "counting", counting)
    world.step()
    assert [one.end for one in world.evaluated[-1]] == [{1: LEAST_RECORDS}, {0: LEAST_RECORDS}]
    assert ranges[-1] == ({1: 0, 0: 0}, {0: LEAST_RECORDS, 1: LEAST_RECORDS})
    assert world.planned[-1] == counting({1: 0, 0: 0}, {})


def test_a_lane_of_older_hours_widens_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its part of a partition lies before that of the other one: nothing between is left out."""
    world, ranges = World(monkeypatch), list[tuple[Offsets, Offsets]]()

    def counting(start: Offsets, end: Offsets) -> Counting:
        ranges.append((start, end))
        return EVERYTHING

    world.lanes = [world.lane({0: 60_000, 1: 60_000}, {0: 99_000, 1: 99_000})]
    monkeypatch.setattr(world, "counting", counting)
    world.step()
    assert len(world.evaluated[-1]) == 2
    assert ranges[-1] == ({0: 60_000, 1: 0}, {0: 62_500, 1: 62_500})


def test_a_lane_behind_an_erasure_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whom a plan counts nothing, it counts nothing wherever the event lies."""
    world = World(monkeypatch)

    def erased(_start: Offsets, end: Offsets) -> frozenset[tuple[str, str]]:
        return frozenset() if 1 in end else frozenset([("a", "h")])

    monkeypatch.setattr(world, "erased", erased)
    world.step()
    assert [one.end for one in world.evaluated[-1]] == [{1: LEAST_RECORDS}]


def test_a_plan_of_columns_counts_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tasks do not read the log themselves."""
    world = World(monkeypatch)
    world.plan = "of columns"

    def counting(start: Offsets, end: Offsets) -> Counting:
        del end
        return EVERYTHING._replace(versions=tuple(map(str, start)))  # type: ignore[arg-type]

    monkeypatch.setattr(world, "counting", counting)
    world.made = []
    world.step()
    assert len(world.evaluated[-1]) == 1
    assert world.planned[-1] == counting({1: 0}, {}), "and by what it needs itself"


def test_columns_for_all_look_at_no_other_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their plan for several is made for nothing."""
    world = World(monkeypatch)
    world.plan, world.filler.plans.columns = "of columns", True
    world.step()
    assert [one.end for one in world.evaluated[-1]] == [{1: LEAST_RECORDS}]


def test_ticks_are_no_measure_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their slices take next to nothing."""
    world = World(monkeypatch)
    world.step()
    known = world.filler.last.events_per_s
    assert known is not None
    world.events = 3
    world.step()
    assert world.filler.last.events_per_s == known


def test_what_the_log_has_lost_is_counted_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another lane too, when its turn comes: it is read in another way."""
    world = World(monkeypatch, start={0: 10})
    world.step()
    assert [one.end for one in world.evaluated[-1]] == [{1: LEAST_RECORDS}]
