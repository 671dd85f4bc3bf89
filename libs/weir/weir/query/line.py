"""Lines: the cells of one row of windows, where what panes say meets how far time has come.

Here it is decided what a window without rows means. It is a known 0 for count, rate and
sum where every pane is complete and processed-through has passed the window's end; where
not, nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from weir.query.aggregates import Percentile
from weir.query.cells import UNKNOWN, ZERO, Cell, combined
from weir.query.facts import Facts
from weir.query.grouping import Group
from weir.query.model import Query
from weir.query.states import COMPLETE, SILENT, window_states, worst
from weir.query.windowed import Result, Windowed
from weir.sketches import Bounded


class _Counted(NamedTuple):
    """How far one window is counted.

    Attributes:
        whole: Whether processed-through has passed its end.
        seconds: How much of it is counted; what a rate is divided by.
    """

    whole: bool
    seconds: float


class CellLine:
    """The cells of one side, or of both sides of an expression combined."""

    def __init__(self, sides: Sequence[Windowed], facts: Facts, query: Query) -> None:
        """Take the sides as they are; the states of all windows are worked out here."""
        self.sides = sides
        self.few = False
        """Whether some window had events and no percentile to be said of them."""
        self._op = query.expr.op if query.expr else None
        self._fill = query.fill == "auto"
        letters = [window_states(side.reading, facts) for side in sides]
        self.states = "".join(reduce(worst, of) for of in zip(*letters, strict=True))
        self._counted = [_counted(side, facts) for side in sides]

    def groups(self) -> set[Group]:
        """Return every group of any side."""
        return {group for side in self.sides for group in side.groups()}

    def cells(self, group: Group) -> list[Cell]:
        """Return the cells of a group, oldest first."""
        return self._combined([side.results(group) for side in self.sides])

    def merged(self, groups: Iterable[Group]) -> list[Cell]:
        """Return the cells of several groups together."""
        members = frozenset(groups)
        return self._combined([side.merged(members) for side in self.sides])

    def cell_at(self, group: Group, at: int) -> Cell:
        """Return one cell of a group."""
        return self._cell([side.result_at(group, at) for side in self.sides], at)

    def _combined(self, results: Sequence[Sequence[Result]]) -> list[Cell]:
        return [self._cell(of, at) for at, of in enumerate(zip(*results, strict=True))]

    def _cell(self, results: Sequence[Result], at: int) -> Cell:
        if self.states[at] in SILENT:
            return UNKNOWN
        cells = [self._of_side(side, result, at) for side, result in enumerate(results)]
        return cells[0] if self._op is None else combined(self._op, cells[0], cells[1])

    def _of_side(self, side: int, result: Result, at: int) -> Cell:
        aggregate = self.sides[side].reading.aggregate
        counted = self._counted[side][at]
        if result.part is None:
            empty = result.known and counted.whole and self.states[at] in COMPLETE
            return Cell(0, ZERO if aggregate.zero and self._fill else None) if empty else UNKNOWN
        events, value = result.part[0], result.value
        if value is None:
            self.few = self.few or isinstance(aggregate, Percentile)
        elif aggregate.per_second:
            value = Bounded(*(end / counted.seconds for end in value))
        return Cell(events, value)


def _counted(side: Windowed, facts: Facts) -> list[_Counted]:
    windows = side.reading.windows
    # Of less than a pane a rate would jump with every event.
    least_ms = min(side.reading.served.newest.metric.keep_ms)
    through_ms = facts.processed_through_ms
    length_ms, found = windows.length_ms, []
    for end_ms in windows.ends_ms:
        whole = through_ms is not None and end_ms <= through_ms
        # The open window has not lasted its length yet: divided by all of it, a rate
        # would seem to fall at the edge of every chart.
        done_ms = length_ms if whole or through_ms is None else through_ms - (end_ms - length_ms)
        found.append(_Counted(whole, min(length_ms, max(least_ms, done_ms)) / 1000))
    return found
