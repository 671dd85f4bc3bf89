"""Alerts as `weir.alerts` tells them, followed from its start, and what people say to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from weir import names
from weir.alerts.listing import Alert, Listing
from weir.alerts.records import Acknowledgement, Delivery, Trial, encode
from weir.clock import Clock
from weir.kafka import Kafka
from weir.problems import ProblemError, Reason
from weir_reading.appender import Appender, NotConfirmedError
from weir_reading.follower import Follower, Record

from weir_dashboard.change_quota import ChangeQuota, changes_in

TIMEOUT_S = 5.0


class Alerts:
    """All alerts of all tenants.

    Attributes:
        newer: What a newer release wrote.
        follower: Reads them.
        appender: Writes what people say; nothing else is written from here.
    """

    def __init__(self, kafka: Kafka, clock: Clock, quota: ChangeQuota) -> None:
        self._quota = quota
        self._listing = Listing()
        self.newer = self._listing.reader.newer
        self.follower = Follower(kafka, clock, names.ALERTS, self._take)
        self.appender = Appender(kafka, names.ALERTS, timeout_s=TIMEOUT_S)
        self._listeners: list[Callable[[list[Alert]], None]] = []

    @property
    def listing(self) -> Listing:
        """What the records say.

        Raises:
            NewerFormatError: If a newer release wrote some of them.
        """
        self.newer.check()
        return self._listing

    def listen(self, listener: Callable[[list[Alert]], None]) -> None:
        """Call `listener` with the alerts that changed, after each change."""
        self._listeners.append(listener)

    async def say(self, record: Acknowledgement | Trial) -> None:
        """Append a record and read it back. Said twice, it means the same.

        Raises:
            ProblemError: 429 `rate_limited` over the tenant's quota, 503 `log_unavailable` if the
                log did not confirm it in time.
        """
        value = encode(record)
        changes = changes_in([value])
        self._quota.check(record.tenant, changes, calms=isinstance(record, Acknowledgement))
        try:
            with self._quota.taken(record.tenant, changes):
                offset = await self.appender.append(record.tenant, value)
            async with asyncio.timeout(TIMEOUT_S):
                await self.follower.reach(offset)
        except (NotConfirmedError, TimeoutError):
            msg = "the log did not confirm it in time; look whether it stands, and try again"
            raise ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=2) from None

    async def answer(self, number: str, timeout_s: float) -> Delivery | None:
        """Return what came of a message; None if nothing did in time."""
        try:
            async with asyncio.timeout(timeout_s):
                while (found := self._listing.channels.answer(number)) is None:
                    await self.follower.reach(self.follower.next_offset)
        except TimeoutError:
            return None
        return found

    async def stop(self) -> None:
        """Stop reading and writing."""
        await self.follower.stop()
        await self.appender.close()

    def _take(self, records: list[Record]) -> None:
        changed: dict[str, Alert] = {}
        for record in records:
            changed |= {one.id: one for one in self._listing.apply(record.offset, record.value)}
        if changed:
            for listener in self._listeners:
                listener(list(changed.values()))
