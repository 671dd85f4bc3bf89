"""One attempt to commit, of a driver's task, and what is checked wherever it may go wrong.

What is decided is asked of the pure functions, through a `Rules`, which mutants replace.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Set
from dataclasses import dataclass

from weir.commit import Attempt, Mark, Offsets, ShardState, Verdict, decide
from weir.commit_found import Found, Recovery
from weir.commit_recovery import reconcile
from weir.definitions.history import Start
from weir.names import LIVE_LANE

from .commit_world import (
    LEDGER,
    PANE_LENGTH,
    SHARDS,
    Behind,
    Entry,
    Image,
    Parts,
    Range,
    World,
    evaluate,
)


@dataclass(frozen=True)
class Rules:
    """The decisions under test; a mutant replaces one."""

    decide: Callable[[ShardState, Range], Verdict] = lambda shard, mine: decide(shard, mine.attempt)
    reconcile: Callable[[Found], Recovery] = reconcile
    behind: Behind = Start.behind
    new_token: Callable[[World, str | None], str] = lambda world, _: str(world.rng.random())
    ticks: bool = True
    activates_at_from: bool = False
    keeps_floor: bool = True
    chains_clearing: bool = True
    marks_lanes: bool = True
    fills_every_shard: bool = True
    stops_only_what_is_over: bool = True
    looks_at_topic: bool = True
    looks_at_start_of_log: bool = True
    tells_overtaken: bool = True
    tells_gone: bool = True
    heeds_topic: bool = True
    reads_marks_with_outboxes: bool = True
    begins_again: bool = True
    asks_before_an_epoch: bool = True


def try_commit(
    world: World, rules: Rules, shard: int, wanted: Range, parts: Parts
) -> Generator[None, None, Verdict]:
    """Read, merge, decide, write; returns the verdict. Any answer may get lost."""
    while True:
        read = world.shards[shard]
        mine = wanted._replace(
            attempt=Attempt(
                wanted.attempt.fence,
                wanted.attempt.topic_id,
                wanted.attempt.from_offsets,
                wanted.attempt.to_offsets,
                read.token,
                wanted.attempt.lane,
                wanted.attempt.lane_start,
            )
        )
        yield
        verdict = rules.decide(world.state(shard, mine.attempt.lane), mine)
        if verdict is Verdict.RETRY:
            continue
        if verdict is Verdict.OK:
            apply(world, rules, shard, read, mine, parts)
            if world.rng.random() < 0.1:  # the answer got lost
                yield
                continue
        return verdict


def apply(world: World, rules: Rules, shard: int, read: Image, mine: Range, parts: Parts) -> None:
    """Write the merged panes, the outbox, the mark and a new token at once."""
    now = world.shards[shard]
    attempt = mine.attempt
    if now.fence is not None and now.fence.fence > attempt.fence.fence:
        world.wrongs.append("I7: an old driver wrote after a newer fence was raised")
    panes, corrections = dict(read.panes), {}
    through = world.received_through(attempt.from_offsets)
    for key, weight in parts.items():
        panes[key] = panes.get(key, 0) + weight
        vid, pane = key
        if vid != LEDGER and panes[key] > world.sent.get((shard, pane), 0):
            world.wrongs.append("I6: a pane holds more than was sent")
        if vid != LEDGER and mine.corrects and through >= (pane + 1) * PANE_LENGTH:
            corrections[mine.epoch, mine.batch, vid, pane, shard] = weight
    outbox = {n: entry for n, entry in now.outbox.items() if n > mine.trim}
    outbox[max(now.outbox, default=0) + 1] = Entry(corrections)
    mark = Mark(
        epoch=mine.epoch,
        batch=mine.batch,
        topic_id=attempt.topic_id,
        end=dict(attempt.to_offsets),
        shards=SHARDS,
    )
    marks = {**now.marks, attempt.lane: mark}
    token = rules.new_token(world, now.token)
    world.put(shard, Image(now.fence, marks, token, panes, outbox))


def check_takeover(world: World, vid: int, cut: int, whole: Set[int]) -> None:
    """Check that a version holds, from the cut on, what the log holds up to each shard's mark.

    Of a shard that a lane still fills, because it was far behind the others, readers are told
    that it is rebuilt: whole shards are checked.
    """
    for shard, image in enumerate(world.shards):
        if shard not in whole:
            continue
        live = image.marks.get(LIVE_LANE)
        expected = evaluate(world, {}, live.end if live else {}, {vid: {}}, ledger=False)[shard]
        now = {key: n for key, n in image.panes.items() if key[0] == vid and key[1] >= cut}
        if now != {key: n for key, n in expected.items() if key[1] >= cut}:
            world.wrongs.append("I12: a version took over before it was filled")


def check_record(world: World, to: Offsets) -> None:
    """Check what a reader of the record may believe (I11), and note final values (I9)."""
    if not world.lossless:
        return
    ends = [image.marks[LIVE_LANE].end if image.marks else {} for image in world.shards]
    if any(end.get(p, 0) < n for end in ends for p, n in to.items()):
        if not world.went_back:
            world.wrongs.append("I11: a record names offsets that a shard has not counted")
        return
    through = world.received_through(to)
    for shard, image in enumerate(world.shards):
        for (vid, pane), value in image.panes.items():
            key = (vid, pane, shard)
            if vid != LEDGER and key not in world.final and through >= (pane + 1) * PANE_LENGTH:
                world.final[key] = value - published(world, key)


def published(world: World, pane: tuple[int, int, int]) -> int:
    """Return the sum of all corrections published of a pane."""
    return sum(n for key, n in world.corrections.items() if key[2:] == pane)


def check_told(world: World, found: Found, recovery: Recovery) -> None:
    """Check that what a start passes is named: partition, first and last offset, shard (I13)."""
    for shard, mark in enumerate(found.marks):
        cleared = shard in recovery.clear
        passed: set[tuple[int, int, int]] = set()
        for p, first in found.log.start.items():
            stood = mark.end.get(p, 0) if mark and not cleared else 0
            if stood < first:
                passed.add((p, stood, first - 1))
        if mark and mark.topic_id != found.log.topic_id:
            passed |= {(p, 0, end - 1) for p, end in mark.end.items() if end}
        named = {(g.partition, g.first, g.last) for g in recovery.gaps if shard in g.shards}
        if not passed <= named:
            world.wrongs.append("I13: a start passes records without naming them")


def check_decided(world: World, found: Found) -> None:
    """Check that nobody goes on by himself on another log, or behind what nobody has counted."""
    marks = [mark for mark in found.marks if mark]
    counted = {mark.topic_id for mark in marks} or {found.counted_id or found.log.topic_id}
    anew = counted != {found.log.topic_id}
    whole = len(marks) == len(found.marks)
    ends = {p: max(m.end.get(p, 0) for m in marks) for p in found.log.start} if whole else {}
    gone = any(found.log.start[p] > end for p, end in ends.items())
    if (anew or gone) and not world.decided():
        world.wrongs.append("FOREIGN: a driver went on without a decision")
