"""What a writer is told about one commit, and what it answers.

These shapes hold no connection and do nothing; `store.ShardStore` does the work.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec
from weir.commit import Fence, Offsets, Verdict
from weir.corrections import NO_TEXTS, Figures
from weir.formats import checked
from weir.names import LIVE_LANE
from weir.rows import Row

MARGIN_S: Final = 86_400
"""How long a pane outlives its `keep`, so that nobody reads one that is going."""
OUTBOX_VERSION: Final = 1


class Pane(NamedTuple):
    """One pane of one version, in the shard at hand."""

    vid: int
    res_s: int
    start_s: int


class Bound(NamedTuple):
    """The largest digest, in hexadecimal, that has a row in every full pane over one start.

    Attributes:
        vid: The version.
        start_s: Start of the finest pane.
        digest: Of a series.
    """

    vid: int
    start_s: int
    digest: str


class Untold(NamedTuple):
    """Panes of which no correction is told, since what stood there before was not shown.

    Attributes:
        shard: Only in this one; None: in all.
        vid: Only of this version; None: of all.
        before_ms: Only panes that start earlier; None: all.
    """

    shard: int | None = None
    vid: int | None = None
    before_ms: int | None = None


class UntoldPanes:
    """All that is untold in one shard, found by version: asked of each pane that was final."""

    def __init__(self, untold: Iterable[Untold]) -> None:
        """Take what is meant of a shard; of several of a version counts which reaches furthest."""
        self._before_ms: dict[int | None, float] = {}
        for one in untold:
            before_ms = math.inf if one.before_ms is None else one.before_ms
            known_ms = self._before_ms.get(one.vid, before_ms)
            self._before_ms[one.vid] = max(known_ms, before_ms)

    def hold(self, pane: Pane) -> bool:
        """Tell whether a pane is one of them."""
        before_ms = (self._before_ms.get(vid, -math.inf) for vid in (pane.vid, None))
        return pane.start_s * 1000 < max(before_ms)


class Part(NamedTuple):
    """What a range of the log adds to one pane of one series."""

    vid: int
    res_s: int
    start_s: int
    series: str
    row: Row


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the panes of one version.

    Attributes:
        keep_s: By resolution, how long a pane is kept after its end.
        max_series: How many series of a pane have a row of their own, over all shards.
        lateness_ms: Allowed lateness: a pane is final that long after its end.
        by_owner: Whether `max_series` is of each tenant, the first value of a series.
        listed: Whether each tenant's series are listed, so that its rows can be read alone.
        sketched: Aggregates that sketches answer, by the names they are asked by: a
            correction tells what they said.
        gapped: Whether a series without a row gets none in a pane with `other`; see `Version`.
    """

    keep_s: Mapping[int, int]
    max_series: int = 1000
    lateness_ms: int = 0
    by_owner: bool = False
    listed: bool = False
    sketched: tuple[str, ...] = ()
    gapped: bool = False


@dataclass(frozen=True, slots=True)
class CommitJob:
    """One link of a lane's chain, for one shard.

    Attributes:
        shard: Which shard.
        shards: Of how many.
        fence: The driver's fence.
        epoch: The epoch.
        batch: Spark's number of the batch; -1 for levelling and lanes.
        topic_id: Kafka's id of `weir.events`.
        from_offsets: Where the range begins.
        to_offsets: Where it ends, exclusive.
        limits: By version. Every part's version must be in it.
        trim_outbox: The last outbox entry that a batch record holds; entries up to
            it are deleted. 0 deletes nothing.
        final_through_ms: Processed-through of the batch before. A part of a pane
            that was final by then makes a correction. None: no part does, as in
            levelling, rebuilds and backfills.
        untold: Of this shard: panes that make none all the same.
        lane: The lane.
        lane_start: Where the lane begins, if it is not the live one.
        dry: Read and merge, and write nothing.
    """

    shard: int
    shards: int
    fence: Fence
    epoch: int
    batch: int
    topic_id: str
    from_offsets: Offsets
    to_offsets: Offsets
    limits: Mapping[int, Limits]
    trim_outbox: int = 0
    final_through_ms: int | None = None
    untold: tuple[Untold, ...] = ()
    lane: str = LIVE_LANE
    lane_start: Offsets = field(default_factory=dict)
    dry: bool = False


class Correction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a commit changed in a row that was final.

    `was` is None for a row that did not exist, `now` for one that was merged into
    `other`. `texts`: how often texts of the late events came before and now, of a few of them,
    as a record keeps them (`weir.corrections.raw_texts`).
    """

    vid: int
    res_s: int
    start_s: int
    series: str
    was: Figures | None
    now: Figures | None
    texts: msgspec.Raw = NO_TEXTS


class OutboxEntry(msgspec.Struct, frozen=True):
    """What one commit changed, kept with the shard until a batch record holds it."""

    n: int
    epoch: int
    batch: int
    changed: list[Pane]
    corrections: list[Correction]
    v: int = OUTBOX_VERSION


_ENTRY: Final = msgspec.json.Decoder(OutboxEntry)


def decode_entry(text: bytes) -> OutboxEntry:
    """Return an entry of an outbox.

    Raises:
        NewerFormatError: If a newer release wrote it.
        ValueError: If it is none of this format.
    """
    return _ENTRY.decode(checked(text, "outbox entry", OUTBOX_VERSION))


@dataclass(frozen=True, slots=True)
class Work:
    """What a commit cost.

    Attributes:
        rows: Rows written.
        evicted: Rows merged into `other`.
        tries: How often the shard was read.
        read_ms: Time to read, all tries together.
        merge_ms: Time to merge.
        write_ms: Time to write.
    """

    rows: int = 0
    evicted: int = 0
    tries: int = 0
    read_ms: float = 0.0
    merge_ms: float = 0.0
    write_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Committed:
    """How a commit ended.

    Attributes:
        verdict: OK, or DONE if it was applied before; else it was not applied, or the shard has
            no mark any more.
        changed: The panes changed. Empty unless OK: after DONE the outbox tells.
        corrections: What changed in final panes; the same.
        bounds: Of finest panes that are full.
        work: What it cost.
        why: Of FOREIGN: what a newer release wrote there; of LOST: what of it was not applied, if
            it was in part, as of FENCED; empty otherwise.
        is_short: Whether the shard is to be counted anew whatever its mark says, since a part of
            the commit was applied. LOST alone says less: a shard without its fence is whole.
    """

    verdict: Verdict
    changed: tuple[Pane, ...] = ()
    corrections: tuple[Correction, ...] = ()
    bounds: tuple[Bound, ...] = ()
    work: Work = field(default_factory=Work)
    why: str = ""
    is_short: bool = False
