"""A real job whose Spark makes no plan of a metric that it has counted, as after an upgrade."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .live_job import METRIC, Job, World, assert_equal_to_the_log, running_world, wait_for

pytestmark = [
    *(pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis),
    pytest.mark.disruption,
]

# Python runs a module of this name at its start, in whatever process finds it on its path.
OTHER_RELEASE = """
import sys

if "weir_analytics.panes" in sys.orig_argv:
    from weir_analytics.panes import plans

    make_plan = plans.make_plan

    def make(versions, *given, **named):
        if any(one.version.name == "bad" for one in versions):
            raise RuntimeError("this release makes no plan of bad")
        return make_plan(versions, *given, **named)

    plans.make_plan = make
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a log and a store of this test's own."""
    with running_world(tmp_path / "world") as world:
        yield world


def send_some(world: World, seed: str) -> None:
    """Send events."""
    for i in range(60):
        world.send(f"{seed}-{i}", x=i, k=f"k{i % 7}", u=f"u{i % 50}")
    world.producer.flush(30)


@pytest.mark.parametrize("wiped", [False, True], ids=["kept", "wiped"])
def test_all_else_is_counted_and_the_metric_comes_back(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wiped: bool
) -> None:
    """Equal to the log, each in its time; also where Redis was lost with the upgrade."""
    (tmp_path / "sitecustomize.py").write_text(OTHER_RELEASE)
    world.define("amount", METRIC)
    world.define("bad", METRIC.replace("amount", "bad"))
    job = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings={"SHARDS": "2"})
    try:
        job.start()
        send_some(world, "before")
        assert_equal_to_the_log(world)
        bad = world.wait_serving("bad")
        assert job.stop() == 0

        if wiped:
            world.redis.flushall()
        with monkeypatch.context() as upgraded:
            path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
            upgraded.setenv("PYTHONPATH", path)
            job.start()
        wait_for(lambda: world.fold().is_left_out(bad), "the metric left out")
        send_some(world, "without")
        assert_equal_to_the_log(world)
        fold = world.fold()
        assert fold.set_aside(bad) == "RuntimeError: this release makes no plan of bad"
        assert fold.get("default", "metric", "bad").vid == bad
        assert job.stop() == 0

        job.start()
        wait_for(lambda: world.vid("bad") != bad, "the metric begun again")
        send_some(world, "after")
        assert_equal_to_the_log(world)
        assert_equal_to_the_log(world, "bad")
        assert world.fold().get("default", "metric", "bad").by == "engine"
    finally:
        job.kill()
