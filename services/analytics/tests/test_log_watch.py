"""What is told to Kafka of counting, and how long the log still holds: on a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from structlog.testing import capture_logs
from weir import names
from weir.clock import ManualClock, SystemClock
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane
from weir.kafka import Kafka
from weir.lanes import Need
from weir.log_left import FirstLost, LogLeft
from weir.log_place import LogPlace
from weir.log_race import Pursuit, Race
from weir.retention import Retention
from weir_analytics.panes import log_watch
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.log_watch import GroupOffsets, LogWatch, lanes_left
from weir_analytics.panes.ops import Figures, answer
from weir_analytics.panes.vitals import LanesLeft, Vitals
from weir_local.waiting import wait_until
from weir_reading.log_look import GroupPlaces, LogLook, retention_of

from .live_job import group_offsets

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


def test_a_lane_is_as_far_as_its_last_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    """By partition, of the lanes that are open, where one still has something to count."""
    ends = [{0: 50, 1: 20}, {0: 10, 1: 60}]
    lanes = [Lane(n, 1, "rebuild", "t", (), (0, 1), {}, end, 0, 0) for n, end in enumerate(ends)]
    book = LaneBook(cast("Any", None), "t")
    book._at = {0: {0: {0: 30, 1: 20}, 1: {0: 40, 1: 5}}, 1: {1: {0: 10, 1: 45}}}

    def told(lanes: list[Lane]) -> LanesLeft:
        monkeypatch.setattr(book, "needed", lambda _definitions: lanes)
        return lanes_left(book, Definitions())

    assert told(lanes) == LanesLeft({0: 30, 1: 5}, {0: 20 + 10, 1: 15 + 15})
    assert told(lanes[1:]) == LanesLeft({1: 45}, {0: 0, 1: 15})


@pytest.mark.parametrize(("need", "is_needed"), [(one, one is not Need.NEW) for one in Need])
def test_new_versions_alone_are_not_needed(
    monkeypatch: pytest.MonkeyPatch, need: Need, is_needed: bool
) -> None:
    """A backfill of what serves is, as after a loss; a lane that is done has nothing to lose."""
    lanes = [Lane(n, 1, "backfill", "t", (), (0,), {}, {0: 50}, 0, 0) for n in (3, 4)]
    book = LaneBook(cast("Any", None), "t")
    book._at = {3: {0: {0: 30}}, 4: {0: {0: 50}}}
    known = SimpleNamespace(needs={3: need, 4: Need.LOST})
    monkeypatch.setattr(book, "open", lambda _definitions: lanes)
    monkeypatch.setattr(book, "_known", SimpleNamespace(of=lambda _definitions: known))

    assert book.needed(Definitions()) == lanes[:1] * is_needed


def test_what_is_told_of_lanes_is_of_those_that_numbers_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where there are any, and says so; else of all: of one moment either way."""
    lanes = {p: Lane(p, 1, "rebuild", "t", (), (0,), {}, {p: 43}, 0, 0) for p in (1, 2)}
    book = LaneBook(cast("Any", None), "t")
    book._at = {p: {0: {p: 3}} for p in lanes}

    def told(needed: list[int], all_of_them: list[int]) -> LanesLeft:
        monkeypatch.setattr(book, "needed", lambda _definitions: [lanes[p] for p in needed])
        monkeypatch.setattr(book, "open", lambda _definitions: [lanes[p] for p in all_of_them])
        return lanes_left(book, Definitions())

    assert told([1], [1, 2]) == LanesLeft({1: 3}, {1: 40}, again=True)
    assert told([], [1, 2]) == LanesLeft({1: 3, 2: 3}, {1: 40, 2: 40}, again=False)
    assert told([], []) == LanesLeft(again=False)


def test_where_a_lane_is_left_out_no_turn_of_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set aside, or after a failure, also while it is tried again; not where another is first."""
    lanes = [Lane(n, 1, "rebuild", "t", (), (0,), {}, {0: 50, 1: 50}, 0, 0) for n in (3, 4)]
    book = LaneBook(cast("Any", None), "t")
    book._at = {3: {0: {0: 30, 1: 10}}, 4: {0: {0: 20, 1: 20}}}
    monkeypatch.setattr(book, "needed", lambda _definitions: lanes)

    def left_out() -> frozenset[int]:
        return lanes_left(book, Definitions()).left_out

    assert left_out() == frozenset()
    book.waits.fail([3], "a disk", 0.0)
    assert book.waits.left_out(100.0) == set(), "its time has come"
    assert left_out() == {1}
    book.waits.done(3)
    book.refused.add(4)
    assert left_out() == {0}
    assert lanes_left(book, Definitions()).rest == {0: 20, 1: 40}


def test_a_lane_that_is_set_aside_keeps_none_from_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million records of it will never be counted; the one that waits has its turn in minutes."""
    million = 1_000_000
    ends = {3: {0: million}, 4: {1: 900}, 5: {1: 1_000}}
    lanes = [Lane(n, 1, "rebuild", "t", (), (0,), {}, ends[n], 0, 0) for n in ends]
    book, race = LaneBook(cast("Any", None), "t"), Race()
    book.refused.add(3)
    monkeypatch.setattr(book, "needed", lambda _definitions: lanes)
    told: list[FirstLost | None] = []
    for n in range(5):
        book._at = {3: {0: {0: 0}}, 4: {0: {1: 700 + 25 * n}}, 5: {0: {1: 500}}}
        left = lanes_left(book, Definitions())
        assert left.rest == {0: 0, 1: 700 - 25 * n}, "where it alone is, nothing is left"
        places = {
            p: LogPlace(million, lane=left.first[p], rest=left.rest[p], left_out=p in left.left_out)
            for p in left.first
        }
        near = [Pursuit(0, 2 * HOUR_MS), Pursuit(1, HOUR_MS)]
        told.append(race.overtaken(near, places, n * 15_000))
    assert told == [None] * 4 + [FirstLost(0, 2 * HOUR_MS)]


def test_lanes_are_told_as_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a batch changes what they are for, and long after the look that has seen them."""
    vitals = Vitals()
    vitals.take({0: 4}, {0: NOW_MS})
    vitals.lanes = LanesLeft({0: 2}, {0: 40}, frozenset({0}), again=False)
    watch = LogWatch(Kafka("127.0.0.1:1"), ManualClock(NOW_MS), "events")

    def start(_partitions: object) -> dict[int, int]:
        # The lanes of a new version end, and a loss is counted again.
        vitals.lanes = LanesLeft({0: 0}, {0: 90}, again=True)
        return {0: 3}

    seen: list[object] = []
    monkeypatch.setattr(watch._look, "start", start)
    monkeypatch.setattr(watch._look, "left", seen.append)
    watch.look(vitals)
    then = {0: LogPlace(4, NOW_MS, 2, None, again=False, rest=40, left_out=True)}
    assert seen == [then]
    assert watch.places(vitals) == then


class TestFigures:
    def test_prometheus_is_told_what_is_true_when_it_asks(self) -> None:
        """In seconds; for ever is +Inf, and before the first look nobody knows."""
        vitals, figures = Vitals(), Figures()
        figures.watch(vitals)
        assert b"weir_panes_log_left_seconds NaN" in answer("/metrics", vitals, figures)[2]
        vitals.log_left = LogLeft()
        assert b"weir_panes_log_left_seconds +Inf" in answer("/metrics", vitals, figures)[2]
        vitals.log_left = LogLeft(0, 90_000, 180_000)
        text = answer("/metrics", vitals, figures)[2]
        assert b"weir_panes_log_left_seconds 90.0" in text
        assert b"weir_panes_log_kept_seconds 180.0" in text


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
    monkeypatch.setattr(watch._look, "left", look)
    thread = threading.Thread(target=watch.run, args=(vitals, stop))
    with capture_logs() as said:
        thread.start()
        try:
            wait_until(lambda: len(looks) > 2, timeout_s=20, what="another look")
        finally:
            stop.set()
            thread.join(10)
    assert {line["error"] for line in said} == {"TimeoutError"}


def test_a_group_that_may_not_be_told_is_said_once() -> None:
    """Where the right to it is missing Kafka answers so, each second; a broker's start is none."""
    group = GroupOffsets(Kafka("127.0.0.1:1"), "events")
    refusal = KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)
    with capture_logs() as said:
        for refusals in (9, 25, 10):
            for _ in range(refusals):
                group._done(refusal, [])
            group._done(None, [TopicPartition("events", 0, 3)])
    group.close()
    assert [line["event"] for line in said] == ["group_not_told"] * 2
    assert "GROUP_AUTHORIZATION_FAILED" in said[0]["error"]


def test_a_partition_that_may_not_be_told_is_said_too() -> None:
    """The answer as a whole is no error, that of one partition is; all are told again."""
    group = GroupOffsets(Kafka("127.0.0.1:1"), "events")
    group._told = {0: LogPlace(3)}
    answers: Any = [
        SimpleNamespace(error=None),
        SimpleNamespace(error=KafkaError(KafkaError.OFFSET_METADATA_TOO_LARGE)),
    ]
    with capture_logs() as said:
        for _ in range(25):
            group._done(None, answers)
    group.close()
    assert [line["event"] for line in said] == ["group_not_told"]
    assert "OFFSET_METADATA_TOO_LARGE" in said[0]["error"]
    assert group._told == {}


def test_a_commit_that_cannot_even_be_asked_for_is_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each second it is tried again, and counted with what Kafka has refused."""
    asked: list[object] = []

    def commit(**told: object) -> None:
        asked.append(told)
        raise KafkaException(KafkaError(KafkaError._QUEUE_FULL))

    group = GroupOffsets(Kafka("127.0.0.1:1"), "events")
    monkeypatch.setattr(group, "_consumer", SimpleNamespace(poll=lambda _s: None, commit=commit))
    with capture_logs() as said:
        for _ in range(5):
            group._done(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED), [])
        for _ in range(25):
            group.tell({0: LogPlace(3)})
    assert len(asked) == 25
    assert [line["event"] for line in said] == ["group_not_told"]
    assert "QUEUE_FULL" in said[0]["error"]


def test_a_figure_that_stands_still_is_told_for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each heartbeat is of the present: what nobody could look at since then is not known."""
    monkeypatch.setattr(log_watch, "COMMIT_S", 0.01)
    monkeypatch.setattr(log_watch, "LOOK_S", 0.0)
    left, looks = LogLeft(0, 5_000, 9_000, needed_ms=5_000), list[object]()

    def look(*asked: object) -> LogLeft:
        looks.append(asked)
        if len(looks) > 1:
            raise TimeoutError
        return left

    vitals, stop, clock = Vitals(), threading.Event(), ManualClock(NOW_MS)
    vitals.take({0: 4}, {})
    watch = LogWatch(Kafka("127.0.0.1:1"), clock, "events")
    monkeypatch.setattr(watch._look, "left", look)
    thread = threading.Thread(target=watch.run, args=(vitals, stop))
    thread.start()
    try:
        wait_until(lambda: len(looks) > 3, timeout_s=20, what="looks that fail")
        assert vitals.log_left == left
        clock.advance(60_001)
        wait_until(lambda: vitals.log_left is None, timeout_s=20, what="no figure")
    finally:
        stop.set()
        thread.join(10)


@pytest.mark.kafka
class TestLogWatch:
    def test_kafka_sees_how_far_it_has_counted(self, kafka: str, hour_log: str) -> None:
        """The group's offsets follow the batches; nobody is a member of it.

        Beside them stands what a dashboard needs while there is no driver.
        """
        vitals, stop = Vitals(), threading.Event()
        watch = LogWatch(Kafka(kafka), SystemClock(), hour_log)
        thread = threading.Thread(target=watch.run, args=(vitals, stop))
        thread.start()
        try:
            for ends in ({0: 4, 1: 20}, {0: 10, 1: 30}):
                received_ms = dict.fromkeys(ends, time.time_ns() // 1_000_000)
                vitals.take(ends, received_ms)
                wait_until(
                    lambda ends=ends: group_offsets(kafka, hour_log, range(2)) == ends,  # type: ignore[misc]
                    timeout_s=20,
                    what="the offsets of the group",
                )
            wait_until(lambda: vitals.log_left is not None, timeout_s=20, what="a look")
        finally:
            stop.set()
            thread.join(10)
        assert vitals.log_left is not None
        assert vitals.log_left.kept_ms == HOUR_MS
        left = GroupPlaces(Kafka(kafka), hour_log).read()
        assert left == {p: LogPlace(n, received_ms[p]) for p, n in ends.items()}
        admin = AdminClient({"bootstrap.servers": kafka})
        (described,) = admin.describe_consumer_groups([names.PANES_GROUP]).values()
        assert described.result(10).members == []

    def test_a_lane_that_is_overtaken_is_told(self, kafka: str, hour_log: str) -> None:
        """What it has not counted is gone, however far live counting is."""
        admin = AdminClient({"bootstrap.servers": kafka})
        (deleted,) = admin.delete_records([TopicPartition(hour_log, 1, 25)]).values()
        deleted.result(10)
        vitals, stop = Vitals(), threading.Event()
        vitals.take({0: 10, 1: 30}, {})
        vitals.lanes = LanesLeft({0: 3, 1: 20})
        thread = threading.Thread(
            target=LogWatch(Kafka(kafka), SystemClock(), hour_log).run, args=(vitals, stop)
        )
        thread.start()
        try:
            wait_until(lambda: vitals.log_left is not None, timeout_s=20, what="a look")
            places = GroupPlaces(Kafka(kafka), hour_log)
            # Also for whoever looks while the driver is away: one lane is gone, the other there.
            wait_until(lambda: (places.read() or {})[0].lane == 3, timeout_s=20, what="the lane")
        finally:
            stop.set()
            thread.join(10)
        assert vitals.log_left is not None
        assert (vitals.log_left.partition, vitals.log_left.ms) == (1, 0)
        assert vitals.log_left.is_gone
        gone, there = (places.read() or {})[1], (places.read() or {})[0]
        assert (gone.counted, gone.lane, gone.lane_ms) == (30, 20, None)
        assert there.lane_ms == pytest.approx(time.time_ns() // 1_000_000, abs=60_000)

    def test_what_waits_and_what_is_gone(self, kafka: str, hour_log: str) -> None:
        """By R of what was counted last; records deleted before they were counted: nothing left."""
        look = LogLook(Kafka(kafka), SystemClock(), hour_log)
        now_ms = time.time_ns() // 1_000_000
        found = look.left({0: LogPlace(10, now_ms), 1: LogPlace(20, now_ms - 600_000)})
        assert found.partition == 1
        assert found.ms == pytest.approx(3_000_000, abs=20_000)
        assert found.oldest_ms == pytest.approx(now_ms, abs=60_000)

        # A lane that stands at the log's start, looked at for a minute; then overtaken.
        vitals, clock = Vitals(), ManualClock(now_ms)
        vitals.take({0: 10, 1: 30}, {})
        watch = LogWatch(Kafka(kafka), clock, hour_log)
        live = watch.look(vitals)
        assert live == look.left({0: LogPlace(10), 1: LogPlace(30)})
        for n in range(5):
            vitals.lanes = LanesLeft({0: 2}, {0: 900 - 50 * n}, again=False)
            assert watch.look(vitals).ms == HOUR_MS, "others are counted before it"
            clock.advance(15_000)
        for _ in range(5):
            told = watch.look(vitals)
            clock.advance(15_000)
        assert (told.partition, told.kept_ms) == (0, HOUR_MS)
        assert told.ms == pytest.approx(HOUR_MS - 135_000, abs=20_000)
        assert told.needed_ms == HOUR_MS, "what a backfill lacks stood in no number before"
        vitals.lanes = replace(vitals.lanes, again=True)
        again = watch.look(vitals)
        assert again.needed_ms == again.ms
        admin = AdminClient({"bootstrap.servers": kafka})
        (deleted,) = admin.delete_records([TopicPartition(hour_log, 1, 25)]).values()
        deleted.result(10)
        gone = LogLeft(1, 0, HOUR_MS, found.oldest_ms, waiting=5, needed_ms=0, is_gone=True)
        assert look.left({0: LogPlace(10, now_ms), 1: LogPlace(20, now_ms)}) == gone
        vitals.lanes = LanesLeft({0: 2, 1: 20})
        # Live counting lacks nothing, but a lane does.
        assert watch.look(vitals) == replace(gone, waiting=0, is_lane=True)

    def test_partitions_that_are_added_are_looked_at(self, kafka: str, hour_log: str) -> None:
        """At once, by a client that has asked about the topic before."""
        look = LogLook(Kafka(kafka), SystemClock(), hour_log)
        now_ms = time.time_ns() // 1_000_000
        look.left({0: LogPlace(10, now_ms), 1: LogPlace(30, now_ms)})
        admin = AdminClient({"bootstrap.servers": kafka})
        (grown,) = admin.create_partitions([NewPartitions(hour_log, 4)]).values()
        grown.result(10)
        places = {p: LogPlace(0, now_ms) for p in range(4)}

        def looks() -> LogLeft | None:
            try:
                return look.left(places)
            except KafkaException:  # until the broker has elected a leader
                return None

        wait_until(lambda: looks() is not None, timeout_s=10, what="a look at four partitions")
        found = looks()
        assert found is not None
        assert found.waiting == 40

    def test_what_bounds_a_log_is_asked_of_the_broker(
        self, kafka: str, new_topic: Callable[..., str]
    ) -> None:
        """How long, how much, how large a segment is and what is stored as one."""
        settings = {"retention.ms": "7000", "retention.bytes": "3000000"}
        settings |= {"segment.bytes": "2097152", "max.message.bytes": "500000"}
        admin, topic = AdminClient({"bootstrap.servers": kafka}), new_topic("bounded", 1, settings)
        assert retention_of(admin, topic) == Retention(7_000, 3_000_000, 2_097_152, 500_000)

    def test_what_is_deleted_by_size_goes_at_todays_rate(
        self, kafka: str, new_topic: Callable[..., str]
    ) -> None:
        """Once something was deleted the log is full: what comes pushes out what waits."""
        settings = {"retention.ms": "-1", "retention.bytes": "100000"}
        topic = new_topic("sized", 1, settings | {"message.timestamp.type": "CreateTime"})
        began_ms = time.time_ns() // 1_000_000
        producer = Producer({"bootstrap.servers": kafka})
        for n in range(40):  # four records a second, for ten
            producer.produce(topic, b"x", timestamp=began_ms - 10_000 + n * 250)
        producer.flush(10)
        look = LogLook(Kafka(kafka), SystemClock(), topic)
        assert look.left({0: LogPlace(30, began_ms)}).ms is None  # there is room
        admin = AdminClient({"bootstrap.servers": kafka})
        (deleted,) = admin.delete_records([TopicPartition(topic, 0, 20)]).values()
        deleted.result(10)

        # Of the 20 that are left the first came five seconds before; ten come before what waits.
        before_ms = time.time_ns() // 1_000_000 - began_ms + 5_000
        found = look.left({0: LogPlace(30, began_ms)})
        after_ms = time.time_ns() // 1_000_000 - began_ms + 5_000
        assert before_ms // 2 - 1 <= (found.ms or 0) <= after_ms // 2 + 1
        assert before_ms - 1 <= (found.kept_ms or 0) <= after_ms + 1
        assert found.waiting == 10
