"""A version begins when the plan of the batches that will count it is there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons
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
from weir_analytics.panes.activation import counting
from weir_analytics.panes.ahead import LONGEST_S, Ahead
from weir_analytics.panes.between import Pace
from weir_analytics.panes.changes import Changes
from weir_analytics.panes.lanes import Filler
from weir_analytics.panes.plans import Plans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from weir_analytics.panes.plan import Counted, Plan

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
        self.plans = Plans(self.fold, "log", Horizons({}, 3_600_000, 1_000), self.warmed.append)
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

        def append(record: NewRecord, fence: int) -> int:
            assert fence == self.fence
            return self.add(record)

        definitions = SimpleNamespace(fold=self.fold, append_fenced=append, append=self.add)
        stores: Any = SimpleNamespace(definitions=definitions)
        footing: Any = SimpleNamespace(fence=SimpleNamespace(fence=self.fence), events_id="log")
        nothing: Any = SimpleNamespace()
        changes = Changes(stores, nothing, footing, nothing, self.clock, lambda _definition: True)
        cycle: Any = SimpleNamespace(
            stores=stores, end=END, through_ms=THROUGH_S * 1000, set_aside=changes.set_aside
        )
        self.ahead.step(cycle)

    def steps(self, count: int) -> None:
        """Let it do some rounds."""
        for _ in range(count):
            self.step()

    def may_begin(self) -> set[str]:
        """Return the names of the metrics that wait and may begin."""
        waiting = self.fold.metrics_to_start()
        return {one.name for one in waiting if self.ahead.may_begin(one)}

    def aside(self) -> dict[str, str]:
        """Return by name what was set aside, and why, as every reader knows it."""
        waiting = {one.name: self.fold.set_aside(one.vid) for one in self.fold.metrics_to_start()}
        return {name: why for name, why in waiting.items() if why is not None}

    def restart(self) -> None:
        """Begin another process."""
        self.ahead = Ahead(self.plans, self.rehearsed.append, self.clock)


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


class Failing:
    """A Spark that makes no plan with some metrics.

    Attributes:
        names: Those metrics.
        is_down: Whether it makes none at all.
        made: The metrics of each plan that was wanted.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.names, self.is_down = set(names), False
        self.made: list[set[str]] = []
        monkeypatch.setattr("weir_analytics.panes.plans.make_plan", self.make)

    def make(self, counted: Sequence[Counted], *_: object, **__: object) -> Any:
        """Make a plan, or fail."""
        names = {one.version.name for one in counted}
        self.made.append(names)
        if self.is_down:
            msg = "the context is stopped"
            raise ConnectionError(msg)
        if bad := names & self.names:
            # Py4J gives everything a number, another one each time.
            msg = f"An error occurred while calling o{len(self.made)}.sql\n: no plan of {min(bad)}"
            raise RuntimeError(msg)
        return SimpleNamespace(versions=())


class TestPlanThatCannotBeMade:
    def test_it_is_set_aside_and_everything_else_begins(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Among many that came with it; its author reads why, and the log says it once."""
        world = World()
        Failing(monkeypatch, "m3")
        for n in range(8):
            world.define(f"m{n}")
        with capture_logs() as logs:
            world.steps(20)

        others = {"two", *(f"m{n}" for n in range(8) if n != 3)}
        assert world.may_begin() == others
        assert world.aside() == {"m3": "RuntimeError: no plan of m3"}
        assert [line["event"] for line in logs if line["log_level"] == "error"] == [
            "version_set_aside"
        ]
        world.clock.advance(round(LONGEST_S * 1000) + 1)
        assert world.may_begin() == others, "however long it waits"

    def test_while_it_is_looked_for_nobody_begins_without_a_plan(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A batch that counts it could not be made: that would end every life of the driver."""
        world = World()
        Failing(monkeypatch, "bad")
        world.define("bad")
        assert world.may_begin() == set()
        world.step()
        world.clock.advance(round(LONGEST_S * 1000) + 1)
        assert world.may_begin() == set(), "its plan is in hand"
        world.step()
        assert world.may_begin() == set(), "one half is in hand, and one is to come"

    def test_what_comes_later_does_not_wait_for_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A new version is tried without it first; then it is tried again, once a change."""
        world = World()
        spark = Failing(monkeypatch, "bad")
        world.define("bad")
        world.steps(9)
        before = len(spark.made)
        world.steps(5)
        assert len(spark.made) == before, "nothing has changed"
        world.define("later")
        world.steps(2)
        assert world.may_begin() >= {"later"}
        assert all("bad" not in names for names in spark.made[before:])
        world.steps(5)
        assert any("bad" in names for names in spark.made[before:])
        assert world.aside() == {"bad": "RuntimeError: no plan of bad"}
        world.restart()
        world.define("afresh")
        before = len(spark.made)
        world.steps(2)
        assert all("bad" not in names for names in spark.made[before:])

    def test_once_it_can_be_made_it_begins(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As with another release, whose process tries anew; and then nothing says otherwise."""
        world = World()
        spark = Failing(monkeypatch, "bad")
        world.define("bad")
        world.steps(9)
        world.restart()
        before = world.fold.next_offset
        world.steps(9)
        assert world.fold.next_offset == before, "told once, and not at each start"
        spark.names.clear()
        world.restart()
        world.steps(9)
        assert world.aside() == {}
        assert world.may_begin() == {"two", "bad"}

    def test_a_spark_that_is_down_sets_nobody_aside(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The driver's life ends by it, as by any other failure of Spark."""
        world = World()
        spark = Failing(monkeypatch)
        world.define("three")
        world.step()
        spark.is_down = True
        with pytest.raises(ConnectionError, match="the context is stopped"):
            world.step()
        spark.is_down = False
        world.steps(2)
        assert world.aside() == {}
        assert world.may_begin() == {"two", "three"}

    def test_a_worker_that_dies_once_sets_nobody_aside(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is tried again before anybody is told."""
        world = World()
        spark = Failing(monkeypatch, "two")
        real = spark.make

        def once(counted: Sequence[Counted], *_: object, **__: object) -> Any:
            try:
                return real(counted)
            except RuntimeError:
                spark.names.clear()
                raise

        monkeypatch.setattr("weir_analytics.panes.plans.make_plan", once)
        world.steps(4)
        assert world.aside() == {}
        assert world.may_begin() == {"two"}

    def test_a_backfill_without_a_plan_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its author reads why; a Spark that is down ends the driver's life instead."""
        world = World()
        spark = Failing(monkeypatch, "two")
        (waiting,) = world.fold.metrics_to_start()
        said = counting(waiting, {0: 9}, "log", fills=True)
        world.add(activation_record(said, op="start", fence=world.fence, at_ms=0))
        opened = OpenLane("backfill", "log", {0: 0}, {0: 9}, (waiting.vid,))
        lane = world.fold.lanes[world.add(lane_record(opened, fence=world.fence, at_ms=0))]
        filler = Filler(world.plans, lambda *_: None, world.clock, 9, lambda: Pace.BUSY)  # type: ignore[arg-type]
        filler._lane, filler._wanted = lane, world.plans.filling({}, END, END, (waiting.vid,))
        with capture_logs() as logs:
            filler.prepare()
        assert [(line["event"], line["lane"]) for line in logs] == [("lane_set_aside", lane.offset)]
        assert set(filler._refused) == {lane.offset}
        spark.is_down = True
        filler._wanted = world.plans.filling({}, END, END, (waiting.vid,))
        with pytest.raises(ConnectionError):
            filler.prepare()
