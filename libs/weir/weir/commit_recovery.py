"""What a starting driver does: the marks are the truth, the checkpoint is a convenience.

`reconcile` compares the marks of all shards with the batch that Spark planned last
and with the log, and returns everything there is to do. It decides; it does nothing.

The cases, in the order in which they are asked:

1. Marks of another log, or beyond it: stop (FOREIGN).
2. A mark is missing: the shard is emptied and set to where live counting goes on, which
   it does at once; what lies before is counted again by rebuild lanes (LOST).
3. Every shard stands at the start or the end of the batch planned last: go on (OK).
4. The shards differ otherwise, or all stand behind what was counted: level those that stand
   behind; one that is far behind goes on without waiting, and a lane counts what it lacks (BEHIND).
5. All stand at one place that the checkpoint does not know: a new checkpoint there (REWIND).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from weir.commit import Mark, Offsets, Verdict, furthest, not_after, same_offsets
from weir.commit_found import Found, Gap, Level, LogBounds, Planned, Recovery
from weir.event_time import LEAD_LIMIT_MS


def reconcile(found: Found) -> Recovery:
    """Return what a driver has to do before it counts, by what it found.

    Calling it again after doing part of that, or none, is always right: each step
    leaves a state that the same rules bring to the same end.
    """
    recovery = _reconciled(found)
    if recovery.verdict is Verdict.FOREIGN or not _is_cut_short(found):
        return recovery
    return replace(recovery, new_epoch=True, cut_short=True)


def _reconciled(found: Found) -> Recovery:
    marks = [mark for mark in found.marks if mark is not None]
    if not found.adopt and (foreign := _foreign(marks, found)):
        return Recovery(Verdict.FOREIGN, foreign)
    if lost := _lost(found):
        return _rebuild(found, lost)
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


def ended_at(checkpoint: Planned | None, log: LogBounds) -> list[Offsets]:
    """Return the place up to which a checkpoint knows that batches ended, if the log has it.

    All shards may have gone back, as when Redis lost its tail or came back from a backup. Up to
    that place corrections were told. Counted once more by the stream they would be told twice, and
    a first final value with them would no more be the value now (I9): so shards are levelled to
    it, which tells none. Of the batch under way nobody knows; the stream counts it again.
    """
    if checkpoint is None:
        return []
    place = checkpoint.to_offsets if checkpoint.committed else checkpoint.from_offsets
    return [place] if not_after(place, log.end) else []


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


def incomplete_before_ms(
    first_received_ms: int, horizon_ms: int, start: Offsets | None = None
) -> int:
    """Return the event time before which a recount of the log cannot be complete.

    An event may be stored up to 23 hours after it happened by its client's clock,
    and its duplicates up to one horizon later, so panes shortly after the log's
    start may lack records that retention took.

    Args:
        first_received_ms: When the oldest record of the log was received.
        horizon_ms: The dedup horizon.
        start: First offsets; if all are 0 nothing was ever taken. None: something was.
    """
    if start is not None and not any(start.values()):
        return 0
    return first_received_ms + LEAD_LIMIT_MS + horizon_ms


def _foreign(marks: Sequence[Mark], found: Found) -> str:
    log = found.log
    if others := _counted_ids(found) - {log.topic_id}:
        return (
            f"marks must be of topic id {log.topic_id}, got {', '.join(sorted(others))}: the topic "
            "was created anew; go on only by a recorded adopt, which counts the new log from its "
            "start and gives the old panes up"
        )
    beyond = _beyond(marks, found)
    if beyond:
        return (
            f"marks must lie within the log, got partition {', '.join(beyond)}: the log was cut "
            "short; go on only by a recorded adopt, which counts the log from its start"
        )
    return ""


def _counted_ids(found: Found) -> set[str]:
    """Return the ids of the logs that were counted, this one's if nobody knows."""
    marks = {mark.topic_id for mark in found.marks if mark is not None}
    # Without any mark, the word of the last epoch: Redis may have been emptied as well.
    return marks or {found.counted_id or found.log.topic_id}


def _end_for(mark: Mark, found: Found) -> Offsets:
    """Return where the log ends for whoever stood at a mark.

    One of an epoch before the log was cut short knows what is gone. What came since has the same
    offsets, and is something else.
    """
    ends = [cut.end for cut in found.cuts if mark.epoch < cut.epoch]
    return {p: min([n, *(end.get(p, 0) for end in ends)]) for p, n in found.log.end.items()}


def _beyond(marks: Iterable[Mark], found: Found) -> list[str]:
    """Return what marks know of the log that it does not hold, in words, by partition."""
    ends = [(mark, _end_for(mark, found)) for mark in marks]
    known = ((p, n, end.get(p, 0)) for mark, end in ends for p, n in mark.end.items())
    beyond = sorted((p, n, end) for p, n, end in known if n > end)
    return list({p: f"{p}: {n} > {end}" for p, n, end in beyond}.values())


def _is_cut_short(found: Found) -> bool:
    """Tell whether the log ends before a place of it that somebody knows of.

    Without marks too, as after a loss of Redis: then the definitions may know, or the checkpoint,
    beside which dedup runs are kept.
    """
    log, planned, places = found.log, found.checkpoint, [found.said]
    if planned is not None and _counted_ids(found) == {log.topic_id}:
        places.append(planned.to_offsets)
    marks = (mark for mark in found.marks if mark is not None and mark.topic_id == log.topic_id)
    return bool(_beyond(marks, found)) or not all(not_after(one, log.end) for one in places)


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


def _lost(found: Found) -> _Lost | None:
    """Return what is gone: the shards without a mark, or all of them."""
    missing = tuple(shard for shard, mark in enumerate(found.marks) if mark is None)
    everyone = tuple(range(len(found.marks)))
    if missing == everyone:
        return _Lost("no shard has a mark", everyone)
    shards = {mark.shards for mark in found.marks if mark is not None}
    if shards != {len(found.marks)}:
        why = f"series were spread over {max(shards)} shards, now over {len(found.marks)}"
        return _Lost(why, everyone)
    if any(mark.topic_id != found.log.topic_id for mark in found.marks if mark):
        return _Lost("the log was created anew and adopted", everyone)
    if _beyond(filter(None, found.marks), found):
        return _Lost("the log was cut short and adopted", everyone)
    return _Lost(f"no mark in shard {', '.join(map(str, missing))}", missing) if missing else None


class _Lost(NamedTuple):
    why: str
    shards: tuple[int, ...]


def _rebuild(found: Found, lost: _Lost) -> Recovery:
    """Return how lost shards come back: live counting at once, the rest by lanes.

    The first driver ever has no live counting to go on with: it counts from the start. Unless it
    slept since it was the first, and others have counted: then there are marks.
    """
    first_ever = found.first_ever and not any(found.marks)
    before = max((mark.shards for mark in found.marks if mark), default=0)
    kept = [
        _everywhere(mark.end, found.log)
        for shard, mark in enumerate(found.marks)
        if mark is not None and shard not in lost.shards
    ]
    start = dict(found.log.start)
    reach = _counted_to(found, furthest(kept)) if kept else _goes_on_at(found)
    target = start if first_ever else furthest([reach, start])
    keep, goal = _goal(target, kept, found)
    levels = tuple(
        Level(shard, mark.end, goal, furthest([mark.end, start]))
        for shard, mark in enumerate(found.marks)
        if mark is not None and shard not in lost.shards and not not_after(goal, mark.end)
    )
    whole = len(lost.shards) == len(found.marks)
    given_up = _given_up(found)
    gaps = tuple(Gap(p, 0, n - 1, lost.shards) for p, n in start.items() if n > 0) + given_up
    return Recovery(
        Verdict.LOST,
        f"{lost.why}: shard {', '.join(map(str, lost.shards))} is emptied and its part of the "
        "log counted again",
        new_epoch=True,
        clear=tuple(range(max(before, len(found.marks)))) if whole else lost.shards,
        rebuild=() if first_ever else lost.shards,
        levels=_near(found, levels),
        bridges=_far(found, levels),
        keep_checkpoint=keep,
        target=target,
        gaps=tuple(sorted((*gaps, *_gaps(levels, start)), key=lambda gap: gap.partition)),
        given_up=bool(given_up) or _counted_ids(found) != {found.log.topic_id},
    )


def _given_up(found: Found) -> tuple[Gap, ...]:
    """Return what shards had counted that the log does not hold, and never will.

    Where no shard says so, what the definitions say of it was counted.
    """
    if not any(found.marks):
        log_end = found.log.end
        everyone = range(len(found.marks))
        return _gaps_of(
            (s, p, log_end.get(p, 0), n) for p, n in found.said.items() for s in everyone
        )
    return _gaps_of(
        (shard, partition, left.get(partition, 0), end)
        for shard, mark in enumerate(found.marks)
        if mark is not None
        for left in [_end_for(mark, found) if mark.topic_id == found.log.topic_id else {}]
        for partition, end in mark.end.items()
    )


def _goes_on_at(found: Found) -> dict[int, int]:
    """Return where live counting goes on if no shard can say.

    Nothing depends on the place but how much is counted by lanes: all before it is. The end
    that Spark committed last spares it a new checkpoint.
    """
    for place in ended_at(found.checkpoint, found.log):
        at = _everywhere(place, found.log)
        if not_after(found.log.start, at):
            return at
    return dict(found.log.end)


def _checkpoint_fits(ends: Sequence[Offsets], found: Found) -> bool:
    """Return whether every shard stands where the checkpoint can go on.

    Spark reads a planned range again even if every shard has it, so a range that
    the log no longer holds does not fit; nor does a place that retention has passed.
    """
    planned = found.checkpoint
    if planned is None:
        return False
    begin, places = planned.to_offsets, [planned.to_offsets]
    if not planned.committed:
        begin = planned.from_offsets
        places.append(begin)
        if not not_after(planned.to_offsets, found.log.end):
            return False
    if not not_after({p: n for p, n in found.log.start.items() if p in begin}, begin):
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
    reach = furthest([*ends, start] if found.adopt else ends)
    target = _counted_to(found, reach)
    keep, goal = _goal(target, ends, found)
    levels = tuple(
        Level(shard, end, goal, furthest([end, start]))
        for shard, end in enumerate(ends)
        if not not_after(goal, end)
    )
    names = ", ".join(str(level.shard) for level in levels)
    reason = f"shard {names} is behind what was counted" if levels else "the shards stand elsewhere"
    return Recovery(
        Verdict.BEHIND if levels else Verdict.REWIND,
        f"{reason}; the checkpoint {'is kept' if keep else 'begins anew at their ends'}",
        new_epoch=True,
        levels=_near(found, levels),
        bridges=_far(found, levels),
        keep_checkpoint=keep,
        target=target,
        gaps=_gaps(levels, start),
    )


def _goal(target: Offsets, ends: Sequence[Offsets], found: Found) -> tuple[bool, Offsets]:
    """Return whether the checkpoint fits where counting goes on, and what shards are levelled to.

    Args:
        target: Where counting goes on.
        ends: Where the shards stand that are not lost.
        found: What was found.
    """
    keep = _checkpoint_fits([target], found)
    return keep, (keep and _before_batch(ends, found)) or target


def _before_batch(ends: Sequence[Offsets], found: Found) -> dict[int, int] | None:
    """Return where the batch under way begins, if shards have all of it or nothing.

    Those that have nothing are levelled to there, and get it from the stream, which corrects.
    """
    planned = found.checkpoint
    if planned is None or planned.committed:
        return None
    begin = _everywhere(planned.from_offsets, found.log)
    whole = (not_after(end, begin) or same_offsets(end, planned.to_offsets) for end in ends)
    return begin if all(whole) else None


def _counted_to(found: Found, reach: Offsets) -> dict[int, int]:
    """Return where counting was, if the shards stand nowhere beyond `reach`."""
    known = (p for p in ended_at(found.checkpoint, found.log) if not_after(reach, p))
    return furthest([reach, *known])


def _near(found: Found, levels: Sequence[Level]) -> tuple[Level, ...]:
    near = found.near
    return tuple(one for one in levels if near is None or not_after(near, one.from_offsets))


def _far(found: Found, levels: Sequence[Level]) -> tuple[Level, ...]:
    return tuple(one for one in levels if one not in _near(found, levels))


def _gaps(levels: Sequence[Level], start: Offsets) -> tuple[Gap, ...]:
    """Return what levelling cannot read any more, by partition and first offset."""
    return _gaps_of(
        (level.shard, partition, level.from_offsets.get(partition, 0), first)
        for level in levels
        for partition, first in start.items()
    )


def _gaps_of(spans: Iterable[tuple[int, int, int, int]]) -> tuple[Gap, ...]:
    """Return spans of the log as gaps, each with its shards: (shard, partition, from, to)."""
    lost: dict[tuple[int, int, int], list[int]] = {}
    for shard, partition, first, end in spans:
        if first < end:
            lost.setdefault((partition, first, end - 1), []).append(shard)
    return tuple(Gap(p, a, b, tuple(shards)) for (p, a, b), shards in sorted(lost.items()))
