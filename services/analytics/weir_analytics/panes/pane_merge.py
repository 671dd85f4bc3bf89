"""Merging parts into the rows of panes; pure.

`max_series` is a function of the series alone: in each pane and shard the series with
the smallest digests have a row of their own, all others are the row `other`. So any
order and any split of the parts ends in the same rows, and totals stay exact. What all
tenants share is capped for each of them alone. A part
may come as `other` itself, of series that can have no row (`crowded.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from weir import rows
from weir.corrections import NO_TEXTS, Figures, raw_texts
from weir.query.estimates import texts_moved
from weir.rows import Row
from weir.series import OTHER, first_value, series_digest

from weir_analytics.panes.commit_job import (
    Bound,
    CommitJob,
    Correction,
    Limits,
    Pane,
    Part,
    UntoldPanes,
)


class Cap(NamedTuple):
    """How many series of a pane may have a row of their own in one shard.

    Attributes:
        most: Of each owner, if `by_owner`, else of all.
        by_owner: Whether the first value of a series says whose it is.
        gapped: Whether a pane with `other` takes in no further series: a row that was taken out
            for an erasure has left room, and who is in `other` must not have a second place.
    """

    most: int
    by_owner: bool = False
    gapped: bool = False


Grouped = dict[Pane, dict[str, Row]]


@dataclass(slots=True)
class PaneRead:
    """What was read of one pane.

    Attributes:
        length: How many rows it has, `other` included.
        other: The packed row `other`, None if it has none.
        stored: The packed rows of the series asked for; a missing one has none.
        own: All series with a row of their own; None where no cap can apply.
    """

    length: int
    other: bytes | None
    stored: dict[str, bytes]
    own: frozenset[str] | None = None


@dataclass(slots=True)
class PaneChange:
    """What a commit does to one pane: rows to set by series, and rows to delete.

    `bound` is the largest digest, in hexadecimal, that has a row of its own, if the pane is
    known to be full.
    """

    rows: dict[str, bytes] = field(default_factory=dict)
    evicted: tuple[str, ...] = ()
    bound: str | None = None
    corrections: list[Correction] = field(default_factory=list)


def group_parts(parts: Iterable[Part], limits: Mapping[int, Limits]) -> Grouped:
    """Return the parts by pane and series.

    Raises:
        ValueError: If the limits of a version, or the keep of its resolution, are missing.
    """
    grouped: Grouped = {}
    known: dict[tuple[int, int, int], dict[str, Row]] = {}
    for vid, res_s, start_s, series, row in parts:
        place = vid, res_s, start_s
        rows_of = known.get(place)
        if rows_of is None:
            bounds = limits.get(vid)
            if bounds is None or res_s not in bounds.keep_s:
                msg = (
                    f"a commit must know the limits of every part, got none for version {vid} "
                    f"at {res_s} s; add them to the job's limits"
                )
                raise ValueError(msg)
            rows_of = known[place] = grouped[Pane(*place)] = {}
        had = rows_of.get(series)
        rows_of[series] = row if had is None else rows.merge(had, row)
    return grouped


def cap_of(limits: Limits, shards: int) -> Cap:
    """Return how many series of a pane have a row of their own in one shard."""
    return Cap(max(1, limits.max_series // shards), limits.by_owner, limits.gapped)


def may_be_capped(read: PaneRead, arriving: Collection[str], cap: Cap) -> bool:
    """Return whether all series of the pane must be known before parts are merged."""
    new = sum(series not in read.stored and series != OTHER for series in arriving)
    if read.other is not None:
        return new > 0
    return new > 0 and read.length + new > cap.most


def own_series(own: Collection[str], arriving: Collection[str], cap: Cap) -> frozenset[str]:
    """Return the series that have a row of their own: those of the smallest digests."""
    everyone = {*own, *arriving} - {OTHER}
    if len(everyone) <= cap.most:
        return frozenset(everyone)
    groups: dict[str, list[str]] = {}
    for series in everyone:
        groups.setdefault(first_value(series) if cap.by_owner else "", []).append(series)
    return frozenset(
        series
        for group in groups.values()
        for series in sorted(group, key=series_digest)[: cap.most]
    )


def evictions(read: PaneRead, arriving: Collection[str], cap: Cap) -> tuple[str, ...]:
    """Return the series that lose their row to arriving ones; their rows must be read."""
    if read.own is None:
        return ()
    return tuple(sorted(read.own - _own_after(read, arriving, cap)))


def _own_after(read: PaneRead, arriving: Collection[str], cap: Cap) -> frozenset[str]:
    """Return the series that have a row of their own once parts are merged."""
    before = read.own or frozenset()
    if cap.gapped and read.other is not None:
        return before
    return own_series(before, arriving, cap)


def merge_pane(read: PaneRead, arriving: Mapping[str, Row], cap: Cap) -> PaneChange:
    """Return what merging parts does to a pane.

    Args:
        read: What the pane holds. If `may_be_capped`, with `own`, and with the stored
            rows of the `evictions`.
        arriving: The parts, by series.
        cap: How many series may have a row of their own here.
    """
    if read.own is None:
        stored = read.stored if read.other is None else {**read.stored, OTHER: read.other}
        merged = {s: rows.merge_packed(stored.get(s), row) for s, row in arriving.items()}
        return PaneChange(merged)
    return _merge_capped(read, arriving, cap)


def _merge_capped(read: PaneRead, arriving: Mapping[str, Row], cap: Cap) -> PaneChange:
    before = read.own or frozenset()
    own = _own_after(read, arriving, cap)
    evicted = tuple(sorted(before - own))
    merged = {}
    rest = [rows.decode(read.stored[series]) for series in evicted]
    for series, row in arriving.items():
        if series in own:
            merged[series] = rows.merge_packed(read.stored.get(series), row)
        else:
            rest.append(row)
    if rest:
        rest += [] if read.other is None else [rows.decode(read.other)]
        merged[OTHER] = rows.encode(rows.merge_all(rest))
    bound = max(map(series_digest, own)).hex() if len(own) == cap.most else None
    return PaneChange(merged, evicted, bound)


def bounds_of(changes: Mapping[Pane, PaneChange], limits: Mapping[int, Limits]) -> Iterable[Bound]:
    """Yield a bound for each finest pane of a metric that is full, with all panes around it.

    An event is counted in a pane of each resolution; who is beyond the largest bound has a
    row in none of them.
    """
    for pane, change in changes.items():
        lengths = limits[pane.vid].keep_s
        if pane.vid < 0 or change.bound is None or pane.res_s != min(lengths):
            continue
        starts = ((res_s, pane.start_s - pane.start_s % res_s) for res_s in lengths)
        around = [changes.get(Pane(pane.vid, *one)) for one in starts]
        full = [one.bound for one in around if one is not None and one.bound is not None]
        if len(full) == len(around):
            yield Bound(pane.vid, pane.start_s, max(full))


def is_corrected(pane: Pane, job: CommitJob, untold: UntoldPanes) -> bool:
    """Return whether a change of a pane is a correction: it was final before, and shown."""
    return _was_final(pane, job) and not untold.hold(pane)


def _was_final(pane: Pane, job: CommitJob) -> bool:
    if job.final_through_ms is None or pane.vid < 0:
        return False
    end_ms = (pane.start_s + pane.res_s) * 1000
    return end_ms + job.limits[pane.vid].lateness_ms <= job.final_through_ms


def corrections_of(
    pane: Pane,
    read: PaneRead,
    arriving: Mapping[str, Row],
    change: PaneChange,
    sketched: Sequence[str] = (),
    texts_left: int = 0,
) -> list[Correction]:
    """Return what a change to a final pane corrects, row by row.

    Args:
        pane: The pane.
        read: What it held.
        arriving: What came.
        change: What is done to it.
        sketched: Aggregates of which it is told what the rows' sketches said, and say now.
        texts_left: Bytes: until so much is told of how often texts of late events came, it is, row
            by row. Of the row of all others it never is: each shard has one, and of a text in one
            of them nobody knows how often it is in another.
    """
    stored = read.stored if read.other is None else {**read.stored, OTHER: read.other}

    def told(series: str, packed: bytes, *, with_texts: bool) -> Correction:
        before = stored.get(series)
        was, now = None if before is None else rows.decode(before), rows.decode(packed)
        figures = None if was is None else Figures.of(was, sketched)
        texts = NO_TEXTS
        if with_texts and series != OTHER:
            texts = raw_texts(texts_moved(was, arriving[series], now, sketched))
        return Correction(*pane, series, figures, Figures.of(now, sketched), texts)

    done: list[Correction] = []
    for series, packed in sorted(change.rows.items()):
        one = told(series, packed, with_texts=texts_left > 0)
        texts_left -= len(one.texts)
        done.append(one)
    gone = [
        Correction(*pane, series, Figures.of(rows.decode(stored[series]), sketched), None)
        for series in change.evicted
    ]
    return done + gone


def series_by_version(grouped: Mapping[Pane, Mapping[str, Row]]) -> dict[int, Sequence[str]]:
    """Return all series of the parts by version, each once, in a fixed order."""
    found: dict[int, dict[str, None]] = {}
    for pane, arriving in grouped.items():
        found.setdefault(pane.vid, {}).update(dict.fromkeys(s for s in arriving if s != OTHER))
    return {vid: list(texts) for vid, texts in found.items()}
