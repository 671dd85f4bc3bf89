"""A slice that fails holds up nobody: its lane waits, others and live counting go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from structlog.testing import capture_logs
from weir.batches import BatchRecord
from weir.commit import Verdict
from weir_analytics.panes import lanes
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.lane_waits import OTHERS
from weir_analytics.panes.passing import TrialError
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.slice_size import LEAST_RECORDS, Last

from . import live_job
from .live_job import METRIC, Job, assert_equal_to_the_log, running_world, wait_for
from .test_fault_job import send_some
from .test_hostile_job import BAD, HOSTILE, WHYS, send_hostile
from .test_lanes_beside import EVERYTHING, SIZE, World

SLOW = "the log did not answer within 15 s"


class Driver(World):
    """Two rebuilds, of a partition each; a part of the log of one is not readable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.unreadable: int | None = 1
        self.is_outside = True
        self.trials: list[Batch] = []
        self.beside = self._beside
        monkeypatch.setattr(self, "_beside", self._count)
        monkeypatch.setattr(lanes, "try_out", self._try)

    def _is_unreadable(self, batch: Batch) -> bool:
        return self.unreadable in batch.end

    def _count(self, batches: Any, plan: object) -> Any:
        if any(map(self._is_unreadable, batches)):
            self.evaluated.append(list(batches))
            msg = f"Traceback (most recent call last):\nTimeoutError: {SLOW}\n"
            raise PySparkException(msg)
        return self.beside(batches, plan)

    def _try(self, _spark: object, plan: object, batch: Batch, ending: object) -> None:
        assert (plan, ending) == (self.plan, self.filler.ending)
        self.trials.append(batch)
        self.clock.advance(15_000)
        if self._is_unreadable(batch):
            msg = f"TimeoutError: {SLOW}"
            raise TrialError(msg, is_outside=self.is_outside)

    def rounds(self, count: int, each_ms: int = 1_000) -> None:
        """Let the thread between batches do some rounds."""
        for _ in range(count):
            self.filler.prepare()
            self.filler.step(self._cycle())
            self.clock.advance(each_ms)

    def why(self) -> list[str | None]:
        """Return of each lane under way why it waits, as the record of a live batch tells it."""
        self.book._unsure.clear()
        return [one.waits_for for one in self.book.progress(self.fold)]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Return it."""
    return Driver(monkeypatch)


def test_the_other_lane_goes_on(driver: Driver) -> None:
    """To its end; of the one that waits it is told why, and nothing of it is counted."""
    with capture_logs() as logs:
        driver.rounds(200)
    assert driver.at() == [{0: SIZE}, {1: 0}]
    assert driver.why() == [f"TimeoutError: {SLOW}"]
    waits = [line for line in logs if line["event"] == "lane_waits"]
    assert {line["error"] for line in waits} == {f"TimeoutError: {SLOW}"}
    slow = [line["pause_s"] for line in waits if line["lane"] == driver.lanes[1].offset]
    assert slow[:4] == [1, 2, 4, 8]
    assert len(waits) == len(slow) + 1, "the other one has failed once, together with it"


def test_only_the_first_failure_holds_the_turn(driver: Driver) -> None:
    """From then on a slice is tried beside live batches first; a trial is of the same range."""
    driver.rounds(60)
    failed = [of for of in driver.evaluated if any(map(driver._is_unreadable, of))]
    assert len(failed) == 1
    assert len(failed[0]) == 2, "both were counted at a time, and neither is known to be readable"
    tried = [one for one in driver.trials if driver._is_unreadable(one)]
    assert {(one.lane, one.start[1]) for one in tried} == {(driver.lanes[1].name, 0)}
    others = [one.end for one in driver.trials if not driver._is_unreadable(one)]
    assert others == [{0: LEAST_RECORDS}], "once it went well it needs no trial"


def test_a_lane_that_can_be_read_again_goes_on(driver: Driver) -> None:
    """After its pause, by the slice that was tried; and then at its own pace."""
    driver.rounds(60)
    driver.unreadable = None
    driver.rounds(400)
    assert driver.at() == [{0: SIZE}, {1: SIZE}]
    assert driver.filler.waits.whys == {}


def test_a_slice_that_is_too_large_is_counted_in_smaller_ones(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whatever size its worker can hold; what is tried beside live batches is small, too."""
    driver.unreadable, sizes = None, list[int]()

    def count(batches: Any, plan: object) -> Any:
        sizes.append(max(one.records for one in batches))
        driver.clock.advance(sizes[-1] // 200)
        if sizes[-1] > 3 * LEAST_RECORDS:
            msg = "Python worker exited unexpectedly (crashed)"
            raise PySparkException(msg)
        return driver.beside(batches, plan)

    monkeypatch.setattr(driver, "_beside", count)
    driver.filler.last = Last(SIZE, SIZE, 0.1, 400_000.0)
    driver.rounds(60)
    assert sizes[:2] == [SIZE, LEAST_RECORDS]
    assert [n for n in sizes if n > 3 * LEAST_RECORDS] == [SIZE, SIZE // 2], "each size once"
    assert {one.records for one in driver.trials} == {LEAST_RECORDS}
    assert driver.at() == [{0: SIZE}, {1: SIZE}]


def test_what_the_fence_says_ends_the_life(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a slice is tried."""
    driver.rounds(3)

    def fenced(*_: object) -> None:
        raise VerdictError(Verdict.FENCED, "a newer driver runs")

    monkeypatch.setattr(lanes, "try_out", fenced)
    with pytest.raises(VerdictError):
        driver.rounds(99)


@pytest.mark.parametrize(("is_outside", "times"), [(True, []), (False, [2, 4, 8, 16])])
def test_nobody_is_blamed_for_a_log_that_cannot_be_read(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, is_outside: bool, times: list[int]
) -> None:
    """Whose fault records are is looked for the second time, the fourth, the eighth."""
    driver.is_outside = is_outside
    asked = list[int]()

    def at_fault(_trial: object, counting: object, error: Exception) -> Any:
        assert counting == EVERYTHING
        asked.append(driver.filler.waits.suspect(driver.lanes[1].offset))
        raise error

    monkeypatch.setattr(lanes, "at_fault", at_fault)
    driver.rounds(4_000)
    assert asked == times


def test_a_log_that_fails_every_other_trial_keeps_nobody_from_being_looked_for(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its failures are not counted with the others: each search would fall on one of them."""
    tried, asked = driver._try, list[int]()

    def flapping(*given: Any) -> None:
        driver.is_outside = len(driver.trials) % 2 == 1
        tried(*given)

    def at_fault(_trial: object, _counting: object, error: Exception) -> Any:
        asked.append(len(driver.trials))
        raise error

    monkeypatch.setattr(lanes, "try_out", flapping)
    monkeypatch.setattr(lanes, "at_fault", at_fault)
    driver.rounds(4_000)
    assert len(asked) >= 3


def test_a_lane_whose_slices_fail_after_their_trials_holds_the_turn_seldom(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only writing fails with no trial meets; the other lane is tried once and goes on."""
    began_s, asked = list[float](), driver.clock.monotonic_s

    def count(batches: Any, plan: object) -> Any:
        if any(map(driver._is_unreadable, batches)):
            began_s.append(asked())
            driver.clock.advance(15_000)
            msg = "redis refused to write"
            raise PySparkException(msg)
        return driver.beside(batches, plan)

    def tried(_spark: object, _plan: object, batch: Batch, _ending: object) -> None:
        driver.trials.append(batch)

    monkeypatch.setattr(driver, "_beside", count)
    monkeypatch.setattr(lanes, "try_out", tried)
    with capture_logs() as logs:
        driver.rounds(2_000)
    waits = [line["pause_s"] for line in logs if line["event"] == "lane_waits"]
    assert waits[2:9] == [2, 4, 8, 16, 32, 64, 128], "the first time both have failed"
    after = [round(b - a) for a, b in pairwise(began_s)]
    assert min(after[1:]) >= 15 * (OTHERS + 1), "a fifth of the thread is for what fails"
    assert after[7] > 128
    assert len([one for one in driver.trials if not driver._is_unreadable(one)]) == 1
    assert driver.at() == [{0: SIZE}, {1: 0}]


def test_an_error_of_ours_is_told_with_where_it_came_from(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By who runs the works, which ends a life that such errors come in; the lanes wait, too."""

    def count(*_: object) -> Any:
        msg = "of ours"
        raise KeyError(msg)

    monkeypatch.setattr(driver, "_beside", count)
    with pytest.raises(KeyError):
        driver.rounds(3)
    assert set(driver.filler.waits.whys) == {lane.offset for lane in driver.lanes}


def test_a_lane_without_a_plan_waits_while_the_other_goes_on(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no version is to blame it is told as any other, and counted once it has a plan."""
    driver.unreadable, driver.made, is_mended = None, [], list[bool]()
    plans: Any = driver.filler.plans
    monkeypatch.setattr(driver, "counting", lambda start, _end: (EVERYTHING, sorted(start)))
    monkeypatch.setattr(driver, "erased", lambda start, _end: set(start))

    def plan_of(counting: Any) -> Any:
        if counting[1] == [1] and not is_mended:
            msg = "too many"
            raise RuntimeError(msg)
        return driver._plan_of(counting)

    def at_fault(_trial: object, _counting: object, error: Exception) -> Any:
        raise error

    monkeypatch.setattr(plans, "plan_of", plan_of)
    monkeypatch.setattr(lanes, "at_fault", at_fault)
    with capture_logs() as logs:
        driver.rounds(60)
    assert driver.at() == [{0: SIZE}, {1: 0}]
    assert driver.why() == ["RuntimeError: too many"]
    pauses = [line["pause_s"] for line in logs if line["event"] == "lane_waits"]
    assert pauses[:5] == [1, 2, 4, 8, 16]
    is_mended.append(True)
    driver.rounds(400)
    assert driver.at() == [{0: SIZE}, {1: SIZE}]


def test_what_a_search_takes_is_left_to_others(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what the trial took that it follows: each of them is a trial, too."""
    driver.is_outside, searched_s = False, list[float]()

    def at_fault(_trial: object, _counting: object, error: Exception) -> Any:
        driver.clock.advance(100_000)
        searched_s.append(driver.clock.monotonic_s())
        raise error

    monkeypatch.setattr(lanes, "at_fault", at_fault)
    while not searched_s:
        driver.rounds(1)
    tried = len(driver.trials)
    while not any(map(driver._is_unreadable, driver.trials[tried:])):
        driver.rounds(1)
    after_s = driver.clock.monotonic_s() - 15 - 1 - searched_s[0]
    assert 115 * OTHERS <= after_s < 115 * OTHERS + 30
    assert driver.filler._refused == {}


# As in `test_hostile_job.py`. No worker reads what lies before a place of partition 0, while a
# file is there.
UNREADABLE = """
import os
import sys

if "weir_analytics.panes.daemon" in sys.orig_argv:
    from weir_analytics.panes import history

    read = history._read

    def slow(consumer, topic, start, end):
        if os.path.exists("{flag}") and start.get(0, 0) < 2 and end.get(0, 0) > 0:
            raise TimeoutError("the log did not answer within 15 s")
        yield from read(consumer, topic, start, end)

    history._read = slow
"""

on_servers = [
    *(pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis),
    pytest.mark.disruption,
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[live_job.World]:
    """Return a log of two partitions and a store of this test's own."""
    with running_world(tmp_path / "world") as world:
        world.add_partition()
        yield world


@pytest.fixture
def job(world: live_job.World, tmp_path: Path) -> Iterator[Job]:
    """Return a job that is not begun yet."""
    found = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings={"SHARDS": "2"})
    yield found
    found.kill()


@pytest.fixture
def patch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what has workers begin with some code from the next start on."""

    def begin_with(code: str) -> None:
        (tmp_path / "sitecustomize.py").write_text(code)
        path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
        monkeypatch.setenv("PYTHONPATH", path)

    return begin_with


def lanes_of(world: live_job.World) -> dict[str | None, int]:
    """Return how many lanes are under way, by why they wait."""
    newest = [r for _i, r in world.records()[-1:] if isinstance(r, BatchRecord)]
    found: dict[str | None, int] = {}
    for lane in newest[0].lanes if newest else ():
        found[lane.waits_for] = found.get(lane.waits_for, 0) + 1
    return found


def is_counted(world: live_job.World, ends: dict[int, int]) -> bool:
    """Tell whether live counting has come to some ends of the log."""
    counted = world.counted_to()
    return all(counted.get(p, 0) >= n for p, n in ends.items())


@pytest.mark.parametrize("wiped", [False, True], ids=["backfill", "rebuild"])
class TestJob:
    pytestmark = on_servers

    def test_live_counting_goes_on_beside_a_log_that_cannot_be_read(
        self,
        world: live_job.World,
        job: Job,
        patch: Callable[[str], None],
        tmp_path: Path,
        wiped: bool,
    ) -> None:
        """In one life of the driver; the lane is counted, equal to the log, once it can be."""
        job.settings["SMALL_BATCH"] = "20"  # a new version is tried with the last of the log
        if wiped:
            world.define("amount", METRIC)
        job.start()
        if wiped:
            world.wait_active("amount")
        send_some(world, "before")
        world.wait_counted()
        assert job.stop() == 0
        assert min(world.counted_to().values()) > 2
        if wiped:
            world.redis.flushall()
        flag = tmp_path / "unreadable"
        flag.touch()
        patch(UNREADABLE.replace("{flag}", str(flag)))
        job.start()
        if not wiped:
            world.define("amount", METRIC)
            world.wait_active("amount")
        waits = {f"TimeoutError: {SLOW}": 1}
        wait_for(lambda: lanes_of(world) == waits, "one lane that waits, and no other")
        epoch = world.fold().epoch()
        for n in range(3):
            send_some(world, f"meanwhile-{n}")
            wait_for(partial(is_counted, world, world.ends()), "live counting", 30)
        assert lanes_of(world) == waits
        assert job.lines("counting_interrupted", "batch_failed", "work_failed") == []
        flag.unlink()
        assert_equal_to_the_log(world)
        assert world.fold().epoch() == epoch
        assert len(job.lines("lane_waits")) > 1
        assert job.lines("lane_set_aside", "version_set_aside") == [], "nobody's failure"

    def test_a_metric_that_an_old_record_fails_is_left_out(
        self, world: live_job.World, job: Job, patch: Callable[[str], None], wiped: bool
    ) -> None:
        """Of what is filled, or counted again; everything else is, and serves."""
        job.settings["SMALL_BATCH"] = "20"
        world.define("amount", METRIC)
        if wiped:
            world.define("bad", BAD)
        job.start()
        for name in ("amount", "bad") if wiped else ("amount",):
            world.wait_active(name)
        send_hostile(world, "before")
        assert_equal_to_the_log(world)
        if wiped:
            assert_equal_to_the_log(world, "bad")
        send_some(world, "last")
        world.wait_counted()
        assert job.stop() == 0
        if wiped:
            world.redis.flushall()
        patch(HOSTILE.replace("{fails}", 'raise ZeroDivisionError("no 666")'))
        for name in () if wiped else ("bad", "later"):
            world.define(name, METRIC.replace("amount", name))
        job.start()
        bad = world.vid("bad")
        wait_for(lambda: world.fold().set_aside(bad) is not None, "the metric set aside")
        assert world.fold().set_aside(bad) == WHYS["raises"]
        send_some(world, "after")
        vids = [world.wait_serving(name) for name in ("amount", *(() if wiped else ("later",)))]
        wait_for(partial(is_counted, world, world.ends()), "live counting")
        # What fills the metric anew, as a version of the engine's, waits for ever.
        wait_for(lambda: job.lines("lane_set_aside") != [], "the lane that nobody else needs")
        wait_for(lambda: len(lanes_of(world)) <= 1, "all other lanes")
        for vid in vids:
            assert world.panes(vid, 60) == live_job.recount(world.log(), 60)[0]
        assert world.ledger() == live_job.recount(world.log(), 60)[1]
        assert not world.fold().activations[bad].serves or wiped
        assert job.lines("counting_interrupted", "batch_failed", "work_failed") == []
