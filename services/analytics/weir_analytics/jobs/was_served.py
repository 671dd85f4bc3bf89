"""What is served of a metric's sampled panes at one revision, read while nothing commits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Look:
    """What is to be looked at: panes of the versions that serve a metric.

    Attributes:
        name: The metric.
        chain: The versions that serve it.
        panes: The panes.
        left: How many metrics are still to be looked at, this one among them.
    """

    name: str
    chain: tuple[Audited, ...]
    panes: tuple[PaneAt, ...]
    left: int


@dataclass(frozen=True)
class Seen:
    """What was served of a metric.

    Attributes:
        name: The metric.
        chain: The versions that serve it, the newest first.
        panes: By pane, its rows in each shard.
        left_out: Panes of the sample that are too large to be counted again.
        epoch: The epoch at which it was read.
        rev: The revision.
        end: Partition -> offset: all before it was counted, and nothing behind it.
    """

    name: str
    chain: tuple[Audited, ...]
    panes: Mapping[PaneAt, Served]
    left_out: int
    epoch: int
    rev: int
    end: Mapping[int, int]


class Reader:
    """Reads panes as they are, between two batches: those of one audit, as far as there is room."""

    def __init__(self, settings: Settings, share: float = 1.0) -> None:
        self._shards = settings.shards
        self._room = Counter(events=int(MAX_EVENTS * share), bytes=int(MAX_BYTES * share))
        self._redis = open_client(settings, TIMEOUT_S)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()

    def look(self, cycle: Cycle, wanted: Look) -> Seen | None:
        """Return what is served; None while some of it is still being counted.

        Raises:
            RedisError: If Redis does not answer.
        """
        record = self._newest()
        if record is None or record.epoch != cycle.footing.epoch or _is_filling(record, wanted):
            return None
        for mark in cycle.stores.shards.read_marks():
            if mark is None or not same_offsets(mark.end, record.to_offsets):
                return None
        panes, left_out = self._panes(wanted.panes, wanted.left)
        return Seen(
            name=wanted.name,
            chain=wanted.chain,
            panes=panes,
            left_out=left_out,
            epoch=record.epoch,
            rev=record.rev,
            end=dict(record.to_offsets),
        )

    def _newest(self) -> BatchRecord | None:
        newest = self._redis.xrevrange(names.BATCHES, count=1)
        found = decode(newest[0][1][FIELD]) if newest else None
        return found if isinstance(found, BatchRecord) else None

    def _panes(self, wanted: Sequence[PaneAt], left: int) -> tuple[dict[PaneAt, Served], int]:
        """Return panes as far as there is room for them, and how many are left out."""
        sizes = self._ask("hlen", wanted)
        found: dict[PaneAt, Served] = {}
        room = Counter({what: much // left for what, much in self._room.items()})
        room["rows"] = MAX_ROWS
        for pane, size in zip(wanted, sizes, strict=True):
            if sum(size) > room["rows"]:
                continue
            (stored,) = self._ask("hgetall", [pane])
            texts = (self._names(pane.vid, shard, ids) for shard, ids in enumerate(stored))
            served = [_rows(*both) for both in zip(stored, texts, strict=True)]
            takes = Counter(
                rows=sum(size),
                events=sum(row.n for shard in served for row in shard.values()),
                bytes=sum(len(packed) for shard in stored for packed in shard.values()),
            )
            if takes <= room:
                found[pane] = served
                room.subtract(takes)
                self._room.subtract({what: takes[what] for what in self._room})
        return found, len(wanted) - len(found)

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


def _is_filling(record: BatchRecord, wanted: Look) -> bool:
    """Tell whether a lane is under way that may still change the panes."""
    vids = {version.vid for version in wanted.chain}
    return any(lane.kind == "rebuild" or lane.vid in vids for lane in record.lanes)


def _rows(stored: Mapping[bytes, bytes], texts: Mapping[bytes, str]) -> dict[str, rows.Row]:
    found: dict[str, rows.Row] = {}
    for short, packed in stored.items():
        # A row without a name is shown under other, and so it is compared.
        text, row = texts.get(short, OTHER), rows.decode(packed)
        found[text] = rows.merge(found[text], row) if text in found else row
    return found
