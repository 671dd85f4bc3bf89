"""The job on two executors, processes of their own: as exact as in one, also when one dies.

Each works in a folder of its own. A state folder that is no absolute path is therefore another
one in each of them, as on disks that they do not share.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyspark
import pytest

from .live_job import METRIC, Job, World, assert_equal_to_the_log, running_world, wait_for

SETTINGS = {"MASTER": "local-cluster[2,1,1024]", "SHARDS": "2"}
# Every batch is spread: none is small enough for a single task.
SHARED = {"SMALL_BATCH": "0"}
# Some batches are spread, others are one task's, now of this executor and now of that one.
APART = {"SMALL_BATCH": "1500", "STATE_DIR": "state"}
ROUNDS, A_ROUND = 6, 2_000

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a log and a store of this test's own."""
    with running_world(tmp_path) as world:
        yield world


@pytest.fixture(
    params=[pytest.param(SHARED, marks=pytest.mark.disruption), APART],
    ids=["one disk", "a disk each"],
)
def job(
    request: pytest.FixtureRequest, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Job]:
    """Return the job on a cluster of its own, whose files stay in this test's folder."""
    # Workers write below SPARK_HOME: a folder of links to the package serves as one.
    home = tmp_path / "spark"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    settings = SETTINGS | request.param
    job = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings=settings)
    world.define("amount", METRIC)
    job.start()
    world.wait_active("amount")
    yield job
    job.kill()


def executors(job: Job) -> list[psutil.Process]:
    """Return the executors' processes."""
    assert job.process is not None
    tree = psutil.Process(job.process.pid).children(recursive=True)
    return [one for one in tree if is_executor(one)]


def is_executor(process: psutil.Process) -> bool:
    """Tell whether a process, if it is still there, is an executor."""
    try:
        return "CoarseGrainedExecutorBackend" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def test_two_executors_count_what_the_log_says(world: World, job: Job, tmp_path: Path) -> None:
    """Equal to the recount, while one of the two is killed in the middle and another comes.

    Also where the next batch's task finds no dedup runs: it reads them again from the log.
    """
    wait_for(lambda: len(executors(job)) == 2, "two executors")
    first = {one.pid for one in executors(job)}
    for turn in range(ROUNDS):
        if turn == ROUNDS // 2:
            world.wait_counted()  # what follows repeats events of earlier batches
        for n in range(A_ROUND):
            event = f"{turn}-{n}" if n % 10 else f"again-{n % 50}"
            world.send(event, x=n, k=f"k{n % 7}", u=f"u{n % 50}")
        world.producer.flush(30)
        if turn == ROUNDS // 2:
            os.kill(min(first), signal.SIGKILL)
    assert_equal_to_the_log(world)
    wait_for(lambda: len({one.pid for one in executors(job)} - first) == 1, "another executor")
    if job.settings["SMALL_BATCH"] == APART["SMALL_BATCH"]:
        assert len(disks(tmp_path)) >= 2


def disks(folder: Path) -> set[Path]:
    """Return the executors' folders that hold dedup runs."""
    found = (folder / "spark" / "work").glob("*/*/state/dedup/**/*.run")
    return {folder.joinpath(*one.relative_to(folder).parts[:4]) for one in found}
