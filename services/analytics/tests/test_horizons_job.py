"""A driver whose dedup horizon is changed: what was counted stays so, also when it is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .live_job import METRIC, Job, World, running_world, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.redis, pytest.mark.spark, pytest.mark.disruption]

SHORT_MS = 1_000
EVENTS = 40


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a log and a store of this test's own."""
    with running_world(tmp_path / "world") as world:
        yield world


def send_again(world: World) -> None:
    """Send the same events, longer after those before than the short horizon."""
    last_s = time.monotonic()
    wait_for(lambda: time.monotonic() > last_s + 1.5 * SHORT_MS / 1000, "the short horizon", 10)
    for i in range(EVENTS):
        world.send(f"e{i}", x=i, k=f"k{i % 7}")
    world.wait_counted()


def test_a_rebuild_counts_each_part_of_the_log_as_it_was(world: World, tmp_path: Path) -> None:
    """Repetitions before the change stay such; after it they are none, since they come later."""
    world.define("amount", METRIC)
    settings = {"SHARDS": "2"}
    job = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings=settings)
    try:
        job.start()
        send_again(world)
        send_again(world)
        assert job.stop() == 0

        job.settings = settings | {"HORIZON_MS": str(SHORT_MS)}
        job.start()
        wait_for(lambda: len(world.fold().horizons) == 2, "the change to be recorded")
        send_again(world)
        assert world.ledger() == {"counted": 2 * EVENTS, "duplicate": EVENTS}
        vid = world.wait_serving("amount")
        before = world.panes(vid, 10)
        assert job.lines("setting_changed")[-1]["now"] == SHORT_MS

        world.redis.flushall()
        wait_for(lambda: world.fold().start().reason == "lost", "the loss to be found")
        world.wait_counted()
        assert world.ledger() == {"counted": 2 * EVENTS, "duplicate": EVENTS}
        assert world.panes(vid, 10) == before
    finally:
        job.kill()
