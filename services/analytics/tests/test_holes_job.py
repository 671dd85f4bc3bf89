"""I13 on the real job: what the log lacks is looked for, told, and held up for no longer."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer
from weir.clock import SystemClock
from weir_analytics.panes.holes import TRIES

from .live_job import METRIC, Job, World, assert_equal_to_the_log, running_world

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis]


def offsets_without_record(world: World) -> set[tuple[int, int]]:
    """Return partition and offset of what the log lacks."""
    ends = world.ends()
    there = {(message.partition(), message.offset()) for message in world.log()}
    return {(p, n) for p, end in ends.items() for n in range(end)} - there


def in_one_transaction(world: World, seed: str, count: int) -> None:
    """Send events as nobody should: each partition gets a marker that is no record."""
    plain = world.producer
    world.producer = Producer(
        {
            "bootstrap.servers": world.bootstrap,
            "partitioner": "murmur2_random",
            "transactional.id": seed,
        }
    )
    world.producer.init_transactions(30)
    world.producer.begin_transaction()
    for i in range(count):
        world.send(f"{seed}-{i}", x=i, k=f"k{i % 4}", u="u")
    world.producer.commit_transaction(30)
    world.producer = plain


def told(job: Job) -> list[tuple[int, int]]:
    """Return partition and offset of what the job has told to be lost."""
    return sorted(
        (line["partition"], n)
        for line in job.lines("log_lost")
        for n in range(line["first"], line["last"] + 1)
    )


def test_a_hole_is_told_and_counting_goes_on(tmp_path: Path) -> None:
    """In small batches and in large ones, with every record that is there counted once.

    So does the next process that lost its dedup state, and reads it back across the holes.
    """
    with running_world(tmp_path / "world") as world:
        settings = {"SHARDS": "2", "SMALL_BATCH": "20"}
        job = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings=settings)
        world.define("amount", METRIC)
        job.start()
        try:
            world.wait_active("amount")
            in_one_transaction(world, "small", 3)
            world.wait_counted()
            in_one_transaction(world, "large", 300)
            world.wait_counted()
            missing = offsets_without_record(world)
            assert_equal_to_the_log(world)
            assert missing
            assert told(job) == sorted(missing)
            assert world.fold().start().incomplete_before_ms > SystemClock().now_ms()
            assert len(job.lines("offset_hole")) >= TRIES

            job.kill()
            job.log.unlink()
            shutil.rmtree(tmp_path / "job" / "state" / "dedup")
            # One task reads the states of all partitions, and meets all holes at once.
            job.settings = {"SHARDS": "2"}
            job.start()
            for i in range(12):
                world.send(f"large-{i}", x=i, k=f"k{i % 4}", u="u")
                world.send(f"after-{i}", x=i, k=f"k{i % 4}", u="u")
            world.wait_counted()
            assert_equal_to_the_log(world)
            assert told(job) == sorted(missing)
            assert len(job.lines("offset_hole")) >= TRIES
        finally:
            job.kill()
