"""Writes panes and batch records as the engine does (docs/interfaces.md, section 5).

One shard. A commit is one transaction for the panes, then its record.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from redis import Redis
from weir import names
from weir import rows as codec
from weir.batches import FIELD, BatchRecord, LedgerRow, Opening, encode, entry_id
from weir.changed import PaneSpan
from weir.commit import Mark
from weir.rows import Row
from weir.series import OTHER, first_value, series_digest
from weir_reading.accounts import LATENESS_VID, TYPE_LATENESS_VID

PaneKey = tuple[int, int, int]


class Writer:
    """One life of the state."""

    def __init__(
        self, redis: Redis, epoch: int, reason: str = "start", at_ms: int | None = None
    ) -> None:
        """Begin an epoch; its number is greater than that of any before.

        Args:
            redis: Where.
            epoch: Its number.
            reason: Why it begins.
            at_ms: When, by the driver's clock; None for now.
        """
        self._redis: Any = redis
        self.epoch, self.rev, self.end = epoch, 0, 0
        at_ms = int(time.time() * 1000) if at_ms is None else at_ms
        opening = Opening(epoch=epoch, reason=reason, at_ms=at_ms)
        self._redis.xadd(names.BATCHES, {FIELD: encode(opening)}, id=entry_id(epoch, 0))

    def commit(
        self,
        panes: Mapping[PaneKey, Mapping[str, Row]],
        through_ms: int,
        ledger: Sequence[LedgerRow] = (),
        *,
        told: bool = True,
        spans: bool = False,
    ) -> BatchRecord:
        """Store panes as they are from now on, and append the record of the batch.

        The log gives it the events of the ledger, and one tick. What is not `told` has no
        record in the stream, as for a reader that was away for longer than it is kept. With
        `spans` it says of which minutes about the panes may have changed, and lists none.
        """
        events = sum(n for row in ledger for n in (row.counted, row.duplicate, row.quarantined))
        pipeline = self._redis.pipeline(transaction=True)
        pipeline.set(names.mark_key(0), mark(self.epoch, self.rev, {0: self.end + events + 1}))
        for (vid, res_s, start_s), rows in panes.items():
            key = names.pane_key(0, vid, res_s, start_s)
            pipeline.delete(key)
            for text, row in rows.items():
                pipeline.hset(key, short_id(self._redis, vid, text), codec.encode(row))
        pipeline.execute()
        self.rev += 1
        record = BatchRecord(
            epoch=self.epoch,
            batch=self.rev - 1,
            rev=self.rev,
            shards=1,
            from_offsets={0: self.end},
            to_offsets={0: self.end + events + 1},
            ticks=1,
            ledger=list(ledger),
            processed_through_ms=through_ms,
            at_ms=int(time.time() * 1000),
            changed=[] if spans else [(*key, 0) for key in panes],
            spans=[PaneSpan(v, res, at - 10 * res, at) for v, res, at in panes] if spans else [],
        )
        place = entry_id(self.epoch, self.rev)
        if told:
            self._redis.xadd(names.BATCHES, {FIELD: encode(record)}, id=place)
        self.end += events + 1
        return record


def mark(epoch: int, batch: int, end: Mapping[int, int]) -> bytes:
    """Return how far a shard has counted, as the engine stores it with what it counted."""
    at = Mark(epoch=epoch, batch=batch, topic_id="t", end=dict(end), shards=1)
    return msgspec.json.encode(at)


def short_id(redis: Any, vid: int, text: str) -> bytes:
    """Return the short id of a series in the panes of a version; a new one is given out."""
    if text == OTHER:
        redis.hset(names.names_key(0, vid), b"\0\0", text)
        return b"\0\0"
    ids = names.ids_key(0, vid)
    known = redis.hget(ids, series_digest(text))
    if known is not None:
        return bytes(known)
    short: bytes = (redis.hlen(ids) + 1).to_bytes(2, "big")
    redis.hset(ids, series_digest(text), short)
    redis.hset(names.names_key(0, vid), short, text)
    if vid in (LATENESS_VID, TYPE_LATENESS_VID):
        redis.sadd(names.listed_key(0, vid, first_value(text)), short)
    return short
