"""Aggregates of texts: how many different ones, which set they make, which are frequent."""

from __future__ import annotations

from collections.abc import Sequence

import datasketches as ds

from weir.frequent import Top, joined_texts, texts_union, top_of
from weir.query.aggregates import NoBounds, Part, exactly
from weir.rows import Row
from weir.sets import opened, set_size, set_union
from weir.sketches import Bounded, distinct_in, hll_union


class Distinct(NoBounds):
    """How many different values, from merged HLL sketches."""

    zero = False

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
        return exactly(0.0) if part[1] is None else distinct_in(part[1])


class Members(NoBounds):
    """How many different values, from merged theta sketches, and the set that they make."""

    zero = False

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the union of the rows' sets, with its size; None if all are empty."""
        found = [row.further.theta for row in rows if row.further and row.further.theta]
        n = sum(row.n for row in rows)
        if not found:
            return n, None
        lg_k = min(theta.lg_k for theta in found)
        return n, (lg_k, set_union(map(opened, found), lg_k))

    def join(self, one: Part, other: Part) -> Part:
        """Return the union of both."""
        n = one[0] + other[0]
        if one[1] is None or other[1] is None:
            return n, other[1] if one[1] is None else one[1]
        lg_k = min(one[1][0], other[1][0])
        return n, (lg_k, set_union((one[1][1], other[1][1]), lg_k))

    def read(self, part: Part) -> Bounded | None:
        """Return the estimate with its band; 0 where no event had a value."""
        return exactly(0.0) if part[1] is None else set_size(part[1][1])

    def found(self, part: Part) -> ds.compact_theta_sketch | None:
        """Return the set, to be compared with another; None of the empty one."""
        return None if part[1] is None else part[1][1]


class Frequent(NoBounds):
    """The most frequent values, from merged sketches: a list and not a number."""

    zero = False

    def __init__(self, items: int) -> None:
        """Take how many are listed."""
        self.items = items

    def of(self, rows: Sequence[Row]) -> Part:
        """Return the union of the rows' sketches."""
        found = [row.further.top for row in rows if row.further and row.further.top]
        return sum(row.n for row in rows), texts_union(found)

    def join(self, one: Part, other: Part) -> Part:
        """Return the union of both."""
        return one[0] + other[0], joined_texts(one[1], other[1])

    def read(self, part: Part) -> Bounded | None:  # noqa: ARG002
        """Return None: there is no one number."""
        return None

    def found(self, part: Part) -> Top:
        """Return the list; an empty one where no event had a value."""
        return top_of(part[1], self.items)
