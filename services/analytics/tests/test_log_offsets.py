"""Offsets of a topic on a real broker: its ends, a time's place, what retention has taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from weir.event_time import LEAD_LIMIT_MS
from weir.kafka import Kafka
from weir_analytics.panes import log_offsets
from weir_analytics.panes.log_offsets import LogOffsets
from weir_reading.offsets import LATEST

pytestmark = pytest.mark.kafka

RECORDS = {0: 4, 1: 3, 2: 0}
HORIZON_MS = 3_600_000


class Topic:
    """A topic of three partitions: record n of each was appended n minutes after `first_ms`."""

    def __init__(self, kafka: str, name: str) -> None:
        self._kafka, self._name = kafka, name
        self.first_ms = time.time_ns() // 1_000_000 - 600_000
        producer = Producer({"bootstrap.servers": kafka})
        for partition, count in RECORDS.items():
            for n in range(count):
                producer.produce(name, b"x", partition=partition, timestamp=self.at_ms(n))
        assert producer.flush(10) == 0
        self.log = LogOffsets(Kafka(kafka), name)

    def at_ms(self, n: int) -> int:
        """Return when record n was appended."""
        return self.first_ms + n * 60_000

    def take(self, partition: int, before: int) -> None:
        """Take the first records of a partition away, as retention does."""
        admin = AdminClient({"bootstrap.servers": self._kafka})
        (taken,) = admin.delete_records([TopicPartition(self._name, partition, before)]).values()
        taken.result(10)


@pytest.fixture
def topic(kafka: str, new_topic: Callable[..., str]) -> Topic:
    """Return a topic of this test's own, whole."""
    return Topic(kafka, new_topic("log", 3, {"message.timestamp.type": "CreateTime"}))


class TestEnds:
    def test_both_ends_of_each_partition(self, topic: Topic) -> None:
        """An empty partition ends where it begins; what was taken is not there."""
        topic.take(0, 3)
        assert topic.log.partitions() == [0, 1, 2]
        assert topic.log.ends() == ({0: 3, 1: 0, 2: 0}, RECORDS)
        assert topic.log.start() == {0: 3, 1: 0, 2: 0}
        bounds = topic.log.bounds("some id")
        assert (bounds.topic_id, bounds.start, bounds.end) == (
            "some id",
            {0: 3, 1: 0, 2: 0},
            RECORDS,
        )

    def test_nothing_asked_is_nothing_answered(self, topic: Topic) -> None:
        """The client refuses a question about no partition."""
        assert topic.log.ask(LATEST, []) == {}
        assert topic.log.at(0, {}) == {}


class TestAt:
    def test_the_first_record_at_or_after_an_instant(self, topic: Topic) -> None:
        """Both sides of the edge; the end where nothing was appended since."""
        assert topic.log.at(topic.at_ms(2), RECORDS) == {0: 2, 1: 2, 2: 0}
        assert topic.log.at(topic.at_ms(2) + 1, RECORDS) == {0: 3, 1: 3, 2: 0}
        assert topic.log.at(-5, RECORDS) == {0: 0, 1: 0, 2: 0}

    def test_only_what_is_asked_for_and_not_beyond_its_end(self, topic: Topic) -> None:
        """Who has looked at the ends is told nothing of what came after that."""
        assert topic.log.at(topic.at_ms(2), {0: 1}) == {0: 1}


class TestOldest:
    def test_when_what_is_there_begins(self, topic: Topic) -> None:
        """The partition that reaches back furthest decides, without those that are empty."""
        assert topic.log.oldest_ms(RECORDS) == topic.at_ms(0)
        topic.take(0, 2)
        topic.take(1, 1)
        assert topic.log.oldest_ms(RECORDS) == topic.at_ms(1)
        assert topic.log.oldest_ms([2]) == 0


class TestReceivedBefore:
    def test_the_record_before_a_place_tells(self, topic: Topic) -> None:
        """Where it is there still and nobody knows better; before the first there is none."""
        topic.take(1, 2)
        found = topic.log.received_before({0: 3, 1: 2, 2: 0}, {})
        assert found == {0: topic.at_ms(2)}
        assert topic.log.received_before({0: 3, 1: 3}, {0: 7}) == {0: 7, 1: topic.at_ms(2)}


class TestWhatIsLost:
    def test_a_log_that_never_lost_a_record_is_whole(self, topic: Topic) -> None:
        """Whatever its first record's time is."""
        assert topic.log.first_received_ms(*topic.log.ends(), now_ms=9) == 0
        assert topic.log.complete_from_ms(*topic.log.ends(), HORIZON_MS, now_ms=9) == 0

    def test_the_partition_that_lost_most_decides(self, topic: Topic) -> None:
        """From its first record on; an event may be a lead and its duplicate a horizon later."""
        topic.take(0, 1)
        topic.take(1, 2)
        ends, now_ms = topic.log.ends(), topic.at_ms(9)
        assert topic.log.first_received_ms(*ends, now_ms) == topic.at_ms(2)
        lost_ms = topic.at_ms(2) + LEAD_LIMIT_MS + HORIZON_MS
        assert topic.log.complete_from_ms(*ends, HORIZON_MS, now_ms) == lost_ms

    def test_where_nothing_is_left_all_up_to_now_is_lost(self, topic: Topic) -> None:
        """Nobody knows how young the youngest record was that retention took."""
        topic.take(0, 1)
        topic.take(1, 3)
        ends, now_ms = topic.log.ends(), topic.at_ms(9)
        assert topic.log.first_received_ms(*ends, now_ms) == now_ms
        lost_ms = now_ms + LEAD_LIMIT_MS + HORIZON_MS
        assert topic.log.complete_from_ms(*ends, HORIZON_MS, now_ms) == lost_ms

    @pytest.mark.parametrize(("taken", "readable_from", "by"), [(2, 0, 2), (1, 2, 3), (1, 4, 5)])
    def test_where_the_first_record_cannot_be_read_others_bound_it(
        self, topic: Topic, monkeypatch: pytest.MonkeyPatch, taken: int, readable_from: int, by: int
    ) -> None:
        """By its time where the broker says it, else by half of the age, at last by now."""
        topic.take(0, taken)
        asked, ask = [0], topic.log.ask

        def timed(at_ms: int) -> Any:
            asked.append(at_ms)
            return OffsetSpec.for_timestamp(at_ms)

        def unreadable(spec: OffsetSpec, partitions: Iterable[int]) -> Mapping[int, Future[Any]]:
            answers = dict(ask(spec, partitions))
            if asked[-1] < topic.at_ms(readable_from):
                answers[0] = Future()
                answers[0].set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
            return answers

        monkeypatch.setattr(log_offsets, "OffsetSpec", SimpleNamespace(for_timestamp=timed))
        monkeypatch.setattr(topic.log, "ask", unreadable)
        found = topic.log.received_by_ms(topic.log.start(), topic.at_ms(5))
        assert found == topic.at_ms(by)
        assert found >= topic.log.first_received_ms(*topic.log.ends(), topic.at_ms(5))

    def test_nothing_is_asked_of_a_log_that_is_whole_or_gone(self, topic: Topic) -> None:
        """Nobody knows how young the youngest record was of which none is left."""
        assert topic.log.received_by_ms(topic.log.start(), topic.at_ms(9)) == 0
        topic.take(0, 2)
        topic.take(1, 3)
        assert topic.log.received_by_ms(topic.log.start(), topic.at_ms(9)) == topic.at_ms(9)

    def test_where_counting_begins_later_less_is_lacking(self, topic: Topic) -> None:
        """What a lane lacks depends on where it begins, not on where the log does."""
        topic.take(0, 1)
        start = {0: 3, 1: 0, 2: 0}
        assert topic.log.first_received_ms(start, RECORDS, now_ms=9) == topic.at_ms(3)
