"""What is served of a metric's sampled panes, each at one revision, read while nothing commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weir import names, rows
from weir.batches import FIELD, BatchRecord, decode
from weir.commit import same_offsets
from weir.series import OTHER, OTHER_ID, first_value

from weir_analytics.jobs.compare import Served
from weir_analytics.jobs.sample import Audited, PaneAt
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.shard_wire import open_client
from weir_analytics.settings import Settings

TIMEOUT_S: Final = 5.0
# What audits hold at most; further panes are left out, and that is told. Of one metric:
MAX_ROWS: Final = 2_000
# Of all that are under way (`turns.SHARES`), each with all its metrics: each of these may take
# as much of what is left to the audit as any other.
MAX_EVENTS: Final = 500_000
MAX_BYTES: Final = 64 * 1024 * 1024
# Series of an owner whose rows are looked for in each pane; of one with more none is read.
MOST_OWN: Final = 20_000
# Names that are looked through at once for those of an owner.
NAMES_AT_ONCE: Final = 1_000
# Each pane's size is asked for in each shard; a slice that ends may have asked for so many.
SIZES_AT_ONCE: Final = 50


Stored = tuple[Mapping[bytes, bytes], Mapping[bytes, str]]
"""Of one shard, packed rows by id, and the text of each id that has a name."""


@dataclass
class OwnSeries:
    """Which series of a version are an owner's, looked up among everybody's part by part.

    The owner's rows of a pane can be read alone then, however many others have. Names are never
    changed, so this holds of what was counted before the first part was looked through.

    Attributes:
        owner: The first value of the series.
        ids: By shard, the id of each with its text; the last shard's may lack some.
        is_whole: Whether all were looked through.
        cursor: Where looking through the last shard goes on.
    """

    owner: str
    ids: list[dict[bytes, str]] = field(default_factory=lambda: [{}])
    is_whole: bool = False
    cursor: int = 0

    def take(self, found: Mapping[bytes, bytes], cursor: int, shards: int) -> None:
        """Take in a part of a shard's names; a cursor of 0 says that it was the last one."""
        texts = {short: text.decode() for short, text in found.items()}
        mine = {short: text for short, text in texts.items() if first_value(text) == self.owner}
        self.ids[-1] |= mine
        self.cursor = cursor
        if not cursor:
            self.is_whole = len(self.ids) == shards
            if not self.is_whole:
                self.ids.append({})


@dataclass
class Seen:
    """What was served of a metric, looked at in one slice or in several.

    Attributes:
        name: The metric.
        chain: The versions that serve it, the newest first.
        own: The series that are compared; None: all are.
        room: What more may be held of it.
        took: What is held of it.
        panes: By pane, its rows in each shard.
        ends: By pane, partition -> offset: when it was looked at all before it was counted, and
            nothing behind it.
        left_out: Panes of the sample that are too large to be counted again, or too old by now.
        epoch: The epoch at which it was looked at last.
        rev: The revision.
    """

    name: str
    chain: tuple[Audited, ...]
    own: OwnSeries | None = None
    room: Counter[str] = field(default_factory=Counter)
    took: Counter[str] = field(default_factory=Counter)
    panes: dict[PaneAt, Served] = field(default_factory=dict)
    ends: dict[PaneAt, Mapping[int, int]] = field(default_factory=dict)
    left_out: set[PaneAt] = field(default_factory=set)
    epoch: int = 0
    rev: int = 0

    def leave_before(self, at_ms: int) -> None:
        """Leave out the panes that start before an instant."""
        self.leave_out([pane for pane in self.panes if 1000 * pane.start_s < at_ms])

    def leave_out(self, panes: Collection[PaneAt]) -> None:
        """Leave out some panes that were taken."""
        for pane in panes:
            del self.panes[pane], self.ends[pane]
        self.left_out.update(panes)


class Reader:
    """Reads panes as they are, between two batches: those of one audit, as far as there is room."""

    def __init__(self, settings: Settings, share: float = 1.0) -> None:
        self._shards = settings.shards
        self._room = Counter(events=int(MAX_EVENTS * share), bytes=int(MAX_BYTES * share))
        self._redis = open_client(settings, TIMEOUT_S)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def begin(
        self, name: str, chain: Sequence[Audited], left: int, owner: str | None = None
    ) -> Seen:
        """Return a metric of which nothing was looked at yet.

        Args:
            name: The metric.
            chain: The versions that serve it, the newest first.
            left: How many metrics are still to be looked at, this one among them.
            owner: Whose series are compared, by their first value; None: everybody's.
        """
        own = None if owner is None else OwnSeries(owner)
        room = Counter({what: much // left for what, much in self._room.items()})
        return Seen(name, tuple(chain), own, room + Counter(rows=MAX_ROWS))

    def drop(self, seen: Seen) -> None:
        """Let go of what was taken of a metric: others may take as much."""
        self._room.update({what: seen.took[what] for what in self._room})

    def look(
        self,
        cycle: Cycle,
        seen: Seen,
        panes: Sequence[PaneAt],
        is_over: Callable[[], bool] = lambda: False,
    ) -> bool | None:
        """Take what is served of more panes of a metric, at one revision, until `is_over`.

        Returns:
            Whether all were looked at, at least one of them; None while some of what serves
            the metric is still being counted, and nothing can be taken.

        Raises:
            RedisError: If Redis does not answer.
        """
        record = self._newest()
        if record is None or record.epoch != cycle.footing.epoch or _is_filling(record, seen.chain):
            return None
        for mark in cycle.stores.shards.read_marks():
            if mark is None or not same_offsets(mark.end, record.to_offsets):
                return None
        seen.epoch, seen.rev, end = record.epoch, record.rev, dict(record.to_offsets)
        if panes and seen.own is not None and not self._look_up(seen.own, panes[0].vid, is_over):
            return False
        for at in range(0, len(panes), SIZES_AT_ONCE):
            some = panes[at : at + SIZES_AT_ONCE]
            for pane, size in zip(some, self._sizes(seen.own, some), strict=True):
                self._take(seen, pane, size, end)
                if is_over():
                    return pane == panes[-1]
        return True

    def _look_up(self, own: OwnSeries, vid: int, is_over: Callable[[], bool]) -> bool:
        """Look through more of a version's names, until `is_over`; return whether all were."""
        while not own.is_whole:
            key = names.names_key(len(own.ids) - 1, vid)
            cursor, found = self._redis.hscan(key, own.cursor, count=NAMES_AT_ONCE)
            own.take(found, cursor, self._shards)
            if is_over():
                break
        return own.is_whole

    def _newest(self) -> BatchRecord | None:
        newest = self._redis.xrevrange(names.BATCHES, count=1)
        found = decode(newest[0][1][FIELD]) if newest else None
        return found if isinstance(found, BatchRecord) else None

    def _take(self, seen: Seen, pane: PaneAt, size: int, end: Mapping[int, int]) -> None:
        """Take a pane, if there is room for it."""
        if size <= (seen.room["rows"] if seen.own is None else MOST_OWN):
            stored = self._stored(seen.own, pane)
            served = [_rows(*shard) for shard in stored]
            takes = Counter(
                rows=sum(len(packed) for packed, _texts in stored),
                # Of rows that are counts and nothing else a recount holds what it has room for.
                events=0
                if seen.own is not None
                else sum(row.n for shard in served for row in shard.values()),
                bytes=sum(len(one) for packed, _texts in stored for one in packed.values()),
            )
            if takes <= seen.room:
                seen.panes[pane], seen.ends[pane] = served, end
                for left in (seen.room, self._room):
                    left.subtract({what: takes[what] for what in left})
                seen.took.update(takes)
                return
        seen.left_out.add(pane)

    def _sizes(self, own: OwnSeries | None, panes: Sequence[PaneAt]) -> list[int]:
        """Return how many rows would be asked for of each of some panes."""
        if own is not None:
            return [sum(map(len, own.ids))] * len(panes)
        pipe = self._redis.pipeline(transaction=False)
        for pane in panes:
            for shard in range(self._shards):
                pipe.hlen(_key(pane, shard))
        told = pipe.execute()
        return [sum(told[at : at + self._shards]) for at in range(0, len(told), self._shards)]

    def _stored(self, own: OwnSeries | None, pane: PaneAt) -> list[Stored]:
        """Return each shard's rows of a pane, and the series of their ids."""
        pipe = self._redis.pipeline(transaction=False)
        if own is None:
            for shard in range(self._shards):
                pipe.hgetall(_key(pane, shard))
            found = pipe.execute()
            return [(one, self._names(pane.vid, shard, one)) for shard, one in enumerate(found)]
        for shard, ids in enumerate(own.ids):
            # Redis refuses to be asked for nothing.
            pipe.hmget(_key(pane, shard), list(ids) or [OTHER_ID])
        return [
            ({i: packed for i, packed in zip(ids, one, strict=False) if packed is not None}, ids)
            for ids, one in zip(own.ids, pipe.execute(), strict=True)
        ]

    def _names(self, vid: int, shard: int, ids: Collection[bytes]) -> dict[bytes, str]:
        """Return the series of ids; one without a name is left out."""
        found = self._redis.hmget(names.names_key(shard, vid), list(ids)) if ids else []
        told = zip(ids, found, strict=True)
        return {short: text.decode() for short, text in told if text is not None}


def _key(pane: PaneAt, shard: int) -> str:
    return names.pane_key(shard, pane.vid, pane.res_s, pane.start_s)


def _is_filling(record: BatchRecord, chain: Sequence[Audited]) -> bool:
    """Tell whether a lane is under way that may still change the panes."""
    vids = {version.vid for version in chain}
    lanes = record.lanes
    return any(lane.kind == "rebuild" or not vids.isdisjoint(lane.filled()) for lane in lanes)


def _rows(stored: Mapping[bytes, bytes], texts: Mapping[bytes, str]) -> dict[str, rows.Row]:
    found: dict[str, rows.Row] = {}
    for short, packed in stored.items():
        # A row without a name is shown under other, and so it is compared.
        text, row = texts.get(short, OTHER), rows.decode(packed)
        found[text] = rows.merge(found[text], row) if text in found else row
    return found
