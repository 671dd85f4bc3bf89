"""Reading the log from a task: a small batch, a range in order, or single records.

A batch, what lies before it (the state of a lost dedup file), or what is needed of it
again (the original bytes of a quarantined event).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from operator import itemgetter, methodcaller
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from weir.kafka import Kafka
from weir_reading.offsets import LATEST, first_since, offsets_of

from weir_analytics.panes.task_watch import note_step

Headers: TypeAlias = Sequence[tuple[str, bytes | None]] | None

CHUNK = 2_000
# What waits in the client, and about what one list of records holds.
QUEUE_BYTES = 16 * 1024 * 1024
TIMEOUT_S = 15.0
# What Java's client writes for the bytes of a header's name that are not UTF-8.
GARBLED = "\ufffd"
# Reading on is cheaper than a new fetch up to about this many records.
NEAR = 2_000


@dataclass(frozen=True)
class LogPartition:
    """One partition of a topic, and how its broker is reached."""

    kafka: Kafka
    topic: str
    partition: int

    def at(self, offset: int) -> TopicPartition:
        """Return the place of an offset."""
        return TopicPartition(self.topic, self.partition, offset)


@contextmanager
def reader(kafka: Kafka) -> Iterator[Consumer]:
    """Open a consumer without a group's offsets; closed at the end."""
    consumer = Consumer(_options(kafka))
    try:
        yield consumer
    finally:
        consumer.close()


def _options(kafka: Kafka) -> dict[str, str | int | bool]:
    return {
        **kafka.client_options(),
        "group.id": "weir-panes-history",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_uncommitted",
        # As Spark's client does: what a disk has damaged is an error and no event.
        "check.crcs": True,
        "queued.max.messages.kbytes": QUEUE_BYTES // 1024,
        "log_level": 0,
    }


@cache
def _kept_consumer(kafka: Kafka) -> Consumer:
    """Return this process's consumer for small batches: opening one takes longer than they do.

    A fetch that waits for more at the log's end would hold back the first one of the next
    batch, on the same connection; one that does not wait at all would be sent again and again.
    What waits in the client is soon taken: by default it looks once a second if there is room.
    """
    return Consumer(_options(kafka) | {"fetch.wait.max.ms": 10, "fetch.queue.backoff.ms": 5})


def first_at(log: LogPartition, at_ms: int) -> int:
    """Return the first offset still there whose record was appended at or after a time.

    Where none was, this is the log's end.

    Raises:
        KafkaException: If the log did not answer.
    """
    admin = AdminClient({**log.kafka.client_options(), "log_level": 0})
    # A new client that is asked for offsets asks first who leads, and on a busy machine may miss
    # the answer: it asks again after three seconds (librdkafka 2.16; one in six on full cores).
    admin.list_topics(log.topic, timeout=TIMEOUT_S)
    note_step()
    place = admin, log.topic
    found = first_since(*place, at_ms, [log.partition], timeout_s=TIMEOUT_S, asked=note_step)
    if log.partition in found:
        return found[log.partition].offset
    end = offsets_of(*place, LATEST, [log.partition], timeout_s=TIMEOUT_S)
    return int(end[log.partition].offset)


def first_offsets(kafka: Kafka, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Return the first offset of some partitions that is still there.

    Raises:
        KafkaException: If the log did not answer.
    """
    with reader(kafka) as consumer:
        found: dict[int, int] = {}
        for partition in partitions:
            place = TopicPartition(topic, partition)
            found[partition] = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)[0]
            note_step()
        return found


def record_from(log: LogPartition, offset: int) -> Message:
    """Return the record at an offset, or the next one there is.

    Raises:
        KafkaException: If the log does not reach back to the offset.
        TimeoutError: If there is none.
    """
    with reader(log.kafka) as consumer:
        consumer.assign([log.at(offset)])
        (message,) = _consume(consumer, 1)
        return message


def read_range(log: LogPartition, start: int, end: int) -> Iterator[list[Message]]:
    """Yield the records of `[start, end)` in order, in lists.

    Raises:
        KafkaException: If the log does not hold them or did not answer in time.
    """
    with reader(log.kafka) as consumer:
        yield from _read(consumer, log.topic, {log.partition: start}, {log.partition: end})


def read_ranges(
    kafka: Kafka, topic: str, start: Mapping[int, int], end: Mapping[int, int]
) -> Iterator[list[Message]]:
    """Yield the records of `[start, end)` of each partition, each partition's in order.

    Args:
        kafka: How brokers are reached.
        topic: The topic.
        start: First offset of each partition; 0 if it is not there.
        end: One past the last offset of each partition.

    Raises:
        KafkaException: If the log does not hold them.
        TimeoutError: If it did not answer in time.
        ValueError: If a partition's range ends before it starts.
    """
    for partition, first in start.items():
        if first > end.get(partition, first):
            msg = (
                f"the range of {topic}/{partition} must not end before it starts, got"
                f" {first} to {end[partition]}: has the log lost records?"
            )
            raise ValueError(msg)
    if any(start.get(partition, 0) < n for partition, n in end.items()):
        yield from _read(_kept_consumer(kafka), topic, start, end)


def _read(
    consumer: Consumer, topic: str, start: Mapping[int, int], end: Mapping[int, int]
) -> Iterator[list[Message]]:
    left = {p: n for p, n in end.items() if start.get(p, 0) < n}
    consumer.assign([TopicPartition(topic, p, start.get(p, 0)) for p in left])
    try:
        while left:
            messages = _consume(consumer, CHUNK)
            last = _last_offsets(messages)
            reached = [p for p, n in left.items() if last.get(p, -1) + 1 >= n]
            # First, so that nothing is fetched for nothing while the caller works.
            consumer.incremental_unassign([TopicPartition(topic, p) for p in reached])
            left = {p: n for p, n in left.items() if p not in reached}
            if any(offset >= end[partition] for partition, offset in last.items()):
                messages = [m for m in messages if (m.offset() or 0) < end[_partition(m)]]
            yield from _by_size(messages)
    finally:
        consumer.unassign()


def _last_offsets(messages: Sequence[Message]) -> dict[int, int]:
    """Return the offset of each partition's last record; a partition's are in order."""
    return dict(zip(map(Message.partition, messages), map(Message.offset, messages), strict=True))  # type: ignore[arg-type]


def _partition(message: Message) -> int:
    return message.partition() or 0


def _by_size(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Cut a list where it grows large: what is made of it at once is several times its size."""
    if sum(map(len, messages)) < QUEUE_BYTES:
        if messages:
            yield list(messages)
        return
    piece: list[Message] = []
    size = 0
    for message in messages:
        piece.append(message)
        size += len(message)
        if size >= QUEUE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


# Called from C, the interpreter looks for the error that the client leaves behind; called
# from Python often enough, it no longer does, and the process ends at the broken list.
_ASK_HEADERS = methodcaller("headers")


def headers_of(message: Message) -> Headers:
    """Return a record's headers, in order; None: none, or the name of one is not UTF-8.

    To be asked once a record: at such a name the client leaves an error behind with a list
    that is broken there, and hands that out when it is asked again.
    """
    return all_headers([message])[0]


def all_headers(messages: Sequence[Message]) -> list[Headers]:
    """Return the headers of several records, as `headers_of` does of one."""
    found: list[Any] = []
    asked = map(_ASK_HEADERS, messages)
    while len(found) < len(messages):
        try:
            found.extend(asked)  # what came before an error stays, and the next one follows it
        except SystemError:
            found.append(None)
    pairs = chain.from_iterable(filter(None, found))
    if any(GARBLED in name for name in set(map(itemgetter(0), pairs))):
        found = [of and (None if any(GARBLED in n for n, _value in of) else of) for of in found]
    return found


def read_records(kafka: Kafka, topic: str, wanted: Iterable[tuple[int, int]]) -> Iterator[Message]:
    """Yield the records at the given (partition, offset) places, sorted."""
    by_partition: dict[int, list[int]] = defaultdict(list)
    for partition, offset in sorted(set(wanted)):
        by_partition[partition].append(offset)
    if not by_partition:
        return
    with reader(kafka) as consumer:
        for partition, offsets in by_partition.items():
            yield from _pick(consumer, LogPartition(kafka, topic, partition), offsets)


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
    for error in filter(None, map(Message.error, messages)):
        raise KafkaException(error)
    note_step()
    return messages
