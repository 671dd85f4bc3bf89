"""Whose job has the next slice: tenants take turns, and none that waits holds up another."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from weir.clock import ManualClock
from weir.definitions.fold import Definitions
from weir.definitions.job import Erase
from weir.definitions.jobs import JobAsked, JobReport, JobState, job_record
from weir.definitions.records import (
    DriverStart,
    Edit,
    NewRecord,
    delete_record,
    put_record,
    start_record,
)
from weir_analytics.jobs import runner
from weir_analytics.jobs.task import NotNowError, Outcome, Progress

from .conftest import settings_for

AUDIT: dict[str, Any] = {"job": "audit"}
ERASE: dict[str, Any] = {"job": "erase", "subject_hash": "a" * 64}
DAY_MS = 24 * 3_600_000
HELD = {"topic_id": "events", "offsets": {"0": 10}}


class Log:
    """Definitions that need no broker."""

    def __init__(self) -> None:
        self.fold = Definitions()
        self.fence = 0
        self.starts()

    def starts(self) -> None:
        """Let a driver begin a life, by a fence of its own."""
        self.fence = self.add(start_record(DriverStart("a", 1, "start"), at_ms=0))

    def add(self, record: NewRecord) -> int:
        """Append a record; return its offset."""
        offset = self.fold.next_offset
        change = self.fold.apply(offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return offset

    def append(self, record: NewRecord) -> int:
        """Append, whoever has started meanwhile."""
        return self.add(record)

    def append_fenced(self, record: NewRecord, fence: int) -> int:
        """Append as a driver does."""
        assert fence == self.fence
        return self.add(record)


class FakeTask:
    """A task of some slices, of an erasure one; it waits until it is told that it need not."""

    goes_on: ClassVar = False

    def __init__(self, world: World, asked: JobAsked, share: float) -> None:
        self.stopping = False
        self.progress = Progress(0, 1)
        self._world, self._asked, self._slices = world, asked, 0
        self._name = asked.definition.name
        world.shares[self._name] = share

    def facts(self, cycle: Any) -> Mapping[str, Any]:
        """Need nothing."""
        del cycle
        return {}

    def begin(self, cycle: Any, facts: Mapping[str, Any]) -> None:
        """Need nothing."""

    def step(self, cycle: Any, is_over: Callable[[], bool]) -> Outcome | None:
        """Do a slice."""
        del cycle, is_over
        if self._world.broken:
            raise TimeoutError
        self._world.done.append(self._name)
        if self._name in self._world.waiting:
            raise NotNowError
        if isinstance(self._asked.model.do, Erase):
            return {}
        self._slices += 1
        return {} if self._slices == self._world.length else None

    def close(self) -> None:
        """Let go of its share."""
        del self._world.shares[self._name]


class Lasting(FakeTask):
    """One that keeps what it has while a part outside is away, and while an epoch lasts."""

    goes_on: ClassVar = True


class World:
    """Jobs of tenants, and the runner of them.

    Attributes:
        done: Whose slices were done, in order.
        waiting: Those that have to wait.
        length: How many slices a job has.
        shares: What each holds that has begun.
        broken: Whether a part outside is away.
        epoch: The epoch that is counted.
    """

    def __init__(self, folder: Path) -> None:
        self.log, self.clock, self.epoch = Log(), ManualClock(), 1
        self.done: list[str] = []
        self.waiting: set[str] = set()
        self.length = 3
        self.shares: dict[str, float] = {}
        self.broken = False
        self._settings = settings_for(folder, "", "redis://127.0.0.1:1")
        self.jobs = runner.Jobs(self._settings, self.clock)

    def ask(self, tenant: str, name: str, do: dict[str, Any], by: str = "test") -> None:
        """Ask for a job; of an erasure the driver has said from where it holds."""
        record = put_record(Edit(tenant, "job", name, None, by, 0), json.dumps({"do": do}))
        vid = self.log.add(record)
        if do is ERASE:
            self.waiting.add(name)
            self.log.add(job_record(JobReport(vid, JobState.RUNNING, facts=HELD), fence=0))

    def slices(self, count: int) -> list[str]:
        """Let jobs have some slices, 0.1 s each."""
        self.done.clear()
        for _step in range(count):
            self.jobs.step(self.cycle)
            self.clock.advance(100)
        return self.done

    @property
    def cycle(self) -> Any:
        """Return what a driver hands over between two batches."""
        stores = SimpleNamespace(definitions=self.log)
        fence = SimpleNamespace(fence=self.log.fence)
        footing = SimpleNamespace(fence=fence, epoch=self.epoch)
        return SimpleNamespace(stores=stores, footing=footing)

    def ends(self) -> None:
        """Let the process end as a kill does; another one takes its place."""
        self.shares = {}
        self.jobs = runner.Jobs(self._settings, self.clock)

    def report(self) -> JobReport:
        """Return what was said last of the only job."""
        (report,) = self.log.fold.jobs.values()
        return report


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world without jobs."""
    world = World(tmp_path)
    monkeypatch.setattr(
        runner, "_task", lambda _settings, one, share, _: FakeTask(world, one, share)
    )
    return world


def test_an_erasure_that_waits_holds_up_nobody(world: World) -> None:
    """It gives way, is asked again between two jobs, and ends when it need not wait."""
    world.ask("acme", "erase", ERASE)
    world.ask("zeta", "first", AUDIT)
    world.ask("zeta", "second", AUDIT)
    assert world.slices(4) == ["erase", "first", "first", "first"]
    world.clock.advance(1_000)
    assert world.slices(4) == ["erase", "second", "second", "second"]
    world.waiting.clear()
    world.clock.advance(1_000)

    assert world.slices(3) == ["erase"]


def test_a_tenant_with_many_erasures_delays_another_by_one(world: World) -> None:
    """Each of them is asked in turn, and a slice of others goes between."""
    for i in range(20):
        world.ask("acme", f"erase{i}", ERASE)
    world.ask("zeta", "audit", AUDIT)

    assert world.slices(5) == ["erase0", "audit", "erase1", "audit", "erase2"]


def test_who_waits_alone_is_asked_twice_a_second(world: World) -> None:
    """What it waits for needs the time."""
    world.ask("acme", "one", ERASE)
    world.ask("acme", "other", ERASE)

    assert world.slices(25) == ["one", "other", "one", "other", "one", "other"]


def test_a_round_compares_none_of_those_that_wait(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with each took two seconds of three thousand, four times a second."""
    for n in range(30):
        world.ask("acme", f"erase{n}", ERASE)
    assert len(set(world.slices(100))) == 30, "all have begun"
    compared, real = list[JobAsked](), JobAsked.__eq__

    def eq(one: JobAsked, other: object) -> bool:
        compared.append(one)
        return real(one, other)

    monkeypatch.setattr(JobAsked, "__eq__", eq)
    assert len(world.slices(24)) in (4, 5), "one is asked twice a second"
    assert compared == []


def test_an_erasure_that_was_deleted_on_the_way_ends_as_done(world: World) -> None:
    """It holds, so it is not cancelled: what was left out stays so."""
    world.ask("acme", "erase", ERASE)
    world.log.add(delete_record(Edit("acme", "job", "erase", 1, "test", 0)))
    world.waiting.clear()
    world.slices(1)

    (report,) = world.log.fold.jobs.values()
    assert report.state is JobState.DONE
    assert report.facts == HELD


def test_an_audit_nobody_asks_for_has_its_turn_once_a_day(world: World) -> None:
    """Not before there is a metric; then after a day, and no sooner than a day later again."""
    world.clock.advance(DAY_MS)
    assert world.slices(3) == []
    metric = {"kind": "metric", "name": "amount", "events": {"type": "t"}, "aggregates": ["count"]}
    world.log.add(put_record(Edit("acme", "metric", "amount", None, "t", 0), json.dumps(metric)))
    world.clock.advance(60_000)
    first = world.slices(6)
    assert (len(first), len(set(first))) == (3, 1), "one audit, of three slices"
    first = [*first]
    world.clock.advance(DAY_MS - 60_000)
    assert world.slices(6) == []
    world.clock.advance(120_000)
    again = world.slices(6)
    assert (len(again), len({*again, *first})) == (3, 2)


class TestTurns:
    def test_a_slice_of_one_tenant_and_a_slice_of_the_next(self, world: World) -> None:
        """Each goes on where it was; within a tenant a job is done when the one before is."""
        world.ask("acme", "one", AUDIT)
        world.ask("acme", "other", {"job": "replay"})
        world.ask("zeta", "hers", AUDIT)

        assert world.slices(9) == ["one", "hers"] * 3 + ["other"] * 3
        assert {report.state for report in world.log.fold.jobs.values()} == {JobState.DONE}

    def test_who_comes_later_has_missed_nothing(self, world: World) -> None:
        """Nor has it to wait until the others had as many turns as it has had."""
        world.length = 100
        world.ask("acme", "old", AUDIT)
        world.slices(30)
        world.ask("zeta", "new", AUDIT)

        assert Counter(world.slices(10)) == {"old": 5, "new": 5}

    def test_an_erasure_does_not_wait_for_its_tenants_audit(self, world: World) -> None:
        """It has little to do, and somebody waits for it."""
        world.length = 100
        world.ask("acme", "audit", AUDIT)
        world.slices(3)
        world.ask("acme", "erase", ERASE)
        world.waiting.clear()

        assert world.slices(2) == ["erase", "audit"]

    def test_what_people_ask_for_comes_before_what_the_schedule_does(self, world: World) -> None:
        """One slice in nine is left to that, so no tenant can stop the audits of the others."""
        world.length = 1_000
        world.ask("acme", "nightly", AUDIT, by="schedule")
        world.ask("zeta", "next", AUDIT, by="schedule")
        assert set(world.slices(20)) == {"nightly"}
        world.ask("acme", "asked", AUDIT)

        assert Counter(world.slices(90)) == {"asked": 80, "nightly": 10}

    def test_a_long_job_does_not_keep_the_schedule_from_asking(self, world: World) -> None:
        """It asks for one audit at a time, and for the next when that has ended."""
        world.length = 1_000
        metric = {"kind": "metric", "name": "m", "events": {"type": "t"}, "aggregates": ["count"]}
        for tenant in ("acme", "zeta"):
            edit = Edit(tenant, "metric", "m", None, "t", 0)
            world.log.add(put_record(edit, json.dumps(metric)))
        world.ask("zeta", "hers", AUDIT)
        world.clock.advance(DAY_MS)
        for _look in range(3):
            nightly = set(world.slices(20)) - {"hers"}
            world.clock.advance(60_000)

        assert len(nightly) == 1
        asked = [job for job in world.log.fold.current(kind="job") if job.by == "schedule"]
        assert {job.name for job in asked} == nightly

    def test_few_are_under_way_at_once(self, world: World) -> None:
        """They hold together what one alone might; a further one begins when one has ended."""
        world.ask("a", "a", AUDIT)
        world.slices(1)
        for tenant in "bcd":
            world.ask(tenant, tenant, AUDIT)
        assert world.slices(3) == ["a", "b", "c"]
        assert (sorted(world.shares), sum(world.shares.values())) == (["a", "b", "c"], 1.0)

        assert world.slices(8) == ["a", "b", "c", "d", "b", "c", "d", "d"]
        assert world.shares == {}

    def test_one_that_waits_makes_room(self, world: World) -> None:
        """What it has read is given up if somebody needs the room, and only then."""
        world.waiting.add("a")
        for tenant in "abc":
            world.ask(tenant, tenant, AUDIT)
        assert world.slices(3) == ["a", "b", "c"]
        assert sorted(world.shares) == ["a", "b", "c"]
        world.ask("d", "d", AUDIT)
        assert world.slices(4) == ["b", "c", "a", "d"]
        assert sorted(world.shares) == ["b", "c", "d"]
        world.waiting.clear()

        assert Counter(world.slices(15)) == {"a": 3, "b": 1, "c": 1, "d": 2}
        assert all(report.attempts == 1 for report in world.log.fold.jobs.values())

    def test_what_is_away_for_one_leaves_the_others_what_they_have(self, world: World) -> None:
        """Only the job at hand begins again."""
        world.ask("acme", "one", AUDIT)
        world.ask("zeta", "other", AUDIT)
        world.slices(4)
        world.broken = True
        world.slices(1)
        world.broken = False
        assert sorted(world.shares) == ["other"]
        world.clock.advance(60_000)

        assert Counter(world.slices(4)) == {"one": 3, "other": 1}

    def test_each_begins_again_in_the_next_life_of_a_driver(self, world: World) -> None:
        """In one process, as after a loss of Redis, and in another one."""
        for next_life in (world.log.starts, world.ends):
            world.ask("acme", f"one{len(world.log.fold.jobs)}", AUDIT)
            world.ask("zeta", f"two{len(world.log.fold.jobs)}", AUDIT)
            world.slices(4)
            next_life()

            assert len(world.slices(9)) == 6
            assert world.shares == {}


class TestWhatGoesOn:
    @pytest.fixture(autouse=True)
    def lasting(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let tasks be such."""
        monkeypatch.setattr(
            runner, "_task", lambda _settings, one, share, _: Lasting(world, one, share)
        )

    def test_what_is_away_for_a_while_costs_it_nothing(self, world: World) -> None:
        """Hours of reading the log are not done again because a broker did not answer."""
        world.ask("acme", "one", AUDIT)
        world.slices(2)
        world.broken = True
        world.slices(1)
        world.broken = False
        assert sorted(world.shares) == ["one"]
        world.clock.advance(60_000)

        assert world.slices(4) == ["one"]
        assert world.report().state is JobState.DONE

    @pytest.mark.parametrize(("epochs", "slices"), [(0, 1), (1, 3)])
    def test_a_further_life_goes_on_with_it_in_the_same_epoch(
        self, world: World, epochs: int, slices: int
    ) -> None:
        """In another one what it has looked at is served no more."""
        world.ask("acme", "one", AUDIT)
        world.slices(2)
        world.log.starts()
        world.epoch += epochs

        assert len(world.slices(4)) == slices
        assert (world.report().state, world.report().attempts) == (JobState.DONE, 1)

    def test_what_was_cancelled_does_not(self, world: World) -> None:
        """It ends, also in a further life."""
        world.ask("acme", "one", AUDIT)
        world.slices(2)
        world.log.add(delete_record(Edit("acme", "job", "one", 1, "test", 0)))
        world.log.starts()
        world.slices(2)

        assert world.report().state is JobState.CANCELLED


class TestAttempts:
    @pytest.mark.parametrize("do", [AUDIT, {"job": "replay"}])
    def test_a_job_with_which_its_drivers_end_is_given_up(
        self, world: World, do: dict[str, Any]
    ) -> None:
        """After three of them it has failed, and says why.

        One that was under way beside it has not: the last time it was alone.
        """
        world.ask("acme", "heavy", do)
        world.ask("zeta", "next", AUDIT)
        for alone in (False, False, True):
            assert world.slices(2) == ["heavy", "heavy" if alone else "next"]
            world.ends()

        assert world.slices(4) == ["next", "next", "next"]
        heavy, following = world.log.fold.jobs.values()
        assert (heavy.state, following.state) == (JobState.FAILED, JobState.DONE)
        assert heavy.outcome == {
            "error": "a job must end before its driver does, but 3 drivers ended while they worked "
            "on it; look at why they did, such as their memory, then ask again"
        }

    def test_the_last_attempt_may_end_it(self, world: World) -> None:
        """Two drivers that were killed, as when a node is lost, cost it nothing but time."""
        world.ask("acme", "audit", AUDIT)
        for _life in range(2):
            world.slices(2)
            world.ends()
        world.slices(3)

        assert (world.report().state, world.report().attempts) == (JobState.DONE, 3)

    def test_a_driver_that_is_told_to_stop_is_no_attempt(self, world: World) -> None:
        """However often it is started anew, as with new settings."""
        world.ask("acme", "audit", AUDIT)
        for _life in range(9):
            world.slices(2)
            world.jobs.rest(world.cycle)
            assert (world.report().state, world.report().attempts) == (JobState.RUNNING, 0)
            world.ends()
        world.slices(3)

        assert world.report().state is JobState.DONE

    def test_what_begins_again_in_one_process_is_one_attempt(self, world: World) -> None:
        """A broker that is away ends no process."""
        world.ask("acme", "audit", AUDIT)
        for _time in range(9):
            world.slices(1)
            world.broken = True
            world.slices(1)
            world.broken = False
            world.clock.advance(60_000)

        assert (world.report().state, world.report().attempts) == (JobState.RUNNING, 1)

    def test_an_erasure_that_waits_outlives_any_number_of_drivers(self, world: World) -> None:
        """It holds nothing, waits for a day, and must not be given up."""
        world.ask("acme", "erase", ERASE)
        for _life in range(9):
            world.slices(1)
            world.ends()
        world.waiting.clear()
        world.slices(1)

        assert world.report().state is JobState.DONE

    def test_a_cancelled_job_ends_as_cancelled(self, world: World) -> None:
        """Also one that has ended its drivers."""
        world.ask("acme", "heavy", AUDIT)
        for _life in range(3):
            world.slices(1)
            world.ends()
        world.log.add(delete_record(Edit("acme", "job", "heavy", 1, "test", 0)))
        world.slices(3)

        assert world.report().state is JobState.CANCELLED
