"""The log is about to lose what is not counted, and no driver is there to say so."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from prometheus_client import REGISTRY
from structlog.testing import capture_logs
from weir import log_place, names
from weir.clock import ManualClock
from weir.kafka import Kafka
from weir.log_left import LogLeft
from weir.log_place import LogPlace
from weir_dashboard.log_kept import LogKept
from weir_local.waiting import wait_until
from weir_reading.log_look import GroupPlaces, LogLook
from weir_reading.parts import Part

from .conftest import Engine

if TYPE_CHECKING:
    from .conftest import Running

HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000


def told(series: str) -> float | None:
    """Return what Prometheus would be told."""
    return REGISTRY.get_sample_value(f"weir_dashboard_{series}_seconds")


@dataclass
class Redis:
    """What is known of the parts that speak through Redis.

    Attributes:
        is_emptied: It answers, and holds nothing.
        beats: Heartbeats of the driver.
    """

    is_emptied: bool = False
    beats: list[Part] = field(default_factory=list)

    def named(self, _name: str) -> list[Part]:
        """Return the heartbeats of the driver."""
        return self.beats


def beat(left_ms: int | None) -> Part:
    """Return a driver's heartbeat."""
    detail = {"log_left_ms": left_ms, "log_kept_ms": HOUR_MS, "log_left_partition": 2}
    return Part("panes", "a", NOW_MS, "ok", None, None, None, "1", detail)


class Look:
    """A log of which one partition is counted, with as much left as a test says."""

    def __init__(self, *left_ms: int | KafkaException) -> None:
        self._left_ms = list(left_ms)
        self.known, self.is_gone, self.is_lane, self.are_both = True, False, False, False

    def read(self) -> dict[int, LogPlace] | None:
        """Return one place, or that nothing is known."""
        return {0: LogPlace(5)} if self.known else None

    def left(self, *_: object) -> LogLeft:
        """Return the next of what the test says."""
        said = self._left_ms.pop(0)
        if isinstance(said, KafkaException):
            raise said
        return LogLeft(
            partition=0,
            ms=said,
            kept_ms=HOUR_MS,
            needed_ms=said,
            is_gone=self.is_gone,
            is_lane=self.is_lane,
            are_both_short=self.are_both,
        )


def kept(look: Look, redis: Redis | None = None, clock: ManualClock | None = None) -> LogKept:
    """Return what looks at such a log."""
    redis, clock = redis or Redis(), clock or ManualClock(NOW_MS)
    return LogKept(cast("Any", look), cast("Any", look), redis, redis, clock)


def test_it_is_said_when_time_runs_short_and_when_it_is_over() -> None:
    """Not at each look, nor where what may go is still there; and that there is time again."""
    look = Look(HOUR_MS, 800_000, 700_000, 0, 0, 0, HOUR_MS)
    log = kept(look)
    with capture_logs() as said:
        for n in range(7):
            look.is_gone = n in (4, 5)
            log.look()

    assert [(line["event"], line["log_level"], line["left_ms"]) for line in said] == [
        ("log_running_out", "error", 800_000),
        ("log_running_out", "error", 0),
        ("log_lasts", "info", HOUR_MS),
    ]
    assert "events of partition 0 that are not counted yet are deleted in 13 min" in said[0]["why"]
    assert "that are not counted yet have been deleted" in said[1]["why"]


def test_only_what_gets_worse_is_said() -> None:
    """A segment goes, what is next is counted, another goes: that is one loss until it is over."""
    look = Look(800_000, 0, 0, 800_000, 0, HOUR_MS, 800_000)
    log = kept(look)
    with capture_logs() as said:
        for n in range(7):
            look.is_gone = n in (1, 4)
            log.look()
    events = [(line["event"], line["left_ms"]) for line in said]
    soon, lost = ("log_running_out", 800_000), ("log_running_out", 0)
    assert events == [soon, lost, ("log_lasts", HOUR_MS), soon]


def test_a_lane_that_has_lost_records_silences_no_live_counting() -> None:
    """It may have been set aside, and stay there; live counting runs short meanwhile."""
    look = Look(0, 800_000, 0, 0, 0)
    log = kept(look)
    with capture_logs() as said:
        for is_lane, is_gone in ((1, 1), (0, 0), (1, 1), (0, 1), (1, 1)):
            look.is_lane, look.is_gone, look.are_both = bool(is_lane), bool(is_gone), not is_lane
            log.look()
    assert [line["event"] for line in said] == ["log_running_out"] * 3
    assert ["have been deleted" in line["why"] for line in said] == [True, False, True]


@pytest.mark.parametrize("is_lane", [True, False])
def test_what_is_short_again_is_said_again_whatever_the_other_lacks(is_lane: bool) -> None:
    """A lane that was set aside lacks records for days; live counting is well for a week of them.

    And the other way round.
    """
    look = Look(0, 800_000, 700_000, 0, 800_000)
    log = kept(look)
    with capture_logs() as said:
        for n in range(5):
            is_other = n in (1, 2, 4)
            look.is_lane, look.is_gone, look.are_both = is_lane ^ is_other, not is_other, is_other
            log.look()
    assert [(line["event"], line["left_ms"]) for line in said] == [
        ("log_running_out", 0),
        ("log_running_out", 800_000),
        ("log_running_out", 800_000),
    ]


def test_what_nobody_can_tell_is_no_all_clear() -> None:
    """Without a right to see the log the driver is believed; that it dies makes nothing better."""
    look, redis = Look(), Redis(beats=[beat(5)])
    look.known = False
    log = kept(look, redis)
    with capture_logs() as said:
        for beats in ([beat(5)], [], [beat(5)], [beat(HOUR_MS)]):
            redis.beats = beats
            log.look()
    assert [(line["event"], line.get("left_ms")) for line in said] == [
        ("log_not_watched", None),
        ("log_running_out", 5),
        ("log_lasts", HOUR_MS),
    ]


def test_time_goes_on_where_kafka_is_away() -> None:
    """And no driver is there: what was seen last is told less the time since, to its end."""
    clock = ManualClock(NOW_MS)
    log = kept(Look(1_000_000, *[KafkaException("no")] * 3), clock=clock)
    log.look()
    assert log.held().warning is None
    with capture_logs() as said:
        for passed_ms, left_ms in ((400_000, 600_000), (300_000, 300_000), (301_000, 0)):
            clock.advance(passed_ms)
            log.look()
            assert log.held().left_ms == left_ms
            assert told("log_left") == left_ms / 1000
    assert [line["event"] for line in said] == ["log_not_watched", "log_running_out"]
    assert "may be deleted at any time" in (log.held().warning or "")
    assert (log.told(), log.waiting()) == ({}, None), "nobody has seen that"


def test_what_cannot_be_read_any_more_is_asked_of_the_driver() -> None:
    """As after another release has begun to count; without it, what was seen before."""
    look, redis = Look(800_000), Redis(beats=[beat(5)])
    log = kept(look, redis)
    log.look()
    assert (log.held().left_ms, log.told()["log_left_ms"]) == (800_000, 800_000)
    look.known = False
    log.look()
    assert (log.held().left_ms, log.told(), log.waiting()) == (5, {}, None)
    redis.beats = []
    assert log.held().left_ms == 800_000


def test_prometheus_is_told_without_a_driver() -> None:
    """Seconds; not a number as long as nobody knows: that is no alarm."""
    look = Look(800_000)
    log = kept(look)
    look.known = False
    log.look()
    assert math.isnan(told("log_left") or 0.0)
    assert math.isnan(told("log_kept") or 0.0)
    look.known = True
    log.look()
    assert (told("log_left"), told("log_kept")) == (800.0, 3600.0)


def test_others_hear_what_was_seen_here_and_nothing_else() -> None:
    """A heartbeat of this process repeats no driver's, and is silent while nothing is seen."""
    log = kept(Look(800_000, KafkaException("no")), Redis(beats=[beat(5)]))
    assert log.told() == {}
    log.look()
    assert log.told() == {
        "log_left_ms": 800_000,
        "log_left_needed_ms": 800_000,
        "log_left_partition": 0,
        "log_left_gone": False,
        "log_left_lane": False,
        "log_left_both": False,
        "log_kept_ms": HOUR_MS,
        "log_oldest_ms": None,
    }
    log.look()
    assert log.told() == {}


@pytest.mark.parametrize(("left_ms", "is_warned"), [(1_000, True), (HOUR_MS, False)])
def test_where_it_may_not_look_the_driver_is_believed(left_ms: int, is_warned: bool) -> None:
    """As far as it speaks; what was seen before comes after that."""
    redis = Redis(beats=[beat(left_ms)])
    log = kept(Look(2_000, KafkaException("no")), redis)
    log.look()
    assert log.held().left_ms == 2_000
    with capture_logs() as said:
        log.look()
    assert [line["event"] for line in said][:1] == ["log_not_watched"]
    assert log.held().left_ms == left_ms
    assert (log.held().warning is not None) == is_warned

    for beats in ([], [replace(beat(0), detail={"doing": "starting"})]):
        redis.beats = beats
        assert log.held().left_ms == 2_000


def test_what_is_deleted_of_an_empty_store_is_missed() -> None:
    """Nobody counts it, so its place is where the log began, and does not move on with that."""
    look, redis, starts, seen = Look(), Redis(), iter([3, 40, 70]), list[int | None]()
    log = kept(look, redis)

    def left(places: dict[int, LogPlace]) -> LogLeft:
        seen.append(places[0].lane)
        return LogLeft()

    cast("Any", look).start, cast("Any", look).left = lambda _: {0: next(starts)}, left
    for redis.is_emptied in (True, True, True, False, True, True):
        log.look()
    assert seen == [None, 3, 3, None, None, 70]


@pytest.mark.kafka
class TestWithoutDriver:
    """On a real log of an hour; the driver has left what it knew, and is gone."""

    @staticmethod
    def leave(kafka: str, topic: str, places: Mapping[int, LogPlace]) -> None:
        """Leave what a driver leaves."""
        group = {"bootstrap.servers": kafka, "group.id": names.PANES_GROUP}
        consumer = Consumer(group | {"enable.auto.commit": False})
        offsets = [
            TopicPartition(topic, p, place.counted, metadata=log_place.write(place))
            for p, place in places.items()
        ]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()

    @staticmethod
    def looking(kafka: str, topic: str, redis: Redis, clock: ManualClock) -> LogKept:
        """Return what looks at it."""
        where = Kafka(kafka)
        look, places = LogLook(where, clock, topic), GroupPlaces(where, topic)
        return LogKept(look, places, redis, redis, clock)

    def test_time_goes_on_where_nobody_counts(self, kafka: str, hour_log: str) -> None:
        """A driver that is dead, or wedged: what waits grows older, and what has come since."""
        now_ms = time.time_ns() // 1_000_000
        clock = ManualClock(now_ms)
        log = self.looking(kafka, hour_log, Redis(), clock)
        self.leave(kafka, hour_log, {0: LogPlace(10, now_ms), 1: LogPlace(20, now_ms - 600_000)})
        log.look()
        assert log.held().partition == 1
        assert log.held().left_ms == 3_000_000
        assert log.held().kept_ms == HOUR_MS
        assert log.held().warning is None
        assert log.waiting() == 10
        clock.advance(2_400_000)
        log.look()
        assert log.held().left_ms == 600_000
        assert "partition 1 that are not counted yet are deleted in 10 min" in (
            log.held().warning or ""
        )

    def test_what_was_never_counted_waits_from_its_first_record(
        self, kafka: str, hour_log: str
    ) -> None:
        """A partition of which the driver has left nothing; one that it counted is well."""
        clock = ManualClock(time.time_ns() // 1_000_000)
        log = self.looking(kafka, hour_log, Redis(), clock)
        self.leave(kafka, hour_log, {0: LogPlace(10, clock.now_ms())})
        clock.advance(3_000_000)
        log.look()
        assert log.held().partition == 1
        assert log.held().left_ms == pytest.approx(600_000, abs=60_000)

    @pytest.mark.parametrize(("again", "needed_ms"), [(True, 540_000), (False, HOUR_MS)])
    def test_a_lane_that_stands_still_is_told(
        self, kafka: str, hour_log: str, again: bool, needed_ms: int
    ) -> None:
        """After a minute: a backfill begins where the log does, and gets away if it is counted."""
        now_ms = time.time_ns() // 1_000_000
        clock = ManualClock(now_ms)
        log = self.looking(kafka, hour_log, Redis(), clock)
        lane = LogPlace(10, now_ms, lane=2, lane_ms=now_ms - 3_000_000, again=again)
        self.leave(kafka, hour_log, {0: lane, 1: LogPlace(30, now_ms)})
        log.look()
        assert log.held().left_ms == HOUR_MS
        for _ in range(4):
            clock.advance(15_000)
            log.look()
        assert (log.held().partition, log.held().left_ms) == (0, 540_000)
        # Partition 1 has no lane: what it says of lanes means nothing.
        assert log.told()["log_left_needed_ms"] == needed_ms

    def test_with_redis_lost_too_all_of_the_log_waits(self, kafka: str, hour_log: str) -> None:
        """What was counted is gone, so the oldest record of the log is what is lost next."""
        clock = ManualClock(time.time_ns() // 1_000_000)
        redis = Redis()
        log = self.looking(kafka, hour_log, redis, clock)
        at_ms = clock.now_ms()
        places = {p: LogPlace(n, at_ms, again=False) for p, n in ((0, 10), (1, 30))}
        self.leave(kafka, hour_log, places)
        clock.advance(3_000_000)
        log.look()
        assert log.held().left_ms == HOUR_MS
        redis.is_emptied = True
        for _ in range(6):
            clock.advance(15_000)
            log.look()
        assert log.held().left_ms == pytest.approx(510_000, abs=60_000)
        assert log.held().warning is not None
        # Numbers have held it, whatever the driver was about before.
        assert log.told()["log_left_needed_ms"] == log.held().left_ms

    def test_what_an_older_driver_left_says_nothing(self, kafka: str, hour_log: str) -> None:
        """It left no time beside its offsets: its own heartbeat is what is known."""
        group = {"bootstrap.servers": kafka, "group.id": names.PANES_GROUP}
        consumer = Consumer(group)
        consumer.commit(offsets=[TopicPartition(hour_log, 0, 4)], asynchronous=False)
        consumer.close()
        redis = Redis(beats=[beat(7_000)])
        log = self.looking(kafka, hour_log, redis, ManualClock(NOW_MS))
        log.look()
        assert log.held().left_ms == 7_000


@pytest.mark.kafka
@pytest.mark.redis
def test_the_status_says_it_while_no_driver_is_there(running: Running, kafka: str) -> None:
    """In words, beside what holds the numbers back."""
    producer = Producer({"bootstrap.servers": kafka})
    producer.produce(names.EVENTS, b"x", partition=0)
    assert producer.flush(10) == 0
    left_ms = time.time_ns() // 1_000_000 - 6 * 24 * HOUR_MS
    TestWithoutDriver.leave(kafka, names.EVENTS, {0: LogPlace(0, left_ms)})
    try:
        with running.client() as http:

            def warned() -> dict[str, Any] | None:
                # The first look of this dashboard's own may end after ours, and knew less.
                running.dashboard.context.log.look()
                told: dict[str, Any] = http.get("/status").json()
                return told if told["log"]["warning"] else None

            status = wait_until(warned, timeout_s=30, what="the warning")
        sent = running.dashboard.hub._pipelines._frame()
        frame = json.loads(sent[sent.index(b'{"') :])
    finally:
        admin = AdminClient({"bootstrap.servers": kafka})
        for deleted in admin.delete_consumer_groups([names.PANES_GROUP]).values():
            deleted.result(10)
    assert status["log"]["left_ms"] == pytest.approx(24 * HOUR_MS, abs=60_000)
    assert (
        "events of partition 0 that are not counted yet are deleted in 23 h"
        in (status["log"]["warning"])
    )
    assert frame["log_warning"] == status["log"]["warning"], "`weir top` says it, too"


@pytest.mark.kafka
@pytest.mark.redis
def test_a_store_that_holds_nothing_is_known(running: Running) -> None:
    """Before the first record and after a loss; not while an epoch only begins anew."""
    batches = running.dashboard.context.batches
    wait_until(lambda: batches.reachable, timeout_s=10, what="an answer")
    assert batches.is_emptied
    for reason in ("start", "rewind"):
        engine = Engine(running, reason)
        wait_until(lambda e=engine: batches.epoch == e.epoch, timeout_s=10, what="the epoch")  # type: ignore[misc]
        assert not batches.is_emptied
        engine.commit()
        assert not batches.is_emptied
    running.redis.flushall()
    wait_until(lambda: batches.is_emptied, timeout_s=10, what="the loss seen")
    Engine(running, "lost").commit()
    assert not batches.is_emptied
