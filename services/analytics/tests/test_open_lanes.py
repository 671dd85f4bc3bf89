"""Where lanes begin and end: a backfill above what retention takes, a rebuild for each task."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from weir.commit import Offsets
from weir.definitions.records import OpenLane
from weir.kafka import Kafka
from weir_analytics.panes import open_lanes
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.open_lanes import ABOVE_START_MS, CHUNK_MS, CLOCK_MS, backfill, rebuilds

pytestmark = pytest.mark.kafka

MINUTE_MS = 60_000
ENDS = {0: 30, 1: 20, 2: 0}
ABOVE = ABOVE_START_MS // MINUTE_MS


class Log:
    """A log of three partitions, a record a minute; the second one begins five minutes later."""

    def __init__(self, kafka: str, name: str, value: bytes = b"x") -> None:
        self._kafka, self._name = kafka, name
        self.now_ms = time.time_ns() // 1_000_000
        first_ms = self.now_ms - 40 * MINUTE_MS
        producer = Producer({"bootstrap.servers": kafka})
        for partition, (later, count) in enumerate(((0, 30), (5, 20))):
            for n in range(count):
                at_ms = first_ms + (later + n) * MINUTE_MS
                producer.produce(name, value, partition=partition, timestamp=at_ms)
        assert producer.flush(10) == 0

    def take(self, before: int) -> None:
        """Take the first records of the first partition away, as retention does."""
        admin = AdminClient({"bootstrap.servers": self._kafka})
        (taken,) = admin.delete_records([TopicPartition(self._name, 0, before)]).values()
        taken.result(10)

    def rebuilds(self, target: Offsets, beside: int) -> list[OpenLane]:
        """Return the lanes for a shard that was lost, by so many tasks at a time."""
        log = LogOffsets(Kafka(self._kafka), self._name)
        bounds = log.bounds("events")
        return rebuilds(log, bounds, target, [1], self.now_ms, beside=beside)

    def backfill(self, begin: Offsets) -> OpenLane:
        """Return the lane for a version that was activated at some offsets."""
        log = LogOffsets(Kafka(self._kafka), self._name)
        bounds = log.bounds("events")
        return backfill(log, bounds, begin, [7], horizon_ms=1_000, now_ms=self.now_ms)


def test_hours_of_which_the_log_does_not_say_where_they_begin_are_one(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part of them cannot be read: their lanes wait, those of newer hours do not."""
    monkeypatch.setattr(open_lanes, "CHUNK_MS", 15 * MINUTE_MS)
    at = LogOffsets.at

    def unreadable(asked: LogOffsets, at_ms: int, end: Offsets) -> dict[int, int]:
        if at_ms < log.now_ms - 20 * MINUTE_MS:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return at(asked, at_ms, end)

    monkeypatch.setattr(LogOffsets, "at", unreadable)
    newer, older = log.rebuilds(ENDS, 1)
    assert (newer.end, newer.start[0] > 0) == ({0: 30}, True)
    assert (older.start, older.end) == ({0: 0, 1: 0}, {**newer.start, 1: 20})


@pytest.fixture
def log(kafka: str, new_topic: Callable[..., str]) -> Log:
    """Return a log of this test's own, whole."""
    return Log(kafka, new_topic("log", 3, {"message.timestamp.type": "CreateTime"}))


def test_of_a_whole_log_it_counts_all(log: Log) -> None:
    """Nothing of it is going to be deleted before it is read."""
    lane = log.backfill(ENDS)
    assert (lane.start, lane.end) == (dict.fromkeys(ENDS, 0), ENDS)
    assert lane.complete_from_ms == 0


def test_it_begins_above_the_end_that_is_deleted(log: Log) -> None:
    """Ten minutes of log, in the partitions that lose records; the others are whole."""
    log.take(5)
    lane = log.backfill(ENDS)
    assert lane.start == {0: 5 + ABOVE, 1: 0, 2: 0}
    assert lane.complete_from_ms > log.now_ms - 25 * MINUTE_MS


def test_it_never_begins_behind_the_activation(log: Log) -> None:
    """What comes from there on is counted live."""
    log.take(5)
    lane = log.backfill({0: 12, 1: 3, 2: 0})
    assert (lane.start, lane.end) == ({0: 12, 1: 0, 2: 0}, {0: 12, 1: 3, 2: 0})


@pytest.mark.parametrize("beside", [1, 2, 8])
def test_a_rebuild_has_a_lane_for_each_task(log: Log, beside: int) -> None:
    """Of partitions of its own, all up to the target; where there is nothing there is none."""
    lanes = log.rebuilds(ENDS, beside)
    spans = [(lane.start, lane.end) for lane in lanes]
    both = [({0: 0, 1: 0}, {0: 30, 1: 20})]
    assert spans == (both if beside == 1 else [({0: 0}, {0: 30}), ({1: 0}, {1: 20})])
    assert {lane.until_ms for lane in lanes} == {log.now_ms + CLOCK_MS}


def test_the_newest_hours_come_first_for_all_tasks(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part of the log is in one lane, and lanes of the same hours follow each other."""
    monkeypatch.setattr(open_lanes, "CHUNK_MS", CHUNK_MS // 24)  # a quarter of an hour
    lanes = log.rebuilds(ENDS, 2)
    assert [lane.until_ms for lane in lanes] == sorted((x.until_ms for x in lanes), reverse=True)
    assert len({lane.until_ms for lane in lanes}) > 1
    covered: list[tuple[int, int]] = []
    for lane in lanes:
        assert lane.start.keys() == lane.end.keys()
        assert len(lane.end) == 1, "each has a partition"
        covered += [(p, n) for p, end in lane.end.items() for n in range(lane.start[p], end)]
    assert sorted(covered) == [(p, n) for p, end in ENDS.items() for n in range(end)]


@pytest.mark.parametrize("before", [7, 30])
def test_what_retention_takes_meanwhile_is_in_the_oldest_lanes(
    log: Log, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """They find out what is gone, be it all; no hour before says where that was."""
    monkeypatch.setattr(open_lanes, "CHUNK_MS", 15 * MINUTE_MS)
    asked, at = 0, LogOffsets.at

    def taking(asking: LogOffsets, at_ms: int, end: Offsets) -> dict[int, int]:
        nonlocal asked
        asked += 1
        assert asked < 20, "it goes back for ever"
        if asked == 1:
            log.take(before)
        return at(asking, at_ms, end)

    monkeypatch.setattr(LogOffsets, "at", taking)
    lanes = log.rebuilds(ENDS, 1)
    covered = [
        (p, n) for one in lanes for p, end in one.end.items() for n in range(one.start[p], end)
    ]
    assert sorted(covered) == [(p, n) for p, end in ENDS.items() for n in range(end)]
    assert lanes[-1].start[0] == 0


def test_behind_a_segment_that_is_deleted_a_rebuild_counts_all(
    kafka: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file is there for minutes, and until then a broker finds nothing of the hours before."""
    asked, at = 0, LogOffsets.at

    def counted(log: LogOffsets, at_ms: int, end: Offsets) -> dict[int, int]:
        nonlocal asked
        asked += 1
        assert asked < 10, "it goes back hour by hour, for ever"
        return at(log, at_ms, end)

    monkeypatch.setattr(LogOffsets, "at", counted)
    settings = {"message.timestamp.type": "CreateTime", "segment.bytes": "1048576"}
    log = Log(kafka, new_topic("log", 3, settings), value=b"x" * 600_000)
    log.take(10)

    (lane,) = log.rebuilds(ENDS, 1)

    assert (lane.start, lane.end) == ({0: 10, 1: 0}, {0: 30, 1: 20})
    assert log.backfill(ENDS).start == {0: 10 + ABOVE, 1: 0, 2: 0}


def test_a_log_that_says_two_things_of_its_beginning_is_counted_all(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose first records are missing: it begins there, and no time is of them."""
    asked = 0

    def at(_self: LogOffsets, _at_ms: int, end: Offsets) -> dict[int, int]:
        nonlocal asked
        asked += 1
        assert asked < 30, "it goes back for ever"
        return {p: min(n, 5) for p, n in end.items()}

    monkeypatch.setattr(LogOffsets, "at", at)
    lanes = log.rebuilds(ENDS, 1)

    covered = [
        (p, n) for one in lanes for p, end in one.end.items() for n in range(one.start[p], end)
    ]
    assert sorted(covered) == [(p, n) for p, end in ENDS.items() for n in range(end)]
