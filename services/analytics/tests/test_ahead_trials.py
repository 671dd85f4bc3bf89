"""A version begins when its plan was tried with records of the log, and counted them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs
from weir_analytics.panes.ahead import LONGEST_S, OTHERS, UNTRIED_S
from weir_analytics.panes.passing import TrialError

from .test_ahead import Counting, Failing, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weir_analytics.panes.batch import Offsets
    from weir_analytics.panes.plan import Counted
    from weir_analytics.panes.plans import Counting as PlanOf


class Records:
    """Records of the log that some metrics fail with, and all of them if they cannot be read.

    Attributes:
        names: Those metrics.
        cannot_be_read: Whether the log answers nobody.
        is_outside: Whether it is the log that they fail with.
        tried: The metrics of each trial.
    """

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.names, self.cannot_be_read, self.is_outside = set(names), False, False
        self.tried: list[set[str]] = []
        real = Failing(monkeypatch)

        def make(counted: Sequence[Counted], *given: object, **named: object) -> Any:
            real.make(counted, *given, **named)
            return SimpleNamespace(versions=[one.version for one in counted])

        monkeypatch.setattr("weir_analytics.panes.plans.make_plan", make)
        monkeypatch.setattr(world, "rehearse", self.rehearse)
        world.restart()

    def rehearse(self, plan: Any, _places: Sequence[Offsets]) -> None:
        """Count them, or fail."""
        names = {one.name for one in plan.versions}
        self.tried.append(names)
        if self.cannot_be_read:
            msg = "the log did not answer within 15 s"
            raise TimeoutError(msg)
        if bad := names & self.names:
            msg = f"ZeroDivisionError: {min(bad)}"
            raise TrialError(msg, is_outside=self.is_outside)


class TestPlanThatFailsWithRecords:
    def test_it_is_set_aside_and_everything_else_begins(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a second trial, while all without it is counted; its author reads with what."""
        world = World()
        records = Records(world, monkeypatch, "m3")
        for n in range(4):
            world.define(f"m{n}")
        with capture_logs() as logs:
            world.steps(20)
        assert world.may_begin() == {"two", "m0", "m1", "m2"}
        why = "with records of the log it fails: ZeroDivisionError: m3"
        assert world.aside() == {"m3": why}
        assert [line["event"] for line in logs if line["log_level"] != "info"] == [
            "version_set_aside"
        ]
        everybody = {"one", "two", "m0", "m1", "m2"}
        assert records.tried[-4:] == [{*everybody, "m3"}, everybody] * 2
        before = len(records.tried)
        world.steps(5)
        assert len(records.tried) == before, "nothing has changed"
        assert not any(world.plans.is_made(asked) for asked in self._with(world, "m3"))

    @staticmethod
    def _with(world: World, name: str) -> list[PlanOf]:
        vid = world.fold.get("acme", "metric", name)
        assert vid is not None
        return [world.plans.soon(world.end, {vid.vid}), world.plans.soon(world.end)]

    def test_a_worker_that_dies_once_sets_nobody_aside(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is tried again before anybody is told."""
        world = World()
        records = Records(world, monkeypatch, "two")
        real = records.rehearse

        def once(plan: Any, places: Sequence[Offsets]) -> None:
            try:
                real(plan, places)
            except TrialError:
                records.names.clear()
                raise

        monkeypatch.setattr(world, "rehearse", once)
        world.restart()
        world.steps(5)
        assert (world.aside(), world.may_begin()) == ({}, {"two"})

    @pytest.mark.parametrize(
        ("from_trial", "trials"), [(1, 1), (2, 3)], ids=["at once", "when it is tried again"]
    )
    def test_a_log_that_fails_now_and_then_sets_nobody_aside(
        self, monkeypatch: pytest.MonkeyPatch, from_trial: int, trials: int
    ) -> None:
        """Without the version it happened to answer, both times."""
        world = World()
        records = Records(world, monkeypatch, "two")
        real = records.rehearse

        def rehearse(plan: Any, places: Sequence[Offsets]) -> None:
            asked = [names for names in records.tried if "two" in names]
            records.is_outside = len(asked) + 1 >= from_trial
            real(plan, places)

        monkeypatch.setattr(world, "rehearse", rehearse)
        world.restart()
        with capture_logs() as logs:
            world.steps(5)
        assert (world.aside(), len(records.tried)) == ({}, trials)
        assert {line["event"] for line in logs if line["log_level"] != "info"} == {"not_rehearsed"}
        records.names.clear()
        world.clock.advance(60_000)
        world.steps(3)
        assert (world.aside(), world.may_begin()) == ({}, {"two"})

    def test_what_nobody_is_to_blame_for_is_tried_again_after_a_pause(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A log that does not answer, or a worker without memory; no life of the driver ends."""
        world = World()
        records = Records(world, monkeypatch)
        records.cannot_be_read = True
        with capture_logs() as logs:
            world.steps(9)
        assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
            "not_rehearsed"
        ]
        assert world.may_begin() == set()
        world.clock.advance(round(LONGEST_S * 1000) + 1)
        assert world.may_begin() == {"two"}, "as all else that has waited for so long"
        pauses = list[int]()
        world.steps(2)
        for _ in range(6):
            before, waited = len(records.tried), 0
            while len(records.tried) == before:
                world.clock.advance(500)
                world.step()
                waited += 1
            pauses.append(waited // 2)
        assert pauses == [2, 4, 8, 16, 30, 30]
        records.cannot_be_read = False
        world.clock.advance(60_000)
        world.steps(3)
        assert (world.aside(), world.may_begin()) == ({}, {"two"})

    def test_while_it_is_tried_it_does_not_begin(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A trial that hangs takes a minute."""
        world = World()
        Records(world, monkeypatch)
        begun: list[set[str]] = []

        def slow(*_: object) -> None:
            world.clock.advance(round(UNTRIED_S * 1000) + 1)
            begun.append(world.may_begin())

        world.may_begin()
        monkeypatch.setattr(world, "rehearse", slow)
        world.restart()
        world.steps(2)
        assert begun == [set()]

    def test_what_is_due_is_said_all_the_same(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is of versions that are counted already, with these very records."""
        Failing(monkeypatch)
        world = Counting()
        Records(world, monkeypatch, "one")
        world.delete("two")
        with capture_logs() as logs:
            world.steps(2)
        assert [line["event"] for line in logs if line["log_level"] == "warning"] == [
            "not_rehearsed"
        ]
        assert world.batch_ends() == 0
        assert world.names() == ["one", "one"]

    def test_one_that_takes_long_to_fail_is_not_tried_with_every_change(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It hangs: all that the thread between batches has to do waits for it."""
        world = World()
        records = Records(world, monkeypatch, "bad")
        real = records.rehearse

        def slow(plan: Any, places: Sequence[Offsets]) -> None:
            try:
                real(plan, places)
            except TrialError:
                world.clock.advance(60_000)
                raise

        monkeypatch.setattr(world, "rehearse", slow)
        world.restart()
        world.define("bad")
        world.steps(9)
        assert set(world.aside()) == {"bad"}
        records.tried.clear()
        for n in range(3):
            world.define(f"later{n}")
            world.steps(5)
        assert not any("bad" in names for names in records.tried)
        world.clock.advance(OTHERS * 120_000)
        world.steps(5)
        assert any("bad" in names for names in records.tried)

    def test_one_that_was_counted_is_tried_with_what_it_failed_with(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Else it would be counted again at once, as a new version, and fail with it again."""
        Failing(monkeypatch)
        world = Counting()
        two = world.fold.get("acme", "metric", "two")
        assert two is not None
        world.steps(3)
        world.places.clear()
        world.changes.leave_out({two.vid: "so it is"}, {0: 41, 1: 7})
        world.steps(3)
        assert world.places == [({0: 41, 1: 7},)]
