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
from account import epoch_ms
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from disruption.brokers import grow, log_begins, log_ends
from disruption.checker import RECOVERY_S, assert_goes_on, pane_counts
from disruption.faults import (
    assert_stops_as_foreign,
    bites,
    broken,
    judged,
    with_mutant,
)
from disruption.judge import given_up, taken, untold_loss
from disruption.rig import Rig
from disruption.scene import (
    ALARM,
    PATIENCE_S,
    Scene,
    await_new_result,
    processed_through_ms,
    scene,
)
from equality import PANE_MS, is_filled
from recount import Api
from weir import names
from weir.batches import parse_id
from weir.clock import SystemClock
from weir_local.topics import TOPICS

pytestmark = [pytest.mark.stack, pytest.mark.disruption, pytest.mark.timeout(3600)]

# How long the log keeps events, in segments of how long, and how often the broker looks.
RETENTION_MS, SEGMENT_MS = 60_000, 10_000
LOOKS = {"log.retention.check.interval.ms": "5000", "log.initial.task.delay.ms": "1000"}
# Of each partition, at least: a dozen seconds of the load, and so a pane or more.
LOST = 1_500
# What is told of a log that is given up: before, by whoever adopts it, and what is lost.
GIVEN_UP = ("log_running_out", "log_adopted", "log_lost")
# A metric that is filled where the old log is longer than the new one gets, by so many ticks.
FILLED, TICKS = "filled", 40_000
FOR_EVER = {"retention.ms": "-1", "segment.ms": "604800000"}
MINUTE_MS = 60_000


@with_mutant("lost_log_ignored")
def test_retention_ran_past_the_engine(tmp_path: Path, seed: int, mutant: str) -> None:
    """D12: what is about to be lost is told, then what is gone; it goes on once adopted."""
    short = {"retention.ms": str(RETENTION_MS), "segment.ms": str(SEGMENT_MS)}
    with (
        scene(tmp_path, seed, mutants={"panes": mutant}, kafka=LOOKS) as here,
        judged(mutant),
        here.read(errors=GIVEN_UP),
    ):
        rig = here.rig
        here.more(300)
        await_new_result(rig)
        rig.kill("panes")
        counted = marked(rig)
        stood = {p: min(end[p] for end in counted) for p in counted[0]}
        from_ms = int(rig.api("GET", "/status").body["now_ms"])
        configure_log(rig, short)
        lost_ms = await_lost(rig, stood)
        told = rig.lines("dashboard", "log_running_out")
        late = untold_loss(told, lost_ms)
        assert not late, f"that the log runs out must be told before anything is lost: {late}"
        configure_log(rig, FOR_EVER)
        begins = log_begins(rig)
        bites(sum(log_ends(rig).values()) > sum(begins.values()), "a log that goes on behind that")
        rig.stack.launch("panes")
        assert_stops_as_foreign(rig, "are gone; go on only by a recorded adopt")
        bites(lost := taken(counted, begins), "an offset hole")
        gave_up = adopt(here)
        assert_given_up(gave_up, lost)
        assert gave_up["cleared_shards"] == [], "what is counted of this log must be kept"
        assert_incomplete(rig, from_ms)
        assert_whole_from_now_on(here)


def await_lost(rig: Rig, stood: dict[int, int]) -> int:
    """Return when the first event was lost that is not counted, once many are, by the clock."""
    lost_ms: list[int] = []

    def is_past() -> bool:
        begins = log_begins(rig)
        if not lost_ms and any(first > stood[p] for p, first in begins.items()):
            lost_ms.append(SystemClock().now_ms())
        return all(first > stood[p] + LOST for p, first in begins.items())

    patience_s = 3 * RETENTION_MS / 1000 + PATIENCE_S
    rig.wait_until(is_past, "retention past where counting stood", patience_s)
    return lost_ms[0]


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


def marked(rig: Rig) -> list[dict[int, int]]:
    """Return up to where each shard has counted each partition; the driver is dead.

    Where it died between two shards, one of them is behind.
    """
    client: Any = redis.Redis.from_url(rig.redis_url)
    marks = [json.loads(client.get(names.mark_key(shard)))["end"] for shard in range(2)]
    client.close()
    return [{int(p): int(end) for p, end in mark.items()} for mark in marks]


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


def adopt(here: Scene) -> dict[str, Any]:
    """Record the decision to go on; return what it gave up, as told to whoever follows the job."""
    rig = here.rig
    before = len(rig.lines("panes", "log_lost"))
    asked = {"job": "adopt", "reason": "a test of what is lost"}
    path = f"/jobs/{rig.api('POST', '/jobs', asked).body['id']}"
    rig.restart("panes")
    await_new_result(rig, RECOVERY_S)
    rig.wait_until(
        lambda: rig.api("GET", path).body["state"] == "done", "the end of adopt", RECOVERY_S
    )
    told: dict[str, Any] = rig.api("GET", path).body["outcome"]["given_up"]
    logged = [
        {name: line.get(name) for name in ("partition", "first", "last", "shards", "count")}
        for line in rig.lines("panes", "log_lost")[before:]
    ]
    untold = [hole for hole in told["gone"] if hole not in logged]
    assert not untold, f"what is given up must be in the log, too: {untold} is not in {logged}"
    return told


def assert_given_up(told: dict[str, Any], lost: list[dict[str, Any]]) -> None:
    """Assert I13: each hole is told by partition, first and last offset, and count; no other is."""
    found = sorted(told["gone"], key=lambda hole: (hole["partition"], hole["first"]))
    assert found == lost, f"what is gone must be told by its offsets: {found} is not {lost}"


def assert_whole_from_now_on(here: Scene) -> None:
    """Assert that what comes from the next minute on is counted, all of it as after any fault."""
    from_ms = int(here.rig.api("GET", "/status").body["now_ms"])
    from_ms += MINUTE_MS - from_ms % MINUTE_MS
    count_two_panes(here, from_ms)
    fresh = (n for n, _count, time in here.load.batches if epoch_ms(time) >= from_ms)
    assert_goes_on(here.rig, here.load, first=next(fresh), from_ms=from_ms, sketched=here.sketched)


def count_two_panes(here: Scene, from_ms: int) -> None:
    """Return once what came in two panes from an instant on is counted; the load pauses."""
    here.rig.wait_until(
        lambda: processed_through_ms(here.rig) > from_ms + 2 * PANE_MS, "two panes more", PATIENCE_S
    )
    here.load.pause()
    await_new_result(here.rig, RECOVERY_S)


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
        await_new_result(rig, RECOVERY_S)


@with_mutant("new_partitions_not_ticked")
def test_partitions_are_added_beside_a_driver(tmp_path: Path, seed: int, mutant: str) -> None:
    """D13: they are counted from their start, time goes on meanwhile, the dedup gap is told."""
    with broken(tmp_path, seed, mutant) as here:
        rig = here.rig
        here.more(200)
        grow_under_load(here)
        told = [line["partitions"] for line in rig.lines("panes", "partitions_added")]
        assert sorted(p for some in told for p in some) == [4, 5, 6, 7]


@with_mutant("another_log_unseen")
def test_the_topic_is_created_anew(tmp_path: Path, seed: int, mutant: str) -> None:
    """D13: another log under the same name is named; it goes on once adopted."""
    with (
        scene(tmp_path, seed, mutants={"panes": mutant}) as here,
        judged(mutant),
        here.read(errors=GIVEN_UP),
    ):
        rig = here.rig
        here.more(200)
        await_new_result(rig)
        fill_far_out(rig)
        rig.kill("panes")
        first = create_anew(here)
        here.more(100)
        rig.stack.launch("panes")
        assert_goes_on_adopted(here, first)
        assert_shows_what_was_filled(here)


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
        first = create_anew(here)
        rig.wait_until(
            lambda: all(end > stood[p] for p, end in log_ends(rig).items()),
            "a log that is longer than the old one",
            PATIENCE_S,
        )
        rig.part("panes").send(signal.SIGCONT)
        assert_goes_on_adopted(here, first)


def assert_goes_on_adopted(here: Scene, first: int) -> None:
    """Assert that a driver names the new log, and counts it once told to.

    What it counted of the old one is given up, by its offsets; what the new one has of a pane may
    be a part of it, and says so (I13).

    Args:
        here: The scene; its topic was created anew.
        first: The first event that the new log must hold.
    """
    rig = here.rig
    from_ms = int(rig.api("GET", "/status").body["now_ms"])
    assert_stops_as_foreign(rig, "the topic was created anew")
    counted = marked(rig)
    bites(lost := given_up(counted), "a log of which something was counted")
    told = adopt(here)
    assert "the topic was created anew" in told["because"]
    assert told["cleared_shards"] == [0, 1]
    assert_given_up(told, lost)
    rig.wait_until(
        lambda: is_filled(rig) and rig.fresh()["status"] == "live",
        "what the log still has, counted again",
        RECOVERY_S,
    )
    assert_incomplete(rig, from_ms)
    count_two_panes(here, int(rig.api("GET", "/status").body["now_ms"]))
    assert_goes_on(rig, here.load, first=first, sketched=here.sketched)


def fill_far_out(rig: Rig) -> None:
    """Define a metric, and return once it was filled: at offsets that the new log is far from."""
    producer = Producer({"bootstrap.servers": rig.kafka_bootstrap})
    for partition in log_ends(rig):
        for _ in range(TICKS):
            producer.produce(
                names.EVENTS, None, partition=partition, headers={names.HEADER_TICK: b""}
            )
            producer.poll(0)
    assert producer.flush(60) == 0
    rig.define("metric", FILLED, ALARM.replace("alarm", FILLED))
    rig.wait_until(lambda: is_filled(rig, FILLED), "a metric that was filled", RECOVERY_S)


def assert_shows_what_was_filled(here: Scene) -> None:
    """Assert that a dashboard which begins now shows what took over in the log before."""
    rig = here.rig
    bites(max(log_ends(rig).values()) < TICKS, "a log that is shorter than the old one")
    client: Any = redis.Redis.from_url(rig.redis_url)
    epoch, _ = parse_id(client.xrevrange(names.BATCHES, count=1)[0][0])
    client.xtrim(names.BATCHES, minid=epoch, approximate=False)  # as a quarter of an hour does
    client.close()
    rig.part("dashboard").stop()
    rig.restart("dashboard")
    rig.wait_until(lambda: rig.fresh()["status"] == "live", "live numbers", PATIENCE_S)
    assert is_filled(rig, FILLED), "what was filled from the old log must serve"
    now_ms = int(rig.api("GET", "/status").body["now_ms"])
    now_ms -= now_ms % PANE_MS
    api = Api(rig.dashboard_url, rig.key)
    asked = pane_counts((now_ms - PANE_MS, now_ms)) | {"metric": FILLED, "by": []}
    answer = api.call("POST", "/query", asked)
    states = {state for series in answer["series"] for state in series["state"]}
    assert states.isdisjoint("r"), f"panes that are counted must not be rebuilding, got {states}"


def create_anew(here: Scene) -> int:
    """Delete the topic of events and create it; ingest is started again, and the load flows.

    Returns:
        The first event that was not acknowledged then: it and all behind it are in the new log.
    """
    rig = here.rig
    rig.kill("ingest")
    admin = AdminClient({"bootstrap.servers": rig.kafka_bootstrap})
    for done in admin.delete_topics([names.EVENTS]).values():
        done.result(30)
    rig.wait_until(lambda: names.EVENTS not in admin.list_topics(timeout=10).topics, "its end")
    rig.stack.broker.create_topics(TOPICS)
    rig.restart("ingest")
    return here.load.acknowledged
