"""How long the log still holds what is not counted: by age, by size, and on a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from weir import names
from weir.clock import ManualClock, SystemClock
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane
from weir.kafka import Kafka
from weir_analytics.panes import log_watch
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.log_left import LogLeft, PartitionLog, Race, Retention, log_left
from weir_analytics.panes.log_watch import LogWatch
from weir_analytics.panes.ops import Figures, answer
from weir_analytics.panes.vitals import Vitals
from weir_local.waiting import wait_until

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY = Retention(24 * HOUR_MS, None)


def log(**changes: Any) -> PartitionLog:
    """Return a partition of 100,000 records, of which 40,000 of the last four hours wait."""
    members: dict[str, Any] = {
        "partition": 3,
        "oldest": 1_000_000,
        "oldest_ms": NOW_MS - 10 * HOUR_MS,
        "end": 1_100_000,
        "position": 1_060_000,
        "position_ms": NOW_MS - 4 * HOUR_MS,
        "per_s": 10_000 / 3_600,
    }
    return PartitionLog(**members | changes)


class TestLogLeft:
    def test_by_age_a_record_lives_as_long_as_it_is_kept(self) -> None:
        """What has waited four hours of a day is there for twenty more."""
        found = log_left([log()], DAY, NOW_MS)
        assert found == LogLeft(3, 20 * HOUR_MS, 24 * HOUR_MS, NOW_MS - 10 * HOUR_MS)

    def test_by_size_it_lives_until_so_many_have_come(self) -> None:
        """60,000 older ones go first, at 10,000 an hour, if the partition is full."""
        size = Retention(24 * HOUR_MS, 10**9)
        assert log_left([log()], size, NOW_MS).ms == pytest.approx(6 * HOUR_MS, abs=1)
        assert log_left([log()], size, NOW_MS).kept_ms == pytest.approx(10 * HOUR_MS, abs=1)
        # Nothing has been deleted yet, so how much fits is not known.
        assert log_left([log(oldest=0)], size, NOW_MS).ms == 20 * HOUR_MS

    @pytest.mark.parametrize(
        ("changes", "left"),
        [
            ({"position": 1_100_000}, 24 * HOUR_MS),
            ({"position": 999_999}, 0),
            ({"position_ms": NOW_MS - 25 * HOUR_MS}, 0),
            ({"position": 1_000_000, "position_ms": None}, 14 * HOUR_MS),
            ({"position_ms": NOW_MS + 5_000}, 24 * HOUR_MS),
        ],
    )
    def test_edges(self, changes: dict[str, Any], left: int) -> None:
        """At the end; overtaken by retention; about to be; nothing counted; a clock behind."""
        assert log_left([log(**changes)], DAY, NOW_MS).ms == left

    def test_what_is_kept_for_ever_is_never_lost(self) -> None:
        """Without a retention there is nothing to be told, but for what is gone already."""
        assert log_left([log()], Retention(None, None), NOW_MS).ms is None
        assert log_left([log(position=0)], Retention(None, None), NOW_MS).ms == 0
        assert log_left([], DAY, NOW_MS) == LogLeft()

    @given(st.lists(st.integers(0, 24 * HOUR_MS), min_size=1, max_size=6))
    def test_the_partition_that_is_nearest_to_a_loss_is_told(self, waits: list[int]) -> None:
        """However many there are."""
        logs = [log(partition=p, position_ms=NOW_MS - ms) for p, ms in enumerate(waits)]
        found = log_left(logs, DAY, NOW_MS)

        assert found.ms == 24 * HOUR_MS - max(waits)
        assert found.partition is not None
        assert waits[found.partition] == max(waits)


class TestRace:
    """A look each quarter of a minute."""

    @staticmethod
    def run(*left_ms: int | None) -> int | None:
        """Return what the last of some looks tells."""
        race, told = Race(), None
        for n, left in enumerate(left_ms):
            told = race.overtaken_ms(left, NOW_MS + n * 15_000)
        return told

    @pytest.mark.parametrize(
        ("left_ms", "told"),
        [
            # Standing still: so much as is left. At half the speed of deletion: twice that.
            ([600_000, 585_000, 570_000, 555_000, 540_000], 540_000),
            ([600_000, 592_500, 585_000, 577_500, 570_000], 1_140_000),
            # By the last minute, whatever was before.
            ([600_000, 900_000, 885_000, 870_000, 855_000, 840_000], 840_000),
            ([600_000, 585_000, 570_000, 555_000, 570_000, 600_000], None),
            # Not long enough to tell; overtaken; nobody there, and another one after that.
            ([600_000, 585_000, 570_000, 555_000], None),
            ([0], 0),
            ([600_000, 585_000, 570_000, 555_000, 540_000, None], None),
            ([600_000, 585_000, 570_000, 555_000, None, 540_000], None),
            ([9_000_000, 9_015_000, 9_030_000, 9_045_000, 600_000], None),
        ],
    )
    def test_who_is_faster(self, left_ms: list[int | None], told: int | None) -> None:
        """A backfill begins ten minutes above what is deleted: that alone is no danger."""
        assert self.run(*left_ms) == told


def test_a_lane_is_as_far_as_its_last_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """By partition, of the lanes that are open, where one still has something to count."""
    ends = [{0: 50, 1: 20}, {0: 10, 1: 60}]
    lanes = [Lane(n, 1, "rebuild", "t", (), (0, 1), {}, end, 0, 0) for n, end in enumerate(ends)]
    book = LaneBook(cast("Any", None), "t")
    book._at = {0: {0: {0: 30, 1: 20}, 1: {0: 40, 1: 5}}, 1: {1: {0: 10, 1: 45}}}
    monkeypatch.setattr(book, "open", lambda _definitions: lanes)

    assert book.least(Definitions()) == {0: 30, 1: 5}


class TestFigures:
    def test_prometheus_is_told_what_is_true_when_it_asks(self) -> None:
        """In seconds; for ever is +Inf."""
        vitals, figures = Vitals(), Figures()
        figures.watch(vitals)
        assert b"weir_panes_log_left_seconds +Inf" in answer("/metrics", vitals, figures)[2]
        vitals.log_left = LogLeft(0, 90_000, 180_000)
        text = answer("/metrics", vitals, figures)[2]
        assert b"weir_panes_log_left_seconds 90.0" in text
        assert b"weir_panes_log_kept_seconds 180.0" in text


def group_offsets(kafka: str, topic: str) -> dict[int, int]:
    """Return what Kafka's own tools see of the driver; nothing while a broker finds its groups."""
    admin = AdminClient({"bootstrap.servers": kafka})
    asked = [ConsumerGroupTopicPartitions(names.PANES_GROUP)]
    (future,) = admin.list_consumer_group_offsets(asked).values()
    try:
        found = future.result(10).topic_partitions or []
    except KafkaException:
        return {}
    return {one.partition: one.offset for one in found if one.topic == topic}


def test_a_link_that_swallows_everything_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of an answer is over without a word of why: it is told, and asked again."""
    monkeypatch.setattr(log_watch, "COMMIT_S", 0.01)
    monkeypatch.setattr(log_watch, "LOOK_S", 0.0)
    looks: list[object] = []

    def look(*asked: object) -> LogLeft:
        looks.append(asked)
        raise TimeoutError

    vitals, stop = Vitals(), threading.Event()
    vitals.take({0: 4}, {})
    watch = LogWatch(Kafka("127.0.0.1:1"), SystemClock(), "events")
    monkeypatch.setattr(watch, "look", look)
    thread = threading.Thread(target=watch.run, args=(vitals, stop))
    with capture_logs() as said:
        thread.start()
        try:
            wait_until(lambda: len(looks) > 2, timeout_s=20, what="another look")
        finally:
            stop.set()
            thread.join(10)
    assert {line["error"] for line in said} == {"TimeoutError"}


@pytest.mark.kafka
class TestLogWatch:
    @pytest.fixture
    def topic(self, kafka: str, new_topic: Callable[..., str]) -> str:
        """Return a log of an hour with 10 records in one partition and 30 in the other."""
        topic = new_topic("events", 2, {"retention.ms": "3600000", "retention.bytes": "-1"})
        producer = Producer({"bootstrap.servers": kafka})
        for n in range(40):
            producer.produce(topic, b"x", partition=int(n >= 10))
        assert producer.flush(10) == 0
        return topic

    def test_kafka_sees_how_far_it_has_counted(self, kafka: str, topic: str) -> None:
        """The group's offsets follow the batches; nobody is a member of it."""
        vitals, stop = Vitals(), threading.Event()
        watch = LogWatch(Kafka(kafka), SystemClock(), topic)
        thread = threading.Thread(target=watch.run, args=(vitals, stop))
        thread.start()
        try:
            for ends in ({0: 4, 1: 20}, {0: 10, 1: 30}):
                vitals.take(ends, dict.fromkeys(ends, time.time_ns() // 1_000_000))
                wait_until(
                    lambda ends=ends: group_offsets(kafka, topic) == ends,  # type: ignore[misc]
                    timeout_s=20,
                    what="the offsets of the group",
                )
            wait_until(lambda: vitals.log_left.ms is not None, timeout_s=20, what="a look")
        finally:
            stop.set()
            thread.join(10)
        assert vitals.log_left.kept_ms == HOUR_MS
        admin = AdminClient({"bootstrap.servers": kafka})
        (described,) = admin.describe_consumer_groups([names.PANES_GROUP]).values()
        assert described.result(10).members == []

    def test_a_lane_that_is_overtaken_is_told(self, kafka: str, topic: str) -> None:
        """What it has not counted is gone, however far live counting is."""
        admin = AdminClient({"bootstrap.servers": kafka})
        (deleted,) = admin.delete_records([TopicPartition(topic, 1, 25)]).values()
        deleted.result(10)
        vitals, stop = Vitals(), threading.Event()
        vitals.take({0: 10, 1: 30}, {})
        vitals.lanes = {1: 20}
        thread = threading.Thread(
            target=LogWatch(Kafka(kafka), SystemClock(), topic).run, args=(vitals, stop)
        )
        thread.start()
        try:
            wait_until(lambda: vitals.log_left.partition is not None, timeout_s=20, what="a look")
        finally:
            stop.set()
            thread.join(10)
        assert (vitals.log_left.partition, vitals.log_left.ms) == (1, 0)

    def test_what_waits_and_what_is_gone(self, kafka: str, topic: str) -> None:
        """By R of what was counted last; records deleted before they were counted: nothing left."""
        watch = LogWatch(Kafka(kafka), SystemClock(), topic)
        now_ms = time.time_ns() // 1_000_000
        found = watch.look({0: 10, 1: 20}, {0: now_ms, 1: now_ms - 600_000})
        assert found.partition == 1
        assert found.ms == pytest.approx(3_000_000, abs=20_000)
        assert found.oldest_ms == pytest.approx(now_ms, abs=60_000)

        # A lane that stands at the log's start, looked at for a minute; then overtaken.
        live, clock = watch.look({0: 10, 1: 30}, {}), ManualClock(now_ms)
        watch = LogWatch(Kafka(kafka), clock, topic)
        assert watch.with_lanes(live, {}) == live
        for _ in range(5):
            told = watch.with_lanes(live, {0: 2})
            clock.advance(15_000)
        assert (told.partition, told.kept_ms) == (0, HOUR_MS)
        assert told.ms == pytest.approx(HOUR_MS - 60_000, abs=20_000)
        admin = AdminClient({"bootstrap.servers": kafka})
        (deleted,) = admin.delete_records([TopicPartition(topic, 1, 25)]).values()
        deleted.result(10)
        assert watch.look({0: 10, 1: 20}, {0: now_ms, 1: now_ms}) == LogLeft(
            1, 0, HOUR_MS, found.oldest_ms
        )
        assert watch.with_lanes(live, {0: 2, 1: 20}) == LogLeft(1, 0, HOUR_MS, found.oldest_ms)
