"""What the works between batches do that lasts: only that is the end of a row of failures."""

from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir_analytics.jobs import runner
from weir_analytics.panes import lanes, redaction
from weir_analytics.panes.between import BUSY, MOST_UNEXPECTED, Between, Step, Work
from weir_analytics.panes.redaction import Redaction
from weir_analytics.panes.slice_size import LEAST_RECORDS
from weir_analytics.panes.turns import Turns

from . import test_ahead, test_jobs_turns, test_lanes_wait
from .test_between import Pauses
from .test_lanes_beside import SIZE
from .test_redaction import KEY, folded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

OURS = KeyError("of ours")


class Life:
    """Lives of a driver with one work.

    Attributes:
        ended: What outlives them.
    """

    def __init__(self, work: Work, cycle: Any, clock: ManualClock) -> None:
        self.work, self.cycle, self.clock = work, cycle, clock
        self.ended = Counter[str]()

    def live(self, rounds: int = 20_000) -> tuple[BaseException | None, int]:
        """Live for so many seconds; return what ended it, and after how many failures."""
        one = Between(self.cycle, [self.work], Turns(), self.clock, lambda: BUSY, ended=self.ended)
        one.ending = Seconds(rounds, self.clock)
        with capture_logs() as logs:
            one._run()
        return one.failure, len([line for line in logs if line["event"] == "work_failed"])


class Seconds(Pauses):
    """An event that is waited for so many times, a second each by a clock that is set."""

    def __init__(self, count: int, clock: ManualClock) -> None:
        super().__init__(count)
        self._clock = clock

    def wait(self, timeout: float | None = None) -> bool:
        """Let a second pass."""
        self._clock.advance(1_000)
        return super().wait(timeout)


LIVES = [(OURS, 5), (OURS, 10), (OURS, 20)]


class TestFiller:
    @pytest.fixture
    def driver(self, monkeypatch: pytest.MonkeyPatch) -> test_lanes_wait.Driver:
        """Return a driver whose trials go well; what a slice does is up to each test."""
        driver = test_lanes_wait.Driver(monkeypatch)
        monkeypatch.setattr(lanes, "try_out", lambda *_: None)
        return driver

    @pytest.mark.parametrize("is_made", [True, False], ids=["one plan", "a plan for each slice"])
    def test_a_trial_or_a_plan_that_is_wanted_is_no_progress(
        self, driver: test_lanes_wait.Driver, monkeypatch: pytest.MonkeyPatch, is_made: bool
    ) -> None:
        """Nor is one that went well: what fails is the slice after it, each time."""

        def count(*_: object) -> Any:
            if not is_made:
                driver.made.clear()
            raise OURS

        monkeypatch.setattr(driver, "_beside", count)
        life = Life(driver.filler, driver._cycle(), driver.clock)
        assert [life.live() for _ in LIVES] == LIVES

    def test_slices_that_are_committed_are(
        self, driver: test_lanes_wait.Driver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However often others fail between them, also as none expects."""
        driver.unreadable, calls = None, itertools.count()
        driver.filler.most = LEAST_RECORDS

        def count(batches: Any, plan: object) -> Any:
            if next(calls) % MOST_UNEXPECTED:
                raise OURS
            return driver.beside(batches, plan)

        monkeypatch.setattr(driver, "_beside", count)
        life = Life(driver.filler, driver._cycle(), driver.clock)
        life.ended["filler"] = 3
        failure, failures = life.live()
        assert driver.at() == [{0: SIZE}, {1: SIZE}]
        assert failure is None
        assert failures > MOST_UNEXPECTED
        assert life.ended == {}


class Erasures:
    """A shard in which an erasure is due, and walks over it of two steps each.

    Attributes:
        fails: What the second step raises.
        begun: How many walks were begun.
        done: Whether one came to its end.
    """

    shard = 0

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fails: Exception | None = None
        self.begun, self.done = 0, False
        monkeypatch.setattr(redaction, "Walk", lambda *_: self)
        monkeypatch.setattr(redaction, "SLICE_S", 0.0)
        monkeypatch.setattr(redaction, "_members", self.members)
        self.cycle: Any = SimpleNamespace(
            stores=SimpleNamespace(definitions=SimpleNamespace(fold=folded("jane"))), commits=0
        )

    def members(self, _cycle: object, _key: object, vids: Sequence[int]) -> list[set[int]]:
        """Return which erasures are done, names and colors."""
        return [set(vids) if self.done else set()]

    def steps(self) -> Iterator[bool]:
        """Walk."""
        self.begun += 1
        yield True
        if self.fails is not None:
            raise self.fails
        yield True
        self.done = True


class TestRedaction:
    def test_a_walk_that_failed_begins_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the very next slice; it is done when it came to its end, and not before."""
        erasures = Erasures(monkeypatch)
        work = Redaction(ManualClock(), KEY)
        erasures.fails = OURS
        for begun in range(1, 4):
            assert work.step(erasures.cycle) is Step.SOON
            assert erasures.begun == begun
            with pytest.raises(KeyError):
                work.step(erasures.cycle)
        erasures.fails = None
        said = [work.step(erasures.cycle) for _ in range(4)]
        assert said == [Step.SOON, Step.SOON, Step.DONE, Step.IDLE]
        assert (erasures.begun, erasures.done) == (4, True)

    def test_what_was_walked_before_a_failure_is_no_progress(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The next walk does that again."""
        erasures, clock = Erasures(monkeypatch), ManualClock()
        erasures.fails = OURS
        life = Life(Redaction(clock, KEY), erasures.cycle, clock)
        assert [life.live() for _ in LIVES] == LIVES
        erasures.fails = None
        assert life.live(100) == (None, 0)
        assert (erasures.done, life.ended) == (True, {})

    def test_it_waits_longer_each_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Though it does a slice before it fails."""
        erasures, clock, failed_s = Erasures(monkeypatch), ManualClock(), list[float]()
        erasures.fails = TimeoutError("no answer")
        real, life = Redaction.step, Life(Redaction(clock, KEY), erasures.cycle, clock)

        def step(self: Redaction, cycle: Any) -> Step:
            try:
                return real(self, cycle)
            except TimeoutError:
                failed_s.append(clock.monotonic_s())
                raise

        monkeypatch.setattr(Redaction, "step", step)
        life.live(400)
        waited = [b - a for a, b in itertools.pairwise(failed_s)]
        assert waited[:6] == [2, 3, 5, 9, 17, 33], "a second of each is for the slice before"


class TestAhead:
    @pytest.fixture
    def world(self, monkeypatch: pytest.MonkeyPatch) -> test_ahead.World:
        """Return a driver that counts a metric, with one that waits."""
        test_ahead.Failing(monkeypatch)
        return test_ahead.World()

    def life(self, world: test_ahead.World) -> Life:
        """Return its lives."""
        cycle = SimpleNamespace(
            stores=world.changes.stores, due=world.due, set_aside=world.changes.set_aside
        )
        return Life(world.ahead, cycle, world.clock)

    def test_a_plan_that_is_wanted_is_no_progress(
        self, world: test_ahead.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is wanted again after each failure."""

        def plan_of(*_: object) -> Any:
            raise OURS

        monkeypatch.setattr(world.plans, "plan_of", plan_of)
        monkeypatch.setattr("weir_analytics.panes.plans.make_plan", plan_of)
        assert [self.life(world).live()] == LIVES[:1]
        assert world.ahead.proven.ready == frozenset()

    def test_a_plan_that_was_proven_is(
        self, world: test_ahead.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Errors that come between such plans, over weeks, are no row."""
        life, rounds = self.life(world), itertools.count()
        life.ended["ahead"] = 3
        tell = world.ahead._tell
        life.live(10)
        assert life.ended == {}

        def failing(*asked: Any) -> None:
            if (n := next(rounds)) % 10 == 0:
                raise OURS
            if n % 10 == 5:
                world.define(f"m{n}")
            tell(*asked)

        monkeypatch.setattr(world.ahead, "_tell", failing)
        failure, failures = life.live(200)
        assert failure is None
        assert failures > 2 * MOST_UNEXPECTED

    def test_what_it_proved_before_a_failure_is_none(
        self, world: test_ahead.World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What fails each time is not over."""

        def tell(*_: object) -> None:
            if world.ahead.proven.ready:
                raise OURS

        monkeypatch.setattr(world.ahead, "_tell", tell)
        assert [self.life(world).live()] == LIVES[:1]


class TestJobs:
    @pytest.fixture
    def world(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> test_jobs_turns.World:
        """Return a runner with a job of three slices."""
        world = test_jobs_turns.World(tmp_path)
        monkeypatch.setattr(
            runner, "_task", lambda _, one, share, __: test_jobs_turns.FakeTask(world, one, share)
        )
        world.ask("a", "first", test_jobs_turns.AUDIT)
        return world

    def test_a_job_that_ended_is_progress(self, world: test_jobs_turns.World) -> None:
        """One that goes on begins again after a crash, and one that waits does nothing."""
        said = [world.jobs.step(world.cycle) for _ in range(4)]
        assert said == [Step.SOON, Step.SOON, Step.DONE, Step.IDLE]
        world.ask("a", "second", test_jobs_turns.AUDIT)
        world.waiting = {"second"}
        assert world.jobs.step(world.cycle) is Step.SOON
        world.broken, world.waiting = True, set()
        world.clock.advance(1_000)
        assert world.jobs.step(world.cycle) is Step.SOON
