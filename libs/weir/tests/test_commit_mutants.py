"""The simulation can fail: each rule, changed in one point, ends some run wrong.

A mutant is run under the faults that it is about, and the correct rules are run under
the same ones, so that what is caught is the mutant and not the model.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs
from weir.commit import Mark, ShardState, Verdict, decide, same_offsets
from weir.commit_found import Found, Recovery
from weir.commit_recovery import reconcile
from weir.definitions.history import Start

from .commit_attempt import Rules
from .commit_simulation import Faults, run
from .commit_world import Range, World

CALM = Faults(crash=0.0, second=0.0, pause=0.0, tail=0.0, wipe=0.0, checkpoint=0.0)
OF_STARTS = replace(CALM, second=0.1, pause=0.1, crash=0.08, anew=0.03, events=0.5)
MOST_RUNS = 400


def skip_if_counted(shard: ShardState, mine: Range) -> Verdict:
    """Skip a batch whose number the shard has seen."""
    verdict = decide(shard, mine.attempt)
    if shard.mark is None or mine.batch < 0 or verdict not in ON_THE_CHAIN:
        return verdict
    return Verdict.DONE if mine.batch <= shard.mark.batch else Verdict.OK


def batch_numbers(shard: ShardState, mine: Range) -> Verdict:
    """Chain the batches of an epoch by their numbers."""
    verdict = decide(shard, mine.attempt)
    if shard.mark is None or mine.batch < 0 or verdict not in ON_THE_CHAIN:
        return verdict
    behind = mine.batch - (shard.mark.batch if shard.mark.epoch == mine.epoch else mine.batch - 1)
    if behind == 0:
        return Verdict.DONE
    return Verdict.OK if behind == 1 else Verdict.BEHIND if behind > 1 else Verdict.REWIND


def reconcile_numbers(found: Found) -> Recovery:
    """Keep a checkpoint whose number fits the marks."""
    recovery = reconcile(found)
    plan = found.checkpoint
    numbers = {mark.batch for mark in found.marks if mark}
    if recovery.verdict in (Verdict.LOST, Verdict.FOREIGN) or plan is None or not numbers:
        return recovery
    fits = numbers <= ({plan.batch} if plan.committed else {plan.batch, plan.batch - 1})
    return replace(recovery, levels=(), keep_checkpoint=True) if fits else recovery


def without_token(shard: ShardState, mine: Range) -> Verdict:
    """Write whatever was read, however long ago."""
    return decide(replace(shard, token=mine.attempt.token), mine.attempt)


def counting_token(_: World, token: str | None) -> str:
    """Number the commits of a shard."""
    return str(int(token or "0") + 1)


def without_fence(shard: ShardState, mine: Range) -> Verdict:
    """Let every driver write."""
    return decide(replace(shard, fence=mine.attempt.fence), mine.attempt)


def missing_mark_is_a_start(shard: ShardState, mine: Range) -> Verdict:
    """Take a shard without a mark for one that stands where the range begins."""
    if shard.live is None:
        here = Mark(
            epoch=0,
            batch=-1,
            topic_id=mine.attempt.topic_id,
            end=dict(mine.attempt.from_offsets),
            shards=1,
        )
        shard = replace(shard, fence=mine.attempt.fence, live=here, mark=shard.mark or here)
    return decide(shard, mine.attempt)


def older_mark_is_accepted(shard: ShardState, mine: Range) -> Verdict:
    """Go on with a shard that has counted less than the range begins at."""
    verdict = decide(shard, mine.attempt)
    return Verdict.OK if verdict is Verdict.BEHIND else verdict


def any_log(shard: ShardState, mine: Range) -> Verdict:
    """Take a mark for one of this log, whatever it is of."""
    here = mine.attempt.topic_id
    live, mark = of_log(shard.live, here), of_log(shard.mark, here)
    return decide(replace(shard, live=live, mark=mark), mine.attempt)


def of_log(mark: Mark | None, topic_id: str) -> Mark | None:
    """Return a mark as one of some log."""
    return structs.replace(mark, topic_id=topic_id) if mark is not None else None


def reconcile_any_log(found: Found) -> Recovery:
    """Go on by marks of whatever log."""
    marks = [of_log(mark, found.log.topic_id) for mark in found.marks]
    return reconcile(replace(found, marks=marks))


def reconcile_unasked(found: Found) -> Recovery:
    """Go on with whatever log there is, as if somebody had decided to."""
    return reconcile(replace(found, adopt=True))


def nothing_is_gone(found: Found) -> Recovery:
    """Name nothing that a recovery passes."""
    return replace(reconcile(found), gaps=(), given_up=False)


def only_retention_takes(found: Found) -> Recovery:
    """Take a log that is adopted for complete from its start on."""
    return replace(reconcile(found), given_up=False)


def marks_alone_know(found: Found) -> Recovery:
    """Take any log for the one that was counted where no shard has a mark."""
    return reconcile(replace(found, counted_id=None))


def keeps_any_committed_checkpoint(found: Found) -> Recovery:
    """Go on with a checkpoint that stands where the shards do, wherever the log begins."""
    recovery, plan = reconcile(found), found.checkpoint
    ends = [mark.end for mark in found.marks if mark]
    if not found.adopt or plan is None or not plan.committed or recovery.clear:
        return recovery
    if not all(same_offsets(end, plan.to_offsets) for end in ends):
        return recovery
    return Recovery(Verdict.OK, "kept", keep_checkpoint=True, target=dict(plan.to_offsets))


def newest_start(start: Start, _: Start | None) -> Start:
    """Take the newest start's word, whatever its driver had read."""
    return start


def newest_start_but_for_holes(start: Start, before: Start | None) -> Start:
    """Take the newest start's word, but for panes that were said to be incomplete."""
    said = before.incomplete_before_ms if before else 0
    return replace(start, incomplete_before_ms=max(start.incomplete_before_ms, said))


ON_THE_CHAIN = (Verdict.OK, Verdict.DONE, Verdict.BEHIND, Verdict.REWIND)

MUTANTS: dict[str, tuple[Rules, Faults]] = {
    "skip if batch <= last, checkpoint lost": (
        Rules(decide=skip_if_counted),
        replace(CALM, crash=0.02, checkpoint=0.02),
    ),
    "skip if batch <= last, tail lost": (
        Rules(decide=skip_if_counted),
        replace(CALM, crash=0.02, tail=0.02),
    ),
    "batch number without end offsets": (
        Rules(decide=batch_numbers, reconcile=reconcile_numbers),
        replace(CALM, crash=0.02, checkpoint=0.02),
    ),
    "no token": (
        Rules(decide=without_token),
        replace(CALM, version=0.03, wake=0.15, left_behind=0.3),
    ),
    "a counter as token": (
        Rules(new_token=counting_token),
        replace(
            CALM,
            version=0.05,
            wake=0.1,
            tail=0.08,
            left_behind=0.35,
            tail_writes=4,
            steps=250,
            events=0.3,
        ),
    ),
    "marks not verified while quiet": (
        Rules(ticks=False),
        replace(CALM, events=0.1, tail=0.02),
    ),
    "activation at from": (
        Rules(activates_at_from=True),
        replace(CALM, crash=0.04, version=0.03),
    ),
    "no fence": (Rules(decide=without_fence), replace(CALM, second=0.03, pause=0.03)),
    "activation below the floor": (
        Rules(keeps_floor=False),
        replace(CALM, wipe=0.02, tail=0.05, checkpoint=0.02, version=0.03),
    ),
    "clearing in steps that do not hang together": (
        Rules(chains_clearing=False),
        replace(CALM, wipe=0.05, tail=0.2, tail_writes=3, steps=200),
    ),
    "missing mark is a start": (
        Rules(decide=missing_mark_is_a_start),
        replace(CALM, wipe=0.01),
    ),
    "a rebuild without a mark stands at its start": (
        Rules(marks_lanes=False),
        replace(CALM, wipe=0.02, tail=0.05),
    ),
    "a takeover before every shard is filled": (
        Rules(fills_every_shard=False),
        replace(CALM, version=0.03),
    ),
    "a version stops though panes are left to it": (
        Rules(stops_only_what_is_over=False),
        replace(CALM, version=0.03),
    ),
    "marks of another log are taken": (
        Rules(decide=any_log, reconcile=reconcile_any_log),
        replace(CALM, anew=0.02, events=0.5),
    ),
    "the topic is looked at only at a start": (
        Rules(looks_at_topic=False),
        replace(CALM, anew=0.03, events=0.9, steps=300),
    ),
    "what retention took of a batch is passed over": (
        Rules(looks_at_start_of_log=False),
        replace(CALM, retention=0.03, events=0.5),
    ),
    "what retention took of a lane is passed over": (
        Rules(tells_overtaken=False),
        replace(CALM, retention=0.03, wipe=0.02, version=0.03, events=0.5),
    ),
    "what is gone is given up unasked": (
        Rules(reconcile=reconcile_unasked),
        replace(CALM, anew=0.01, retention=0.02, crash=0.02),
    ),
    "what is gone is not named": (
        Rules(reconcile=nothing_is_gone),
        replace(CALM, retention=0.02, crash=0.02, pause=0.02),
    ),
    "a log that is adopted is complete": (
        Rules(reconcile=only_retention_takes),
        replace(CALM, anew=0.02, events=0.5),
    ),
    "with Redis emptied any log is the one that was counted": (
        Rules(reconcile=marks_alone_know),
        replace(CALM, anew=0.02, wipe=0.05, crash=0.05, events=0.5),
    ),
    "panes before a hole are not incomplete": (
        Rules(tells_gone=False),
        replace(CALM, anew=0.01, retention=0.02),
    ),
    "offsets of another log are heeded": (
        Rules(heeds_topic=False),
        replace(CALM, anew=0.006, version=0.06, events=0.5, steps=300),
    ),
    "a committed checkpoint is kept though the log begins later": (
        Rules(reconcile=keeps_any_committed_checkpoint),
        replace(CALM, retention=0.05, pause=0.03),
    ),
    "a start that was overtaken is heeded": (Rules(behind=newest_start), OF_STARTS),
    "a start that was overtaken is heeded but for holes": (
        Rules(behind=newest_start_but_for_holes),
        OF_STARTS,
    ),
    "a driver whose start was overtaken goes on": (Rules(begins_again=False), OF_STARTS),
    "who was paused begins an epoch": (Rules(asks_before_an_epoch=False), OF_STARTS),
    "older mark is accepted": (Rules(decide=older_mark_is_accepted), replace(CALM, tail=0.02)),
}


# One run of some hundred tells these from the rules: begin shortly before one.
FIRST_SEED = {
    "a counter as token": 320,
    "activation below the floor": 2_345,
    "clearing in steps that do not hang together": 700,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    """Some run of the mutant ends wrong, and the same run of the correct rules does not."""
    rules, faults = MUTANTS[name]
    first = FIRST_SEED.get(name, 0)

    seeds = range(first, first + MOST_RUNS)
    seed = next((seed for seed in seeds if run(seed, rules, faults)), None)

    assert seed is not None, f"no run of {seeds} told the mutant from the rules"
    assert run(seed, faults=faults) == []
