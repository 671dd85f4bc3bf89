"""Reads a topic of one partition backwards, in the background, without a group.

A topic has no index by what its records say: whoever needs the newest of something rare has
to go back until it is met. It goes by chunks, on a thread, and rests longer than it reads, so
that what the process is for does not wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition
from weir.clock import Clock
from weir.kafka import Kafka
from weir_reading.follower import Record

CHUNK = 10_000
READ_COUNT = 500
# How long a rest is, in times of what the chunk before it took.
REST = 3.0
TIMEOUT_S = 5.0
RETRY_S = 2.0
# A chunk ends where it ends, and what the library has fetched beyond it is thrown away.
PREFETCH_KB = 1024

log = structlog.get_logger()


class Backwards:
    """Reads what stands before a place, the newest chunk first."""

    def __init__(self, kafka: Kafka, clock: Clock, topic: str) -> None:
        self._kafka = kafka
        self._clock = clock
        self._topic = topic

    async def chunks(self, before: int) -> AsyncIterator[list[Record]]:
        """Yield the records before an offset, chunk by chunk backwards, each in order.

        Ends at the start of the topic. While Kafka does not answer it tries again.
        """
        while True:
            begun_s = self._clock.monotonic_s()
            try:
                records = await asyncio.to_thread(self._chunk, before)
            except KafkaException as error:
                log.warning("topic_read_failed", topic=self._topic, error=str(error))
                await asyncio.sleep(RETRY_S)
                continue
            if not records:
                return
            before = records[0].offset
            yield records
            await asyncio.sleep(REST * (self._clock.monotonic_s() - begun_s))

    def _chunk(self, before: int) -> list[Record]:
        """Return the records before an offset; none where the topic starts there.

        Raises:
            KafkaException: If Kafka does not answer, or they were deleted meanwhile.
        """
        # One for each chunk: whoever waits for this may be gone before it ends.
        consumer = self._consumer()
        try:
            where = TopicPartition(self._topic, 0)
            low, high = consumer.get_watermark_offsets(where, timeout=TIMEOUT_S)
            before = min(before, high)
            start = max(low, before - CHUNK)
            consumer.assign([TopicPartition(self._topic, 0, start)])
            return _read(consumer, start, before)
        finally:
            consumer.close()

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                **self._kafka.client_options(),
                # Required by the library; nothing is ever committed to it.
                "group.id": f"reader-of-{self._topic}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "queued.max.messages.kbytes": PREFETCH_KB,
                "fetch.max.bytes": PREFETCH_KB * 1024,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 2,
            }
        )


def _read(consumer: Consumer, start: int, end: int) -> list[Record]:
    """Return the records of a range that lies before the end of the topic."""
    found: list[Record] = []
    while start < end:
        # Never more than are there: `consume` waits for as many as it is asked for.
        messages = consumer.consume(min(READ_COUNT, end - start), timeout=TIMEOUT_S)
        if not messages:
            msg = "no broker answered in time"
            raise KafkaException(msg)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
            key, value = message.key() or b"", message.value() or b""
            found.append(Record(message.offset() or 0, key, value, message.timestamp()[1]))
        start = found[-1].offset + 1
    return found
