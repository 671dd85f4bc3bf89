"""What is served of a metric's sampled panes, each at one revision, read while nothing commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weir import names, rows
from weir.batches import FIELD, BatchRecord, decode
from weir.commit import same_offsets
from weir.series import OTHER

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
# Of a pane of which only some rows are held: it is read whole.
MOST_READ: Final = 20_000
# Each pane's size is asked for in each shard; a slice that ends may have asked for so many.
SIZES_AT_ONCE: Final = 50


@dataclass
class Seen:
    """What was served of a metric, looked at in one slice or in several.

    Attributes:
        name: The metric.
        chain: The versions that serve it, the newest first.
        keeps: Tells by its text whether a series is compared; None: all are.
        room: What more may be held of it.
        took: What is held of it.
        panes: By pane, its rows in each shard.
        ends: By pane, partition -> offset: when it was looked at all before it was counted, and
            nothing behind it.
        left_out: Panes of the sample that are too large to be counted again.
        epoch: The epoch at which it was looked at last.
        rev: The revision.
    """

    name: str
    chain: tuple[Audited, ...]
    keeps: Callable[[str], bool] | None = None
    room: Counter[str] = field(default_factory=Counter)
    took: Counter[str] = field(default_factory=Counter)
    panes: dict[PaneAt, Served] = field(default_factory=dict)
    ends: dict[PaneAt, Mapping[int, int]] = field(default_factory=dict)
    left_out: set[PaneAt] = field(default_factory=set)
    epoch: int = 0
    rev: int = 0


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
        self,
        name: str,
        chain: Sequence[Audited],
        left: int,
        keeps: Callable[[str], bool] | None = None,
    ) -> Seen:
        """Return a metric of which nothing was looked at yet.

        Args:
            name: The metric.
            chain: The versions that serve it, the newest first.
            left: How many metrics are still to be looked at, this one among them.
            keeps: Tells by its text whether a series is compared; None: all are.
        """
        room = Counter({what: much // left for what, much in self._room.items()})
        return Seen(name, tuple(chain), keeps, room + Counter(rows=MAX_ROWS))

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
        for at in range(0, len(panes), SIZES_AT_ONCE):
            some = panes[at : at + SIZES_AT_ONCE]
            for pane, sizes in zip(some, self._ask("hlen", some), strict=True):
                self._take(seen, pane, sum(sizes), end)
                if is_over():
                    return pane == panes[-1]
        return True

    def _newest(self) -> BatchRecord | None:
        newest = self._redis.xrevrange(names.BATCHES, count=1)
        found = decode(newest[0][1][FIELD]) if newest else None
        return found if isinstance(found, BatchRecord) else None

    def _take(self, seen: Seen, pane: PaneAt, size: int, end: Mapping[int, int]) -> None:
        """Take a pane, if there is room for it."""
        if size <= (seen.room["rows"] if seen.keeps is None else MOST_READ):
            (stored,) = self._ask("hgetall", [pane])
            texts = [self._names(pane.vid, shard, ids) for shard, ids in enumerate(stored)]
            kept = [_kept(*both, seen.keeps) for both in zip(stored, texts, strict=True)]
            served = [_rows(*both) for both in zip(kept, texts, strict=True)]
            takes = Counter(
                rows=sum(map(len, kept)),
                # Of rows that are counts and nothing else a recount holds what it has room for.
                events=0
                if seen.keeps
                else sum(row.n for shard in served for row in shard.values()),
                bytes=sum(len(packed) for shard in kept for packed in shard.values()),
            )
            if takes <= seen.room:
                seen.panes[pane], seen.ends[pane] = served, end
                for left in (seen.room, self._room):
                    left.subtract({what: takes[what] for what in left})
                seen.took.update(takes)
                return
        seen.left_out.add(pane)

    def _ask(self, command: str, panes: Sequence[PaneAt]) -> list[list[Any]]:
        """Ask something about each shard's part of some panes, in one round trip."""
        if not panes:
            return []
        pipe = self._redis.pipeline(transaction=False)
        for pane in panes:
            for shard in range(self._shards):
                getattr(pipe, command)(names.pane_key(shard, pane.vid, pane.res_s, pane.start_s))
        told = pipe.execute()
        return [told[at : at + self._shards] for at in range(0, len(told), self._shards)]

    def _names(self, vid: int, shard: int, ids: Collection[bytes]) -> dict[bytes, str]:
        """Return the series of ids; one without a name is left out."""
        found = self._redis.hmget(names.names_key(shard, vid), list(ids)) if ids else []
        told = zip(ids, found, strict=True)
        return {short: text.decode() for short, text in told if text is not None}


def _is_filling(record: BatchRecord, chain: Sequence[Audited]) -> bool:
    """Tell whether a lane is under way that may still change the panes."""
    vids = {version.vid for version in chain}
    lanes = record.lanes
    return any(lane.kind == "rebuild" or not vids.isdisjoint(lane.filled()) for lane in lanes)


def _kept(
    stored: Mapping[bytes, bytes],
    texts: Mapping[bytes, str],
    keeps: Callable[[str], bool] | None,
) -> Mapping[bytes, bytes]:
    if keeps is None:
        return stored
    return {short: packed for short, packed in stored.items() if keeps(texts.get(short, OTHER))}


def _rows(stored: Mapping[bytes, bytes], texts: Mapping[bytes, str]) -> dict[str, rows.Row]:
    found: dict[str, rows.Row] = {}
    for short, packed in stored.items():
        # A row without a name is shown under other, and so it is compared.
        text, row = texts.get(short, OTHER), rows.decode(packed)
        found[text] = rows.merge(found[text], row) if text in found else row
    return found
