"""Borders: places of a log that ranges of it must not lie on both sides of. Pure.

There are as many as there ever were erasures, and of most of them a range has nothing: so
they are found by bisection. Drivers choose them batch after batch, and mostly each lies behind
the one before in every partition. Where one does not, as in a log that was read back to before
it, a few more are looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate

from weir.commit import Offsets, furthest, not_after


class Borders:
    """Some places, the first ones first.

    Attributes:
        places: Partition -> offset of each; a partition that it does not name is at 0.
    """

    def __init__(self, places: Iterable[Offsets] = ()) -> None:
        """Put places in order.

        Args:
            places: In any order; those of as many records stay in theirs.
        """
        self.places = sorted(places, key=lambda place: sum(place.values()))
        # Of those up to each, and of those from each on: mostly one that is there anyway.
        self._furthest = list(accumulate(self.places, _further))
        self._nearest = list(accumulate(reversed(self.places), _nearer))[::-1]

    def first(self, start: Offsets, end: Offsets) -> Offsets:
        """Return the end of the part of a range that lies before the first border in it."""
        at = bisect_left(
            self._furthest, 1, key=lambda upto: any(upto.get(p, 0) > start.get(p, 0) for p in end)
        )
        while at < len(self.places) and any(
            self._nearest[at].get(p, 0) < n for p, n in end.items()
        ):
            border = self.places[at]
            upto = {p: min(n, max(border.get(p, 0), start.get(p, 0))) for p, n in end.items()}
            end = end if all(n <= start.get(p, 0) for p, n in upto.items()) else upto
            at += 1
        return end

    def passed(self, end: Offsets) -> tuple[int, int]:
        """Return how many of the first borders a range that ends somewhere has a part behind.

        Returns:
            How many it has surely, and how many at most: the same where each border lies behind
            the one before.
        """
        surely = bisect_left(
            self._furthest, 1, key=lambda upto: all(n <= upto.get(p, 0) for p, n in end.items())
        )
        at_most = bisect_left(
            self._nearest, 1, key=lambda low: all(n <= low.get(p, 0) for p, n in end.items())
        )
        return surely, at_most


def _further(a: Offsets, b: Offsets) -> Offsets:
    if not_after(a, b):
        return b
    return a if not_after(b, a) else furthest([a, b])


def _nearer(a: Offsets, b: Offsets) -> Offsets:
    if not_after(a, b):
        return a
    return b if not_after(b, a) else {p: min(n, b.get(p, 0)) for p, n in a.items()}
