"""Cells: one window of one series as it is answered, and the arithmetic of two.

A cell is unknown (nothing is said), empty (no events, for certain) or has a count and
mostly a value with bounds. Missing is None, never 0, and no number is ever infinite.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from weir.query.aggregates import Found
from weir.sets import OPERATIONS as OF_SETS
from weir.sets import nothing, set_size
from weir.sketches import Bounded


class Cell(NamedTuple):
    """One window of one series.

    Attributes:
        events: How many; None if that is not known.
        value: The value with its bounds; None if there is none to be said.
        found: What a value does not say: the texts of a `top`, the set of a `theta`.
    """

    events: int | None
    value: Bounded | None
    found: Found | None = None


UNKNOWN: Final = Cell(None, None)
ZERO: Final = Bounded(0.0, 0.0, 0.0)


def combined(op: str, left: Cell, right: Cell) -> Cell:
    """Return the cell of an expression; its value is None unless both sides have one.

    The bounds are the least and the greatest that the operands' bounds allow. The count
    is the number of events that decide whether the result means anything: those of the
    divisor of a ratio, else those of both sides.
    """
    if left.events is None or right.events is None:
        return UNKNOWN
    if op in OF_SETS:
        return _of_sets(op, left, right)
    events = right.events if op == "ratio" else left.events + right.events
    if left.value is None or right.value is None:
        return Cell(events, None)
    return Cell(events, _OPERATIONS[op](left.value, right.value))


def _of_sets(op: str, left: Cell, right: Cell) -> Cell:
    events = (left.events or 0) + (right.events or 0)
    one, other = _set_of(left), _set_of(right)
    if one is None or other is None:
        return Cell(events, None)
    found = OF_SETS[op](one, other)
    return Cell(events, set_size(found), found)


def _set_of(cell: Cell) -> Any:
    """Return the open sketch of a cell, that of nothing if it is empty; None if unknown."""
    if cell.found is not None:
        return cell.found
    empty = cell.events == 0 or (cell.value is not None and cell.value.high == 0.0)
    return nothing() if empty else None


def _ratio(left: Bounded, right: Bounded) -> Bounded | None:
    # A divisor that may be 0 leaves no bound; a value without one is not said.
    if right.low <= 0.0 <= right.high:
        return None
    ends = [a / b for a in (left.low, left.high) for b in (right.low, right.high)]
    return _finite(left.value / right.value, min(ends), max(ends))


def _difference(left: Bounded, right: Bounded) -> Bounded | None:
    return _finite(left.value - right.value, left.low - right.high, left.high - right.low)


def _share(left: Bounded, right: Bounded) -> Bounded | None:
    if left.low < 0.0 or right.low < 0.0 or left.low + right.low == 0.0:
        return None
    low = left.low / (left.low + right.high)
    high = left.high / (left.high + right.low)
    return _finite(left.value / (left.value + right.value), low, high)


def _finite(value: float, low: float, high: float) -> Bounded | None:
    bounded = Bounded(value, low, high)
    return bounded if all(map(math.isfinite, bounded)) else None


_OPERATIONS: Final[dict[str, Callable[[Bounded, Bounded], Bounded | None]]] = {
    "ratio": _ratio,
    "difference": _difference,
    "share": _share,
}
