"""Records that must be in the log before anything goes on: sent together, then waited for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from weir.kafka import Kafka

Headers = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


class StoredWriter:
    """Queues records, and tells whether all of them are stored; not to be shared by threads."""

    def __init__(self, kafka: Kafka, **options: Any) -> None:
        """Prepare a connection.

        Args:
            kafka: How brokers are reached.
            **options: Of librdkafka, besides those that every such writer has.
        """
        self._producer = Producer(
            {
                **kafka.client_options(),
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "compression.type": "lz4",
                # `queue` waits for room; by default a process would hold a gigabyte.
                "queue.buffering.max.kbytes": 65_536,
                **options,
            }
        )
        self._failed: KafkaError | None = None

    def queue(
        self,
        topic: str,
        key: bytes,
        value: bytes | None,
        headers: Headers = (),
    ) -> None:
        """Queue one record; waits while the queue is full."""
        given: Any = headers if isinstance(headers, Mapping) else list(headers)
        while True:
            try:
                self._producer.produce(
                    topic, value, key, headers=given, on_delivery=self._delivered
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def missing(self, within_s: float) -> KafkaError | None:
        """Wait until all that was queued is stored; return why not, None if it is.

        What failed before the call counts to it; the next call knows nothing of it.
        """
        left = self._producer.flush(within_s)
        failed, self._failed = self._failed, None
        if failed is None and left:
            return KafkaError(KafkaError._TIMED_OUT, f"{left} not acknowledged")
        return failed

    def drop(self) -> None:
        """Drop what is queued and was not sent."""
        self._producer.purge()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        del message
        self._failed = error or self._failed
