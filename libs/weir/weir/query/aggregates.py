"""Aggregates: what is kept of rows while they are merged, and what is read in the end.

Each is a small commutative monoid: `of` makes a part from rows, `join` merges two parts,
`read` gives the value with its bounds. The engine knows nothing else about them, so a
new aggregate is one class, here or there, and one line in `named.py`.

A part is `(n, what is kept)`. Parts are shared between caches: `join` never changes one.
Aggregates of texts are in `aggregates_of_texts.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import datasketches as ds

from weir.frequent import Top
from weir.further import Last, Moments, merge_moments
from weir.rows import Row
from weir.sketches import Bounded, kll_promises, kll_union, quantile_in

Part = tuple[int, Any]
# What a value does not say: the texts of a `top`, the open set of a `theta`.
Found = Top | Any


class Aggregate(Protocol):
    """How one number is computed from rows.

    Attributes:
        zero: Whether no events mean 0 and not "nothing to say".
        per_second: Whether the value is divided by the length of the window.
    """

    zero: bool
    per_second: bool

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the part of at least one row."""
        ...

    def join(self, one: Part, other: Part) -> Part:
        """Return both parts together."""
        ...

    def read(self, part: Part) -> Bounded | None:
        """Return the value; None where the events are too few to say one."""
        ...

    def found(self, part: Part) -> Found | None:
        """Return what is to be said besides a value; None for most aggregates."""
        ...

    def widen(self, value: Bounded, unassigned: Part) -> Bounded | None:
        """Return bounds for when any of `unassigned` events may belong here, too."""
        ...


class Number:
    """An aggregate whose value is all there is to say."""

    per_second = False

    def found(self, part: Part) -> Found | None:  # noqa: ARG002
        """Return None."""
        return None


class Count(Number):
    """How many events; `rate` is the same, a second."""

    zero = True

    def __init__(self, *, per_second: bool) -> None:
        self.per_second = per_second

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the number of events."""
        return sum(row.n for row in rows), None

    def join(self, one: Part, other: Part) -> Part:
        """Return both numbers together."""
        return one[0] + other[0], None

    def read(self, part: Part) -> Bounded | None:
        """Return the number, exactly."""
        return exactly(float(part[0]))

    def widen(self, value: Bounded, unassigned: Part) -> Bounded | None:
        """Return the number with all that may belong here as the high end."""
        return value._replace(high=value.high + unassigned[0])


class NoBounds(Number):
    """What a value could be with unassigned events in it is not worked out: unknown."""

    def widen(self, value: Bounded, unassigned: Part) -> Bounded | None:  # noqa: ARG002
        """Return None."""
        return None


class Sum(NoBounds):
    """The sum of values, or with `average` their mean."""

    def __init__(self, *, average: bool) -> None:
        self.zero = not average

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the sum over rows, rounded once."""
        return sum(row.n for row in rows), math.fsum(row.sum or 0.0 for row in rows)

    def join(self, one: Part, other: Part) -> Part:
        """Return both sums together; sums are only added, so errors do not build up."""
        return one[0] + other[0], one[1] + other[1]

    def read(self, part: Part) -> Bounded | None:
        """Return the sum or the mean."""
        return exactly(part[1] if self.zero else part[1] / part[0])


class Extreme(NoBounds):
    """The smallest or the largest value."""

    zero = False

    def __init__(self, *, largest: bool) -> None:
        self._pick = max if largest else min
        self._name = "max" if largest else "min"

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the extreme of rows; None if no row has a value."""
        found = [getattr(row, self._name) for row in rows]
        return sum(row.n for row in rows), self._picked(found)

    def join(self, one: Part, other: Part) -> Part:
        """Return the extreme of both."""
        return one[0] + other[0], self._picked((one[1], other[1]))

    def read(self, part: Part) -> Bounded | None:
        """Return the extreme, exactly."""
        return None if part[1] is None else exactly(part[1])

    def _picked(self, found: Sequence[float | None]) -> float | None:
        return self._pick((x for x in found if x is not None), default=None)


class Percentile(NoBounds):
    """A percentile, from merged KLL sketches."""

    zero = False

    def __init__(self, q: float) -> None:
        self.q = q

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the union of the rows' sketches."""
        sketches = [row.kll for row in rows if row.kll is not None]
        return sum(row.n for row in rows), kll_union(sketches) if sketches else None

    def join(self, one: Part, other: Part) -> Part:
        """Return the union of both."""
        n = one[0] + other[0]
        if one[1] is None or other[1] is None:
            return n, other[1] if one[1] is None else one[1]
        union = ds.kll_doubles_sketch(max(one[1].k, other[1].k))
        union.merge(one[1])
        union.merge(other[1])
        return n, union

    def read(self, part: Part) -> Bounded | None:
        """Return the percentile with its band; None where the sketch does not carry it."""
        sketch = part[1]
        if sketch is None or not kll_promises(sketch, self.q):
            return None
        return quantile_in(sketch, self.q)


class Deviation(NoBounds):
    """The standard deviation of all values: of a population, since none is left out."""

    zero = False

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the moments of the rows' values together; None if those of some are not known."""
        moments = [_moments(row) for row in rows if row.sum is not None]
        known = [found for found in moments if found is not None]
        whole = len(known) == len(moments) > 0
        return sum(row.n for row in rows), merge_moments(known) if whole else None

    def join(self, one: Part, other: Part) -> Part:
        """Return the moments of both."""
        n = one[0] + other[0]
        if one[1] is None or other[1] is None:
            return n, None
        return n, merge_moments((one[1], other[1]))

    def read(self, part: Part) -> Bounded | None:
        """Return the deviation, as exact as adding doubles is."""
        return None if part[1] is None else exactly(math.sqrt(part[1].spread / part[1].n))


class Newest(NoBounds):
    """The last value: of the greatest event time, and of those the greatest identity."""

    zero = False

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the newest of the rows' last values."""
        found = (row.further.last for row in rows if row.further is not None)
        return sum(row.n for row in rows), _newest(found)

    def join(self, one: Part, other: Part) -> Part:
        """Return the newer of both."""
        return one[0] + other[0], _newest((one[1], other[1]))

    def read(self, part: Part) -> Bounded | None:
        """Return the value, exactly."""
        return None if part[1] is None else exactly(part[1].value)


def _moments(row: Row) -> Moments | None:
    if row.sum is None or row.further is None or row.further.spread is None:
        return None
    return Moments(row.n, row.sum, row.further.spread)


def _newest(found: Iterable[Last | None]) -> Last | None:
    return max((last for last in found if last is not None), default=None)


def exactly(value: float) -> Bounded | None:
    """Return a value that is its own bounds; None if it is not finite."""
    return Bounded(value, value, value) if math.isfinite(value) else None
