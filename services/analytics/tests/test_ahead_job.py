"""The job as a process: no batch makes a plan, whatever changes of what is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from weir import names
from weir.definitions.records import Edit, put_record
from weir.erasure import erasures, subject_hash

from .live_job import METRIC, Job, assert_equal_to_the_log, running_world, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.redis]

KEY = b"k" * 32


def test_no_batch_makes_a_plan(tmp_path: Path) -> None:
    """Through a beginning, a takeover, an end, an erasure and what is counted again for it."""
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "hash_key").write_bytes(KEY)
    settings = {"SHARDS": "2", "SECRETS_DIR": str(tmp_path / "secrets")}
    with running_world(tmp_path / "world") as world:
        job = Job(world.bootstrap, world.redis_url, tmp_path / "job", settings=settings)
        try:
            for name in ("amount", "other"):
                world.define(name, METRIC.replace("amount", name))
            job.start()
            for name in ("amount", "other"):
                world.wait_active(name)
            for n in range(100):
                world.send(f"a-{n}", x=n, k="k", u="u", subject=f"user-{n % 3}")

            world.define("amount", METRIC.replace("p95, ", ""), based_on=1)
            edited = world.wait_serving("amount")
            other = world.vid("other")
            world.delete("other", based_on=1)
            wait_for(lambda: world.fold().activations[other].finish is not None, "the end of it")
            assert_equal_to_the_log(world)

            do = {"job": "erase", "subject_hash": subject_hash(KEY, "default", "user-1")}
            edit = Edit("default", "job", "forget", None, "test", 0)
            record = put_record(edit, json.dumps({"do": do}))
            world.producer.produce(names.DEFINITIONS, record.value, record.key)
            world.producer.flush(10)
            wait_for(lambda: len(erasures(world.fold())) == 1, "the erasure to hold")
            wait_for(lambda: world.vid("amount") != edited, "the metric to be counted again")
            world.wait_serving("amount")
            world.wait_counted()
        finally:
            job.kill()
    made = job.lines("plan_made")
    assert len(made) > 4
    assert [line for line in made if line["awaited"]] == []
