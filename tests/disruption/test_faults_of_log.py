"""Faults of the log: retention, partitions that are added, a topic that is created anew.

D12 and D13 of RELIABILITY 3; each bites, passes, and has a mutant.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import redis
from account import records_of
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from disruption.brokers import grow, log_begins, log_ends
from disruption.checker import RECOVERY_S, pane_counts
from disruption.faults import (
    assert_stops_as_foreign,
    bites,
    broken,
    judged,
    recovery_s,
    with_mutant,
)
from disruption.rig import Rig
from disruption.scene import PATIENCE_S, Scene, await_new_result, scene
from equality import is_filled
from recount import Api
from weir import names
from weir_local.topics import TOPICS

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

# How long the log keeps events, in segments of how long, and how often the broker looks.
RETENTION_MS, SEGMENT_MS = 60_000, 10_000
LOOKS = {"log.retention.check.interval.ms": "5000", "log.initial.task.delay.ms": "1000"}
# Of each partition, at least: a dozen seconds of the load, and so a pane or more.
LOST = 1_500
# What is told of a log that is given up: before, by whoever adopts it, and what is lost.
GIVEN_UP = ("log_running_out", "log_adopted", "log_lost")
FOR_EVER = {"retention.ms": "-1", "segment.ms": "604800000"}


@with_mutant("lost_log_ignored")
def test_retention_ran_past_the_engine(tmp_path: Path, seed: int, mutant: str) -> None:
    """D12: what is gone is told as partition, offsets and count; it goes on once adopted."""
    told = {"retention.ms": str(RETENTION_MS), "segment.ms": str(SEGMENT_MS)}
    with (
        scene(tmp_path, seed, mutants={"panes": mutant}, kafka=LOOKS) as here,
        judged(mutant),
        here.read(errors=GIVEN_UP),
    ):
        rig = here.rig
        here.more(300)
        await_new_result(rig)
        rig.kill("panes")
        stood = marked(rig)
        from_ms = int(rig.api("GET", "/status").body["now_ms"])
        configure_log(rig, told)
        rig.wait_until(
            lambda: all(first > stood[p] + LOST for p, first in log_begins(rig).items()),
            "retention past where counting stood",
            3 * RETENTION_MS / 1000 + PATIENCE_S,
        )
        configure_log(rig, FOR_EVER)
        begins = log_begins(rig)
        bites(sum(log_ends(rig).values()) > sum(begins.values()), "a log that goes on behind that")
        rig.stack.launch("panes")
        assert_stops_as_foreign(rig, "are gone; go on only by a recorded adopt")
        gone = adopt(here)
        bites(gone, "an offset hole")
        found = {one["partition"]: (one["first"], one["last"], one["count"]) for one in gone}
        lost = {p: (stood[p], begins[p] - 1, begins[p] - stood[p]) for p in begins}
        assert found == lost, f"what is gone must be told by its offsets: {found} is not {lost}"
        assert_incomplete(rig, from_ms)
        assert_fresh_panes_equal(here)


def configure_log(rig: Rig, told: dict[str, str]) -> None:
    """Have the log of events keep what it is told to."""
    admin = AdminClient({"bootstrap.servers": rig.kafka_bootstrap})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in told.items()
    ]
    wanted = ConfigResource(ResourceType.TOPIC, names.EVENTS, incremental_configs=entries)
    for done in admin.incremental_alter_configs([wanted]).values():
        done.result(30)


def marked(rig: Rig) -> dict[int, int]:
    """Return up to where each partition is counted, by the marks of the shards; the driver is dead.

    Where it died between two shards, it is the one that is behind which counts the range again.
    """
    client: Any = redis.Redis.from_url(rig.redis_url)
    marks = [json.loads(client.get(names.mark_key(shard)))["end"] for shard in range(2)]
    client.close()
    return {int(p): min(int(mark[p]) for mark in marks) for p in marks[0]}


def assert_incomplete(rig: Rig, at_ms: int) -> None:
    """Assert that the pane of an instant says of itself that a part of its log is gone.

    It is asked for all series at once: of one that began just then, no series may be left.
    """
    start_ms = at_ms - at_ms % 10_000
    api = Api(rig.dashboard_url, rig.key)
    asked = pane_counts((start_ms, start_ms + 10_000)) | {"by": []}
    answer = api.call("POST", "/query", asked)
    states = {state for series in answer["series"] for state in series["state"]}
    assert states == {"i"}, f"panes whose log is gone must be incomplete, got {states}"


def adopt(here: Scene) -> list[dict[str, Any]]:
    """Record the decision to go on; return what was told to be lost."""
    rig = here.rig
    before = len(rig.lines("panes", "log_lost"))
    rig.api("POST", "/jobs", {"job": "adopt", "reason": "a test of what is lost"})
    rig.restart("panes")
    await_new_result(rig, RECOVERY_S)
    return rig.lines("panes", "log_lost")[before:]


def assert_fresh_panes_equal(here: Scene) -> None:
    """Assert that what came since is counted: whole panes, held against what the log has."""
    rig = here.rig
    first_ms = int(rig.api("GET", "/status").body["now_ms"])
    first_ms += 10_000 - first_ms % 10_000
    rig.wait_until(
        lambda: int(rig.fresh()["processed_through_ms"] or 0) > first_ms + 20_000,
        "two panes more",
        RECOVERY_S,
    )
    here.load.pause()
    await_new_result(rig, RECOVERY_S)
    found = recount_load(rig, first_ms)
    span = (first_ms, first_ms + 3_600_000)
    answer = Api(rig.dashboard_url, rig.key).call("POST", "/query", pane_counts(span))
    served = sum(sum(count or 0 for count in series["count"]) for series in answer["series"])
    assert served == found
    assert found > 0


def recount_load(rig: Rig, from_ms: int) -> int:
    """Return how many events of the load the log holds from an event time on, each once."""
    from account import dispositions
    from load import TYPE

    return sum(
        event["type"] == TYPE and event["_time_ms"] >= from_ms
        for _, disposition, event in dispositions(records_of(rig.kafka_bootstrap))
        if event is not None and disposition == "counted"
    )


def grow_under_load(here: Scene) -> None:
    """Have eight partitions in place of four while events come, and ingest use the new ones."""
    rig = here.rig
    grow(rig, 8)
    here.more(500)
    if rig.part("panes").pid() is not None:
        await_new_result(rig, RECOVERY_S)  # ingest sends nothing there yet: by ticks alone
    # Its producer looks for new partitions every five minutes. What was not answered when it
    # ends may come again over another partition, where nobody knows of it: the dedup gap.
    here.load.pause()
    rig.part("ingest").stop()
    rig.restart("ingest")
    here.load.resume()
    here.more(500)
    bites(sum(log_ends(rig).get(p, 0) for p in range(4, 8)), "events in new partitions")


@with_mutant("new_partitions_start_late")
def test_partitions_are_added(tmp_path: Path, seed: int, mutant: str) -> None:
    """D13: four to eight while the driver is away: what is new is counted from its start."""
    with broken(tmp_path, seed, mutant) as here:
        rig = here.rig
        here.more(200)
        rig.kill("panes")
        grow_under_load(here)
        bites(sum(log_ends(rig).get(p, 0) for p in range(4, 8)), "events in new partitions")
        rig.stack.launch("panes")
        await_new_result(rig, recovery_s(mutant, PATIENCE_S))


def test_partitions_are_added_beside_a_driver(tmp_path: Path, seed: int) -> None:
    """D13: they are counted from their start, time goes on meanwhile, the dedup gap is told."""
    with broken(tmp_path, seed, "") as here:
        rig = here.rig
        here.more(200)
        grow_under_load(here)
        told = [line["partitions"] for line in rig.lines("panes", "partitions_added")]
        assert sorted(p for some in told for p in some) == [4, 5, 6, 7]


def test_the_topic_is_created_anew(tmp_path: Path, seed: int) -> None:
    """D13: another log under the same name is named; it goes on once adopted."""
    with scene(tmp_path, seed) as here, here.read(errors=GIVEN_UP):
        rig = here.rig
        here.more(200)
        await_new_result(rig)
        rig.kill("panes")
        create_anew(here)
        here.more(100)
        rig.stack.launch("panes")
        assert_goes_on_adopted(here)


@with_mutant("another_log_read_on")
def test_the_topic_is_created_anew_beside_a_driver(tmp_path: Path, seed: int, mutant: str) -> None:
    """D13: one that slept until the new log had grown past its place counts nothing of it."""
    with (
        scene(tmp_path, seed, mutants={"panes": mutant}) as here,
        judged(mutant),
        here.read(errors=GIVEN_UP),
    ):
        rig = here.rig
        here.more(200)
        await_new_result(rig)
        rig.part("panes").send(signal.SIGSTOP)
        stood = log_ends(rig)
        create_anew(here)
        rig.wait_until(
            lambda: all(end > stood[p] for p, end in log_ends(rig).items()),
            "a log that is longer than the old one",
            PATIENCE_S,
        )
        rig.part("panes").send(signal.SIGCONT)
        assert_goes_on_adopted(here)


def assert_goes_on_adopted(here: Scene) -> None:
    """Assert that a driver names the new log, and counts it once told to.

    What it counted of the old one is given up; what the new one has of a pane may be a part of it,
    and says so (I13).
    """
    from_ms = int(here.rig.api("GET", "/status").body["now_ms"])
    assert_stops_as_foreign(here.rig, "the topic was created anew")
    adopt(here)
    here.rig.wait_until(
        lambda: is_filled(here.rig) and here.rig.fresh()["status"] == "live",
        "what the log still has, counted again",
        RECOVERY_S,
    )
    assert_incomplete(here.rig, from_ms)
    assert_fresh_panes_equal(here)


def create_anew(here: Scene) -> None:
    """Delete the topic of events and create it; ingest is started again, and the load flows."""
    rig = here.rig
    rig.kill("ingest")
    admin = AdminClient({"bootstrap.servers": rig.kafka_bootstrap})
    for done in admin.delete_topics([names.EVENTS]).values():
        done.result(30)
    rig.wait_until(lambda: names.EVENTS not in admin.list_topics(timeout=10).topics, "its end")
    rig.stack.broker.create_topics(TOPICS)
    rig.restart("ingest")
