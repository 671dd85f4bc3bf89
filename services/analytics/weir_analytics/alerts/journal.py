"""`weir.alerts` as this job writes and reads it.

A record is written, acknowledged by all in-sync replicas, and read back before anything
that follows from it is done. While Kafka is away `append` waits: what cannot be recorded
is not told.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from itertools import count

from weir import names
from weir.alerts.channels import Channels
from weir.alerts.fold import Fold
from weir.alerts.records import Record as AlertRecord
from weir.alerts.records import encode
from weir.clock import Clock
from weir.kafka import Kafka
from weir_reading.appender import Appender, NotConfirmedError
from weir_reading.follower import Follower, Record

# A broker that is away for longer than this is waited for by sending anew.
SEND_TIMEOUT_S = 30.0
RETRY_S = 1.0
STUCK_S = 5.0
"""An append that takes longer than this is one that Kafka does not take."""


class Journal:
    """Appends records and folds what it reads.

    Attributes:
        fold: What the topic says.
        channels: What it says of channels.
        follower: Reads it.
    """

    def __init__(self, kafka: Kafka, clock: Clock, on_read: Callable[[], None]) -> None:
        """Prepare.

        Args:
            kafka: How brokers are reached.
            clock: For the silence of Kafka.
            on_read: Called after records were folded.
        """
        self.fold = Fold()
        self.channels = Channels()
        self.follower = Follower(kafka, clock, names.ALERTS, self._take)
        self._on_read, self._clock = on_read, clock
        self._waiting: dict[int, float] = {}
        self._appends = count()
        self._appender = Appender(kafka, names.ALERTS, timeout_s=SEND_TIMEOUT_S)

    def is_away(self) -> bool:
        """Tell whether nothing can be recorded: no broker answers, or what was written stays out.

        A broker that answers but takes nothing, for want of replicas, say, is known by the
        latter only.
        """
        begun_s = min(self._waiting.values(), default=math.inf)
        stuck = self._clock.monotonic_s() - begun_s > STUCK_S
        return stuck or self.follower.away_s() is not None

    async def append(self, records: Sequence[AlertRecord]) -> None:
        """Write records, in order, and return once they were read back."""
        if not records:
            return
        number = next(self._appends)
        self._waiting[number] = self._clock.monotonic_s()
        try:
            # All at once: after a change everywhere there are hundreds, and they are in order.
            offsets = await asyncio.gather(*(self._written(record) for record in records))
            await self.follower.reach(max(offsets))
        finally:
            del self._waiting[number]

    async def close(self) -> None:
        """Wait for what is under way, then stop reading."""
        await self._appender.close()
        await self.follower.stop()

    async def _written(self, record: AlertRecord) -> int:
        while True:
            try:
                return await self._appender.append(record.tenant, encode(record))
            except NotConfirmedError:
                await asyncio.sleep(RETRY_S)

    def _take(self, records: list[Record]) -> None:
        for record in records:
            self.channels.take(self.fold.apply(record.offset, record.value))
        self._on_read()
