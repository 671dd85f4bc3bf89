"""Aggregates: what is kept of rows while they are merged, and what is read in the end.

Each is a small commutative monoid: `of` makes a part from rows, `join` merges two parts,
`read` gives the value with its bounds. The engine knows nothing else about them, so a
new aggregate is one class here and one line in `_PLAIN` or `aggregate_named`.

A part is `(n, what is kept)`. Parts are shared between caches: `join` never changes one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final, Protocol

import datasketches as ds

from weir.rows import Row
from weir.sketches import Bounded, distinct_in, hll_union, kll_carries, kll_union, quantile_in

Part = tuple[int, Any]


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

    def widen(self, value: Bounded, unassigned: Part) -> Bounded | None:
        """Return bounds for when any of `unassigned` events may belong here, too."""
        ...


class Count:
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
        return _exact(float(part[0]))

    def widen(self, value: Bounded, unassigned: Part) -> Bounded | None:
        """Return the number with all that may belong here as the high end."""
        return value._replace(high=value.high + unassigned[0])


class _NoBounds:
    """What a value could be with unassigned events in it is not worked out: unknown."""

    def widen(self, value: Bounded, unassigned: Part) -> Bounded | None:  # noqa: ARG002
        """Return None."""
        return None


class Sum(_NoBounds):
    """The sum of values, or with `average` their mean."""

    per_second = False

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
        return _exact(part[1] if self.zero else part[1] / part[0])


class Extreme(_NoBounds):
    """The smallest or the largest value."""

    zero = False
    per_second = False

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
        return None if part[1] is None else _exact(part[1])

    def _picked(self, found: Sequence[float | None]) -> float | None:
        return self._pick((x for x in found if x is not None), default=None)


class Percentile(_NoBounds):
    """A percentile, from merged KLL sketches."""

    zero = False
    per_second = False

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
        if sketch is None or not kll_carries(sketch.n, sketch.k, self.q):
            return None
        return quantile_in(sketch, self.q)


class Distinct(_NoBounds):
    """How many different values, from merged HLL sketches."""

    zero = False
    per_second = False

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the union of the rows' sketches."""
        sketches = [row.hll for row in rows if row.hll is not None]
        union = hll_union(sketches).get_result(ds.HLL_8) if sketches else None
        return sum(row.n for row in rows), union

    def join(self, one: Part, other: Part) -> Part:
        """Return the union of both."""
        n = one[0] + other[0]
        if one[1] is None or other[1] is None:
            return n, other[1] if one[1] is None else one[1]
        union = ds.hll_union(one[1].lg_config_k)
        union.update(one[1])
        union.update(other[1])
        return n, union.get_result(ds.HLL_8)

    def read(self, part: Part) -> Bounded | None:
        """Return the estimate with its band; 0 where no event had a value."""
        return _exact(0.0) if part[1] is None else distinct_in(part[1])


_PLAIN: Final[dict[str, Aggregate]] = {
    "count": Count(per_second=False),
    "rate": Count(per_second=True),
    "sum": Sum(average=False),
    "avg": Sum(average=True),
    "min": Extreme(largest=False),
    "max": Extreme(largest=True),
    "distinct": Distinct(),
}
_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d{1,3})?)")
# Kept with every row, so that they need no declaration.
ALWAYS: Final = ("count", "rate")


def aggregate_named(name: str) -> Aggregate | None:
    """Return the aggregate of a name such as `avg`, `p99` or `distinct`; None if unknown."""
    percentile = _PERCENTILE.fullmatch(name)
    if percentile and float(percentile[1]) > 0:
        # Read as a decimal: 99.9 / 100 is not the double nearest to 0.999.
        return Percentile(float(percentile[1] + "e-2"))
    return _PLAIN.get(short_name(name))


def short_name(declared: str) -> str:
    """Return what a declared aggregate is asked by: `distinct(subject)` is `distinct`."""
    return declared.partition("(")[0]


def _exact(value: float) -> Bounded | None:
    return Bounded(value, value, value) if math.isfinite(value) else None
