"""Lines: the cells of one row of windows, where what panes say meets how far time has come.

Here it is decided what a window without rows means. It is a known 0 for count, rate and
sum where every pane is complete and processed-through has passed the window's end; where
not, nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce

from weir.query.aggregates import Percentile
from weir.query.cells import UNKNOWN, ZERO, Cell, combined
from weir.query.facts import Facts
from weir.query.grouping import REST, Group
from weir.query.model import Query
from weir.query.states import COMPLETE, SILENT, window_states, worst
from weir.query.windowed import Result, Windowed
from weir.sketches import Bounded


class CellLine:
    """The cells of one side, or of both sides of an expression combined."""

    def __init__(self, sides: Sequence[Windowed], facts: Facts, query: Query) -> None:
        """Take the sides as they are; the states of all windows are worked out here."""
        letters = [window_states(side.reading, facts) for side in sides]
        self.sides = sides
        self.states = "".join(reduce(worst, of) for of in zip(*letters, strict=True))
        self._op = query.expr.op if query.expr else None
        self._sides = [_Side(side, self.states, facts, fill=query.fill == "auto") for side in sides]

    def groups(self) -> set[Group]:
        """Return every group of any side."""
        return {group for side in self.sides for group in side.groups()}

    def cells(self, group: Group) -> list[Cell]:
        """Return the cells of a group, oldest first."""
        return self._combined([side.results(group) for side in self.sides])

    def merged(self, groups: Iterable[Group], shown: Collection[Group]) -> list[Cell]:
        """Return the cells of several groups together.

        Args:
            groups: Those.
            shown: All others. Of an expression the two sides' `other` are of the same series only
                where none of these is in one of them.
        """
        members = frozenset(groups)
        cells = self._combined([side.merged(members) for side in self.sides])
        if self._op is None or REST not in members:
            return cells
        told = zip(*(side.are_told(shown) for side in self.sides), strict=True)
        return [cell if all(of) else UNKNOWN for cell, of in zip(cells, told, strict=True)]

    def cell_at(self, group: Group, at: int) -> Cell:
        """Return one cell of a group."""
        results = [side.result_at(group, at) for side in self.sides]
        cells = [of.cell(result, at) for of, result in zip(self._sides, results, strict=True)]
        return cells[0] if self._op is None else combined(self._op, *cells)

    def has_few(self, cells: Sequence[Cell]) -> bool:
        """Tell whether some window has events, but too few for the percentile."""
        if not any(isinstance(side.reading.aggregate, Percentile) for side in self.sides):
            return False
        return any(cell.events and cell.value is None for cell in cells)

    def _combined(self, results: Sequence[Sequence[Result]]) -> list[Cell]:
        cells = [side.cells(of) for side, of in zip(self._sides, results, strict=True)]
        if self._op is None:
            return cells[0]
        return [combined(self._op, left, right) for left, right in zip(*cells, strict=True)]


class _Side:
    """What the results of one side mean now.

    What an empty window means depends on the window alone, so it is worked out once and
    not for every series: a live query is mostly windows that did not change.
    """

    def __init__(self, side: Windowed, states: str, facts: Facts, *, fill: bool) -> None:
        aggregate = side.reading.aggregate
        through_ms = facts.processed_through_ms
        nothing = Cell(0, ZERO if aggregate.zero and fill else None)
        self._silent = [letter in SILENT for letter in states]
        self._empty = [
            nothing
            if letter in COMPLETE and through_ms is not None and end_ms <= through_ms
            else UNKNOWN
            for letter, end_ms in zip(states, side.reading.windows.ends_ms, strict=True)
        ]
        self._seconds = _seconds(side, facts) if aggregate.per_second else None

    def cells(self, results: Sequence[Result]) -> list[Cell]:
        """Return the cell of each window."""
        cells = [
            UNKNOWN if silent else result.cell or (empty if result.known else UNKNOWN)
            for result, empty, silent in zip(results, self._empty, self._silent, strict=True)
        ]
        if self._seconds is None:
            return cells
        return [_rate(cell, s) for cell, s in zip(cells, self._seconds, strict=True)]

    def cell(self, result: Result, at: int) -> Cell:
        """Return the cell of one window."""
        if self._silent[at]:
            return UNKNOWN
        cell = result.cell or (self._empty[at] if result.known else UNKNOWN)
        return cell if self._seconds is None else _rate(cell, self._seconds[at])


def _rate(cell: Cell, seconds: float) -> Cell:
    if cell.value is None:
        return cell
    return Cell(cell.events, Bounded(*(end / seconds for end in cell.value)))


def _seconds(side: Windowed, facts: Facts) -> list[float]:
    """Return how many seconds of each window are counted: what a rate is divided by.

    The open window has not lasted its length yet; divided by all of it, a rate would
    seem to fall at the edge of every chart. Of less than a pane it would jump with
    every event. Where panes behind processed-through have rows, some partitions are farther
    than the slowest, which holds it: windows are counted as far as the newest row then, but
    not beyond the present, so that a rate is too low, as its count is, and not many times too
    high. An event that is dated ahead is no sign that time has passed.
    """
    windows, to_ms = side.reading.windows, facts.processed_through_ms
    length_ms, least_ms = windows.length_ms, min(side.reading.served.newest.metric.keep_ms)
    if to_ms is None:
        return [length_ms / 1000] * windows.count
    newest_ms = side.newest_with_rows
    if newest_ms is not None and newest_ms >= to_ms:
        to_ms = max(to_ms, min(newest_ms + side.reading.pane_ms, facts.now_ms))
    starts_ms = (end_ms - length_ms for end_ms in windows.ends_ms)
    return [min(length_ms, max(least_ms, to_ms - at)) / 1000 for at in starts_ms]
