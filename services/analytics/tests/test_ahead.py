"""A version begins when the plan of the batches that will count it is there."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.definitions.fold import Definitions
from weir.definitions.history import Definition, Horizons, Lane
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    OpenLane,
    activation_record,
    delete_record,
    lane_record,
    put_record,
    start_record,
)
from weir.erasure import erasures
from weir_analytics.panes.activation import counting
from weir_analytics.panes.ahead import LONGEST_S, UNTRIED_S, Ahead
from weir_analytics.panes.between import BUSY
from weir_analytics.panes.changes import Changes
from weir_analytics.panes.due import About, Due
from weir_analytics.panes.lanes import Filler
from weir_analytics.panes.plans import Counting as PlanOf
from weir_analytics.panes.plans import Plans

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession
    from weir_analytics.panes.arrow_plan import AnyPlan
    from weir_analytics.panes.batch import Offsets
    from weir_analytics.panes.plan import Counted

TEXT = "kind: metric\nname: {}\nevents: {{type: t}}\nby: [data.a]\nkeep: {{10s: 1h}}\n"
END = {0: 40, 1: 7}
THROUGH_S = 1_800_000_000


class WithoutLog(Changes):
    """What a driver says whose settings are those it began with, and that opens no lanes."""

    later_ms = 0

    def _set_horizons(self, end: Offsets) -> None:
        pass

    def _open_lanes(self) -> None:
        pass

    def _complete_from_ms(self, unknown: Mapping[int, Lane]) -> dict[int, int]:
        """Say another instant each time, as while retention goes on."""
        self.later_ms += 10_000 if unknown else 0
        return {n: lane.complete_from_ms + self.later_ms for n, lane in unknown.items()}


class World:
    """A fold with a metric that is counted and one that waits."""

    def __init__(self) -> None:
        self.fold = Definitions()
        self.warmed: list[AnyPlan] = []
        self.rehearsed: list[AnyPlan] = []
        self.places: list[tuple[Offsets, ...]] = []
        self.clock = ManualClock(0)
        usual = Horizons({}, 3_600_000, 1_000)
        self.plans = Plans(self.fold, "log", usual, self.warmed.append, hash_key=b"k")
        self.end, self.through_s = dict(END), THROUGH_S
        self.filled: list[tuple[Lane, int]] = []
        self.restart()
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
        cycle: Any = SimpleNamespace(
            stores=self.changes.stores, due=self.due, set_aside=self.changes.set_aside
        )
        self.ahead.step(cycle)

    def due(self, choose: Callable[[About, Definition], bool]) -> Due:
        """Return what is to be said where the last batch ended."""
        return self.changes.due(self.end, choose, had_events=True, through_s=self.through_s)

    def batch_ends(self) -> int:
        """Let a batch end, and plan the next one; return how many plans that has made."""
        self.end = {p: n + 5 for p, n in self.end.items()}
        self.changes.record(self.end, had_events=True, through_s=self.through_s)
        before = len(self.warmed)
        self.plans.plan_of(self.next(), in_use=True)
        return len(self.warmed) - before

    def next(self) -> PlanOf:
        """Return what the next batch is counted for."""
        return self.plans.versions_for(self.end, {p: n + 5 for p, n in self.end.items()})

    def batches(self, count: int) -> int:
        """Let batches end, and the thread between them do its rounds; return the same."""
        made = 0
        for _ in range(count):
            made += self.batch_ends()
            self.step()
        return made

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

    def rehearse(self, plan: AnyPlan, places: Sequence[Offsets]) -> None:
        """Run a plan over records of the log."""
        self.places.append(tuple(places))
        self.rehearsed.append(plan)

    def restart(self) -> None:
        """Begin another process."""
        self.ahead = Ahead(self.plans, self.rehearse, self.clock)

        def append(record: NewRecord, fence: int) -> int:
            assert fence == self.fence
            return self.add(record)

        definitions = SimpleNamespace(fold=self.fold, append_fenced=append, append=self.add)
        stores: Any = SimpleNamespace(definitions=definitions)
        footing: Any = SimpleNamespace(events_id="log")
        settings: Any = SimpleNamespace(hash_key=b"k", tenant_bytes=1 << 40)
        book: Any = SimpleNamespace(
            filled=lambda fold: [
                (lane, vid) for lane, vid in self.filled if not fold.activations[vid].serves
            ]
        )
        self.changes = WithoutLog(stores, settings, footing, book, self.clock, self.ahead)
        if self.fold.fence() is None:
            self.fence = self.add(start_record(DriverStart("a", 1, "start"), at_ms=0))
        footing.fence = SimpleNamespace(fence=self.fence)


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
        plan = world.plans.plan_of(world.plans.versions_for({0: 44, 1: 9}, {0: 50, 1: 9}))

        assert plan is world.warmed[0]
        assert [version.name for version in plan.versions] == ["one", "two"]
        world.step()
        world.step()
        assert len(world.warmed) == 1

    def test_a_range_across_a_beginning_has_a_plan_of_its_own(self, spark: SparkSession) -> None:
        """It tests the place of each event, and holds the place: it serves that range alone."""
        assert spark
        world = World()
        inside = world.plans.versions_for({0: 5}, {0: 9})
        across = world.plans.versions_for({0: 1}, {0: 9})
        assert (inside.guarded, inside.versions[0].version.begin) == (False, {})
        assert (across.guarded, across.versions[0].version.begin) == (True, {0: 3})


def test_whoever_waits_long_begins_without() -> None:
    """A thread that is kept from its round for ever keeps no metric from being counted."""
    world = World()
    (waiting,) = world.fold.metrics_to_start()
    assert not world.ahead.may_begin(waiting)
    world.clock.advance(round(UNTRIED_S * 1000))
    assert not world.ahead.may_begin(waiting), "untried it might hold up everybody"
    world.clock.advance(1)
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


ERASE = '{"do": {"job": "erase", "subject_hash": "%s"}}' % ("a" * 64)


class Counting(World):
    """Both metrics are counted, and `one` was edited: its new version is filled from the log."""

    def __init__(self) -> None:
        super().__init__()
        self.batches(4)
        edit = Edit("acme", "metric", "one", 1, "x", 0)
        self.edited = self.add(put_record(edit, TEXT.format("one") + "max_series: 7\n"))
        self.batches(4)
        opened = OpenLane("backfill", "log", {0: 0}, {0: 9}, (self.edited,))
        opened = replace(opened, complete_from_ms=1_000 * (THROUGH_S - 60))
        at = self.add(lane_record(opened, fence=self.fence, at_ms=0))
        self.lane = self.fold.lanes[at]
        assert self.names() == ["one", "two", "one"]

    def names(self) -> list[str]:
        """Return the names of what the next batch is counted for."""
        return [one.version.name for one in self.next().versions]

    def fill(self) -> None:
        """Be done with the lane."""
        self.filled = [(self.lane, self.edited)]

    def delete(self, name: str) -> None:
        """Delete a metric."""
        self.add(delete_record(Edit("acme", "metric", name, 1, "x", 0)))

    def erase(self, name: str = "gone") -> int:
        """Ask for an erasure; return its id."""
        return self.add(put_record(Edit("acme", "job", name, None, "x", 0), ERASE))

    def cuts(self) -> list[tuple[str, bool, bool]]:
        """Return by version whether it has a cut to the one before it, and to the one after."""
        versions = [one.version for one in self.next().versions]
        return [(one.name, bool(one.cut_from), bool(one.cut_until)) for one in versions]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """Return it, with a Spark that fails with nothing."""
    Failing(monkeypatch)
    return Counting()


class TestWhatChangesBesideBeginnings:
    def test_a_takeover(self, world: Counting) -> None:
        """With its cuts; and the end of the version before, once its panes are too old."""
        world.fill()
        assert world.batches(5) == 0
        assert world.cuts() == [("one", False, True), ("two", False, False), ("one", True, False)]
        world.through_s += 3_700
        assert world.batches(5) == 0
        assert world.cuts() == [("two", False, False), ("one", True, False)]

    def test_the_end_of_a_deleted_metric(self, world: Counting) -> None:
        """Its events are counted until the plan without it is there."""
        world.delete("two")
        assert world.batch_ends() == 0
        assert world.names() == ["one", "two", "one"]
        world.steps(2)
        assert world.batch_ends() == 0
        assert world.names() == ["one", "one"]

    def test_an_erasure(self, world: Counting) -> None:
        """It holds from the batch on that finds its plan."""
        job = world.erase()
        assert world.batch_ends() == 0
        assert (job in world.fold.jobs, len(world.next().erased)) == (False, 0)
        world.steps(2)
        assert world.batch_ends() == 0
        assert (job in world.fold.jobs, len(world.next().erased)) == (True, 1)

    def test_all_at_once(self, world: Counting) -> None:
        """Together: each by itself would be a plan of its own."""
        before = len(world.warmed)
        world.fill()
        world.delete("two")
        world.erase()
        world.define("three")
        assert world.batches(5) == 0
        assert world.cuts() == [("one", False, True), ("one", True, False), ("three", False, False)]
        assert len(world.warmed) == before + 1

    def test_what_comes_while_a_plan_is_made_waits_for_the_next_one(self, world: Counting) -> None:
        """Else one who changes something all the time would hold up everybody."""
        world.delete("two")
        world.step()
        world.fill()
        world.ahead.prepare()
        assert world.batch_ends() == 0
        assert world.cuts() == [("one", False, False), ("one", False, False)]
        assert world.batches(3) == 0
        assert world.cuts() == [("one", False, True), ("one", True, False)]

    def test_a_version_of_after_an_erasure_begins_no_earlier(self, world: Counting) -> None:
        """It would count who was erased before it was made."""
        job, vid = world.erase(), world.define("three")
        world.ahead.proven.ready |= {vid}  # as after a start, which makes plans of all that wait
        for _ in range(6):
            assert world.batches(1) == 0
            assert vid not in world.fold.activations or job in world.fold.jobs
        (erased,) = erasures(world.fold)
        assert world.fold.activations[vid].begin[0] >= erased.offsets[0]

    def test_whoever_waits_long_goes_without(self, world: Counting) -> None:
        """A thread that does not come round to it keeps nothing from being said."""
        world.delete("two")
        world.fill()
        world.batch_ends()
        assert world.names() == ["one", "two", "one"]
        world.clock.advance(round(LONGEST_S * 1000) + 1)
        assert world.batch_ends() == 1
        assert world.cuts() == [("one", False, True), ("one", True, False)]

    def test_what_was_refused_for_long_waits_like_all_else(
        self, world: Counting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once its plan can be made; nothing that is due beside it goes without for its sake."""
        spark = Failing(monkeypatch, "bad")
        vid = world.define("bad")
        world.batches(4)
        world.clock.advance(round(LONGEST_S * 1000) + 1)
        spark.names.clear()
        world.delete("two")
        for _ in range(9):
            world.step()
            if vid in world.ahead.proven.ready:
                break
        world.fill()
        world.step()
        assert world.fold.set_aside(vid) is None
        assert world.batch_ends() == 0
        assert world.batches(4) == 0
        assert world.cuts() == [("one", False, True), ("one", True, False), ("bad", False, False)]

    def test_a_plan_that_fails_is_tried_once(
        self, world: Counting, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With which version, the batch finds out that needs it; that is not held up for ever."""
        world.delete("two")
        world.batch_ends()
        spark = Failing(monkeypatch, "one")
        with capture_logs() as logs:
            world.steps(6)
        assert [line["event"] for line in logs] == ["plan_not_made"]
        assert spark.made == [{"one"}, set()]
        spark.names.clear()
        world.clock.advance(round(LONGEST_S * 1000) + 1)
        world.batch_ends()
        assert world.names() == ["one", "one"]


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
        world.clock.advance(round(UNTRIED_S * 1000) + 1)
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
        world.clock.advance(round(UNTRIED_S * 1000) + 1)
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
        """Its author reads why; while Spark is down it waits instead."""
        world = World()
        spark = Failing(monkeypatch, "two")
        (waiting,) = world.fold.metrics_to_start()
        said = counting(waiting, {0: 9}, "log", fills=True)
        world.add(activation_record(said, op="start", fence=world.fence, at_ms=0))
        opened = OpenLane("backfill", "log", {0: 0}, {0: 9}, (waiting.vid,))
        lane = world.fold.lanes[world.add(lane_record(opened, fence=world.fence, at_ms=0))]
        filler = Filler(world.plans, lambda *_: None, world.clock, 9, lambda: BUSY)  # type: ignore[arg-type]
        filler._lane, filler._wanted = lane, world.plans.filling({}, END, END, (waiting.vid,))
        with capture_logs() as logs:
            filler.prepare()
        assert [(line["event"], line["lane"]) for line in logs] == [("lane_set_aside", lane.offset)]
        assert set(filler._refused) == {lane.offset}
        spark.is_down = True
        filler._refused, filler._wanted = {}, world.plans.filling({}, END, END, (waiting.vid,))
        filler.prepare()
        assert filler._refused == {}
        assert filler.waits.whys == {lane.offset: "ConnectionError: the context is stopped"}
