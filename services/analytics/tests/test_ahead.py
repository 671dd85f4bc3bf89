"""A version begins when the plan of the batches that will count it is there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from weir.clock import ManualClock
from weir.definitions.fold import Definitions
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    activation_record,
    put_record,
    start_record,
)
from weir_analytics.panes.activation import counting
from weir_analytics.panes.ahead import LONGEST_S, Ahead
from weir_analytics.panes.plans import Plans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from weir_analytics.panes.plan import Plan

TEXT = "kind: metric\nname: {}\nevents: {{type: t}}\nby: [data.a]\nkeep: {{10s: 1h}}\n"
END = {0: 40, 1: 7}
THROUGH_S = 1_800_000_000


class World:
    """A fold with a metric that is counted and one that waits."""

    def __init__(self) -> None:
        self.fold = Definitions()
        self.warmed: list[Plan] = []
        self.rehearsed: list[Plan] = []
        self.clock = ManualClock(0)
        self.plans = Plans(self.fold, "log", 1_000, self.warmed.append)
        self.ahead = Ahead(self.plans, self.rehearsed.append, self.clock)
        self.fence = self.add(start_record(DriverStart("a", 1, "start"), at_ms=0))
        self.begin(self.define("one"), {0: 3})
        self.define("two")

    def define(self, name: str) -> int:
        """Write the first version of a metric; return its id."""
        return self.add(put_record(Edit("acme", "metric", name, None, "x", 0), TEXT.format(name)))

    def begin(self, vid: int, at: dict[int, int]) -> None:
        """Record that a version begins somewhere in the log."""
        definition = self.fold.by_vid(vid)
        assert definition is not None
        said = counting(definition, at, "log")
        self.add(activation_record(said, op="start", fence=self.fence, at_ms=0))

    def add(self, record: NewRecord) -> int:
        """Append a record of the definitions; return where it stands."""
        offset = self.fold.next_offset
        change = self.fold.apply(offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return offset

    def step(self) -> None:
        """Let the thread between batches do its round."""
        self.ahead.prepare()
        stores = SimpleNamespace(definitions=SimpleNamespace(fold=self.fold))
        cycle: Any = SimpleNamespace(stores=stores, end=END, through_ms=THROUGH_S * 1000)
        self.ahead.step(cycle)


@pytest.mark.spark
class TestAhead:
    def test_the_next_batch_finds_its_plan(self, spark: SparkSession) -> None:
        """Made and rehearsed before the version begins, and the same wherever it begins."""
        assert spark
        world = World()
        (waiting,) = world.fold.metrics_to_start()
        assert not world.ahead.may_begin(waiting)
        world.step()
        assert not world.ahead.may_begin(waiting)
        world.step()
        assert world.ahead.may_begin(waiting)
        assert world.rehearsed == world.warmed
        assert len(world.warmed) == 1

        world.begin(waiting.vid, {0: 44, 1: 9})
        plan = world.plans.for_range({0: 44, 1: 9}, {0: 50, 1: 9}, THROUGH_S)

        assert plan is world.warmed[0]
        assert [version.name for version in plan.versions] == ["one", "two"]
        world.step()
        world.step()
        assert len(world.warmed) == 1

    def test_a_range_across_a_beginning_has_a_plan_of_its_own(self, spark: SparkSession) -> None:
        """It tests the place of each event, and holds the place: it serves that range alone."""
        assert spark
        world = World()
        inside = world.plans.versions_for({0: 5}, {0: 9}, THROUGH_S)
        across = world.plans.versions_for({0: 1}, {0: 9}, THROUGH_S)
        assert (inside.guarded, inside.versions[0].version.begin) == (False, {})
        assert (across.guarded, across.versions[0].version.begin) == (True, {0: 3})


def test_whoever_waits_long_begins_without() -> None:
    """A thread that is kept from its round keeps no metric from being counted."""
    world = World()
    (waiting,) = world.fold.metrics_to_start()
    assert not world.ahead.may_begin(waiting)
    world.clock.advance(round(LONGEST_S * 1000) + 1)
    assert world.ahead.may_begin(waiting)
