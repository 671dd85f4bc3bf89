"""The dedup gap that partitions open when they are added to a log. Pure.

What is a duplicate is decided within a partition (RELIABILITY 2.1). Where there are more of them
than before, a retry may reach another one than the event itself did, and nobody there knows of
it: for one horizon such a repeat counts once more. So a driver writes down how many partitions
it has met, and from that everybody knows until when.
"""

from __future__ import annotations

from dataclasses import dataclass

from weir.definitions.fold import Definitions
from weir.definitions.history import Spread
from weir.horizons import horizons_of, longest_ms


@dataclass(frozen=True, slots=True)
class DedupGap:
    """What partitions were added, and until when a repeat may count once more.

    Attributes:
        partitions_before: How many there were.
        partitions: How many there are.
        since_ms: When a driver met the new ones.
        until_ms: One dedup horizon later.
    """

    partitions_before: int
    partitions: int
    since_ms: int
    until_ms: int


def spread_of(definitions: Definitions, topic_id: str) -> Spread | None:
    """Return over how many partitions a log is spread; None: no driver has counted it yet."""
    known = (one for one in reversed(definitions.spreads) if one.topic_id == topic_id)
    return next(known, None)


def dedup_gap(definitions: Definitions, now_ms: int) -> DedupGap | None:
    """Return the gap that added partitions have opened in the log that is counted; None: none.

    Args:
        definitions: The fold.
        now_ms: The present.
    """
    spreads = definitions.spreads
    if len(spreads) < 2 or spreads[-2].topic_id != spreads[-1].topic_id:
        return None
    before, now = spreads[-2:]
    known = horizons_of(definitions, now.topic_id)
    until_ms = now.at_ms + (longest_ms(known) if known else 0)
    if now_ms >= until_ms:
        return None
    return DedupGap(before.partitions, now.partitions, now.at_ms, until_ms)
