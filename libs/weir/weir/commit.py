"""The commit protocol's decisions: may these parts be merged into this shard?

A shard is always exactly the sum of the parts up to the `end` of each of its
lanes. So a commit is a link of a chain: it applies to the shard that stands at
its `from`, and moves the shard to its `to`. Batch numbers decide nothing: a new
checkpoint starts again at 0, and a plan that never reached the disk comes back
with a longer range under the same number.

Everything here is a pure function of what was read. `weir.commit_recovery` says
what a starting driver does; the simulation in the tests drives both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from weir.formats import checked
from weir.names import LIVE_LANE

VERSION: Final = 1

Offsets = Mapping[int, int]
"""Partition -> offset, exclusive where it is an end. A missing partition stands at 0."""


class Verdict(StrEnum):
    """What becomes of one attempt to commit, or of a driver's start."""

    OK = "ok"  # apply it
    DONE = "done"  # it was applied before; go on
    RETRY = "retry"  # the shard moved since it was read; read again
    FENCED = "fenced"  # a newer driver owns the shard; exit, write nothing more
    LOST = "lost"  # the shard's state is gone
    FOREIGN = "foreign"  # the state belongs to another log; stop and name it
    BEHIND = "behind"  # the shard has counted less than the range begins at
    REWIND = "rewind"  # the range begins before what the shard has counted


class Fence(msgspec.Struct, frozen=True):
    """The right to write: the newest start record that a shard has seen.

    Attributes:
        fence: Offset of the driver's start record in `weir.definitions`.
        topic_id: Kafka's id of that topic; offsets of another one mean nothing.
        v: Version of this format.
    """

    fence: int
    topic_id: str
    v: int = VERSION


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """How far one lane of a shard has counted.

    Attributes:
        v: Version of this format.
        epoch: The epoch that wrote it.
        batch: Spark's number of the batch; -1 where no batch wrote it.
        topic_id: Kafka's id of `weir.events`.
        end: The offsets counted up to, exclusive, by partition.
        shards: Over how many shards the series were spread.
    """

    v: int = VERSION
    epoch: int
    batch: int
    topic_id: str
    end: dict[int, int]
    shards: int


_FENCE: Final = msgspec.json.Decoder(Fence)
_MARK: Final = msgspec.json.Decoder(Mark)


def decode_fence(text: bytes) -> Fence:
    """Return the fence that a shard holds.

    Raises:
        NewerFormatError: If a newer release wrote it.
        ValueError: If it is none of this format.
    """
    return _FENCE.decode(checked(text, "fence", VERSION))


def decode_mark(text: bytes) -> Mark:
    """Return the mark that a shard holds of a lane.

    Raises:
        NewerFormatError: If a newer release wrote it.
        ValueError: If it is none of this format.
    """
    return _MARK.decode(checked(text, "mark", VERSION))


@dataclass(frozen=True, slots=True)
class ShardState:
    """What was read of a shard, all of it in one moment.

    Attributes:
        fence: Its fence, None if it has none.
        live: The mark of the live lane.
        mark: The mark of the lane that commits; the same as `live` for that one.
        token: The random token of the last commit.
    """

    fence: Fence | None
    live: Mark | None
    mark: Mark | None
    token: str | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a writer wants to commit.

    Attributes:
        fence: The writer's own fence.
        topic_id: Kafka's id of the `weir.events` that was read.
        from_offsets: Where the range begins.
        to_offsets: Where it ends, exclusive.
        token: The token read with the panes that the parts were merged into.
        lane: The chain that this is a link of.
        lane_start: Where that chain begins, which is where a lane other than `live`
            stands while it has no mark.
    """

    fence: Fence
    topic_id: str
    from_offsets: Offsets
    to_offsets: Offsets
    token: str | None
    lane: str = LIVE_LANE
    lane_start: Offsets = field(default_factory=dict)


def decide(shard: ShardState, mine: Attempt) -> Verdict:
    """Return whether an attempt may be applied to a shard, else why not.

    The order of the questions is part of the contract: whoever has lost the right
    to write learns that before anything else.

    For a lane other than `live`, BEHIND and REWIND mean: read its mark and go on
    from there.
    """
    right = decide_right(shard.fence, mine.fence)
    if right is not Verdict.OK:
        return right
    if shard.live is None:
        return Verdict.LOST
    mark = shard.mark
    if shard.live.topic_id != mine.topic_id or (mark and mark.topic_id != mine.topic_id):
        return Verdict.FOREIGN
    return _decide_chain(mark.end if mark else mine.lane_start, shard.token, mine)


def decide_right(found: Fence | None, mine: Fence) -> Verdict:
    """Return whether a driver may write to a shard at all.

    Args:
        found: The fence that the shard has.
        mine: The driver's own.

    Returns:
        OK, LOST, FOREIGN or FENCED.
    """
    if found is None:
        return Verdict.LOST
    if found.topic_id != mine.topic_id:
        return Verdict.FOREIGN
    if found.fence != mine.fence:
        return Verdict.LOST if found.fence < mine.fence else Verdict.FENCED
    return Verdict.OK


def _decide_chain(end: Offsets, token: str | None, mine: Attempt) -> Verdict:
    if same_offsets(end, mine.to_offsets):
        return Verdict.DONE
    if not same_offsets(end, mine.from_offsets):
        return Verdict.BEHIND if not_after(end, mine.from_offsets) else Verdict.REWIND
    return Verdict.OK if token == mine.token else Verdict.RETRY


def decide_fence(found: Fence | None, mine: Fence, definitions_end: int) -> Verdict:
    """Return whether a starting driver may raise its fence in a shard.

    Args:
        found: The fence that the shard has.
        mine: The fence of the start record just appended.
        definitions_end: End of `weir.definitions`, read after `found`: a fence at
            or beyond it was given by a log that is no longer this one.

    Returns:
        OK to write it, DONE if it stands there, FENCED or FOREIGN.
    """
    if found is None:
        return Verdict.OK
    if found.topic_id != mine.topic_id or found.fence >= definitions_end:
        return Verdict.FOREIGN
    if found.fence == mine.fence:
        return Verdict.DONE
    return Verdict.OK if found.fence < mine.fence else Verdict.FENCED


def decide_record(last: tuple[int, int] | None, epoch: int, rev: int) -> Verdict:
    """Return whether a batch record may be appended to the stream of records.

    Args:
        last: Epoch and revision of the newest entry; None in an empty stream.
        epoch: Epoch of the record.
        rev: Its revision, at least 1.

    Returns:
        OK to append, DONE if it is there, LOST if the stream misses what should
        stand before it (or has been taken over): a new epoch must begin.
    """
    if last == (epoch, rev):
        return Verdict.DONE
    return Verdict.OK if last in ((epoch, rev - 1), (epoch, 0)) else Verdict.LOST


def decide_opening(last: tuple[int, int] | None, epoch: int) -> Verdict:
    """Return whether an epoch's opening entry may be appended to the stream.

    Returns:
        OK to append, DONE if it is there and nothing after it, FENCED if the
        stream has gone on: a younger driver has opened, or this one already wrote.
    """
    if last is None or last < (epoch, 0):
        return Verdict.OK
    return Verdict.DONE if last == (epoch, 0) else Verdict.FENCED


def same_offsets(a: Offsets, b: Offsets) -> bool:
    """Return whether two sets of offsets name the same place of the log."""
    return a == b or all(a.get(p, 0) == b.get(p, 0) for p in a.keys() | b.keys())


def not_after(a: Offsets, b: Offsets) -> bool:
    """Return whether `a` lies at or before `b` in every partition."""
    return all(offset <= b.get(partition, 0) for partition, offset in a.items())


def furthest(ends: Sequence[Offsets]) -> dict[int, int]:
    """Return the largest offset of each partition."""
    partitions = sorted({partition for end in ends for partition in end})
    return {p: max(end.get(p, 0) for end in ends) for p in partitions}


def nearest(places: Iterable[Offsets]) -> dict[int, int]:
    """Return the first offset of each partition in those of some places that name it."""
    found: dict[int, int] = {}
    for place in places:
        found |= {p: min(n, found.get(p, n)) for p, n in place.items()}
    return found
