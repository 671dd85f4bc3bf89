"""A store that lost what it held is noticed between batches, on a real Redis; and in the job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import redis
from redis.exceptions import RedisError
from weir import names
from weir.commit import Fence, Mark, Verdict
from weir_analytics.panes.between import Step
from weir_analytics.panes.loss_watch import LossWatch
from weir_analytics.panes.recovery import Shards, VerdictError

from .live_job import METRIC, Job, assert_equal_to_the_log, running_world, wait_for
from .test_fault_job import send_some

pytestmark = pytest.mark.redis

FENCE = Fence(7, "definitions")
MARK = msgspec.json.encode(Mark(epoch=7, batch=3, topic_id="events", end={0: 5}, shards=2))


@pytest.fixture
def shards(redis_url: str, client: redis.Redis) -> Iterator[Shards]:
    """Return two shards that each have a mark, on a server of their own."""
    for shard in (0, 1):
        client.set(names.mark_key(shard), MARK)
    opened = Shards(redis_url, 2, timeout_s=5)
    yield opened
    opened.close()


@pytest.fixture
def cycle() -> Any:
    """Return what says which driver this is."""
    return SimpleNamespace(footing=SimpleNamespace(fence=FENCE))


def test_a_shard_without_its_mark_is_lost(shards: Shards, client: redis.Redis, cycle: Any) -> None:
    """One of them is enough, and it is named."""
    watch = LossWatch(shards)
    watch.prepare()
    assert watch.step(cycle) is Step.IDLE

    client.delete(names.mark_key(1))
    client.set(names.fence_key(0), msgspec.json.encode(FENCE))
    assert watch.step(cycle) is Step.IDLE, "nobody has looked"
    watch.prepare()
    with pytest.raises(VerdictError, match=r"shards \[1\] have none") as caught:
        watch.step(cycle)
    assert caught.value.verdict is Verdict.LOST
    assert not caught.value.shards, "a start finds out itself what there is to count"


def test_what_is_there_again_is_not_lost(shards: Shards, client: redis.Redis, cycle: Any) -> None:
    """It was looked at while a batch wrote, or on a server that is no more asked."""
    watch = LossWatch(shards)
    client.delete(names.mark_key(1))
    watch.prepare()
    client.set(names.mark_key(1), MARK)
    asked = shards._wire._connection._sock
    assert watch.step(cycle) is Step.IDLE
    assert shards._wire._connection._sock is not asked


def test_what_a_newer_driver_takes_away_is_not_lost(
    shards: Shards, client: redis.Redis, cycle: Any
) -> None:
    """It counts that again, and this one ends."""
    watch = LossWatch(shards)
    client.delete(names.mark_key(1))
    client.set(names.fence_key(0), msgspec.json.encode(Fence(8, FENCE.topic_id)))
    watch.prepare()
    with pytest.raises(VerdictError, match="fence must be the newest") as caught:
        watch.step(cycle)
    assert caught.value.verdict is Verdict.FENCED


def test_that_the_store_is_away_is_no_loss(shards: Shards, client: redis.Redis, cycle: Any) -> None:
    """It is told as it is, and looked at more seldom; a batch waits for it."""
    client.delete(names.mark_key(0))
    watch = LossWatch(shards)
    watch.prepare()
    watch._shards = Shards("redis://127.0.0.1:1", 2, timeout_s=1)
    with pytest.raises(RedisError):
        watch.step(cycle)
    with pytest.raises(RedisError):
        watch.prepare()
    assert watch.step(cycle) is Step.IDLE, "of before nothing holds any more"


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

            def since_told(event: str) -> list[dict[str, Any]]:
                """Return what the job said since the newest verdict."""
                told_at = job.lines("verdict")[-1]["at"]
                return [line for line in job.lines(event) if line["at"] > told_at]

            def counted_again() -> bool:
                return bool(since_told("slice"))

            def is_found() -> bool:
                """Tell whether it was; a batch that was under way may have met it first."""
                told = [one["reason"] for one in job.lines("verdict")]
                if len(told) == wiped[-1]:
                    return False
                if "must have its live mark between batches" in told[-1]:
                    return True
                wait_for(counted_again, "what was lost, counted again")
                send_some(world, f"again-{len(told)}")
                world.wait_counted()
                wiped.append(len(told))
                world.redis.flushall()
                return False

            wiped = [len(job.lines("verdict"))]
            world.redis.flushall()
            wait_for(is_found, "the loss to be found without a batch")
            wait_for(counted_again, "what was lost, counted again")
            # A new stream begins with a batch of nothing.
            assert not any(one["received"] or one["ticks"] for one in since_told("batch"))
            assert job.stop() == 0
            # That nothing is left to be counted again is told by a batch, which ticks bring.
            job.name, job.settings = "ticked", {}
            job.start()
            send_some(world, "after")
            assert_equal_to_the_log(world)
        finally:
            job.kill()
