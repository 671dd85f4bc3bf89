"""How far back an audit reaches, by what that is bounded, and which panes lack what is gone. Pure.

A pane can be counted again only from a lead of a clock before it, as its first events may stand
there, and what they repeat a horizon earlier. Late ones stand anywhere behind it. So the log is
read from there to its end, and who bounds how much is read bounds how old a pane may be. A
received minute of the ledger needs no more than the horizon before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weir.audited import Bound
from weir.event_time import LEAD_LIMIT_MS

from weir_analytics.jobs.log_records import Gap
from weir_analytics.jobs.sample import PaneAt

# The time of a record is told to the millisecond.
MARGIN_MS: Final = 1_000
# The first look for where the log begins; each further one goes twice as far.
FIRST_BACK_MS: Final = 3_600_000
# What a budget allows is found to one part in so many of it, or to the minute: further questions
# would be about old parts of the log, and each may take long.
NEAR_PARTS: Final = 20
NEAR_MS: Final = 60_000


@dataclass(frozen=True)
class Reach:
    """From when on panes are drawn.

    Attributes:
        from_ms: The instant.
        bound: Why it is no earlier one.
        begin_ms: Received time before which nothing may be read; 0: all may be.
    """

    from_ms: int
    bound: Bound
    begin_ms: int


class Margins(NamedTuple):
    """How long before a pane, and before a minute of the ledger, the log is read, in ms."""

    pane_ms: int
    minute_ms: int


def margins(horizon_ms: int) -> Margins:
    """Return the margins of an installation with a dedup horizon."""
    return Margins(LEAD_LIMIT_MS + horizon_ms + MARGIN_MS, horizon_ms + MARGIN_MS)


def reach_of(asked_ms: int, whole_ms: int, begin_ms: int, margin_ms: int, to_ms: int) -> Reach:
    """Return how far back panes are drawn.

    Args:
        asked_ms: From when on they are asked for.
        whole_ms: From when on the log, and what is served, has them whole.
        begin_ms: Received time before which nothing may be read; 0: all may be.
        margin_ms: How long before a pane the log is read.
        to_ms: Up to when they are drawn; where nothing can be drawn it is also the beginning.
    """
    found = {Bound.LAST: asked_ms, Bound.RETENTION: whole_ms}
    if begin_ms:
        found[Bound.RECORDS] = begin_ms + margin_ms
    bound = max(found, key=lambda one: found[one])
    return Reach(min(found[bound], to_ms), bound, begin_ms)


@dataclass
class Search:
    """Looks for the instant since which a log has received about as much as may be read.

    Attributes:
        most: How many records that is.
        now_ms: Since then next to none has come.
        near_ms: Since then no more have come than may be read, as far as was asked.
    """

    most: int
    now_ms: int
    near_ms: int = field(init=False)
    _received: int = 0
    _far_ms: int = 0

    def __post_init__(self) -> None:
        self.near_ms = self.now_ms

    @property
    def next_ms(self) -> int | None:
        """The instant to be asked about next; None: `near_ms` is near enough."""
        is_enough = self._received >= self.most - self.most // NEAR_PARTS
        if is_enough or self.near_ms - self._far_ms <= NEAR_MS:
            return None
        back_ms = max(FIRST_BACK_MS, 2 * (self.now_ms - self.near_ms))
        if not self._far_ms and back_ms < self.now_ms:
            return self.now_ms - back_ms
        return (self.near_ms + self._far_ms) // 2

    def told(self, at_ms: int, received: int | None) -> None:
        """Take how many have come at or after an instant; None: nobody says, so too many."""
        if received is not None and received <= self.most:
            self.near_ms, self._received = at_ms, received
        else:
            self._far_ms = at_ms


def overtaken(
    gaps: Collection[Gap],
    places: Mapping[PaneAt, Mapping[int, int]],
    margin_ms: int,
) -> Iterator[PaneAt]:
    """Yield the panes that may lack a record of what is gone.

    Args:
        gaps: What is gone.
        places: By pane, up to where its partitions were counted when it was looked at.
        margin_ms: How long before such a pane the log is read.
    """
    for pane, ends in places.items():
        if any(_lacks(pane, ends, gap, margin_ms) for gap in gaps):
            yield pane


def _lacks(pane: PaneAt, ends: Mapping[int, int], gap: Gap, margin_ms: int) -> bool:
    if gap.start >= ends.get(gap.partition, 0):
        return False
    # What is gone was received before what stands behind it.
    return gap.received_ms is None or 1000 * pane.start_s - margin_ms <= gap.received_ms
