"""Lanes: ranges of the log that are counted beside the live one, in slices.

A backfill counts for a version what lies before its activation; a rebuild counts for lost
shards what they held. Each is a chain of commits of its own in each shard, with a mark of
its own, so that a shard is always the sum of the parts up to the end of each of its lanes
(RELIABILITY 2.2). Everything here is a pure function of what was read.

A shard without a mark of a backfill stands at the lane's start. A shard without a mark of a
rebuild has no part in it: the mark is set, at the lane's start, in the very transaction
that gives the emptied shard its live mark. So a shard that comes back from a backup made
before the loss is not counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from weir.batches import LaneProgress
from weir.borders import Borders
from weir.commit import Mark, Offsets, same_offsets
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane

MOST_ENTRIES: Final = 20
"""Versions of a lane that each have an entry in a batch record, of 130 bytes: it is kept with each
batch of 15 minutes. More of them are told by one."""


class Need(IntEnum):
    """What a lane is counted for; the least comes first: what was there, before what is new."""

    LOST = 0
    """What shards held: a rebuild."""
    SERVING = 1
    """A version that serves the present."""
    LEFT_OVER = 2
    """One that serves only what lies before its successor's cut."""
    NEW = 3
    """One that does not serve yet."""


@dataclass(frozen=True, slots=True)
class Slice:
    """The next link of a lane.

    Attributes:
        shards: The shards that stand at `start`.
        start: Where it begins.
        end: Where it ends, exclusive.
        there: Where it begins in what the log still has: not before `start`.
    """

    lane: Lane
    shards: tuple[int, ...]
    start: Offsets
    end: Offsets
    there: Offsets

    @property
    def records(self) -> int:
        """Return how many records of the log it spans."""
        return sum(end - self.there[p] for p, end in self.end.items())


def places(lane: Lane, marks: Sequence[Mark | None]) -> dict[int, Offsets]:
    """Return where each shard that has a part in a lane stands.

    Args:
        lane: The lane.
        marks: The lane's mark in each shard; None where there is none.
    """
    if lane.kind == "rebuild":
        return {shard: mark.end for shard, mark in enumerate(marks) if mark is not None}
    return {shard: mark.end if mark else lane.start for shard, mark in enumerate(marks)}


def is_done(lane: Lane, at: Mapping[int, Offsets]) -> bool:
    """Tell whether every shard that has a part in a lane stands at its end."""
    return all(same_offsets(end, lane.end) for end in at.values())


def next_slice(
    lane: Lane,
    at: Mapping[int, Offsets],
    most: int,
    borders: Borders | None = None,
    first: Offsets | None = None,
) -> Slice | None:
    """Return the next link for the shards that are furthest behind; None if it is done.

    What the log has lost is passed in one step.

    Args:
        lane: The lane.
        at: Where each shard stands.
        most: About how many records at most.
        borders: Places that no slice may lie on both sides of, where the log still has both;
            None: there is none.
        first: What the log begins with; None: nothing is lost.
    """
    waiting = {shard: end for shard, end in at.items() if not same_offsets(end, lane.end)}
    if not waiting:
        return None
    start = min(waiting.values(), key=lambda end: sum(end.values()))
    shards = tuple(shard for shard, end in waiting.items() if same_offsets(end, start))
    begin, left = full(start, lane), first or {}
    there = {p: min(lane.end[p], max(n, left.get(p, 0))) for p, n in begin.items()}
    end = lane.end if borders is None else borders.first(there, lane.end)
    return Slice(lane, shards, begin, advance(there, end, most), there)


def advance(at: Offsets, end: Offsets, most: int) -> dict[int, int]:
    """Return the place about `most` records further on, evenly over the partitions left."""
    left = [p for p, n in end.items() if at.get(p, 0) < n]
    step = max(1, most // max(1, len(left)))
    return {p: min(n, at.get(p, 0) + step) for p, n in end.items()}


def full(at: Offsets, lane: Lane) -> dict[int, int]:
    """Return a place with every partition of a lane: 0 where it names none."""
    return {p: at.get(p, 0) for p in lane.end}


def counted_lanes(definitions: Definitions, topic_id: str) -> list[Lane]:
    """Return the lanes that may still have something to count; `needs` says which come first.

    Of rebuilds the newest part of the log before older ones. A backfill counts as long as one
    of its versions is counted.

    Args:
        definitions: The fold.
        topic_id: Kafka's id of `weir.events`: offsets of another one mean nothing.
    """
    known = [lane for lane in definitions.lanes.values() if lane.topic_id == topic_id]
    rebuilds = [lane for lane in known if lane.kind == "rebuild"]
    backfills = [lane for lane in known if lane.kind == "backfill"]
    return [
        *sorted(rebuilds, key=lambda lane: (-lane.until_ms, -lane.offset)),
        *(lane for lane in backfills if filled_by(definitions, lane)),
    ]


def needs(definitions: Definitions, lanes: Iterable[Lane]) -> dict[int, Need]:
    """Return by lane what it is counted for: the first need of any of its versions."""
    activations, followed = definitions.activations, definitions.activated.followed

    def need(vid: int) -> Need:
        if not activations[vid].serves:
            return Need.NEW
        return Need.LEFT_OVER if vid in followed else Need.SERVING

    return {
        lane.offset: min(map(need, filled_by(definitions, lane)), default=Need.LOST)
        for lane in lanes
    }


def filled_by(definitions: Definitions, lane: Lane) -> list[int]:
    """Return the versions of a backfill that are still counted."""
    activations = definitions.activations
    return [
        vid
        for vid in lane.vids
        if vid in activations
        and activations[vid].finish is None
        and (definition := definitions.by_vid(vid)) is not None
        and definition.metric is not None
    ]


def progress_of(
    lane: Lane, at: Mapping[int, Offsets], waits_for: str | None = None
) -> list[LaneProgress]:
    """Return how far a lane has come, as batch records tell it.

    Args:
        lane: A lane that is under way, or whose end is not sure yet.
        at: Where each shard that has a part in it stands.
        waits_for: Why nothing of it is counted now; None: it goes on.
    """
    begin = sum(full(lane.start, lane).values())
    ends = (sum(full(end, lane).values()) for end in at.values())
    done = min(ends, default=begin + lane.records)
    shard = next(iter(at)) if lane.kind == "rebuild" and len(at) == 1 else None
    each: list[tuple[int | None, tuple[int, ...]]] = [(vid, ()) for vid in lane.vids or (None,)]
    if len(each) > MOST_ENTRIES:
        each = [(lane.vids[0], tuple(lane.vids[1:]))]
    return [
        LaneProgress(
            lane=lane.offset,
            kind=lane.kind,
            vid=vid,
            shard=shard,
            at=done - begin,
            of=lane.records,
            until_ms=lane.until_ms,
            waits_for=waits_for,
            vids=besides,
        )
        for vid, besides in each
    ]


def takeover_cut(resolutions_s: Iterable[int], complete_from_ms: int) -> dict[int, int]:
    """Return by resolution the first pane that a filled version holds completely.

    Args:
        resolutions_s: Its resolutions and its predecessor's.
        complete_from_ms: Panes that start earlier may lack events; 0: none.
    """
    return {res: -(-complete_from_ms // (res * 1000)) * res for res in sorted(set(resolutions_s))}
