"""Answers: the JSON of the API made from cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from weir.frequent import Top
from weir.query.cells import Cell
from weir.query.facts import Facts
from weir.query.grouping import Group, k_of
from weir.query.named import short_name
from weir.query.reading import Note, Plan, Reading
from weir.series import OTHER, encode_series

_OPERATORS = {
    "ratio": "{0} / {1}",
    "difference": "{0} - {1}",
    "share": "{0} / ({0} + {1})",
    "overlap": "{0} and {1}",
    "only_left": "{0} without {1}",
    "union": "{0} or {1}",
}
_UNITS = {"count": "", "rate": "/s", "distinct": "", "theta": "", "top": ""}


class Compared(NamedTuple):
    """The same series at an earlier time."""

    offset: str
    cells: Sequence[Cell]
    state: str


@dataclass(frozen=True, slots=True)
class AnsweredSeries:
    """One series of an answer.

    Attributes:
        group: The values of its dimensions; None for `other`.
        cells: One a window.
        state: One letter a window.
        compare: The same at earlier times, in the order asked.
        listed: Whether each cell is a list of texts and not a value.
    """

    group: Group
    cells: Sequence[Cell]
    state: str
    compare: Sequence[Compared] = ()
    listed: bool = False

    @property
    def text(self) -> str:
        """Return the text that colour slots are given by."""
        return OTHER if self.group is None else encode_series(self.group)

    def to_dict(self, by: Sequence[str], slot: int) -> dict[str, Any]:
        """Return the series as JSON."""
        found: dict[str, Any] = {
            "k": k_of(self.group),
            "by": {} if self.group is None else dict(zip(by, self.group, strict=True)),
            "slot": slot,
            **self._columns(),
            "count": [cell.events for cell in self.cells],
            "state": self.state,
        }
        if self.group is None:
            found["other"] = True
        if self.compare:
            found["compare"] = [
                {
                    "offset": earlier.offset,
                    **_values(earlier.cells),
                    "count": [cell.events for cell in earlier.cells],
                    "state": earlier.state,
                }
                for earlier in self.compare
            ]
        return found

    def _columns(self) -> dict[str, Any]:
        if self.listed:
            return {"items": [_items(cell) for cell in self.cells]}
        return _values(self.cells)


def _values(cells: Sequence[Cell]) -> dict[str, list[float | None]]:
    """Return the values of cells, each between its ends."""
    values = [cell.value for cell in cells]
    return {
        "value": [None if v is None else v.value for v in values],
        "low": [None if v is None else v.low for v in values],
        "high": [None if v is None else v.high for v in values],
    }


def _items(cell: Cell) -> list[list[Any]] | None:
    """Return the texts of a cell, each with its count and the ends; None if not known.

    Where there may be others, the last has no text: none of them came more often than its
    high end.
    """
    if not isinstance(cell.found, Top):
        return [] if cell.events == 0 else None
    rest: list[list[Any]] = [[None, None, 0, cell.found.unlisted]] if cell.found.unlisted else []
    return [list(item) for item in cell.found.items] + rest


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query is answered with.

    Attributes:
        plan: What was asked and how it was read.
        facts: At which revision.
        final_to_ms: Windows up to here are final; None if nothing is known yet.
        of: How many series match, shown or not.
        notes: What the reader should know.
        series: The series shown.
        states: One letter a window, the same for every series.
    """

    plan: Plan
    facts: Facts
    final_to_ms: int | None
    of: int
    notes: Sequence[Note]
    series: Sequence[AnsweredSeries]
    states: str

    def to_dict(
        self,
        slots: Mapping[str, int] | None = None,
        corrections: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """Return the answer as the API and the live socket send it.

        Args:
            slots: Series text -> colour slot, where given; else the place in the answer.
            corrections: What late events changed, as `corrected` returns it.
        """
        facts, by = self.facts, self.plan.query.by
        slots = slots or {}
        return {
            "metric": _metric(self.plan),
            "epoch": facts.epoch,
            "rev": facts.rev,
            "final_to_ms": self.final_to_ms,
            "fresh": {
                **facts.fresh,
                "status": facts.status,
                "processed_through_ms": facts.processed_through_ms,
            },
            "t_ms": list(self.plan.windows.ends_ms),
            "of": self.of,
            "corrections": list(corrections),
            "notes": [note._asdict() for note in self.notes],
            "series": [
                one.to_dict(by, slots.get(one.text, at)) for at, one in enumerate(self.series)
            ],
        }


def _metric(plan: Plan) -> dict[str, Any]:
    readings = plan.lines[0].readings
    first = readings[0]
    found = {
        "name": first.served.newest.metric.name,
        "version": first.served.newest.number,
        "unit": _unit(first),
        "resolution_ms": max(reading.pane_ms for reading in readings),
        "lateness_ms": max(r.served.newest.metric.lateness_ms for r in readings),
    }
    if plan.query.expr is not None:
        names = [
            f"{reading.served.newest.metric.name}.{reading.name}"
            + (f" in the {side.before} before" if side.before else "")
            for reading, side in zip(readings, plan.query.sides, strict=True)
        ]
        found["name"] = _OPERATORS[plan.query.expr.op].format(*names)
        found["version"] = None
        # Of ms less events there is no unit.
        units = {_unit(reading) for reading in readings}
        found["unit"] = (
            units.pop() if plan.query.expr.op == "difference" and len(units) == 1 else ""
        )
    return found


def _unit(reading: Reading) -> str:
    return unit_of(reading.name, reading.served.newest.metric.unit)


def unit_of(aggregate: str, unit: str) -> str:
    """Return the unit that an aggregate of a metric is told in."""
    return _UNITS.get(short_name(aggregate), unit)
