"""Appends to a topic of one partition, whose records are few and all matter.

`append` returns the offset that Kafka acknowledged with all in-sync replicas. When the
acknowledgement does not come in time the record may stand in the log or not: whoever
follows the topic will see. The producer sends again by itself and idempotently, so that
nothing stands twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from confluent_kafka import KafkaError, Message, Producer
from weir.kafka import Kafka


class NotConfirmedError(Exception):
    """Kafka did not confirm a record in time."""


class Appender:
    """Writes records in the order of the calls, and waits for each acknowledgement."""

    def __init__(self, kafka: Kafka, topic: str, *, timeout_s: float) -> None:
        """Prepare; it connects by itself.

        Args:
            kafka: How brokers are reached.
            topic: One with a single partition.
            timeout_s: How long an acknowledgement is waited for.
        """
        self._topic = topic
        self._timeout_s = timeout_s
        self._producer = Producer(
            {
                **kafka.client_options(),
                "acks": "all",
                "enable.idempotence": True,
                # What is handed over together goes in one request, which nothing comes between.
                "linger.ms": 5,
                "message.timeout.ms": int(timeout_s * 1000),
                "log_level": 2,
            }
        )

    async def append(self, key: str | bytes, value: bytes) -> int:
        """Append a record and return its offset.

        Raises:
            NotConfirmedError: If Kafka did not confirm it in time.
        """
        return (await self.append_all([(key, value)]))[0]

    async def append_all(self, records: Sequence[tuple[str | bytes, bytes]]) -> list[int]:
        """Append records, keys and values, in their order, and return their offsets.

        They stand one directly behind the other, unless another producer's came between:
        that is rare, and offsets tell it.

        Raises:
            NotConfirmedError: If Kafka did not confirm one in time; any of them may stand.
        """
        loop = asyncio.get_running_loop()
        confirmed: list[asyncio.Future[int]] = [loop.create_future() for _ in records]
        for (key, value), waiting in zip(records, confirmed, strict=True):
            told = partial(_told, loop, waiting)
            self._producer.produce(self._topic, value, key, partition=0, on_delivery=told)
        # The library calls back from `poll` only, and `poll` blocks.
        while not all(waiting.done() for waiting in confirmed):
            await asyncio.to_thread(self._producer.poll, 0.05)
            await asyncio.sleep(0)
        # All are looked at: of a failure that nobody asks for the loop complains.
        done = await asyncio.gather(*confirmed, return_exceptions=True)
        for one in done:
            if isinstance(one, BaseException):
                raise one
        return [one for one in done if isinstance(one, int)]

    async def close(self) -> None:
        """Wait for what is under way, at most as long as an acknowledgement may take or 5 s."""
        await asyncio.to_thread(self._producer.flush, min(self._timeout_s, 5.0))


def _told(
    loop: asyncio.AbstractEventLoop,
    confirmed: asyncio.Future[int],
    error: KafkaError | None,
    message: Message,
) -> None:
    loop.call_soon_threadsafe(_settle, confirmed, error, message.offset())


def _settle(confirmed: asyncio.Future[int], error: KafkaError | None, offset: int | None) -> None:
    if confirmed.done():
        return
    if error is None and offset is not None:
        confirmed.set_result(offset)
    else:
        confirmed.set_exception(NotConfirmedError(str(error)))
