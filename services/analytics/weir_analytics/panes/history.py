"""Reading the log again from a task: a range in order, or single records.

Spark reads a batch; this reads what lies before it (the state of a lost dedup
file) or what is needed of it again (the original bytes of a quarantined event).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

CHUNK = 10_000
TIMEOUT_S = 15.0
# Reading on is cheaper than a new fetch up to about this many records.
NEAR = 2_000


@dataclass(frozen=True)
class LogPartition:
    """One partition of a topic, and where its broker is."""

    bootstrap: str
    topic: str
    partition: int

    def at(self, offset: int) -> TopicPartition:
        """Return the place of an offset, or of a time for `offsets_for_times`."""
        return TopicPartition(self.topic, self.partition, offset)


@contextmanager
def reader(bootstrap: str) -> Iterator[Consumer]:
    """Open a consumer without a group's offsets; closed at the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "weir-panes-history",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_uncommitted",
            "log_level": 0,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def first_at(log: LogPartition, at_ms: int) -> int:
    """Return the first offset still there whose record was appended at or after a time."""
    with reader(log.bootstrap) as consumer:
        start, end = consumer.get_watermark_offsets(log.at(0), timeout=TIMEOUT_S)
        (place,) = consumer.offsets_for_times([log.at(max(at_ms, 0))], timeout=TIMEOUT_S)
        return max(start, place.offset if place.offset >= 0 else end)


def read_range(log: LogPartition, start: int, end: int) -> Iterator[list[Message]]:
    """Yield the records of `[start, end)` in order, in lists.

    Raises:
        KafkaException: If the log does not hold them or did not answer in time.
    """
    with reader(log.bootstrap) as consumer:
        consumer.assign([log.at(start)])
        at = start
        while at < end:
            messages = _consume(consumer, CHUNK)
            at = (messages[-1].offset() or 0) + 1
            yield [m for m in messages if (m.offset() or 0) < end]


def read_records(
    bootstrap: str, topic: str, wanted: Iterable[tuple[int, int]]
) -> Iterator[Message]:
    """Yield the records at the given (partition, offset) places, sorted."""
    by_partition: dict[int, list[int]] = defaultdict(list)
    for partition, offset in sorted(set(wanted)):
        by_partition[partition].append(offset)
    if not by_partition:
        return
    with reader(bootstrap) as consumer:
        for partition, offsets in by_partition.items():
            yield from _pick(consumer, LogPartition(bootstrap, topic, partition), offsets)


def _pick(consumer: Consumer, log: LogPartition, offsets: list[int]) -> Iterator[Message]:
    at, left = -NEAR, iter(offsets)
    wanted = next(left, None)
    while wanted is not None:
        if not at <= wanted < at + NEAR:
            consumer.assign([log.at(wanted)])
            at = wanted
        (message,) = _consume(consumer, 1)
        at = (message.offset() or 0) + 1
        if at - 1 == wanted:
            yield message
        if at > wanted:
            wanted = next(left, None)


def _consume(consumer: Consumer, most: int) -> list[Message]:
    """Return the next records, at least one."""
    first = consumer.poll(TIMEOUT_S)
    if first is None:
        msg = f"the log did not answer within {TIMEOUT_S:.0f} s"
        raise TimeoutError(msg)
    # `consume` waits for as many as are asked for, unless it may not wait at all.
    messages = [first, *(consumer.consume(most - 1, timeout=0) if most > 1 else ())]
    for message in messages:
        error = message.error()
        if error is not None:
            raise KafkaException(error)
    return messages
