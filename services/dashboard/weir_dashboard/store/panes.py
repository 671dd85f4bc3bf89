"""Panes and series names as Redis holds them, with a cache of decoded panes.

A pane is read once and kept until a batch record says that it changed. Where a record
may have been missed (another epoch, a hole in the revisions) everything is read again.
Values may be newer than the newest revision, never older: a pane that changes while it
is being read is not kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from redis.asyncio import Redis
from weir import names, rows
from weir.batches import BatchRecord
from weir.query.facts import PaneKey, PaneRows
from weir.series import OTHER

from weir_dashboard.store.redis import read_hashes

Rows = dict[bytes, rows.Row]
# Batches for which a change is remembered, longer than any read of panes lasts.
REMEMBERED_BATCHES = 400
# Panes asked for in one round trip, so that no reply blocks Redis for long.
ROUND_TRIP = 500


class PaneId(NamedTuple):
    """Where one shard's part of a pane stands."""

    vid: int
    res_s: int
    start_s: int
    shard: int


class Panes:
    """Reads panes and names; keeps what it read."""

    def __init__(self, redis: Redis, max_rows: int) -> None:
        self._redis = redis
        self._max_rows = max_rows
        self._rows_kept = 0
        self._panes: OrderedDict[PaneId, Rows] = OrderedDict()
        self._names: dict[tuple[int, int], dict[bytes, str]] = {}
        self._changed: dict[PaneId, int] = {}
        self._batches_seen = self._cleared_at = 0
        self._place = (0, 0)

    def on_batch(self, record: BatchRecord) -> None:
        """Forget the panes that a batch changed."""
        self._batches_seen += 1
        if (record.epoch, record.rev) != (self._place[0], self._place[1] + 1):
            self.clear()
        self._place = (record.epoch, record.rev)
        for changed in record.changed:
            pane = PaneId(*changed)
            self._changed[pane] = self._batches_seen
            self._drop(pane)
        if len(self._changed) > ROUND_TRIP * REMEMBERED_BATCHES:
            oldest = self._batches_seen - REMEMBERED_BATCHES
            self._changed = {p: at for p, at in self._changed.items() if at > oldest}

    def clear(self) -> None:
        """Forget everything."""
        self._panes.clear()
        self._names.clear()
        self._rows_kept = 0
        self._batches_seen += 1
        self._cleared_at = self._batches_seen

    async def read(self, wanted: Iterable[PaneId]) -> dict[PaneId, Rows]:
        """Return the rows of panes by short series id; a pane without rows is empty."""
        found: dict[PaneId, Rows] = {}
        missing: list[PaneId] = []
        for pane in wanted:
            kept = self._panes.get(pane)
            if kept is None:
                missing.append(pane)
            else:
                self._panes.move_to_end(pane)
                found[pane] = kept
        for at in range(0, len(missing), ROUND_TRIP):
            found.update(await self._read(missing[at : at + ROUND_TRIP]))
        return found

    async def together(
        self, keys: Collection[PaneKey], shards: int
    ) -> dict[PaneKey, PaneRows | None]:
        """Return panes with their shards together, rows by series text; None if empty."""
        wanted = [PaneId(*key, shard) for key in keys for shard in range(shards)]
        found: dict[PaneKey, PaneRows | None] = dict.fromkeys(keys)
        for pane, stored in (await self.read(wanted)).items():
            if stored:
                texts = await self.names(pane.vid, pane.shard, stored)
                key = (pane.vid, pane.res_s, pane.start_s)
                found[key] = _joined(found[key], texts, stored)
        return found

    async def names(
        self, vid: int, shard: int, known: Iterable[bytes] = (), *, fresh: bool = False
    ) -> dict[bytes, str]:
        """Return the series texts of a version in a shard by short id.

        Read again where an id of `known` has no name yet, or with `fresh`.
        """
        kept = self._names.get((vid, shard))
        if not fresh and kept is not None and all(short in kept for short in known):
            return kept
        (stored,) = await read_hashes(self._redis, [names.names_key(shard, vid)])
        texts = {short: text.decode() for short, text in stored.items()}
        self._names[(vid, shard)] = texts
        return texts

    async def _read(self, panes: list[PaneId]) -> dict[PaneId, Rows]:
        begun = self._batches_seen
        keys = [names.pane_key(p.shard, p.vid, p.res_s, p.start_s) for p in panes]
        found = {}
        for pane, stored in zip(panes, await read_hashes(self._redis, keys), strict=True):
            decoded = {short: rows.decode(packed) for short, packed in stored.items()}
            found[pane] = decoded
            if self._changed.get(pane, 0) <= begun and self._cleared_at <= begun:
                self._keep(pane, decoded)
        return found

    def _keep(self, pane: PaneId, decoded: Rows) -> None:
        self._drop(pane)
        self._panes[pane] = decoded
        # An empty pane costs about as much as a row.
        self._rows_kept += len(decoded) + 1
        while self._rows_kept > self._max_rows:
            _, oldest = self._panes.popitem(last=False)
            self._rows_kept -= len(oldest) + 1

    def _drop(self, pane: PaneId) -> None:
        dropped = self._panes.pop(pane, None)
        if dropped is not None:
            self._rows_kept -= len(dropped) + 1


def _joined(known: PaneRows | None, texts: dict[bytes, str], stored: Rows) -> dict[str, rows.Row]:
    """Add one shard's rows to a pane. Each shard has a row `other` of its own."""
    joined = dict(known or {})
    for short, row in stored.items():
        # A row whose name is gone still counts in the total.
        text = texts.get(short, OTHER)
        joined[text] = rows.merge(joined[text], row) if text in joined else row
    return joined
