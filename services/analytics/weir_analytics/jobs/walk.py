"""Going through a range of a topic slice by slice, in the order of each partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from weir.kafka import Kafka

from weir_analytics.jobs.task import Progress

CHUNK: Final = 2_000
WAIT_S: Final = 0.05
# What the client library may hold between two slices.
PREFETCH_KB: Final = 8 * 1024

Bounds = Mapping[int, int]


class Walk:
    """Reads `[start, end)` of some partitions, without a group's offsets.

    Records that retention takes in the meantime are passed over: who must not miss one
    looks for missing offsets, and compares the log's start. After an error it may be read on:
    nothing is passed over because of it.
    """

    def __init__(
        self, kafka: Kafka, topic: str, start: Bounds, end: Bounds, chunk: int = CHUNK
    ) -> None:
        """Begin to read.

        Args:
            kafka: How brokers are reached.
            topic: The topic.
            start: Partition -> first offset; 0 of one that is missing.
            end: Partition -> the offset behind the last.
            chunk: How many records are given out at once, at most.
        """
        self._chunk = chunk
        self._start = {p: start.get(p, 0) for p in end}
        self._end = dict(end)
        self._at = dict(self._start)
        self._topic = topic
        self._consumer = Consumer(
            {
                **kafka.client_options(),
                "group.id": "weir-panes-jobs",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "check.crcs": True,
                "queued.max.messages.kbytes": PREFETCH_KB,
                "fetch.max.bytes": PREFETCH_KB * 1024,
                # By default it looks once a second if there is room, and is read in less.
                "fetch.queue.backoff.ms": 20,
                "log_level": 0,
            }
        )
        self._assign()

    @property
    def progress(self) -> Progress:
        """How many offsets of the range are behind, and how many it has."""
        of = {p: max(0, end - self._start[p]) for p, end in self._end.items()}
        return Progress(
            sum(min(n, max(0, self._at[p] - self._start[p])) for p, n in of.items()),
            sum(of.values()),
        )

    @property
    def done(self) -> bool:
        """Whether the whole range is behind."""
        return not self._left()

    def read(self) -> list[Message]:
        """Return the next records of the range; none if the broker needs a moment.

        Raises:
            KafkaException: If the log cannot be read.
        """
        if self.done:
            return []
        found: list[Message] = []
        for message in self._consumer.consume(self._chunk, timeout=WAIT_S):
            partition, offset = message.partition() or 0, message.offset() or 0
            if partition not in self._at:
                continue
            error = message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                # What the client holds is fetched again: it may have gone on behind the error.
                self._assign()
                if not found:
                    raise KafkaException(error)
                break
            if error is not None:
                self._reach(partition, max(offset, self._end[partition]))
            elif offset < self._end[partition]:
                found.append(message)
                self._reach(partition, offset + 1)
            else:
                self._reach(partition, self._end[partition])
        return found

    def each(self, take: Callable[[Sequence[Message]], None], is_over: Callable[[], bool]) -> bool:
        """Give records to `take` until `is_over`; return whether the range is behind."""
        while not self.done and not is_over():
            found = self.read()
            if found:
                take(found)
        return self.done

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _assign(self) -> None:
        places = [TopicPartition(self._topic, p, self._at[p]) for p in self._left()]
        self._consumer.assign(places)

    def _left(self) -> list[int]:
        return [p for p, end in self._end.items() if self._at[p] < end]

    def _reach(self, partition: int, offset: int) -> None:
        before, end = self._at[partition], self._end[partition]
        self._at[partition] = max(before, offset)
        if before < end <= offset:
            # Nothing more is fetched of it for nothing.
            self._consumer.incremental_unassign([TopicPartition(self._topic, partition)])
