"""Reads `weir.quarantine` from its end, without a group; blocks, so call it on a thread."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from weir import names
from weir.problems import ProblemError, Reason

NEWEST = 500
TIMEOUT_S = 5.0


def read_newest(bootstrap: str, count: int = NEWEST) -> list[Message]:
    """Return the newest records of each partition, the newest first.

    Raises:
        ProblemError: 503 if Kafka does not answer.
    """
    consumer = _consumer(bootstrap)
    try:
        ranges = _ranges(consumer, count)
        found = _read(consumer, ranges)
    except KafkaException:
        raise _away() from None
    finally:
        consumer.close()
    return sorted(found, key=lambda m: (m.timestamp()[1], m.offset() or 0), reverse=True)


def read_one(bootstrap: str, partition: int, offset: int) -> Message | None:
    """Return the record at a place, or None if there is none.

    Raises:
        ProblemError: 503 if Kafka does not answer.
    """
    consumer = _consumer(bootstrap)
    try:
        low, high = consumer.get_watermark_offsets(
            TopicPartition(names.QUARANTINE, partition), timeout=TIMEOUT_S
        )
        if not low <= offset < high:
            return None
        found = _read(consumer, {partition: (offset, offset + 1)})
    except KafkaException:
        raise _away() from None
    finally:
        consumer.close()
    return found[0] if found else None


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "weir-dashboard",
            "enable.auto.commit": False,
            "log_level": 2,
        }
    )


def _ranges(consumer: Consumer, count: int) -> dict[int, tuple[int, int]]:
    topic = consumer.list_topics(names.QUARANTINE, timeout=TIMEOUT_S).topics[names.QUARANTINE]
    ranges = {}
    for partition in topic.partitions:
        low, high = consumer.get_watermark_offsets(
            TopicPartition(names.QUARANTINE, partition), timeout=TIMEOUT_S
        )
        if high > low:
            ranges[partition] = (max(low, high - count), high)
    return ranges


def _read(consumer: Consumer, ranges: dict[int, tuple[int, int]]) -> list[Message]:
    """Return the records of ranges that lie below the ends of their partitions."""
    left = {partition: end for partition, (_, end) in ranges.items()}
    consumer.assign(
        [TopicPartition(names.QUARANTINE, p, start) for p, (start, _) in ranges.items()]
    )
    found: list[Message] = []
    while left:
        first = consumer.poll(TIMEOUT_S)  # `consume` alone waits until it has that many
        if first is None:
            raise _away()
        for message in (first, *consumer.consume(NEWEST, timeout=0)):
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is not None or partition is None or offset is None:
                raise _away()
            if partition in left and offset < ranges[partition][1]:
                found.append(message)
            if offset + 1 >= ranges.get(partition, (0, 0))[1]:
                left.pop(partition, None)
    return found


def _away() -> ProblemError:
    msg = "the log does not answer; what it holds is kept, try again shortly"
    return ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=2)
