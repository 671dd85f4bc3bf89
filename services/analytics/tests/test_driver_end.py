"""How a life of the driver ends: whoever fails is heard, and no thread is left."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.commit import Verdict
from weir.formats import NewerFormatError
from weir_analytics.panes import between as between_module
from weir_analytics.panes import driver as panes_driver
from weir_analytics.panes.driver import MARKS_TIMEOUT_S, Driver
from weir_analytics.panes.holes import Hole, HoleError
from weir_analytics.panes.life import Life
from weir_analytics.panes.loss_watch import LossWatch
from weir_analytics.panes.passing import StreamEndedError
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.turns import GivenUpError
from weir_analytics.panes.vitals import Vitals

from .test_driver import Steps, new_driver


class Query:
    """A stream that asks for one more batch while it is stopped, and waits for that."""

    def __init__(self, driver: Driver, life: Life) -> None:
        self.asked: list[str] = []
        self.thread = threading.Thread(target=self.ask, args=(driver, life), daemon=True)

    def ask(self, driver: Driver, life: Life) -> None:
        """Ask for a batch."""
        try:
            driver._on_batch(life, cast("Any", None), 7)
        except GivenUpError:
            self.asked.append("refused")

    def stop(self) -> None:
        """End the thread, as Spark does, but not without end."""
        self.thread.start()
        self.thread.join(10)


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """Return a driver that has only its own state."""
    return new_driver(tmp_path)


class TestEnd:
    @pytest.mark.parametrize("told", [True, False])
    def test_a_batch_that_is_asked_for_meanwhile_does_not_hold_it(
        self, driver: Driver, told: bool
    ) -> None:
        """Stopping waits for the stream's thread; that thread must not wait for it in turn."""
        if told:
            driver.stop.set()
        life, between = Life(lambda: None), MagicMock(failure=None)
        query = Query(driver, life)
        driver._end(cast("Any", query), between, life)

        assert not query.thread.is_alive()
        assert query.asked == ["refused"]
        assert (life.failure, between.end.called) == (None, True)

    def test_a_stream_that_never_began_leaves_no_thread(self, driver: Driver) -> None:
        """The thread between batches begins before it: Spark may refuse to start the stream."""
        life, between = Life(lambda: None), MagicMock(failure=None)
        driver._end(None, between, life)
        assert (life.failure, life.ending.is_set(), between.end.called) == (None, True, True)

    @pytest.mark.parametrize("fenced", [VerdictError(Verdict.FENCED, "a newer driver runs"), None])
    def test_a_stream_that_does_not_end_hides_nothing(
        self, driver: Driver, fenced: VerdictError | None
    ) -> None:
        """Why it ends comes first; that its thread was not waited for ends it else."""
        life, query = Life(lambda: None, failure=fenced), MagicMock()
        between = MagicMock(failure=None)
        query.stop.side_effect = late = Py4JError("the stream's thread did not end in 20 s")
        driver._end(query, between, life)

        assert life.take_failure() is (fenced or late)
        assert between.end.called, "its thread would work on beside the next one's"

    def test_a_batch_that_is_asked_for_later_changes_nothing(self, driver: Driver) -> None:
        """Nor does it fail the stream that runs by then."""
        life = Life(lambda: None)
        driver._end(MagicMock(), MagicMock(failure=None), life)
        with pytest.raises(GivenUpError):
            driver._on_batch(life, cast("Any", None), 8)

        assert life.failure is None

    @pytest.mark.parametrize("is_known", [True, False])
    def test_what_a_slice_has_met_comes_before_a_stream_that_does_not_end(
        self, driver: Driver, is_known: bool
    ) -> None:
        """A hole that was found after the commit is not met again: nobody would say it."""
        life, query, hole = Life(lambda: None), MagicMock(), HoleError([Hole(0, 1, 2)])
        between = MagicMock(failure=hole if is_known else None)
        if is_known:
            driver.clock = clock = ManualClock()
            driver.stop = Steps(clock, 0)
            driver._follow(MagicMock(isActive=True), between, life)

        def end() -> None:
            between.failure = hole

        between.end.side_effect = end
        query.stop.side_effect = Py4JError("the stream's thread did not end in 20 s")
        driver._end(query, between, life)

        assert life.take_failure() is hole

    @pytest.mark.parametrize("is_told", [True, False])
    def test_the_slice_at_hand_says_which_shard_is_short(
        self, driver: Driver, is_told: bool
    ) -> None:
        """It is waited for when the stream has ended already; nobody would hear of it later."""
        life, between = Life(lambda: None), MagicMock(failure=None)
        if is_told:
            life.fail(StreamEndedError("redis is away"))

        def end() -> None:
            between.failure = VerdictError(Verdict.LOST, "shard 1 is counted anew", {1})

        between.end.side_effect = end
        driver._end(MagicMock(), between, life)

        assert isinstance(life.take_failure(), VerdictError)
        assert life.short == {1}

    @pytest.mark.parametrize("is_set_back", [True, False])
    def test_a_slice_that_failed_when_nobody_looks_is_heard(
        self, driver: Driver, is_set_back: bool
    ) -> None:
        """Told to stop, or with a clock that was set back, the driver looks at it no more."""
        life, between = Life(lambda: None), MagicMock(failure=None)
        driver.clock = clock = ManualClock()
        driver.stop = Steps(clock, -5_000) if is_set_back else cast("Any", threading.Event())
        if not is_set_back:
            driver.stop.set()
        between.failure = VerdictError(Verdict.LOST, "shard 1 is counted anew", {1})
        driver._follow(MagicMock(isActive=True), between, life)
        driver._end(MagicMock(), between, life)

        assert isinstance(life.take_failure(), VerdictError)
        assert life.short == {1}


class Step:
    """Work between batches that does one slice, or is refused by a shard."""

    def __init__(self, error: VerdictError | None) -> None:
        self.error, self.begun = error, threading.Event()

    def prepare(self) -> None:
        """Need nothing."""

    def step(self, _cycle: object) -> bool:
        """Do it."""
        self.begun.set()
        if self.error is not None:
            raise self.error
        return False


def set_stage(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a life begin without a log or a store, and with nothing to do."""
    footing = SimpleNamespace(target={}, levels=(), epoch=1, events_id="log", told=frozenset[int]())
    driver.vitals, driver.clock, driver.figures = Vitals(), ManualClock(), MagicMock()
    monkeypatch.setattr(panes_driver, "take_over", lambda *_: footing)
    for name in ("LaneBook", "Cycle", "Ahead"):
        monkeypatch.setattr(panes_driver, name, MagicMock())
    monkeypatch.setattr(Driver, "_plans_of", MagicMock())
    monkeypatch.setattr(Driver, "_works", lambda *_: ())


@pytest.mark.parametrize("fenced", [VerdictError(Verdict.FENCED, "a newer driver runs"), None])
def test_a_stream_that_does_not_start_hides_nothing(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, fenced: VerdictError | None
) -> None:
    """Slices begin before it does: what ended them comes first, and their thread ends with it."""
    work, refused = Step(fenced), StreamEndedError("no broker answered")
    set_stage(driver, monkeypatch)
    monkeypatch.setattr(between_module, "InheritableThread", threading.Thread)
    monkeypatch.setattr(panes_driver, "Ahead", lambda *_: work)

    def stream(*_: object) -> None:
        assert work.begun.wait(10)
        raise refused

    monkeypatch.setattr(Driver, "_stream", stream)
    with pytest.raises(type(fenced or refused)) as raised:
        driver._life(MagicMock())
    assert raised.value is (fenced or refused)
    assert "between" not in {thread.name for thread in threading.enumerate()}


def test_marks_are_looked_at_by_a_way_of_its_own(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads cannot share one; it waits little, and is left when nobody looks any more."""
    ways: list[tuple[float, MagicMock]] = []
    given: list[Any] = []
    done: list[str] = []

    def opened(_driver: Driver, timeout_s: float = 99.0) -> MagicMock:
        way = MagicMock()
        way.close.side_effect = lambda: done.append("closed")
        ways.append((timeout_s, way))
        return way

    def between(_cycle: object, works: Sequence[Any], *_: object, **__: object) -> MagicMock:
        given.extend(works)
        thread = MagicMock(failure=None)
        thread.end.side_effect = lambda: done.append("ended")
        return thread

    set_stage(driver, monkeypatch)
    monkeypatch.setattr(Driver, "_shards", opened)
    monkeypatch.setattr(panes_driver, "Between", between)
    monkeypatch.setattr(Driver, "_stream", MagicMock(side_effect=StreamEndedError("no broker")))
    with pytest.raises(StreamEndedError):
        driver._life(MagicMock())
    ((timeout_s, way),) = ways
    (watch,) = [work for work in given if isinstance(work, LossWatch)]
    assert (watch._shards, timeout_s) == (way, MARKS_TIMEOUT_S)
    assert done == ["ended", "closed"]


def test_a_hole_is_known_whatever_else_ends_the_life(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counting has passed it: the next life does not meet it, and nobody would say what is lost."""
    hole, behind = HoleError([Hole(0, 1, 2)]), VerdictError(Verdict.BEHIND, "a shard went back")
    between = MagicMock(failure=hole)
    set_stage(driver, monkeypatch)
    monkeypatch.setattr(panes_driver, "Between", lambda *_, **__: between)
    monkeypatch.setattr(Driver, "_stream", MagicMock())
    monkeypatch.setattr(Driver, "_follow", lambda _self, _query, _between, life: life.fail(behind))

    with pytest.raises(VerdictError) as raised:
        driver._life(MagicMock())
    assert raised.value is behind
    assert driver._met.lost == hole.holes


@pytest.mark.parametrize(
    "ended", [NewerFormatError("mark must be older"), ValueError("unexpected")]
)
def test_what_was_lost_is_known_whatever_ends_the_life(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, ended: Exception
) -> None:
    """Also beside what is no verdict, or nobody expects: no later process finds it out."""
    hole = HoleError([Hole(0, 1, 2)])
    short = VerdictError(Verdict.LOST, "shard 1 is counted anew", {1})
    set_stage(driver, monkeypatch)
    monkeypatch.setattr(panes_driver, "Between", lambda *_, **__: MagicMock(failure=hole))
    monkeypatch.setattr(Driver, "_stream", MagicMock())

    def follow(_driver: Driver, _query: object, _between: object, life: Life) -> None:
        life.fail(ended)
        life.fail(short)
        if isinstance(ended, ValueError):
            raise ended

    monkeypatch.setattr(Driver, "_follow", follow)
    with pytest.raises(type(ended)):
        driver._life(MagicMock())
    assert (driver._met.lost, driver._own.short) == (hole.holes, {1})


class TestSaid:
    """What a driver found to be lost as it ended is said by one more start record."""

    @staticmethod
    def run(driver: Driver, monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[Any]:
        """Run a driver that is told to stop while a life ends; return what starts were given."""
        given: list[Any] = []

        def take_over(*arguments: Any) -> None:
            given.append(arguments)

        def life(own: Driver, _stores: object) -> None:
            own.stop.set()
            own._met.take(error, HoleError([Hole(0, 1, 2)]).holes)
            raise error

        def opened(_driver: Driver) -> MagicMock:
            return MagicMock(definitions=MagicMock(writes=0))

        def no(_driver: Driver) -> bool:
            return False

        driver.vitals, driver.clock, driver.figures = Vitals(), ManualClock(), MagicMock()
        monkeypatch.setattr(panes_driver, "take_over", take_over)
        monkeypatch.setattr(panes_driver, "let_go", lambda _spark: None)
        for name, stand_in in (("_life", life), ("_open", opened), ("_jvm_is_gone", no)):
            monkeypatch.setattr(Driver, name, stand_in)
        driver.run()
        return given

    def test_a_hole_met_while_it_is_stopped(
        self, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Counting has passed it: the next process does not meet it."""
        (given,) = self.run(driver, monkeypatch, HoleError([Hole(0, 1, 2)]))
        assert given[3] == (Hole(0, 1, 2),)

    def test_not_by_a_driver_that_was_fenced(
        self, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It would fence the one that counts now."""
        assert self.run(driver, monkeypatch, VerdictError(Verdict.FENCED, "newer")) == []

    def test_not_where_nothing_is_lost(
        self, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each start is a record of the log for good."""
        driver._own.said.add(Hole(0, 1, 2))
        assert self.run(driver, monkeypatch, HoleError([Hole(0, 1, 2)])) == []

    def test_what_could_not_be_said_is_logged(
        self, driver: Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever looks after it must know: no number says it."""

        def away(*_: object) -> None:
            msg = "redis is away"
            raise TimeoutError(msg)

        driver._met.lost, driver.figures = (Hole(0, 1, 2),), MagicMock()
        monkeypatch.setattr(panes_driver, "take_over", away)
        monkeypatch.setattr(Driver, "_open", MagicMock())
        with capture_logs() as logs:
            driver._say_losses()
        (line,) = logs
        assert (line["event"], line["error"]) == ("losses_not_said", "TimeoutError: redis is away")
        assert line["holes"] == [{"partition": 0, "first": 1, "last": 2}]
