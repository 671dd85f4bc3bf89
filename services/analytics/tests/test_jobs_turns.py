"""Whose job has the next slice: one after the other, and none that waits holds up another."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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
        self.add(start_record(DriverStart("a", 1, "start"), at_ms=0))

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
        assert fence == 0
        return self.add(record)


class FakeTask:
    """A task of three slices; an erasure waits until it is told that it need not."""

    def __init__(self, world: World, asked: JobAsked) -> None:
        self.stopping = False
        self.progress = Progress(0, 1)
        self._world, self._asked, self._slices = world, asked, 0

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
        name = self._asked.definition.name
        self._world.done.append(name)
        if isinstance(self._asked.model.do, Erase):
            if name in self._world.waiting:
                raise NotNowError
            return {}
        self._slices += 1
        return {} if self._slices == 3 else None

    def close(self) -> None:
        """Hold nothing."""


class World:
    """Jobs of tenants, and the runner of them.

    Attributes:
        done: Whose slices were done, in order.
        waiting: Erasures that have to wait.
        broken: Whether a part outside is away.
    """

    def __init__(self, folder: Path) -> None:
        self.log, self.clock = Log(), ManualClock()
        self.done: list[str] = []
        self.waiting: set[str] = set()
        self.broken = False
        self._settings = settings_for(folder, "", "redis://127.0.0.1:1")
        self.jobs = runner.Jobs(self._settings, self.clock)

    def ask(self, tenant: str, name: str, do: dict[str, Any]) -> None:
        """Ask for a job; of an erasure the driver has said from where it holds."""
        record = put_record(Edit(tenant, "job", name, None, "test", 0), json.dumps({"do": do}))
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
        footing = SimpleNamespace(fence=SimpleNamespace(fence=0))
        return SimpleNamespace(stores=stores, footing=footing)

    def ends(self) -> None:
        """Let the process end as a kill does; another one takes its place."""
        self.jobs = runner.Jobs(self._settings, self.clock)

    def report(self) -> JobReport:
        """Return what was said last of the only job."""
        (report,) = self.log.fold.jobs.values()
        return report


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world without jobs."""
    world = World(tmp_path)
    monkeypatch.setattr(runner, "_task", lambda _settings, asked: FakeTask(world, asked))
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
    """Each of them is asked in turn, and the jobs of others go between."""
    for i in range(20):
        world.ask("acme", f"erase{i}", ERASE)
    world.ask("zeta", "audit", AUDIT)

    assert world.slices(5) == ["erase0", "audit", "audit", "audit", "erase1"]


def test_who_waits_alone_is_asked_twice_a_second(world: World) -> None:
    """What it waits for needs the time."""
    world.ask("acme", "one", ERASE)
    world.ask("acme", "other", ERASE)

    assert world.slices(25) == ["one", "other", "one", "other", "one", "other"]


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


class TestAttempts:
    @pytest.mark.parametrize("do", [AUDIT, {"job": "replay"}])
    def test_a_job_with_which_its_drivers_end_is_given_up(
        self, world: World, do: dict[str, Any]
    ) -> None:
        """After three of them it has failed, and says why; who waits behind it has its turn."""
        world.ask("acme", "heavy", do)
        world.ask("zeta", "next", AUDIT)
        for _life in range(3):
            assert world.slices(2) == ["heavy", "heavy"]
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
