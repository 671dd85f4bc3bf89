"""Which ranges of the log lanes are opened for: its start, its hours, its partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
from confluent_kafka import KafkaException
from weir.commit import Offsets, furthest, same_offsets
from weir.commit_found import Level, LogBounds
from weir.definitions.records import OpenLane

from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.passing import first_line
from weir_analytics.panes.shares import shares

LOG = structlog.get_logger()

CHUNK_MS: Final = 6 * 3_600_000
"""How much of the log one rebuild lane counts: the newest is shown first."""
ABOVE_START_MS: Final = 10 * 60_000
"""How far above the log's start a backfill begins, or retention overtakes its first slice."""
NEAR_MS: Final = 10 * 60_000
"""How much of the log a shard that is behind counts before live counting goes on."""
MOST_BESIDE: Final = 8
"""How many lanes are counted at a time: all commit to the same shards, one after the other."""
CLOCK_MS: Final = 5_000
"""How far a broker's clock may be ahead of ours."""


def lanes_beside(cores: int) -> int:
    """Return how many rebuild lanes are opened for the same hours, and counted at a time."""
    return min(cores, MOST_BESIDE)


def near(log: LogOffsets, bounds: LogBounds, ends: Sequence[Offsets]) -> dict[int, int] | None:
    """Return the place `NEAR_MS` of log before where counting was furthest; None if all is there.

    Args:
        log: Answers for the log.
        bounds: What the log holds.
        ends: Where the shards stand, and where batches are known to have ended.
    """
    target = furthest(ends)
    if all(same_offsets(end, target) for end in ends):
        return None
    last = [
        log.received_ms(partition, offset - 1)
        for partition, offset in target.items()
        if bounds.start.get(partition, 0) < offset <= bounds.end.get(partition, 0)
    ]
    if not last:
        return None
    at = log.at(max(last) - NEAR_MS, bounds.end)
    # Where the log itself is not longer, all of it is near.
    whole = {p for p, n in at.items() if n <= bounds.start.get(p, 0)}
    return {p: 0 if p in whole else min(n, target.get(p, 0)) for p, n in at.items()}


def bridge(bounds: LogBounds, level: Level, now_ms: int, *, copies: bool) -> OpenLane:
    """Return the lane that counts what one shard lacks.

    Args:
        bounds: What the log holds.
        level: The range that the shard lacks.
        now_ms: The present.
        copies: Whether it copies to quarantine what cannot be used.
    """
    return OpenLane(
        kind="rebuild",
        topic_id=bounds.topic_id,
        start={p: level.read_from.get(p, 0) for p in level.to_offsets},
        end=dict(level.to_offsets),
        shards=(level.shard,),
        until_ms=now_ms + CLOCK_MS,
        copies=copies,
    )


def backfill(
    log: LogOffsets,
    bounds: LogBounds,
    begin: Offsets,
    vids: Sequence[int],
    *,
    horizon_ms: int,
    now_ms: int,
) -> OpenLane:
    """Return the lane that counts for versions what lies before their activation.

    Args:
        log: Answers for the log.
        bounds: What the log holds.
        begin: The activation offsets.
        vids: The versions.
        horizon_ms: The dedup horizon.
        now_ms: The present.
    """
    start = dict(bounds.start)
    if any(start.values()):
        first_ms = log.first_received_ms(bounds.start, bounds.end, now_ms)
        above = log.at(first_ms + ABOVE_START_MS, bounds.end)
        start = {p: above[p] if n else 0 for p, n in start.items()}
    start = {p: min(n, begin.get(p, 0)) for p, n in start.items() if p in begin}
    return OpenLane(
        kind="backfill",
        topic_id=bounds.topic_id,
        start=start,
        end=dict(begin),
        vids=tuple(vids),
        complete_from_ms=log.complete_from_ms(start, bounds.end, horizon_ms, now_ms),
    )


def _at_or_start(log: LogOffsets, at_ms: int, bounds: LogBounds) -> Offsets:
    """Return the places of an instant, or where the log begins if it does not say them."""
    try:
        return log.at(at_ms, bounds.end)
    except KafkaException as error:
        LOG.warning("old_log_not_read", what="rebuild", error=first_line(error), pause_s=0)
        return bounds.start


def _is_older_gone(log: LogOffsets, end: Offsets, bounds: LogBounds) -> bool:
    """Tell whether the log is known to begin here by now: no hour before has a place in it.

    What retention has taken since the bounds were read is in the oldest lanes: they find out.
    """
    try:
        first = log.start()
    except KafkaException as error:
        LOG.warning("old_log_not_read", what="rebuild", error=first_line(error), pause_s=0)
        return False  # one goes further back, and asks again
    return all(n <= first.get(p, n) for p, n in end.items() if n > bounds.start[p])


def rebuilds(
    log: LogOffsets,
    bounds: LogBounds,
    target: Offsets,
    shards: Sequence[int],
    now_ms: int,
    *,
    beside: int,
) -> list[OpenLane]:
    """Return the lanes that count for lost shards what lies before `target`, newest first.

    Some hours of the log are several lanes, of some partitions each: they are counted at the same
    time, a task for each. What is a duplicate is told by earlier records of a partition, so that
    no lane reads what another one counts.

    Where the log does not say what its older hours are, since part of it cannot be read, they are
    one: its lanes wait, the others do not. The others go as far back as it says any.

    Args:
        log: Answers for the log.
        bounds: What the log holds.
        target: Where live counting goes on.
        shards: The shards that were lost.
        now_ms: The present.
        beside: How many tasks run at a time.
    """
    found: list[OpenLane] = []
    end, until_ms = {p: target.get(p, 0) for p in bounds.start}, now_ms + CLOCK_MS
    chunk_ms, is_idle = CHUNK_MS, True
    while not same_offsets(end, bounds.start):
        begin_ms = until_ms - chunk_ms
        at = _at_or_start(log, begin_ms, bounds)
        start = {p: min(end[p], max(n, bounds.start[p])) for p, n in at.items()}
        # Where nothing was appended for long one goes back twice as far each time, and half as far
        # once that was too far, or as far as what cannot be read. Whatever a broker says, no hour
        # lies before the first one that a time can name.
        is_empty = same_offsets(start, end)
        if not is_empty and chunk_ms > CHUNK_MS:
            chunk_ms, is_idle = chunk_ms // 2, False
            continue
        is_idle = is_idle or chunk_ms == CHUNK_MS
        chunk_ms = chunk_ms * (1 + is_idle) if is_empty else CHUNK_MS
        if begin_ms <= 0 or (is_empty and _is_older_gone(log, end, bounds)):
            start = dict(bounds.start)
        for own in shares({p: n - start[p] for p, n in end.items() if n > start[p]}, beside):
            if own:
                lane = OpenLane(
                    kind="rebuild",
                    topic_id=bounds.topic_id,
                    start={p: start[p] for p in own},
                    end={p: end[p] for p in own},
                    shards=tuple(shards),
                    until_ms=until_ms,
                )
                found.append(lane)
        end, until_ms = start, begin_ms
    return found
