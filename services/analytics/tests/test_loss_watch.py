"""A store that lost what it held is noticed between batches, on a real Redis; and in the job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import redis
from weir import names
from weir.commit import Mark, Verdict
from weir_analytics.panes.between import Step
from weir_analytics.panes.loss_watch import LossWatch
from weir_analytics.panes.recovery import Shards, VerdictError

from .live_job import METRIC, Job, assert_equal_to_the_log, running_world, wait_for
from .test_fault_job import send_some

pytestmark = pytest.mark.redis

MARK = Mark(epoch=7, batch=3, topic_id="events", end={0: 5}, shards=2)


@pytest.fixture
def shards(redis_url: str) -> Iterator[Shards]:
    """Return two shards on an empty server."""
    opened = Shards(redis_url, 2, timeout_s=5)
    yield opened
    opened.close()


def cycle(commits: int) -> Any:
    """Return what a life knows: how many batches it has committed."""
    return SimpleNamespace(commits=commits)


def test_a_shard_without_its_mark_is_lost(shards: Shards, client: redis.Redis) -> None:
    """One of them is enough, and it is named."""
    for shard in (0, 1):
        client.set(names.mark_key(shard), msgspec.json.encode(MARK))
    watch = LossWatch(shards, cycle(1))
    watch.prepare()
    assert watch.step(cycle(1)) is Step.IDLE

    client.delete(names.mark_key(1))
    with pytest.raises(VerdictError, match=r"shards \[1\] have none") as caught:
        watch.prepare()
    assert caught.value.verdict is Verdict.LOST
    assert not caught.value.shards, "a start finds out itself what there is to count"


def test_before_its_first_batch_a_life_expects_no_mark(shards: Shards) -> None:
    """A shard that was emptied has none while what was lost is counted again."""
    LossWatch(shards, cycle(0)).prepare()


def test_that_the_store_is_away_is_no_loss() -> None:
    """A batch finds that out, and waits for it."""
    LossWatch(Shards("redis://127.0.0.1:1", 2, timeout_s=1), cycle(1)).prepare()


@pytest.mark.spark
@pytest.mark.kafka
def test_what_was_lost_is_counted_again_before_any_batch(tmp_path: Path) -> None:
    """Where nobody sends, and no tick comes for an hour."""
    with running_world(tmp_path / "world") as world:
        job = Job(world.bootstrap, world.redis_url, tmp_path / "job")
        try:
            world.define("amount", METRIC)
            job.start()
            world.wait_serving("amount")
            assert job.stop() == 0
            job.name, job.settings = "unticked", {"TICK_MS": "3600000"}
            job.start()
            send_some(world, "before")
            world.wait_counted()
            batches = len(job.lines("batch"))
            world.redis.flushall()
            wait_for(lambda: job.lines("slice") != [], "the rebuild")
            (lost,) = job.lines("verdict")
            assert lost["verdict"] == "lost"
            assert "must have the mark of the last batch" in lost["reason"]
            assert len(job.lines("batch")) == batches
            send_some(world, "after")
            assert_equal_to_the_log(world)
        finally:
            job.kill()
