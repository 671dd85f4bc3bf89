"""Panes and series names as Redis holds them, with a cache of decoded panes.

A pane is read once and kept until a batch record says that it changed. Where a record
may have been missed (another epoch, a hole in the revisions) everything is read again.
Values may be newer than the newest revision, never older: a pane that changes while it
is being read is not kept. Nor are they from another life of the state: what is read from
a store that was emptied, or put back, is refused (`StoreLostError`) until a batch record
tells how it goes on.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import names, rows
from weir.batches import BatchRecord
from weir.changed import ChangedPanes
from weir.commit import decode_mark
from weir.formats import Newer, NewerFormatError
from weir.query.facts import PaneKey, PaneRows
from weir.query.limits import check_bytes
from weir.series import OTHER, OTHER_ID

from weir_reading.batches import Batches
from weir_reading.redis import (
    hash_sizes,
    read_fields_then,
    read_hashes_then,
    read_many_fields_then,
    read_set,
    set_sizes,
)
from weir_reading.threads import in_thread

Rows = dict[bytes, rows.Row]
# By version and shard: the texts of series by short id.
Names = dict[tuple[int, int], Mapping[bytes, str]]
# Panes, and rows, asked for in one round trip, so that no reply blocks Redis for long or
# takes much memory: a row with a sketch may have ten thousand bytes.
ROUND_TRIP = 500
ROUND_ROWS = 5_000
# Names kept, over all versions; an id is never given twice, so one too many is only memory.
KEPT_NAMES = 500_000
# About what a row and a pane take in memory beside the packed bytes: objects and dicts.
ROW_BYTES = 350
PANE_BYTES = 300
# More rows than these are decoded on a thread: it takes about a microsecond each.
DECODED_AT_ONCE = 500


class StoreLostError(RedisError):
    """The store does not hold what the newest batch record says that it counted."""


class PaneId(NamedTuple):
    """Where one shard's part of a pane stands."""

    vid: int
    res_s: int
    start_s: int
    shard: int


class _Kept(NamedTuple):
    """A decoded pane, and about how many bytes it takes."""

    rows: Rows
    cost: int


@dataclass(eq=False)
class _Reading:
    """Panes that are being read.

    Attributes:
        current: Those of them that no batch has changed meanwhile.
    """

    current: set[PaneId]


class Panes:
    """Reads panes and names; keeps what it read.

    Attributes:
        bytes_kept: About how much memory the kept panes take.
        newer: What a newer release wrote there, when it was read last.
    """

    def __init__(
        self, redis: Redis, batches: Batches, *, cache_bytes: int, query_bytes: int
    ) -> None:
        """Begin with nothing kept.

        Args:
            redis: The store.
            batches: How far counting has come, by the same store.
            cache_bytes: Most memory for panes that are kept.
            query_bytes: Most memory for the panes of one call.
        """
        self._redis, self._batches = redis, batches
        self._cache_bytes, self._query_bytes = cache_bytes, query_bytes
        self.bytes_kept = 0
        self.newer = Newer()
        self._panes: OrderedDict[PaneId, _Kept] = OrderedDict()
        self._names: dict[tuple[int, int], dict[bytes, str]] = {}
        self._readings: set[_Reading] = set()
        self._place = (0, 0)

    def on_batch(self, record: BatchRecord) -> None:
        """Forget the panes that a batch changed, or may have changed."""
        if (record.epoch, record.rev) != (self._place[0], self._place[1] + 1):
            self.clear()
        self._place = (record.epoch, record.rev)
        changed = [PaneId(*pane) for pane in record.changed]
        for pane in changed:
            self._drop(pane)
        for reading in self._readings:
            reading.current.difference_update(changed)
        if record.spans:
            self._forget_spans(ChangedPanes(spans=record.spans), record.shards)

    def clear(self) -> None:
        """Forget everything."""
        self._panes.clear()
        self._names.clear()
        self.bytes_kept = 0
        for reading in self._readings:
            reading.current.clear()

    def _forget_spans(self, changed: ChangedPanes, shards: int) -> None:
        for reading in self._readings:
            reading.current -= {pane for pane in reading.current if pane in changed}
        keys = [*changed.listed]
        for span in changed.spans.values():
            if len(span.starts()) * shards < len(self._panes):
                keys.extend(span.panes())
            else:
                for pane in [one for one in self._panes if span.holds(one)]:
                    self._drop(pane)
        for key in keys:
            for shard in range(shards):
                self._drop(PaneId(*key, shard))

    async def read(
        self, wanted: Iterable[PaneId], pool: Executor | None = None
    ) -> dict[PaneId, Rows]:
        """Return the rows of panes by short series id; a pane without rows is empty.

        Args:
            wanted: Which panes.
            pool: Whose threads decode them; None for those that everything shares.

        Raises:
            ProblemError: 422 `query_too_large`, before more than `query_bytes` are held.
            NewerFormatError: If a newer release counts, or wrote what is read.
            StoreLostError: If the store was lost since the newest batch record.
        """
        self._batches.newer.check()
        found: dict[PaneId, Rows] = {}
        missing: list[PaneId] = []
        held = 0
        for pane in wanted:
            kept = self._panes.get(pane)
            if kept is None:
                missing.append(pane)
            else:
                self._panes.move_to_end(pane)
                found[pane] = kept.rows
                held += kept.cost
        check_bytes(held, self._query_bytes)
        for panes, size in await self._rounds(missing, held):
            read, cost = await self._read(panes, pool, many=size > DECODED_AT_ONCE)
            held += cost
            check_bytes(held, self._query_bytes)
            found.update(read)
        return found

    async def together(
        self, keys: Collection[PaneKey], shards: int, epoch: int, pool: Executor | None = None
    ) -> dict[PaneKey, PaneRows | None]:
        """Return panes with their shards together, rows by series text; None if empty.

        Args:
            keys: Which panes.
            shards: Over how many shards series are spread.
            epoch: The life of the state that the caller asks about.
            pool: Whose threads decode them; None for those that everything shares.

        Raises:
            ProblemError: 422 `query_too_large`, before more than `query_bytes` are held.
            StoreLostError: If the store was lost since the newest batch record, or the state
                began anew since the caller looked at it.
        """
        wanted = (PaneId(*key, at) for key in keys for at in range(shards))
        parts, texts = await self.named(wanted, pool)
        if self._batches.epoch != epoch:
            msg = f"epoch {epoch} must be the present one, {self._batches.epoch} has begun"
            raise StoreLostError(msg)
        found: dict[PaneKey, PaneRows | None] = dict.fromkeys(keys)
        few = is_few(parts)
        found.update(_joined(parts, texts) if few else await in_thread(pool, _joined, parts, texts))
        return found

    async def named(
        self, wanted: Iterable[PaneId], pool: Executor | None = None
    ) -> tuple[dict[PaneId, Rows], Names]:
        """Return the panes that have rows, and by version and shard the texts of their series.

        Raises:
            As `read`.
        """
        parts = {pane: rows for pane, rows in (await self.read(wanted, pool)).items() if rows}
        ids = _ids_of(parts) if is_few(parts) else await in_thread(pool, _ids_of, parts)
        return parts, {place: await self.names(*place, known) for place, known in ids.items()}

    async def listed_sizes(self, vid: int, shards: int, owner: str) -> list[int]:
        """Return by shard how many series of an owner a version lists."""
        keys = [names.listed_key(shard, vid, owner) for shard in range(shards)]
        return await set_sizes(self._redis, keys)

    async def counted_of(
        self, owner: str, wanted: Collection[PaneId], pool: Executor | None = None
    ) -> dict[tuple[int, int], Counter[bytes]]:
        """Return how many events each series of an owner has in some panes together.

        Of versions that list series by owner alone. It reads an owner's own rows, whatever
        stands beside them, and keeps none of them.

        Args:
            owner: Whose series.
            wanted: The panes.
            pool: Whose threads decode rows; None for those that everything shares.

        Returns:
            By version and shard, then by short id.

        Raises:
            NewerFormatError: If a newer release counts, or wrote what is read.
            StoreLostError: If the store was lost since the newest batch record.
        """
        self._batches.newer.check()
        found: dict[tuple[int, int], Counter[bytes]] = {}
        for vid, shard in sorted({(pane.vid, pane.shard) for pane in wanted}):
            key = names.listed_key(shard, vid, owner)
            ids = sorted(await read_set(self._redis, key, count=ROUND_ROWS))
            keys = [_key(pane) for pane in wanted if (pane.vid, pane.shard) == (vid, shard)]
            counts = found[vid, shard] = Counter()
            for some in _fields_in_rounds(keys, ids):
                newest = self._batches.newest
                mark = names.mark_key(shard)
                stored, marks = await read_many_fields_then(self._redis, some, [mark])
                self._check(newest, [shard], marks)
                if sum(len(fields) for _, fields in some) <= DECODED_AT_ONCE:
                    counts.update(_counted(some, stored))
                else:
                    counts.update(await in_thread(pool, _counted, some, stored))
        return found

    async def names(self, vid: int, shard: int, wanted: Iterable[bytes]) -> dict[bytes, str]:
        """Return the series texts of short ids of a version in a shard; one without is left out.

        Raises:
            StoreLostError: If the store was lost since the newest batch record.
        """
        if sum(map(len, self._names.values())) > KEPT_NAMES:
            self._names.clear()
        # Should all be forgotten while this waits, it fills what nobody else looks at.
        kept = self._names.setdefault((vid, shard), {})
        # What is kept grows whenever anybody asks; what is returned does not, so a thread may go
        # through it, and it has no names of others.
        found: dict[bytes, str] = {}
        missing: list[bytes] = []
        for short in wanted:
            text = kept.get(short)
            if text is not None:
                found[short] = text
            elif short != OTHER_ID:
                missing.append(short)
        for at in range(0, len(missing), ROUND_ROWS):
            some, newest = missing[at : at + ROUND_ROWS], self._batches.newest
            key, mark = names.names_key(shard, vid), names.mark_key(shard)
            texts, marks = await read_fields_then(self._redis, key, some, [mark])
            self._check(newest, [shard], marks)
            read = zip(some, texts, strict=True)
            new = {short: text.decode() for short, text in read if text is not None}
            kept.update(new)
            found.update(new)
        return found

    async def all_names(self, vid: int, shard: int) -> list[str]:
        """Return the series texts of a version in a shard: of all that some kept pane holds.

        Raises:
            StoreLostError: If the store was lost since the newest batch record.
        """
        (stored,) = await self._hashes([names.names_key(shard, vid)], [shard])
        return [text.decode() for text in stored.values()]

    async def _rounds(self, panes: list[PaneId], held: int) -> list[tuple[list[PaneId], int]]:
        """Return panes in rounds that no reply of makes large, each with its rows."""
        rounds: list[tuple[list[PaneId], int]] = []
        rows = 0
        for at in range(0, len(panes), ROUND_TRIP):
            some = panes[at : at + ROUND_TRIP]
            for pane, size in zip(
                some, await hash_sizes(self._redis, list(map(_key, some))), strict=True
            ):
                rows += size
                full = not rounds or len(rounds[-1][0]) == ROUND_TRIP
                if full or rounds[-1][1] + size > ROUND_ROWS:
                    rounds.append(([], 0))
                rounds[-1][0].append(pane)
                rounds[-1] = (rounds[-1][0], rounds[-1][1] + size)
            check_bytes(held + rows * ROW_BYTES, self._query_bytes)
        return rounds

    async def _read(
        self, panes: list[PaneId], pool: Executor | None, *, many: bool
    ) -> tuple[dict[PaneId, Rows], int]:
        reading = _Reading(set(panes))
        self._readings.add(reading)
        try:
            stored = await self._hashes(list(map(_key, panes)), sorted({p.shard for p in panes}))
            decoded = await in_thread(pool, _decoded, stored) if many else _decoded(stored)
        finally:
            self._readings.remove(reading)
        for pane, kept in zip(panes, decoded, strict=True):
            if pane in reading.current:
                self._keep(pane, kept)
        found = {pane: kept.rows for pane, kept in zip(panes, decoded, strict=True)}
        return found, sum(kept.cost for kept in decoded)

    async def _hashes(self, keys: list[str], shards: list[int]) -> list[dict[bytes, bytes]]:
        """Return hashes of some shards that have counted all of the newest batch record.

        Marks are read after the hashes: what was lost before them shows. Before the first
        record of an epoch there is nothing to hold them against: who asks knows that much.
        """
        newest = self._batches.newest
        places = [names.mark_key(shard) for shard in shards]
        stored, marks = await read_hashes_then(self._redis, keys, places)
        self._check(newest, shards, marks)
        return stored

    def _check(
        self, newest: BatchRecord | None, shards: list[int], marks: list[bytes | None]
    ) -> None:
        """Hold marks against the record that was the newest before they were read."""
        self.newer.why = None
        for shard, mark in zip(shards, marks, strict=True):
            if newest is not None and not self._has_counted(mark, newest):
                msg = f"shard {shard} must hold batch {newest.epoch}-{newest.rev}, it was lost"
                raise StoreLostError(msg)

    def _has_counted(self, mark: bytes | None, record: BatchRecord) -> bool:
        try:
            return has_counted(mark, record)
        except NewerFormatError as error:
            self.newer.meet(error.message)
            raise

    def _keep(self, pane: PaneId, kept: _Kept) -> None:
        self._drop(pane)
        self._panes[pane] = kept
        self.bytes_kept += kept.cost
        while self.bytes_kept > self._cache_bytes:
            _, oldest = self._panes.popitem(last=False)
            self.bytes_kept -= oldest.cost

    def _drop(self, pane: PaneId) -> None:
        dropped = self._panes.pop(pane, None)
        if dropped is not None:
            self.bytes_kept -= dropped.cost


def has_counted(mark: bytes | None, record: BatchRecord) -> bool:
    """Tell whether a shard whose live mark is this holds what a record tells of.

    Its epoch says nothing: a shard that was counted again up to there holds it too.

    Raises:
        NewerFormatError: If a newer release wrote the mark.
    """
    if mark is None:
        return False
    ends = decode_mark(mark).end
    return all(ends.get(p, 0) >= end for p, end in record.to_offsets.items())


def is_few(parts: Mapping[PaneId, Rows]) -> bool:
    """Tell whether panes have so few rows that the loop may go through them."""
    return sum(map(len, parts.values())) <= DECODED_AT_ONCE


def _fields_in_rounds(
    keys: Sequence[str], fields: Sequence[bytes]
) -> Iterator[list[tuple[str, list[bytes]]]]:
    """Yield fields of hashes in rounds that no reply of makes large."""
    parts = [list(fields[at : at + ROUND_ROWS]) for at in range(0, len(fields), ROUND_ROWS)]
    at_once = max(1, min(ROUND_TRIP, ROUND_ROWS // max(1, len(fields))))
    for part in parts:
        for at in range(0, len(keys), at_once):
            yield [(key, part) for key in keys[at : at + at_once]]


def _counted(
    wanted: list[tuple[str, list[bytes]]], stored: list[list[bytes | None]]
) -> Counter[bytes]:
    """Return how many events each field counts, in all hashes together."""
    found: Counter[bytes] = Counter()
    for (_, fields), packed in zip(wanted, stored, strict=True):
        for short, row in zip(fields, packed, strict=True):
            if row is not None:
                found[short] += rows.decode(row).n
    return found


def _key(pane: PaneId) -> str:
    return names.pane_key(pane.shard, pane.vid, pane.res_s, pane.start_s)


def _decoded(stored: list[dict[bytes, bytes]]) -> list[_Kept]:
    found = []
    for pane in stored:
        cost = PANE_BYTES + ROW_BYTES * len(pane) + sum(map(len, pane.values()))
        found.append(_Kept({short: rows.decode(packed) for short, packed in pane.items()}, cost))
    return found


def _ids_of(parts: Mapping[PaneId, Rows]) -> dict[tuple[int, int], set[bytes]]:
    """Return the short ids of each version and shard."""
    found: dict[tuple[int, int], set[bytes]] = {}
    for pane, stored in parts.items():
        found.setdefault((pane.vid, pane.shard), set()).update(stored)
    return found


def _joined(
    parts: Mapping[PaneId, Rows], texts: Mapping[tuple[int, int], Mapping[bytes, str]]
) -> dict[PaneKey, PaneRows]:
    """Join the shards of panes. Each shard has a row `other` of its own."""
    found: dict[PaneKey, dict[str, rows.Row]] = {}
    for pane, stored in parts.items():
        known = texts[pane.vid, pane.shard]
        joined = found.setdefault((pane.vid, pane.res_s, pane.start_s), {})
        for short, row in stored.items():
            # A row whose name is gone still counts in the total.
            text = known.get(short, OTHER)
            joined[text] = rows.merge(joined[text], row) if text in joined else row
    return dict(found)
