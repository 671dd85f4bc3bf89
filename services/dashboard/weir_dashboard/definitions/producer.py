"""Appends to `weir.definitions` and to nothing else.

`append` returns the offset that Kafka acknowledged with all in-sync replicas. When the
acknowledgement does not come in time the record may stand in the log or not: the caller
is told so (503), and a repeat is safe, because it is based on the same version and only
one of two such records wins.
"""

from __future__ import annotations

import asyncio

from confluent_kafka import KafkaError, Message, Producer
from weir import names
from weir.problems import ProblemError, Reason

TIMEOUT_S = 5.0


class Appender:
    """Writes records, one at a time, and waits for each acknowledgement."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "linger.ms": 0,
                "message.timeout.ms": int(TIMEOUT_S * 1000),
                "log_level": 2,
            }
        )

    async def append(self, key: bytes, value: bytes) -> int:
        """Append a record and return its offset.

        Raises:
            ProblemError: 503 `log_unavailable` if Kafka did not confirm it in time.
        """
        loop = asyncio.get_running_loop()
        confirmed: asyncio.Future[int] = loop.create_future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            loop.call_soon_threadsafe(_settle, confirmed, error, message.offset())

        self._producer.produce(
            names.DEFINITIONS, key=key, value=value, partition=0, on_delivery=delivered
        )
        # The library calls back from `poll` only, and `poll` blocks.
        while not confirmed.done():
            await asyncio.to_thread(self._producer.poll, 0.1)
            await asyncio.sleep(0)
        return confirmed.result()

    def close(self) -> None:
        """Wait for what is under way, at most 5 s."""
        self._producer.flush(TIMEOUT_S)


def _settle(confirmed: asyncio.Future[int], error: KafkaError | None, offset: int | None) -> None:
    if confirmed.done():
        return
    if error is None and offset is not None:
        confirmed.set_result(offset)
        return
    msg = "the log did not confirm the change; it may stand or not, read it and try again"
    confirmed.set_exception(ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=2))
