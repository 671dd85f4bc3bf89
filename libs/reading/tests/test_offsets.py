"""Places in a log by time, on a real broker, while files of what is deleted are still there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from weir.clock import SystemClock
from weir.kafka import Kafka
from weir.log_place import LogPlace
from weir_reading import offsets
from weir_reading.log_look import LogLook
from weir_reading.offsets import EARLIEST, LATEST, YOUNGEST, Found, first_since

pytestmark = pytest.mark.kafka

MINUTE_MS = 60_000
# Two of these do not fit into a segment of the least size that brokers take.
LARGE = b"x" * 600_000
SEGMENT = {"segment.bytes": "1048576", "message.timestamp.type": "CreateTime"}


class Segments:
    """A topic of two partitions: record n of the first, each in a segment, is n minutes old."""

    def __init__(self, kafka: str, name: str) -> None:
        self.name, self._kafka = name, kafka
        self.admin = AdminClient({"bootstrap.servers": kafka})
        self.now_ms = time.time_ns() // MINUTE_MS // 1_000_000 * MINUTE_MS

    def append(self, *ages: int, value: bytes = LARGE) -> None:
        """Append records of some ages in minutes."""
        producer = Producer({"bootstrap.servers": self._kafka})
        for age in ages:
            producer.produce(self.name, value, partition=0, timestamp=self.at_ms(age))
        assert producer.flush(10) == 0

    def at_ms(self, age: float) -> int:
        """Return the instant some minutes ago."""
        return self.now_ms - round(age * MINUTE_MS)

    def delete(self, before: int) -> None:
        """Delete records; their files stay for some minutes."""
        place = TopicPartition(self.name, 0, before)
        (done,) = self.admin.delete_records([place]).values()
        done.result(10)

    def since(self, age: float) -> dict[int, Found]:
        """Return what is found of the instant some minutes ago."""
        return first_since(self.admin, self.name, self.at_ms(age), [0, 1], timeout_s=10)


@pytest.fixture
def segments(kafka: str, new_topic: Callable[..., str]) -> Segments:
    """Return a topic of this test's own."""
    return Segments(kafka, new_topic("log", 2, SEGMENT))


def test_of_a_whole_log_the_broker_says_it(segments: Segments) -> None:
    """Both sides of the edge; where none came since, and in an empty partition, there is none."""
    segments.append(30, 20, 10)
    assert segments.since(40) == {0: Found(0, segments.at_ms(30))}
    assert segments.since(20) == {0: Found(1, segments.at_ms(20))}
    assert segments.since(19.9) == {0: Found(2, segments.at_ms(10))}
    assert segments.since(9) == {}


def test_behind_segments_that_are_deleted_all_is_found(segments: Segments) -> None:
    """A broker finds none then of any instant that those had a record of, or one before."""
    segments.append(40, 30, 20, 10)
    segments.delete(2)
    assert segments.since(60) == segments.since(30) == {0: Found(2, None)}
    assert segments.since(20) == {0: Found(2, segments.at_ms(20))}
    assert segments.since(10) == {0: Found(3, segments.at_ms(10))}
    assert segments.since(9) == {}


def test_where_all_is_deleted_there_is_none(segments: Segments) -> None:
    """However long the files of it are there."""
    segments.append(40, 30)
    segments.delete(2)
    assert segments.since(60) == segments.since(1) == {}


def test_what_is_left_of_a_log_does_not_seem_gone(segments: Segments, kafka: str) -> None:
    """Whoever counts all the while has lost nothing, and is not told so."""
    segments.append(40, 30, 20, 10)
    segments.delete(2)
    left = LogLook(Kafka(kafka), SystemClock(), segments.name).left(
        {0: LogPlace(3), 1: LogPlace(0)}
    )
    assert (left.is_gone, left.waiting) == (False, 1)


def test_what_is_not_replicated_yet_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a partition with followers that is written all the time no broker says what came last."""
    said: dict[OffsetSpec, int] = {YOUNGEST: -1, EARLIEST: 4, LATEST: 10}

    def answered(
        _admin: AdminClient, _topic: str, spec: OffsetSpec, partitions: Iterable[int], **_: float
    ) -> dict[int, Any]:
        one = SimpleNamespace(offset=said.get(spec, -1), timestamp=-1)
        return dict.fromkeys(partitions, one)

    monkeypatch.setattr(offsets, "offsets_of", answered)
    admin, asked = cast("AdminClient", None), Counter[str]()

    def look() -> dict[int, Found]:
        return first_since(admin, "t", 5, [0], timeout_s=1, asked=lambda: asked.update("n"))

    assert look() == {0: Found(4, None)}
    said[EARLIEST] = 10
    assert look() == {}
    assert asked["n"] == 10
