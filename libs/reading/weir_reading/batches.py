"""Follows the stream of batch records: how far counting has come, and what changed.

Keeps the records of the last 15 minutes. While Redis is away nothing moves, which is
what `moved_s` and `reachable` say; when it is back, following goes on after the last
entry seen, or starts afresh where that entry is gone.

Where the state was lost, the log is counted again from its start with ordinary batches.
Until they are back where counting had been, a pane without rows says nothing: that is
`recount`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import names
from weir.batches import FIELD, KEPT_MS, BatchRecord, Opening, decode, parse_id
from weir.clock import Clock
from weir.query.facts import Span

from weir_reading.redis import newest_entries, read_streams

BLOCK_MS = 1_000
RETRY_S = 0.5
READ_COUNT = 200
# Before every pane.
EVER_MS = -(2**62)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Recount:
    """Everything is being counted again, since the state was lost.

    Attributes:
        to_ms: Processed-through at which all is as it was.
        from_ms: Where counting began again; None before the first batch.
        at_ms: How far it has come; None before the first batch.
    """

    to_ms: int
    from_ms: int | None = None
    at_ms: int | None = None

    @property
    def progress(self) -> float:
        """Return the share that is done, 0 to 1."""
        if self.from_ms is None or self.at_ms is None or self.from_ms >= self.to_ms:
            return 0.0
        return max(0.0, min(1.0, (self.at_ms - self.from_ms) / (self.to_ms - self.from_ms)))


class Batches:
    """The newest state of counting, as the batch records tell it.

    Attributes:
        epoch: The present life of the state; 0 before the first entry.
        rev: The newest revision.
        processed_through_ms: Received time up to which all events are counted; None if
            that is not known, as at the beginning of an epoch.
        recount: What is under way after a loss; None in the ordinary case.
        moved_s: Monotonic time at which processed-through last went on, or an epoch began.
        moved_ms: The same by the wall clock.
        counted_ms: When processed-through last went on, by the driver's clock: also for who
            came later, and not touched by a loss. None if nobody has said.
        reachable: Whether the last read of the stream was answered.
        heard_ms: When the last read was answered.
        records: What is kept, oldest first.
    """

    def __init__(self, redis: Redis, clock: Clock) -> None:
        self._redis = redis
        self._clock = clock
        self._last_id = "0-0"
        self._listeners: list[Callable[[BatchRecord], None]] = []
        self.epoch = 0
        self.rev = 0
        self.processed_through_ms: int | None = None
        self.recount: Recount | None = None
        self.moved_s = clock.monotonic_s()
        self.moved_ms = clock.now_ms()
        self.counted_ms: int | None = None
        self.reachable = False
        self.heard_ms = clock.now_ms()
        self.records: deque[BatchRecord] = deque()

    @property
    def newest(self) -> BatchRecord | None:
        """Return the newest record of the present epoch, or None."""
        return self.records[-1] if self.records else None

    @property
    def rebuilding(self) -> tuple[Span, ...]:
        """Return the panes of which nothing can be said while the log is counted again.

        All of them up to where counting was: old events may stand anywhere in the log.
        """
        return (Span(EVER_MS, self.recount.to_ms),) if self.recount is not None else ()

    def listen(self, listener: Callable[[BatchRecord], None]) -> None:
        """Call `listener` with each new record, in order."""
        self._listeners.append(listener)

    async def follow(self) -> None:
        """Follow the stream until cancelled."""
        while True:
            try:
                await self._read()
                self.reachable, self.heard_ms = True, self._clock.now_ms()
            except (RedisError, OSError) as error:
                if self.reachable:
                    log.warning("store_lost", error=type(error).__name__)
                self.reachable = False
                await asyncio.sleep(RETRY_S)

    async def _read(self) -> None:
        after = {names.BATCHES: self._last_id}
        found = await read_streams(self._redis, after, count=READ_COUNT, block_ms=BLOCK_MS)
        if not found:
            await self._check_rewound()
        for entry_id, fields in found.get(names.BATCHES, ()):
            self._last_id = entry_id.decode()
            self._take(fields[FIELD], parse_id(entry_id))

    async def _check_rewound(self) -> None:
        """Start afresh if the stream was lost: its entries may then be older than ours."""
        newest = await newest_entries(self._redis, names.BATCHES, 1)
        last = parse_id(newest[0][0]) if newest else (0, 0)
        if last < parse_id(self._last_id):
            self._last_id = "0-0"
            self._lose(self.processed_through_ms)

    def _take(self, text: bytes, place: tuple[int, int]) -> None:
        try:
            entry = decode(text)
        except ValueError as error:
            log.error("batch_record_unreadable", id=f"{place[0]}-{place[1]}", error=str(error))
            return
        if entry.epoch != self.epoch:
            self._open(entry)
        if isinstance(entry, Opening):
            return
        self.rev = entry.rev
        if entry.processed_through_ms > (self.processed_through_ms or 0):
            self._move(entry.processed_through_ms)
            self.counted_ms = entry.at_ms
        self.records.append(entry)
        while self.records[0].at_ms < entry.at_ms - KEPT_MS:
            self.records.popleft()
        for listener in self._listeners:
            listener(entry)

    def _move(self, through_ms: int | None) -> None:
        self.processed_through_ms = through_ms
        self.moved_s, self.moved_ms = self._clock.monotonic_s(), self._clock.now_ms()
        if self.recount is None or through_ms is None:
            return
        if through_ms >= self.recount.to_ms:
            self.recount = None
        else:
            begun_ms = self.recount.from_ms
            from_ms = through_ms if begun_ms is None else begun_ms
            self.recount = replace(self.recount, from_ms=from_ms, at_ms=through_ms)

    def _open(self, entry: Opening | BatchRecord) -> None:
        log.info("epoch", epoch=entry.epoch, before=self.epoch)
        self.epoch, self.rev = entry.epoch, 0
        self.records.clear()
        before_ms = self.processed_through_ms
        self._move(None)
        if isinstance(entry, Opening) and entry.reason == "lost":
            # Whoever was not there before the loss takes the instant of the loss itself.
            self._lose(before_ms or entry.at_ms)

    def _lose(self, through_ms: int | None) -> None:
        """Nothing is known any more, until counting is back at where it was."""
        to_ms = max(through_ms or 0, self.recount.to_ms if self.recount else 0)
        self.recount = Recount(to_ms) if to_ms else None
        self._move(None)
