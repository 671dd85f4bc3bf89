"""The newest corrections of every metric, kept up from `weir.corrections`.

The topic is followed from some way before its end, and then read backwards from there in the
background, to its start or so many records: what one tenant's late events wrote last hides
nobody else's, also after a restart. What is kept is bounded; `corrections_kept` says how.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog
from weir import names
from weir.clock import Clock
from weir.corrections import CorrectionRecord, decode
from weir.formats import Newer, NewerFormatError
from weir.kafka import Kafka
from weir_reading.follower import Follower, Record

from weir_dashboard.store.backwards import Backwards
from weir_dashboard.store.corrections_kept import Kept, KeptCorrections

FOLLOWED_FROM = 50_000
MOST_READ_BACK = 10_000_000
# What one batch changed is sent at once and may be read in several parts.
WHOLE_AFTER_S = 0.5

log = structlog.get_logger()


class Corrections:
    """Corrections by tenant and metric, the newest of each.

    Attributes:
        follower: Reads them as they are published.
        newer: What a newer release wrote.
    """

    def __init__(self, kafka: Kafka, clock: Clock) -> None:
        self.follower = Follower(kafka, clock, names.CORRECTIONS, self.take, newest=FOLLOWED_FROM)
        self.newer = Newer()
        self._backwards = Backwards(kafka, clock, names.CORRECTIONS)
        self._kept = KeptCorrections()
        self._listeners: list[Callable[[set[str]], None]] = []
        self._clock = clock
        self._batch: tuple[int, int] | None = None
        self._before_batch, self._came_s = -1, -WHOLE_AFTER_S

    @property
    def seq(self) -> int:
        """The offset of the newest record; -1 before the first."""
        return self.follower.next_offset - 1

    @property
    def whole_seq(self) -> int:
        """The offset up to which all that each batch changed is there.

        Of the newest batch that is taken to be so once nothing has come for a while: that a pane
        of ten seconds says what one of a minute says again is seen of both together.
        """
        is_whole = self._clock.monotonic_s() - self._came_s >= WHOLE_AFTER_S
        return self.seq if is_whole else self._before_batch

    def listen(self, listener: Callable[[set[str]], None]) -> None:
        """Call `listener` with the tenants that have new ones, after each reading."""
        self._listeners.append(listener)

    def newest(self, tenant: str, metric: str | None = None, *, after: int = -1) -> list[Kept]:
        """Return a tenant's corrections, the newest first; what shards did to `*` as one.

        Args:
            tenant: Whose.
            metric: Only of this one.
            after: Only those beyond this offset.
        """
        return self._kept.newest(tenant, metric, after=after)

    def stand(self, tenant: str, metric: str) -> int:
        """Return a number that changes with what is kept of a metric; 0 if nothing ever was."""
        return self._kept.stand(tenant, metric)

    def of_metric(self, tenant: str, metric: str) -> Sequence[CorrectionRecord]:
        """Return what `newest` does of one metric, made once: every answer of it asks."""
        return self._kept.of_metric(tenant, metric)

    def take(self, records: list[Record]) -> None:
        """Take the next records of the topic; of copies the first is kept."""
        found = self._decoded(records)
        for one in found:
            batch = (one.record.epoch, one.record.batch)
            if batch != self._batch:
                self._batch, self._before_batch = batch, one.seq - 1
        if found:
            self._came_s = self._clock.monotonic_s()
        tenants = {one.record.tenant for one in found if self._kept.add(one)}
        for listener in self._listeners if tenants else ():
            listener(tenants)

    async def read_back(self) -> None:
        """Read what stands before where the follower began; nobody is told, they are not new."""
        await self.follower.caught_up.wait()
        if (before := self.follower.first_offset) is None:
            return
        read = 0
        async for records in self._backwards.chunks(before):
            read += len(records)
            kept = await asyncio.to_thread(self._decoded, records)
            for one in reversed(kept):
                self._kept.add_older(one)
            if read >= MOST_READ_BACK:
                log.warning("corrections_not_all_read", records=read)
                return
        log.info("corrections_read_back", records=read, kept=len(self._kept))

    def _decoded(self, records: list[Record]) -> list[Kept]:
        """Return those that can be read, and note the others."""
        found: list[Kept] = []
        for record in records:
            try:
                found.append(Kept(record.offset, decode(record.value)))
            except NewerFormatError as error:
                self.newer.meet(error.message)
            except ValueError as error:
                log.error("correction_unreadable", offset=record.offset, error=str(error))
        return found
