"""What a starting driver does: the marks are the truth, the checkpoint is a convenience.

`reconcile` compares the marks of all shards with the batch that Spark planned last
and with the log, and returns everything there is to do. It decides; it does nothing.

The cases, in the order in which they are asked:

1. Marks of another log, or beyond it: stop (FOREIGN).
2. A mark is missing: count the whole log again (LOST). Rebuilding only that shard
   while the others go on needs rebuild lanes; until then all shards begin anew.
3. Every shard stands at the start or the end of the batch planned last: go on (OK).
4. The shards differ otherwise: level those that stand behind (BEHIND).
5. All stand at one place that the checkpoint does not know: a new checkpoint there (REWIND).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weir.commit import Mark, Offsets, Verdict, furthest, not_after, same_offsets


@dataclass(frozen=True, slots=True)
class Planned:
    """The batch that a Spark checkpoint planned last.

    Attributes:
        batch: Its number.
        from_offsets: Where it begins.
        to_offsets: Where it ends, exclusive.
        committed: Whether Spark noted it as done.
    """

    batch: int
    from_offsets: Offsets
    to_offsets: Offsets
    committed: bool


@dataclass(frozen=True, slots=True)
class LogBounds:
    """What the log holds, read after the marks.

    Attributes:
        topic_id: Kafka's id of `weir.events`.
        start: First offset of each partition that is still there.
        end: The offset that the next record will get.
    """

    topic_id: str
    start: Offsets
    end: Offsets


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a starting driver found.

    Attributes:
        marks: The live mark of each shard, None where there is none.
        checkpoint: What the checkpoint planned last; None if there is none.
        log: What the log holds.
        epoch: The epoch that the driver would go on with.
        last_record: Epoch and revision of the newest batch record, None if none.
        adopt: A human has decided to go on without what is gone.
    """

    marks: Sequence[Mark | None]
    checkpoint: Planned | None
    log: LogBounds
    epoch: int
    last_record: tuple[int, int] | None
    adopt: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A range of the log that one shard must count before live counting goes on.

    Attributes:
        shard: The shard.
        from_offsets: Where its mark stands.
        to_offsets: Where its mark will stand.
        read_from: Where reading begins: `from_offsets`, or the log's start if that
            is later.
    """

    shard: int
    from_offsets: Offsets
    to_offsets: Offsets
    read_from: Offsets


@dataclass(frozen=True, slots=True)
class Gap:
    """Records that the log lost before a shard had counted them.

    Attributes:
        partition: Where.
        first: First offset lost.
        last: Last offset lost.
        shards: The shards that have not counted them.
    """

    partition: int
    first: int
    last: int
    shards: tuple[int, ...]

    @property
    def count(self) -> int:
        """Return how many offsets are gone."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a starting driver has to do, in the order of the fields.

    Attributes:
        verdict: OK, LOST, BEHIND, REWIND or FOREIGN.
        reason: Why, for the log and the start record, in one sentence.
        new_epoch: A start record that opens an epoch is needed first, and its fence
            in every shard.
        clear: Shards whose keys are deleted, before their marks are set to `target`.
        levels: What single shards count before live counting goes on.
        keep_checkpoint: Else it is renamed and a new one begins at `target`.
        target: Where live counting goes on, or where the kept checkpoint's shards
            stand furthest.
        gaps: What the log lost.
    """

    verdict: Verdict
    reason: str
    new_epoch: bool = False
    clear: tuple[int, ...] = ()
    levels: tuple[Level, ...] = ()
    keep_checkpoint: bool = False
    target: Offsets | None = None
    gaps: tuple[Gap, ...] = ()

    @property
    def start_reason(self) -> str:
        """Return the word for the start record that opens the new epoch."""
        return {Verdict.BEHIND: "behind", Verdict.REWIND: "rewind"}.get(self.verdict, "lost")


def reconcile(found: Found) -> Recovery:
    """Return what a driver has to do before it counts, by what it found.

    Calling it again after doing part of that, or none, is always right: each step
    leaves a state that the same rules bring to the same end.
    """
    marks = [mark for mark in found.marks if mark is not None]
    if not found.adopt and (foreign := _foreign(marks, found.log)):
        return Recovery(Verdict.FOREIGN, foreign)
    if lost := _lost(found):
        return _recount(found, lost)
    if not found.adopt and (gone := _gone(marks, found.log)):
        return Recovery(Verdict.FOREIGN, gone)
    ends = [mark.end for mark in marks]
    # Spark wants each partition that it lists by name, also one that is newer than the marks.
    ends = [_everywhere(end, found.log) for end in ends]
    if _checkpoint_fits(ends, found):
        return _go_on(found, furthest(ends))
    return _level(found, ends)


def _everywhere(end: Offsets, log: LogBounds) -> dict[int, int]:
    """Return offsets with every partition of the log: 0 where a mark names none."""
    return {p: end.get(p, 0) for p in sorted(log.end.keys() | end.keys())}


def activation_floor(log_end: Offsets, *, first_start: bool) -> dict[int, int]:
    """Return the offsets below which a driver may activate no version.

    A version counts from its activation on, so no image of a shard may ever come back
    that stands beyond an activation and has not counted the version. Activations at
    the end of the batch planned last are safe from that as long as nobody goes back in
    the log. A recount does, and then a Redis that loses its tail, or is restored, may
    still bring back a shard of the time before; but none that stands beyond what was
    the end of the log when the driver started. The simulation finds wrong runs without
    this.

    Args:
        log_end: The end of the log when the driver started.
        first_start: No start record was there before the driver's: there is nothing
            that could come back.
    """
    return {} if first_start else dict(log_end)


def incomplete_before_ms(first_received_ms: int, horizon_ms: int, start: Offsets) -> int:
    """Return the event time before which a recount of the log cannot be complete.

    An event may be stored up to 23 hours after it happened by its client's clock,
    and its duplicates up to one horizon later, so panes shortly after the log's
    start may lack records that retention took.

    Args:
        first_received_ms: When the oldest record of the log was received.
        horizon_ms: The dedup horizon.
        start: First offsets; if all are 0 nothing was ever taken.
    """
    if not any(start.values()):
        return 0
    return first_received_ms + 23 * 3_600_000 + horizon_ms


def _foreign(marks: Sequence[Mark], log: LogBounds) -> str:
    for mark in marks:
        if mark.topic_id != log.topic_id:
            return (
                f"marks must be of topic id {log.topic_id}, got {mark.topic_id}: the topic was "
                "created anew; go on only by a recorded adopt, which counts the new log from its "
                "start and gives the old panes up"
            )
    end = furthest([mark.end for mark in marks])
    beyond = [f"{p}: {n} > {log.end.get(p, 0)}" for p, n in end.items() if n > log.end.get(p, 0)]
    if beyond:
        return (
            f"marks must lie within the log, got partition {', '.join(beyond)}: the log was cut "
            "short; go on only by a recorded adopt, which counts the log from its start"
        )
    return ""


def _gone(marks: Sequence[Mark], log: LogBounds) -> str:
    """Return what no shard has counted and the log has no more."""
    end = furthest([mark.end for mark in marks])
    gone = [f"{p}: {end.get(p, 0)} to {n - 1}" for p, n in log.start.items() if n > end.get(p, 0)]
    if gone:
        return (
            f"the log must reach back to the marks, but offsets of partition {', '.join(gone)} "
            "are gone; go on only by a recorded adopt, which gives them up"
        )
    return ""


def _lost(found: Found) -> str:
    missing = [shard for shard, mark in enumerate(found.marks) if mark is None]
    if len(missing) == len(found.marks):
        return "no shard has a mark"
    if missing:
        return f"no mark in shard {', '.join(map(str, missing))}"
    shards = {mark.shards for mark in found.marks if mark is not None}
    if shards != {len(found.marks)}:
        return f"series were spread over {max(shards)} shards, now over {len(found.marks)}"
    if any(mark.topic_id != found.log.topic_id for mark in found.marks if mark):
        return "the log was created anew and adopted"
    end = furthest([mark.end for mark in found.marks if mark])
    return "" if not_after(end, found.log.end) else "the log was cut short and adopted"


def _recount(found: Found, lost: str) -> Recovery:
    before = max((mark.shards for mark in found.marks if mark), default=0)
    everyone = tuple(range(len(found.marks)))
    start = dict(found.log.start)
    return Recovery(
        Verdict.LOST,
        f"{lost}: every shard is cleared and the whole log counted again",
        new_epoch=True,
        clear=tuple(range(max(before, len(found.marks)))),
        target=start,
        gaps=tuple(Gap(p, 0, n - 1, everyone) for p, n in sorted(start.items()) if n > 0),
    )


def _checkpoint_fits(ends: Sequence[Offsets], found: Found) -> bool:
    """Return whether every shard stands where the checkpoint can go on.

    Spark reads a planned range again even if every shard has it, so a range that
    the log no longer holds does not fit.
    """
    planned = found.checkpoint
    if planned is None:
        return False
    places = [planned.to_offsets]
    if not planned.committed:
        places.append(planned.from_offsets)
        first = {p: n for p, n in found.log.start.items() if p in planned.from_offsets}
        if not (
            not_after(first, planned.from_offsets) and not_after(planned.to_offsets, found.log.end)
        ):
            return False
    return all(any(same_offsets(end, place) for place in places) for end in ends)


def _go_on(found: Found, target: Offsets) -> Recovery:
    if _record_follows(found):
        return Recovery(
            Verdict.OK, "marks and checkpoint agree", keep_checkpoint=True, target=target
        )
    return Recovery(
        Verdict.OK,
        f"the newest batch record is {found.last_record}, which the checkpoint does not follow",
        new_epoch=True,
        keep_checkpoint=True,
        target=target,
    )


def _record_follows(found: Found) -> bool:
    """Return whether the checkpoint's next record continues the stream."""
    if found.last_record is None or found.checkpoint is None:
        return False
    planned = found.checkpoint
    fitting = {0, planned.batch + 1} | (set() if planned.committed else {planned.batch})
    epoch, rev = found.last_record
    return epoch == found.epoch and rev in fitting


def _level(found: Found, ends: Sequence[Offsets]) -> Recovery:
    start = found.log.start
    target = furthest([*ends, start] if found.adopt else ends)
    levels = tuple(
        Level(shard, end, target, furthest([end, start]))
        for shard, end in enumerate(ends)
        if not same_offsets(end, target)
    )
    keep = _checkpoint_fits([target], found)
    behind = bool(levels) or (found.checkpoint is not None and _is_behind(target, found.checkpoint))
    names = ", ".join(str(level.shard) for level in levels)
    reason = f"shard {names} is behind the others" if levels else "the shards stand elsewhere"
    return Recovery(
        Verdict.BEHIND if behind else Verdict.REWIND,
        f"{reason}; the checkpoint {'is kept' if keep else 'begins anew at their ends'}",
        new_epoch=True,
        levels=levels,
        keep_checkpoint=keep,
        target=target,
        gaps=_gaps(levels, start),
    )


def _is_behind(target: Offsets, checkpoint: Planned) -> bool:
    place = checkpoint.to_offsets if checkpoint.committed else checkpoint.from_offsets
    return not_after(target, place) and not same_offsets(target, place)


def _gaps(levels: Sequence[Level], start: Offsets) -> tuple[Gap, ...]:
    """Return what levelling cannot read any more, by partition and first offset."""
    lost: dict[tuple[int, int, int], list[int]] = {}
    for level in levels:
        for partition, first in start.items():
            stood = level.from_offsets.get(partition, 0)
            if stood < first:
                lost.setdefault((partition, stood, first - 1), []).append(level.shard)
    return tuple(Gap(p, a, b, tuple(shards)) for (p, a, b), shards in sorted(lost.items()))
