"""Follows the stream of batch records: how far counting has come, and what changed.

Keeps the records of the last 15 minutes, without what only listeners take: which panes
changed, and fates of sampled events, would fill the memory of a process in that time.
While Redis is away nothing moves, which is what `moved_s` and `reachable` say; when it is
back, following goes on after the last entry seen, or starts afresh where that entry is gone.

Where the state was lost, live counting goes on at once, and lanes count again what lies
before. Until they are done, a pane without rows says nothing: that is `recount`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import names
from weir.batches import FIELD, KEPT_MS, BatchRecord, LaneProgress, Opening, decode, parse_id
from weir.clock import Clock
from weir.event_time import LEAD_LIMIT_MS
from weir.formats import Newer, NewerFormatError
from weir.query.facts import Span

from weir_reading.redis import newest_entries, read_streams

BLOCK_MS = 1_000
RETRY_S = 0.5
READ_COUNT = 200
# Members of a record that are let go of once it was told: there may be many of them.
ONLY_TOLD: Mapping[str, list[Any]] = {"changed": [], "spans": [], "fates": []}
# Before every pane.
EVER_MS = -(2**62)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Recount:
    """What was lost is being counted again.

    Attributes:
        to_ms: Received time before which everything is.
        progress: The share that is done, 0 to 1.
    """

    to_ms: int
    progress: float = 0.0


class Batches:
    """The newest state of counting, as the batch records tell it.

    Attributes:
        epoch: The present life of the state; 0 before the first entry.
        rev: The newest revision.
        processed_through_ms: Received time up to which all events are counted; None if
            that is not known, as at the beginning of an epoch.
        moved_s: Monotonic time at which processed-through last went on, or an epoch began.
        moved_ms: The same by the wall clock.
        counted_ms: When processed-through last went on, by the driver's clock: also for who
            came later, and not touched by a loss. None if nobody has said.
        reachable: Whether the last read of the stream was answered.
        heard_ms: When the last read was answered.
        records: What is kept, oldest first, each without `ONLY_TOLD`; the newest with its lanes.
        newer: What a newer release wrote since the last record: nothing moves then.
    """

    def __init__(self, redis: Redis, clock: Clock) -> None:
        self._redis = redis
        self._clock = clock
        self._last_id = "0-0"
        self._listeners: list[Callable[[BatchRecord], None]] = []
        self.epoch = 0
        self.rev = 0
        self.processed_through_ms: int | None = None
        self._lost_ms: int | None = None
        self._furthest = (0, 0)
        self.moved_s = clock.monotonic_s()
        self.moved_ms = clock.now_ms()
        self.counted_ms: int | None = None
        self.reachable = False
        self.heard_ms = clock.now_ms()
        self.records: deque[BatchRecord] = deque()
        self.newer = Newer()

    @property
    def newest(self) -> BatchRecord | None:
        """Return the newest record of the present epoch, or None."""
        return self.records[-1] if self.records else None

    @property
    def is_emptied(self) -> bool:
        """Return whether Redis answers and holds no record of what was ever counted.

        For ever as long as no driver is there: the next one counts all of the log again. It
        looks at no record, so that any thread may ask.
        """
        return self.reachable and not self.records and (not self.epoch or self._lost_ms is not None)

    @property
    def recount(self) -> Recount | None:
        """Return what is under way after a loss; None in the ordinary case.

        Between the loss and the first record after it nobody knows more than that, also where
        Redis came back with older records: counts would go back with them.
        """
        if self._lost_ms is not None:
            return Recount(self._lost_ms)
        lanes = [lane for lane in self._lanes() if lane.kind == "rebuild"]
        if not lanes:
            return None
        of = sum(lane.of for lane in lanes)
        share = sum(lane.at for lane in lanes) / of if of else 0.0
        return Recount(max(lane.until_ms for lane in lanes), share)

    @property
    def rebuilding(self) -> tuple[Span, ...]:
        """Return the panes of which nothing can be said while the log is counted again.

        All of them up to where counting was: late events may stand anywhere in the log.
        """
        recount = self.recount
        return (Span(EVER_MS, recount.to_ms),) if recount is not None else ()

    @property
    def incomplete_before_ms(self) -> int:
        """Return before which start panes may lack events that are not counted again yet.

        An event may be stored before the time that its client's clock gave it.
        """
        recount = self.recount
        return recount.to_ms + LEAD_LIMIT_MS if recount is not None else 0

    def _lanes(self) -> list[LaneProgress]:
        return self.records[-1].lanes if self.records else []

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
            self.newer.why = None
            self._lose(self.processed_through_ms)

    def _take(self, text: bytes, place: tuple[int, int]) -> None:
        try:
            entry = decode(text)
        except ValueError as error:
            self._refuse(error, place)
            return
        self.newer.why = None
        if entry.epoch != self.epoch:
            self._open(entry)
        if isinstance(entry, Opening):
            return
        self.rev = entry.rev
        if entry.processed_through_ms > (self.processed_through_ms or 0):
            self._move(entry.processed_through_ms)
            self.counted_ms = entry.at_ms
        if place > self._furthest:
            # One that was seen before the loss says where counting was, not where it is.
            self._lost_ms, self._furthest = None, place
        if self.records:
            # Lanes are as they were told last, and there is one for each version that is filled.
            self.records[-1] = msgspec.structs.replace(self.records[-1], lanes=[])
        self.records.append(msgspec.structs.replace(entry, **ONLY_TOLD))
        while self.records[0].at_ms < entry.at_ms - KEPT_MS:
            self.records.popleft()
        for listener in self._listeners:
            listener(entry)

    def _refuse(self, error: ValueError, place: tuple[int, int]) -> None:
        """Tell of an entry that cannot be read; of those of a newer release, of the first."""
        newer = isinstance(error, NewerFormatError)
        if not newer or self.newer.why is None:
            log.error("batch_record_unreadable", id=f"{place[0]}-{place[1]}", error=str(error))
        if newer:
            self.newer.meet(str(error))

    def _move(self, through_ms: int | None) -> None:
        self.processed_through_ms = through_ms
        self.moved_s, self.moved_ms = self._clock.monotonic_s(), self._clock.now_ms()

    def _open(self, entry: Opening | BatchRecord) -> None:
        log.info("epoch", epoch=entry.epoch, before=self.epoch)
        self.epoch, self.rev = entry.epoch, 0
        if isinstance(entry, Opening) and (entry.reason == "lost" or self.recount is not None):
            # Whoever was not there before the loss takes the instant of the loss itself.
            self._lose(self.processed_through_ms or entry.at_ms)
        self.records.clear()
        self._move(None)

    def _lose(self, through_ms: int | None) -> None:
        """Nothing is known any more, until the first record after the loss says what is."""
        recount = self.recount
        to_ms = max(through_ms or 0, recount.to_ms if recount is not None else 0)
        self.records.clear()
        self._lost_ms = to_ms or None
        self._move(None)
