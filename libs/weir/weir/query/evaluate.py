"""The evaluator: panes in, an answer out, again and again at little cost.

Made once for a query and kept as long as somebody watches it. At each revision it is
moved on to the plan of the moment, given the panes that changed or are new, and asked
for the answer; `answer` does all of it once. Both give the same, whatever order and
whatever batches the panes came in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from weir.query.aggregates_of_texts import Frequent
from weir.query.answer import Answer, AnsweredSeries, Compared
from weir.query.cells import Cell
from weir.query.facts import Facts, PaneKey, PaneRows
from weir.query.grouping import REST, Group
from weir.query.limits import check_series
from weir.query.line import CellLine
from weir.query.reading import Note, Plan
from weir.query.states import final_to
from weir.query.windowed import Windowed

Changed = Mapping[PaneKey, PaneRows | None]


def answer(plan: Plan, panes: Changed, facts: Facts) -> Answer:
    """Return the answer to a query from the panes of its plan.

    Args:
        plan: What to read and how.
        panes: Rows by pane; a pane that is not there may be absent or None.
        facts: How far counting has come.

    Raises:
        ProblemError: `query_too_large`, if more series match than may be answered.
    """
    return Evaluator(plan).update(panes, facts)


class Evaluator:
    """Answers one query at one revision after another."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lines = [[Windowed(reading) for reading in line.readings] for line in plan.lines]

    def advance(self, plan: Plan) -> None:
        """Go on to a later plan of the same query."""
        self._plan = plan
        self._lines = [
            [
                windowed if windowed.follow(reading) else Windowed(reading)
                for windowed, reading in zip(old, line.readings, strict=True)
            ]
            for old, line in zip(self._lines, plan.lines, strict=True)
        ]

    def missing(self) -> frozenset[PaneKey]:
        """Return the panes of the plan that were never given: to be read next."""
        return frozenset(
            windowed.reading.keys[start_ms]
            for windowed in self._all()
            for start_ms in windowed.missing()
        )

    def update(self, changed: Changed, facts: Facts, also: Iterable[Group] = ()) -> Answer:
        """Take panes as they are now and return the answer.

        Args:
            changed: Panes that are new or have changed, whole; None where there is no
                such pane. Panes that are not part of the plan are ignored.
            facts: How far counting has come.
            also: Groups to answer for even if no pane of the plan has a row of theirs.

        Raises:
            ProblemError: `query_too_large`, if more series match than may be answered.
        """
        for windowed in self._all():
            windowed.take(_of_reading(windowed, changed))
        return _Answering(self._plan, self._lines, facts).answer(also)

    def _all(self) -> Iterable[Windowed]:
        return (windowed for line in self._lines for windowed in line)


def _of_reading(windowed: Windowed, changed: Changed) -> dict[int, PaneRows | None]:
    keys = windowed.reading.keys
    found = ((key[2] * 1000, key, rows) for key, rows in changed.items())
    return {start_ms: rows for start_ms, key, rows in found if keys.get(start_ms) == key}


class _Answering:
    """One answer in the making."""

    def __init__(self, plan: Plan, lines: Sequence[Sequence[Windowed]], facts: Facts) -> None:
        self._plan = plan
        self._facts = facts
        self._lines = [CellLine(of, facts, plan.query) for of in lines]
        self._main = self._lines[0]
        aggregate = plan.lines[0].readings[0].aggregate
        self._listed = isinstance(aggregate, Frequent)
        # How many values a cell has.
        self._width = aggregate.items + 1 if isinstance(aggregate, Frequent) else 1

    def answer(self, also: Iterable[Group]) -> Answer:
        """Return it."""
        # Who is compared with an earlier time looks for series that are gone since, too.
        matching = set(also).union(*(line.groups() for line in self._lines))
        named = matching - {REST}
        shown, rest = self._choose(named)
        if REST in matching:
            rest = rest | {REST}
        check_series(len(shown), self._plan.windows.count * len(self._lines) * self._width)
        series = [self._series(group) for group in shown]
        if rest and (self._plan.query.limit is None or self._plan.query.limit.other):
            series.append(self._rest(rest, shown))
        finals = [final_to(windowed.reading, self._facts) for windowed in self._main.sides]
        final_to_ms = min((f for f in finals if f is not None), default=None)
        notes = self._notes(series)
        states = self._main.states
        return Answer(self._plan, self._facts, final_to_ms, len(named), notes, series, states)

    def _choose(self, named: set[Group]) -> tuple[list[Group], set[Group]]:
        """Return the series to show, in order, and those that go into `other`."""
        limit = self._plan.query.limit
        if limit is None or len(named) <= limit.top:
            return sorted(named, key=_by_name), set()
        last = self._newest_counted()
        ranked = sorted(named, key=lambda group: (self._rank(group, last), _by_name(group)))
        return ranked[: limit.top], set(ranked[limit.top :])

    def _newest_counted(self) -> int:
        """Return the place of the newest window that is counted to its end, else the last."""
        through_ms = self._facts.processed_through_ms
        ends = self._plan.windows.ends_ms
        counted = [] if through_ms is None else [i for i, t in enumerate(ends) if t <= through_ms]
        return counted[-1] if counted else len(ends) - 1

    def _rank(self, group: Group, at: int) -> tuple[bool, float]:
        cell = self._main.cell_at(group, at)
        if self._listed:
            return cell.events is None, -float(cell.events or 0)
        return cell.value is None, 0.0 if cell.value is None else -cell.value.value

    def _series(self, group: Group) -> AnsweredSeries:
        cells, *earlier = [line.cells(group) for line in self._lines]
        return self._answered(group, cells, earlier)

    def _rest(self, groups: set[Group], shown: Collection[Group]) -> AnsweredSeries:
        cells, *earlier = [line.merged(groups, shown) for line in self._lines]
        return self._answered(REST, cells, earlier)

    def _answered(
        self, group: Group, cells: list[Cell], earlier: list[list[Cell]]
    ) -> AnsweredSeries:
        planned = zip(self._plan.lines[1:], earlier, self._lines[1:], strict=True)
        compare = [Compared(of.offset or "", then, line.states) for of, then, line in planned]
        return AnsweredSeries(group, cells, self._main.states, compare, self._listed)

    def _notes(self, series: Iterable[AnsweredSeries]) -> list[Note]:
        notes = list(self._plan.notes)
        if any(windowed.capped() for line in self._lines for windowed in line.sides):
            message = "more series than the metric keeps; those without a row of their own are "
            notes.append(Note("capped", message + 'in "other" and not known one by one'))
        if any(self._main.has_few(one.cells) for one in series):
            message = "windows with too few events for the percentile, or too many for its sketch, "
            notes.append(Note("few", message + "have a count and no value"))
        return notes


def _by_name(group: Group) -> tuple[tuple[bool, str], ...]:
    """Return what groups are sorted by: their values in order, null last."""
    return tuple((value is None, value or "") for value in group or ())
