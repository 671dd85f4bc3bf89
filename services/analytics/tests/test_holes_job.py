"""I13 on the real job: what the log lacks is looked for, told, and held up for no longer.

Retention that overtakes a rebuild too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from weir import names
from weir.clock import SystemClock
from weir.commit import not_after
from weir.definitions.history import Start
from weir_analytics.panes.checkpoint import last_planned
from weir_analytics.panes.holes import TRIES

from .conftest import settings_for
from .installation import Installation
from .live_job import METRIC, Job, World, assert_equal_to_the_log, recount, running_world, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis]

EVENTS = {"small": 3, "large": 300}


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


def await_told(world: World, job: Job) -> None:
    """Return once all is counted, and all that is missing told after some readings."""
    world.wait_counted()
    missing = offsets_without_record(world)
    assert_equal_to_the_log(world)
    assert missing
    assert told(job) == sorted(missing)
    assert len(job.lines("offset_hole")) >= TRIES


@pytest.mark.disruption
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
            for size, count in EVENTS.items():
                in_one_transaction(world, size, count)
                world.wait_counted()
            await_told(world, job)
            assert world.fold().start().incomplete_before_ms > SystemClock().now_ms()

            job.kill()
            job.log.unlink()
            shutil.rmtree(tmp_path / "job" / "state" / "dedup")
            # One task reads the states of all partitions, and meets all holes at once.
            job.settings = {"SHARDS": "2"}
            job.start()
            for i in range(12):
                world.send(f"large-{i}", x=i, k=f"k{i % 4}", u="u")
                world.send(f"after-{i}", x=i, k=f"k{i % 4}", u="u")
            await_told(world, job)
        finally:
            job.kill()


def await_committed(world: World, checkpoint: Path) -> None:
    """Return once Spark, too, has noted that all of the log until now is counted."""
    ends = world.ends()

    def done() -> bool:
        planned = last_planned(checkpoint, names.EVENTS)
        return planned is not None and not_after(
            ends, planned.to_offsets if planned.committed else planned.from_offsets
        )

    wait_for(done, f"the checkpoint to be committed up to {ends}")


def lose_all(world: World, state: Path) -> Start:
    """Empty Redis, and open what counts again what it held, as a driver that then dies."""
    world.redis.flushall()
    settings = settings_for(state, world.bootstrap, world.redis_url)
    settings = settings.model_copy(update={"shards": world.shards})
    opened = Installation(settings, world.redis, lambda: None)
    opened.start()
    return opened.told()


def delete_half(world: World) -> None:
    """Take half of each partition away, as retention does."""
    admin = AdminClient({"bootstrap.servers": world.bootstrap})
    places = [TopicPartition(names.EVENTS, p, n // 2) for p, n in world.ends().items()]
    for future in admin.delete_records(places).values():
        future.result(10)


def test_what_retention_takes_from_a_rebuild_is_said(tmp_path: Path) -> None:
    """It was whole when it began: panes that lack something are incomplete, and not just smaller.

    Once is enough, and what the log still has is counted as ever.
    """
    with running_world(tmp_path / "world") as world:
        job = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings={"SHARDS": "2"})
        world.define("amount", METRIC)
        job.start()
        try:
            world.wait_active("amount")
            for i in range(400):
                world.send(f"before-{i}", x=i, k=f"k{i % 4}", u="u")
            world.wait_counted()
            # Else live counting may go on before what is deleted, and then a person has to decide.
            await_committed(world, tmp_path / "job" / "state" / "checkpoint")
            job.kill()
            lost = lose_all(world, tmp_path / "job" / "state")
            assert (lost.reason, lost.incomplete_before_ms) == ("lost", 0)
            delete_half(world)
            job.start()
            world.wait_counted()

            said = world.fold().start()
            assert 23 * 3_600_000 < said.incomplete_before_ms - lost.at_ms < 25 * 3_600_000
            assert said.epoch == lost.epoch
            assert len(job.lines("reconciled")) <= 1 + 1 + 2, (
                "a life for itself, not for each slice"
            )
            assert {line["lane"] for line in job.lines("log_lost")} <= world.fold().lanes.keys()
            assert job.lines("log_lost")
            panes, _tally = recount(world.log(), 10)
            assert world.panes(world.vid("amount"), 10) == panes
        finally:
            job.kill()


def test_a_shard_is_levelled_with_what_retention_has_left(tmp_path: Path) -> None:
    """Put back to before what the log still has, it takes what there is, and counting goes on."""
    with running_world(tmp_path / "world") as world:
        job = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings={"SHARDS": "2"})
        world.define("amount", METRIC)
        job.start()
        try:
            world.wait_active("amount")
            dump = world.dump(1)
            for i in range(400):
                world.send(f"before-{i}", x=i, k=f"k{i % 4}", u="u")
            world.wait_counted()
            await_committed(world, tmp_path / "job" / "state" / "checkpoint")
            delete_half(world)
            begun = len(job.lines("reconciled"))
            world.restore(1, dump)
            wait_for(lambda: len(job.lines("reconciled")) > begun, "the driver to begin again")
            world.send("after", x=1, k="k1", u="u")
            world.wait_counted()

            assert job.lines("reconciled")[begun]["verdict"] == "behind"
            rows = world.panes(world.vid("amount"), 10).values()
            assert 200 < sum(row[0] for row in rows) <= 401
        finally:
            job.kill()
