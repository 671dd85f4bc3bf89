"""A real job beside a metric that ends its task as soon as one value comes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .live_job import METRIC, Job, World, assert_equal_to_the_log, running_world, wait_for
from .test_fault_job import send_some

pytestmark = [
    *(pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis),
    pytest.mark.disruption,
]

# As in `test_fault_job.py`, in Spark's Python workers.
HOSTILE = """
import os
import sys

if "weir_analytics.panes.daemon" in sys.orig_argv:
    from weir_analytics.panes.arrow_metrics import MetricCount

    metric = MetricCount._metric

    def hostile(self, one, matched, panes):
        if one.version.name == "bad":
            if 666.0 in matched.value(one.metric, one.metric.value_tree).to_pylist():
                {fails}
        metric(self, one, matched, panes)

    MetricCount._metric = hostile
"""
FAILS = {
    "raises": 'raise ZeroDivisionError("no 666")',
    "dies": "os._exit(9)",
    "hangs": "import threading; threading.Event().wait()",
}
WHYS = {
    "raises": "with records of the log it fails: ZeroDivisionError: no 666",
    "dies": "with records of the log it fails: its worker ended without a word, for want of "
    "memory or since no step was taken for a minute",
}
BAD = METRIC.replace("amount", "bad")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a log and a store of this test's own."""
    with running_world(tmp_path / "world") as world:
        yield world


@pytest.fixture
def job(world: World, tmp_path: Path) -> Iterator[Job]:
    """Return a job that is not begun yet."""
    found = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings={"SHARDS": "2"})
    yield found
    found.kill()


@pytest.fixture(params=["raises", "dies"])
def fails(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let workers fail with the value from now on; return how."""
    how: str = request.param
    fail_with(how, tmp_path, monkeypatch)
    return how


def fail_with(how: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers fail with the value from the next start on."""
    (folder / "sitecustomize.py").write_text(HOSTILE.replace("{fails}", FAILS[how]))
    path = os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))
    monkeypatch.setenv("PYTHONPATH", path)


def send_hostile(world: World, seed: str) -> None:
    """Send the value that the metric fails with, among others."""
    world.send(f"{seed}-666", x=666, k="k1", u="u")
    send_some(world, seed)


def test_a_metric_that_is_counted_is_left_out(
    world: World, job: Job, fails: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody else is counted, equal to the log; it comes back with a release that can."""
    for name, text in (("amount", METRIC), ("bad", BAD)):
        world.define(name, text)
    job.start()
    send_some(world, "before")
    assert_equal_to_the_log(world)
    assert_equal_to_the_log(world, "bad")
    bad = world.vid("bad")

    send_hostile(world, "hostile")
    wait_for(lambda: world.fold().is_left_out(bad), "the metric left out")
    send_some(world, "without")
    assert_equal_to_the_log(world)
    assert world.fold().set_aside(bad) == WHYS[fails]
    assert len(job.lines("counting_interrupted")) == 1, "the second time it is looked for"
    assert {line["vid"] for line in job.lines("version_set_aside")} == {bad}

    world.define("later", METRIC.replace("amount", "later"))
    assert_equal_to_the_log(world, "later")
    assert world.vid("bad") == bad, "it was tried with the records that it had failed with"
    assert job.stop() == 0
    job.start()
    send_some(world, "again")
    assert_equal_to_the_log(world)
    assert world.vid("bad") == bad, "a process that starts tries it with them too"
    assert job.stop() == 0

    monkeypatch.undo()
    job.start()
    wait_for(lambda: world.vid("bad") != bad, "the metric begun again")
    send_some(world, "after")
    assert_equal_to_the_log(world)
    assert_equal_to_the_log(world, "bad")


def test_a_metric_that_fails_in_its_trial_never_begins(world: World, job: Job, fails: str) -> None:
    """Nobody is held up by it for a moment, nor by the next start; what comes later begins."""
    world.define("amount", METRIC)
    job.start()
    send_hostile(world, "before")
    assert_equal_to_the_log(world)
    world.define("bad", BAD)
    bad = world.vid("bad")
    wait_for(lambda: world.fold().set_aside(bad) is not None, "the metric set aside")
    assert world.fold().set_aside(bad) == WHYS[fails]
    for name in ("later", "restarted"):
        world.define(name, METRIC.replace("amount", name))
        send_some(world, name)
        assert_equal_to_the_log(world, name)
        assert job.stop() == 0
        job.start()
    send_some(world, "after")
    assert_equal_to_the_log(world)
    assert bad not in world.fold().activations
    assert job.lines("counting_interrupted", "batch_failed") == []


def test_a_trial_that_hangs_holds_up_no_end(
    world: World, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor live counting; whoever ends the driver waits for no trial, which takes a minute."""
    fail_with("hangs", tmp_path, monkeypatch)
    world.define("amount", METRIC)
    job.start()
    world.wait_active("amount")
    send_hostile(world, "before")
    assert_equal_to_the_log(world)
    world.define("bad", BAD)
    bad = world.vid("bad")
    wait_for(lambda: any(bad in line["versions"] for line in job.lines("plan_made")), "the trial")
    send_some(world, "meanwhile")
    assert_equal_to_the_log(world)
    assert (bad in world.fold().activations, world.fold().set_aside(bad)) == (False, None)
    began_s = time.monotonic()
    assert job.stop() == 0
    assert time.monotonic() - began_s < 30
    assert job.lines("counting_interrupted", "task_silent", "version_set_aside") == []
