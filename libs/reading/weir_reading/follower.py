"""Follows a topic of one partition, without a group, on a thread of its own.

The client library blocks, so it gets a thread; what it reads is handed to the loop in
order. It also tells whether Kafka answers, because it is the one thing here that talks
to it all the time.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from weir.clock import Clock
from weir.kafka import Kafka, refusal

FETCH_WAIT_MS = 500
# librdkafka's RD_KAFKA_OFFSET_TAIL(n) is this less n: n records before the end, or the start.
TAIL_BASE = -2000
# A broker answers each fetch within FETCH_WAIT_MS; silence this long means it is away.
SILENT_S = 3.0
READ_COUNT = 500

log = structlog.get_logger()


@dataclass(frozen=True)
class Record:
    """A record of the topic.

    Attributes:
        offset: Its place.
        key: As it was written.
        value: As it was written.
        at_ms: When the log took it.
    """

    offset: int
    key: bytes
    value: bytes
    at_ms: int


class Follower:
    """Reads every record from a place on once, in order, and says when the end was reached.

    Attributes:
        first_offset: The offset of the first record handed over; None before it.
        next_offset: The offset after the last record handed over.
        caught_up: Set once the end of the topic has been reached.
    """

    def __init__(
        self,
        kafka: Kafka,
        clock: Clock,
        topic: str,
        take: Callable[[list[Record]], None],
        *,
        newest: int | None = None,
    ) -> None:
        """Prepare; nothing is read yet.

        Args:
            kafka: How the brokers are reached.
            clock: Tells how long they have been silent.
            topic: What is read.
            take: Called on the loop with the next records.
            newest: Begin this many records before the end; None: at the start.
        """
        self._begin = OFFSET_BEGINNING if newest is None else TAIL_BASE - newest
        self._kafka = kafka
        self._topic = topic
        self._clock = clock
        self._take = take
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard_s = clock.monotonic_s()
        self._lost = self._refused = False
        self.first_offset: int | None = None
        self.next_offset = 0
        self.caught_up = asyncio.Event()
        self._moved = asyncio.Condition()

    def away_s(self) -> float | None:
        """Return for how long no broker has answered, or None if one does."""
        silent_s = self.silent_s()
        return silent_s if silent_s > SILENT_S else None

    def silent_s(self) -> float:
        """Return how long ago a broker last answered."""
        return self._clock.monotonic_s() - self._heard_s

    def start(self) -> None:
        """Start reading."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._read, name=self._topic, daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """Stop reading and wait until the thread has ended."""
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 10)

    async def reach(self, offset: int) -> None:
        """Wait until the record at `offset` has been handed over."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.next_offset > offset)

    # ── on the thread ───────────────────────────────────────────────────────

    def _read(self) -> None:
        consumer = Consumer(
            {
                **self._kafka.client_options(),
                # Required by the library; nothing is ever committed to it.
                "group.id": f"reader-of-{self._topic}",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": FETCH_WAIT_MS,
                "statistics.interval.ms": 1000,
                "reconnect.backoff.max.ms": 1000,
                "stats_cb": self._stats,
                "error_cb": self._error,
                "log_level": 2,
            }
        )
        consumer.assign([TopicPartition(self._topic, 0, self._begin)])
        while not self._stopping.is_set():
            try:
                # `consume` alone would wait for a full batch: a change is seen at once.
                first = consumer.poll(0.2)
                if first is not None:
                    self._hand_over([first, *consumer.consume(READ_COUNT, timeout=0)])
            except KafkaException as error:
                log.warning("topic_read_failed", topic=self._topic, error=str(error.args[0].code()))
                self._stopping.wait(0.5)
        consumer.close()

    def _hand_over(self, messages: list[Message]) -> None:
        records, ended = [], False
        for message in messages:
            error = message.error()
            if error is None:
                key, value = message.key() or b"", message.value() or b""
                at_ms = message.timestamp()[1]
                records.append(Record(message.offset() or 0, key, value, at_ms))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended = True
            else:
                self._error(error)
        if (records or ended) and self._loop is not None:
            self._loop.call_soon_threadsafe(self._arrived, records, ended)

    def _stats(self, text: str) -> None:
        brokers = json.loads(text).get("brokers", {}).values()
        # rxidle: microseconds since anything came from that broker.
        idle = [b["rxidle"] / 1e6 for b in brokers if b["state"] == "UP" and b["rxidle"] >= 0]
        if idle and min(idle) < SILENT_S:
            self._heard_s = self._clock.monotonic_s() - min(idle)

    def _error(self, error: KafkaError) -> None:
        why = refusal(error.name(), error.str())
        if why is not None and not self._refused:
            self._refused = True
            log.error("log_refused", topic=self._topic, why=why)
        if error.code() == KafkaError._ALL_BROKERS_DOWN and not self._lost:
            self._lost = True
            log.warning("log_lost")

    # ── on the loop ─────────────────────────────────────────────────────────

    def _arrived(self, records: list[Record], ended: bool) -> None:
        self._lost = self._refused = False
        if records:
            self._take(records)
            if self.first_offset is None:
                self.first_offset = records[0].offset
            self.next_offset = records[-1].offset + 1
        if ended:
            self.caught_up.set()
        if records:
            asyncio.ensure_future(self._tell())  # noqa: RUF006  ends by itself at once

    async def _tell(self) -> None:
        async with self._moved:
            self._moved.notify_all()
