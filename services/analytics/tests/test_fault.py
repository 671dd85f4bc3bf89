"""A version that was counted, and that cannot be any more: as a plan, or with certain records."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.definitions.fold import Definitions
from weir.definitions.records import Counting as Begun
from weir.definitions.records import (
    DriverStart,
    Edit,
    OpenLane,
    activation_record,
    lane_record,
    put_record,
    start_record,
    takeover_record,
)
from weir.lanes import counted_lanes
from weir_analytics.panes import cycle as cycle_module
from weir_analytics.panes import trial as trial_module
from weir_analytics.panes.activation import (
    counting,
    predecessor,
    takeover,
    to_stop,
)
from weir_analytics.panes.between import BUSY
from weir_analytics.panes.changes import Changes
from weir_analytics.panes.countable import Countable
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.due import Open
from weir_analytics.panes.fault import Repeats, at_fault
from weir_analytics.panes.holes import Hole, HoleError
from weir_analytics.panes.lanes import Filler
from weir_analytics.panes.passing import TrialError
from weir_analytics.panes.trial import Trial
from weir_analytics.panes.writer import ENDED

from .test_ahead import END, TEXT, THROUGH_S, Failing, World
from .test_lanes_overtaken import _batch
from .test_passing import raised

FROM, TO = {0: 40, 1: 7}, {0: 50, 1: 9}


class Counted(World):
    """Some metrics that are counted from the log's start on: `m0` to `m5`, and `one`."""

    def __init__(self) -> None:
        super().__init__()
        self.vids = {f"m{n}": self.define(f"m{n}") for n in range(6)}
        for vid in self.vids.values():
            self.begin(vid, {})

    def driver(self) -> Any:
        """Return what a driver counts by: it stands where the last batch ended."""
        log = SimpleNamespace(fold=self.fold, append_fenced=lambda record, _: self.add(record))
        stores: Any = SimpleNamespace(definitions=log)
        footing: Any = SimpleNamespace(fence=SimpleNamespace(fence=self.fence), events_id="log")
        book: Any = SimpleNamespace()
        changes = Changes(stores, book, footing, book, ManualClock(), Open())
        driver = SimpleNamespace(
            plans=self.plans, through_ms=THROUGH_S * 1000, end=FROM, _changes=changes, stores=stores
        )
        driver.set_aside = changes.set_aside
        driver.leave_out = lambda faults: Cycle.leave_out(cast("Cycle", driver), faults)
        return driver

    def batch(self) -> set[str]:
        """Plan a live batch; return what it counts."""
        made = len(self.spark.made)
        Cycle._plan_of(self.driver(), cast("Any", SimpleNamespace(start=FROM, end=TO)))
        return self.spark.made[-1] if len(self.spark.made) > made else set()

    spark: Failing

    def names(self) -> set[str]:
        """Return what a live batch would count."""
        found = self.plans.versions_for(FROM, TO)
        return {one.version.name for one in found.versions}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Return it, with a Spark that fails with nothing yet."""
    found = Counted()
    found.spark = Failing(monkeypatch)
    return found


ALL = {"one", *(f"m{n}" for n in range(6))}


def test_everything_else_is_counted(world: Counted) -> None:
    """From the very batch on; readers know where it ends, and why."""
    world.spark.names |= {"m3", "m4"}
    with capture_logs() as logs:
        assert world.batch() == ALL - {"m3", "m4"}
    bad = {world.vids["m3"], world.vids["m4"]}
    assert [line["vid"] for line in logs if line["event"] == "version_set_aside"] == sorted(bad)
    assert {vid for vid in world.vids.values() if world.fold.is_left_out(vid)} == bad
    assert world.fold.set_aside(world.vids["m3"]) == "RuntimeError: no plan of m3"
    assert {vid: world.fold.activations[vid].finish for vid in bad} == dict.fromkeys(bad, FROM)
    before = world.fold.next_offset
    assert world.names() == ALL - {"m3", "m4"}
    assert world.batch() == set(), "its plan is there"
    assert world.fold.next_offset == before


@pytest.mark.parametrize("what", ["spark is down", "none is to blame", "a worker died"])
def test_nobody_is_blamed_for_what_is_no_versions_fault(world: Counted, what: str) -> None:
    """The driver's life ends by it, as by any other failure."""
    counting = world.plans.versions_for(FROM, TO)
    error = RuntimeError("no plan")
    if what == "spark is down":
        world.spark.is_down = True
    if what == "a worker died":
        real, world.spark.names = world.plans.plan_of, {"m3"}
        tries: list[object] = []

        def once(asked: Any) -> Any:
            if [one.version.name for one in asked.versions] == ["m3"]:
                tries.append(asked)
                if len(tries) == 2:
                    world.spark.names = set()
            return real(asked)

        world.plans.plan_of = once  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="no plan") as raised:
        at_fault(Trial(world.plans), counting, error)
    assert raised.value is error


def test_nobody_is_left_out_when_spark_stops_meanwhile(world: Counted) -> None:
    """From some plan on all of them fail: that is the driver's end, and no metric's."""
    world.spark.names = {"m3"}
    real = world.plans.plan_of

    def until_the_fourth(asked: Any) -> Any:
        world.spark.is_down = len(world.spark.made) >= 4
        return real(asked)

    world.plans.plan_of = until_the_fourth  # type: ignore[method-assign, assignment]
    counting = world.plans.versions_for(FROM, TO)
    error = RuntimeError("no plan")
    with pytest.raises((RuntimeError, ConnectionError)) as raised:
        at_fault(Trial(world.plans), counting, error)
    assert isinstance(raised.value.__cause__, ConnectionError)


class Range(Counted):
    """A live range with a record that some of the metrics fail with; `is_down`: everybody does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        super().__init__()
        self.bad, self.is_down, self.passes = set(names), False, 1_000
        self.is_outside = False
        self.trials: list[set[str]] = []
        self.repeats = Repeats()

        def make(counted: Any, *_: object, **__: object) -> Any:
            return SimpleNamespace(versions=[one.version for one in counted])

        monkeypatch.setattr("weir_analytics.panes.plans.make_plan", make)
        monkeypatch.setattr(cycle_module, "try_out", lambda _spark, plan, _batch: self._try(plan))

    def _try(self, plan: Any) -> None:
        names = {one.name for one in plan.versions}
        self.trials.append(names)
        if self.is_down or (names & self.bad and len(self.trials) < self.passes):
            msg = f"ZeroDivisionError: {min(names & self.bad, default='no memory')}"
            raise TrialError(msg, is_outside=self.is_outside)

    def count(self, error: Exception | None = None, start: Any = FROM) -> set[str]:
        """Count the range as a driver's next life does; return by which metrics."""
        driver = self.driver()
        counted: list[set[str]] = []

        def evaluate(_log: object, _batch: object, plan: Any) -> None:
            names = {one.name for one in plan.versions}
            if names & self.bad:
                raise error or PySparkException("Python worker exited unexpectedly (crashed)")
            counted.append(names)

        def count(*given: Any, **named: Any) -> Any:
            return Cycle.count(cast("Cycle", driver), *given, **named)

        driver.spark, driver.repeats, driver.evaluate, driver.count = (
            None,
            self.repeats,
            evaluate,
            count,
        )
        driver._untold = lambda *_: ()
        driver._plan_of = lambda batch: Cycle._plan_of(driver, batch)
        driver._blame = lambda *given: Cycle._blame(driver, *given)
        batch = replace(_batch(), start=start, end=TO)
        driver.count(None, batch)
        (found,) = counted
        return found


class TestRecordsThatAVersionFailsWith:
    @pytest.mark.parametrize("bad", [{"m3"}, {"m0", "m4"}])
    def test_it_is_left_out_when_the_range_fails_again(
        self, monkeypatch: pytest.MonkeyPatch, bad: set[str]
    ) -> None:
        """The first failure may pass; whoever is left out stops where the last batch ended."""
        world = Range(monkeypatch, *bad)
        with pytest.raises(PySparkException):
            world.count()
        assert world.trials == []
        with capture_logs() as logs:
            assert world.count() == ALL - bad
        assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
            "batch_fails_again"
        ]
        for name in bad:
            vid = world.vids[name]
            assert world.fold.is_left_out(vid)
            assert world.fold.activations[vid].finish == FROM
            assert world.fold.set_aside(vid) == (
                f"with records of the log it fails: ZeroDivisionError: {name}"
            )
        assert set() in world.trials, "first of all nobody's metrics"

    def test_another_range_is_another_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each has failed once."""
        world = Range(monkeypatch, "m3")
        for start in (FROM, {0: 41, 1: 7}, FROM):
            with pytest.raises(PySparkException):
                world.count(start=start)
        assert world.trials == []

    @pytest.mark.parametrize("what", ["everything fails", "nothing does", "one did once"])
    def test_nobody_is_blamed_for_what_is_no_versions_fault(
        self, monkeypatch: pytest.MonkeyPatch, what: str
    ) -> None:
        """It is looked for the second time, the fourth, the eighth: each search takes long."""
        world = Range(monkeypatch, "m3")
        world.is_down = what == "everything fails"
        world.passes = {"nothing does": 0, "one did once": 5}.get(what, 1_000)
        searched = list[int]()
        for times in range(1, 20):
            before = len(world.trials)
            with pytest.raises(PySparkException):
                world.count()
            if len(world.trials) > before:
                searched.append(times)
        assert searched == [2, 4, 8, 16]
        assert not any(map(world.fold.is_left_out, world.vids.values()))

    def test_a_log_that_fails_some_trials_is_nobodys_fault(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An old part of it answers now and then: what fails one half says nothing of it."""
        world = Range(monkeypatch, "m3")
        world.is_outside = True
        for _ in range(4):
            with pytest.raises(PySparkException):
                world.count()
        assert len([names for names in world.trials if "m3" in names]) == 2, "a search ends there"
        assert not any(map(world.fold.is_left_out, world.vids.values()))

    def test_no_version_is_searched_for_where_the_log_fails(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However often; nor is that one of the failures of its records."""
        world = Range(monkeypatch, "m3")
        said = "Traceback (most recent call last):\nTimeoutError: the log did not answer"
        for _ in range(8):
            with pytest.raises(PySparkException):
                world.count(PySparkException(said))
        with pytest.raises(PySparkException):
            world.count()
        assert world.trials == []

    @pytest.mark.parametrize("live", [None, "scala.MatchError: 7"])
    def test_what_nobody_knows_may_well_be_a_versions(
        self, monkeypatch: pytest.MonkeyPatch, live: str | None
    ) -> None:
        """The JVM's reasons are as many as its parts; it fails twice, and all else is counted."""
        world = Range(monkeypatch, "m3")
        tried: list[set[str]] = []

        def run(_spark: object, _log: object, plan: Any, _batch: object) -> list[str]:
            names = {one.name for one in plan.versions}
            tried.append(names)
            if "m3" in names:
                msg = "scala.MatchError: 7 (of class java.lang.Integer)"
                raise PySparkException(msg)
            return []

        monkeypatch.setattr(trial_module, "run", run)
        monkeypatch.setattr(cycle_module, "try_out", trial_module.try_out)
        error = PySparkException(live) if live else None
        with pytest.raises(PySparkException):
            world.count(error)
        assert world.count(error) == ALL - {"m3"}
        assert tried.count({"m3"}) >= 2
        assert tried.count(set()) == 2, "before anybody is looked for, and in the end"
        assert world.fold.is_left_out(world.vids["m3"])

    def test_a_hole_is_nobodys_fault(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is read three times and then given up."""
        world = Range(monkeypatch, "m3")
        for _ in range(2):
            with pytest.raises(PySparkException):
                world.count(raised(f"a.b.HoleError: {HoleError([Hole(0, 41, 42)])}"))
        assert world.trials == []


def test_a_rebuild_goes_on_without_it(world: Counted) -> None:
    """Whose plan fails is counted no further; the lane begins with the others."""
    world.spark.names = {"m5"}
    opened = OpenLane("rebuild", "log", {0: 0}, {0: 9}, (), (0,), until_ms=1)
    lane = world.fold.lanes[world.add(lane_record(opened, fence=world.fence, at_ms=0))]
    filler = Filler(world.plans, lambda *_: None, world.clock, 9, lambda: BUSY)  # type: ignore[arg-type]
    filler._lane = lane
    filler._wanted = world.plans.rebuilding({0: 0}, {0: 9}, END, THROUGH_S)
    filler.prepare()
    assert filler._wanted is None
    driver = world.driver()
    driver.book = SimpleNamespace(
        open=lambda _fold: [], needed=lambda _fold: [], next=lambda *_: None
    )
    driver.settings = SimpleNamespace(dedup_dir=None)
    filler._open = set()
    filler.step(driver)
    assert world.fold.is_left_out(world.vids["m5"])
    wanted = world.plans.rebuilding({0: 0}, {0: 9}, END, THROUGH_S)
    assert {one.version.name for one in wanted.versions} == {f"m{n}" for n in range(5)} | {"one"}

    world.spark.is_down = True
    filler._lane, filler._wanted = lane, wanted
    world.plans.made.clear()
    with capture_logs() as logs:
        filler.prepare()
    assert (filler._wanted, filler._faults) == (None, {}), "others are asked for"
    assert filler.waits.whys == {lane.offset: "ConnectionError: the context is stopped"}
    waits = [line for line in logs if line["event"] == "lane_waits"]
    assert [(line["lane"], line["kind"], line["pause_s"]) for line in waits] == [
        (lane.offset, "rebuild", 1)
    ]


def test_a_backfill_goes_on_with_those_that_are_not_to_blame(world: Counted) -> None:
    """After a loss it fills versions that serve; one of which nobody is left waits."""
    vids = (world.vids["m0"], world.vids["m1"])
    opened = OpenLane("backfill", "log", {0: 0}, {0: 9}, vids)
    lane = world.fold.lanes[world.add(lane_record(opened, fence=world.fence, at_ms=0))]
    filler = Filler(world.plans, lambda *_: None, world.clock, 9, lambda: BUSY)  # type: ignore[arg-type]
    filler._lane = lane
    for bad, faults, refused in (
        ({"m1"}, {vids[1]}, set[int]()),
        ({"m0", "m1"}, set[int](), {lane.offset}),
    ):
        world.spark.names = bad
        world.plans.made.clear()
        filler._faults, filler._wanted = {}, world.plans.filling({}, END, END, vids)
        filler.prepare()
        assert (set(filler._faults), set(filler._refused)) == (faults, refused)


def test_a_backfill_waits_while_spark_makes_no_plan(world: Counted) -> None:
    """It is not set aside for that; nor does it keep others from being asked for."""
    vids = (world.vids["m0"], world.vids["m1"])
    opened = OpenLane("backfill", "log", {0: 0}, {0: 9}, vids)
    lane = world.fold.lanes[world.add(lane_record(opened, fence=world.fence, at_ms=0))]
    filler = Filler(world.plans, lambda *_: None, world.clock, 9, lambda: BUSY)  # type: ignore[arg-type]
    world.spark.is_down = True
    for times in (1, 2):
        filler._lane, filler._wanted = lane, world.plans.filling({}, END, END, vids)
        filler.prepare()
        assert filler._wanted is None
        assert not filler._faults
        assert not filler._refused
        assert filler.waits.times(lane.offset) == times


@pytest.mark.parametrize("names", [("m0",), ("m0", "m1")])
def test_a_backfill_whose_plan_fails_once_goes_on(world: Counted, names: tuple[str, ...]) -> None:
    """As a worker's that is ended for want of memory: nobody is to blame, and nobody waits."""
    vids = tuple(world.vids[name] for name in names)
    opened = OpenLane("backfill", "log", {0: 0}, {0: 9}, vids)
    lane = world.fold.lanes[world.add(lane_record(opened, fence=world.fence, at_ms=0))]
    filler = Filler(world.plans, lambda *_: None, world.clock, 9, lambda: BUSY)  # type: ignore[arg-type]
    real, tries = world.plans.plan_of, list[object]()

    def once(asked: Any) -> Any:
        tries.append(asked)
        if len(tries) == 1:
            raise TrialError(ENDED)
        return real(asked)

    world.plans.plan_of = once  # type: ignore[method-assign, assignment]
    filler._lane, filler._wanted = lane, world.plans.filling({}, END, END, vids)
    filler.prepare()
    assert (filler._refused, filler.waits.whys, filler._faults) == ({}, {}, {})
    assert world.plans.is_made(world.plans.filling({}, END, END, vids))


def test_why_a_backfill_is_set_aside_blames_no_record(world: Counted) -> None:
    """A plan is warmed up without any."""
    vids = (world.vids["m0"],)
    opened = OpenLane("backfill", "log", {0: 0}, {0: 9}, vids)
    lane = world.fold.lanes[world.add(lane_record(opened, fence=world.fence, at_ms=0))]
    filler = Filler(world.plans, lambda *_: None, world.clock, 9, lambda: BUSY)  # type: ignore[arg-type]
    real = world.plans.plan_of

    def always(asked: Any) -> Any:
        if asked.versions:
            raise TrialError(ENDED)
        return real(asked)

    world.plans.plan_of = always  # type: ignore[method-assign, assignment]
    filler._lane, filler._wanted = lane, world.plans.filling({}, END, END, vids)
    filler.prepare()
    assert filler._refused == {lane.offset: ENDED}


def test_once_a_plan_can_be_made_it_is_counted_from_the_log(world: Counted) -> None:
    """As a new version of the same text, which takes over from what was left: by another release.

    This process tries it again only when metrics change.
    """
    vid = world.vids["m2"]
    world.ahead.proven.ready |= {vid}
    world.steps(3)
    world.spark.names = {"m2"}
    world.batch()
    world.steps(3)
    before = world.fold.next_offset
    world.steps(9)
    assert world.fold.next_offset == before
    assert world.fold.left_out() == [world.fold.by_vid(vid)]

    world.restart()
    world.steps(9)
    assert world.fold.next_offset == before, "it fails still"
    world.spark.names = set()
    world.restart()
    world.steps(9)
    again = world.fold.get("acme", "metric", "m2")
    old = world.fold.by_vid(vid)
    assert again is not None
    assert old is not None
    assert (again.version, again.text, again.by) == (2, old.text, "engine")
    assert world.fold.left_out() == []
    assert "m2" in world.may_begin()
    assert predecessor(world.fold, again) is old, "what the log no longer has stays with it"


def test_what_a_newer_release_has_edited_is_not_counted_again(world: Counted) -> None:
    """Its author's newest text is one that this release cannot read; nothing is appended."""
    world.spark.names = {"m2"}
    world.batch()
    newer = Edit("acme", "metric", "m2", 1, "x", 0)
    world.add(put_record(newer, TEXT.format("m2") + "of_a_newer_release: true\n"))
    world.spark.names = set()
    world.restart()
    before = world.fold.next_offset
    world.steps(9)
    assert world.fold.next_offset == before
    assert world.fold.is_left_out(world.vids["m2"])


def test_what_it_has_is_kept_as_long_as_it_is_read(world: Counted) -> None:
    """Its names are not freed; no loss counts it again; what is deleted is nobody's."""
    vid = world.vids["m1"]
    world.spark.names = {"m1"}
    world.batch()
    assert vid not in Countable(world.fold, "log").ended(THROUGH_S)
    assert vid not in {
        one.version.vid for one in Countable(world.fold, "log").rebuilt(THROUGH_S, END)
    }
    assert vid not in {
        one.version.vid for one in Countable(world.fold, "log").counted(THROUGH_S, {0: 0})
    }
    assert to_stop(world.fold) == []

    world.restart()
    world.spark.names = set()
    world.steps(6)
    again = world.fold.get("acme", "metric", "m1")
    assert again is not None
    said = counting(again, TO, "log", after=world.fold.by_vid(vid), fills=True)
    world.add(activation_record(said, op="start", fence=world.fence, at_ms=0))
    taken = takeover(world.fold, again.vid, TO, THROUGH_S * 1000, "log")
    assert taken is not None
    assert taken.after == vid
    world.add(takeover_record(taken, fence=world.fence, at_ms=0))
    assert vid not in Countable(world.fold, "log").ended(THROUGH_S)
    assert vid in Countable(world.fold, "log").ended(THROUGH_S + 3_700), (
        "no pane before the cut is kept"
    )


def test_a_lane_of_the_very_first_version_is_counted() -> None:
    """Its id is 0, which is a version like any other."""
    fold = Definitions()
    edit = Edit("acme", "metric", "first", None, "x", 0)
    begun = Begun(0, "acme", "first", 1, {0: 9}, fills=True, topic_id="log")
    lane = OpenLane("backfill", "log", {0: 0}, {0: 9}, (0,))
    for offset, record in enumerate(
        (
            put_record(edit, TEXT.format("first")),
            start_record(DriverStart("a", 1, "start"), at_ms=0),
            activation_record(begun, op="start", fence=1, at_ms=0),
            lane_record(lane, fence=1, at_ms=0),
        )
    ):
        fold.apply(offset, record.key, record.value)
    assert counted_lanes(fold, "log") == [fold.lanes[3]]
