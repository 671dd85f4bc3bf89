"""How late events are: R minus event time, in buckets whose edges people would choose.

The buckets are fixed, so counts of them merge by addition and what is said at an edge
is exact: how many events came more than 10 s after they happened. Between two edges
nothing is known, so a percentile is the edge that it lies at or below.

An event is never late for an allowed lateness that is at least its own: its pane ends
after it happened. So the share beyond an edge is the most that would have been late.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

EDGES_MS: Final = (
    0,
    *(n * SECOND for n in (1, 2, 5, 10, 20, 30)),
    *(n * MINUTE for n in (1, 2, 5, 10, 20, 30)),
    *(n * HOUR for n in (1, 2, 6, 12)),
    *(n * DAY for n in (1, 2, 3, 7, 30, 100)),
)
"""Upper edges of the buckets, in milliseconds; what came later than the last has none."""

OFFERED_MS: Final = tuple(edge for edge in EDGES_MS if edge <= DAY)
"""The edges that can be written as an allowed lateness, of which a day is the longest."""

ONE_OF: Final = 1_000
"""What less than one of so many events is later than, loses few enough to be suggested."""

BEYOND: Final = "beyond"
"""The bucket above all edges."""


def edge_of(bucket: str) -> int | None:
    """Return a bucket's upper edge in milliseconds; None for `BEYOND` or a later release's."""
    return int(bucket) if bucket.isdigit() else None


class Lateness:
    """How late the events of one source, or of several, were.

    Attributes:
        events: How many there are.
        counts: How many there are in each bucket.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        """Take the number of events of each bucket."""
        beyond = sum(n for bucket, n in counts.items() if edge_of(bucket) is None)
        known = {edge: n for bucket, n in counts.items() if (edge := edge_of(bucket)) is not None}
        self.counts = dict(counts)
        self._counts: list[tuple[int | None, int]] = [*sorted(known.items()), (None, beyond)]
        self.events = sum(counts.values())

    def __add__(self, other: Lateness) -> Lateness:
        """Return how late the events of both were."""
        buckets = self.counts.keys() | other.counts.keys()
        return Lateness({b: self.counts.get(b, 0) + other.counts.get(b, 0) for b in buckets})

    def later_than(self, late_ms: int) -> int:
        """Return how many came later than that; exact where it is one of the edges."""
        return sum(n for edge, n in self._counts if edge is None or edge > late_ms)

    def suggested_ms(self, longest_ms: int = DAY) -> int | None:
        """Return the shortest length offered that less than 0.1 % came later than.

        None: of those offered there is none, or there is no event.

        Args:
            longest_ms: The longest that may be allowed.
        """
        offered = (edge for edge in OFFERED_MS if edge <= longest_ms)
        return next((e for e in offered if self.later_than(e) * ONE_OF < self.events), None)

    def at_most_ms(self, share: float) -> int | None:
        """Return the edge within which at least a share of the events came.

        Args:
            share: More than 0, at most 1: 0.5 is the median, 1 the latest.

        Returns:
            The edge; None where it lies above all edges, or there is no event.
        """
        seen = 0
        for edge, n in self._counts:
            seen += n
            if n and seen >= share * self.events:
                return edge
        return None
