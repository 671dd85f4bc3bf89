"""`weir.alerts` as this job writes and reads it.

A record is written, acknowledged by all in-sync replicas, and read back before anything
that follows from it is done. While Kafka is away `append` waits: what cannot be recorded
is not told. The producer sends again by itself and idempotently, so that nothing stands
twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, Message, Producer
from weir import names
from weir.alerts.fold import Fold
from weir.alerts.records import Record as AlertRecord
from weir.alerts.records import encode
from weir.clock import Clock
from weir_reading.follower import Follower, Record

# A broker that is away for longer than this is waited for by sending anew.
SEND_TIMEOUT_S = 30.0
RETRY_S = 1.0


class Journal:
    """Appends records and folds what it reads.

    Attributes:
        fold: What the topic says.
        follower: Reads it.
    """

    def __init__(self, bootstrap: str, clock: Clock, on_read: Callable[[], None]) -> None:
        """Prepare.

        Args:
            bootstrap: Brokers.
            clock: For the reader's silence.
            on_read: Called after records were folded.
        """
        self.fold = Fold()
        self.follower = Follower(bootstrap, clock, names.ALERTS, self._take)
        self._on_read = on_read
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "message.timeout.ms": int(SEND_TIMEOUT_S * 1000),
                "log_level": 2,
            }
        )

    async def append(self, records: Sequence[AlertRecord]) -> None:
        """Write records, in order, and return once they were read back."""
        if not records:
            return
        # All at once: after a change everywhere there are hundreds, and they are in order.
        offsets = await asyncio.gather(*(self._written(record) for record in records))
        await self.follower.reach(max(offsets))

    async def close(self) -> None:
        """Wait for what is under way, then stop reading."""
        await asyncio.to_thread(self._producer.flush, 5.0)
        await self.follower.stop()

    async def _written(self, record: AlertRecord) -> int:
        while True:
            try:
                return await self._send(record)
            except BrokerError:
                await asyncio.sleep(RETRY_S)

    async def _send(self, record: AlertRecord) -> int:
        loop = asyncio.get_running_loop()
        confirmed: asyncio.Future[int] = loop.create_future()

        def delivered(error: KafkaError | None, message: Message) -> None:
            loop.call_soon_threadsafe(_settle, confirmed, error, message.offset())

        self._producer.produce(
            names.ALERTS, encode(record), record.tenant, partition=0, on_delivery=delivered
        )
        # The library calls back from `poll` only, and `poll` blocks.
        while not confirmed.done():
            await asyncio.to_thread(self._producer.poll, 0.05)
            await asyncio.sleep(0)
        return confirmed.result()

    def _take(self, records: list[Record]) -> None:
        for record in records:
            self.fold.apply(record.offset, record.value)
        self._on_read()


class BrokerError(Exception):
    """Kafka did not confirm a record in time."""


def _settle(confirmed: asyncio.Future[int], error: KafkaError | None, offset: int | None) -> None:
    if confirmed.done():
        return
    if error is None and offset is not None:
        confirmed.set_result(offset)
    else:
        confirmed.set_exception(BrokerError(str(error)))
