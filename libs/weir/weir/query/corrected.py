"""What late events changed in the windows that an answer shows as final. Pure.

A correction record is of one series in one pane. An answer tells it of each of its windows that
the pane lies in and that was final when the late events came: what was shown before, and what is
now. Counts and sums are told backwards from what is now, as exactly as that is; everything else (a
least, greatest or last value, a deviation, a percentile, a distinct count) only where the window is
one pane of one series, as its record says it. Of an expression and of a list of texts the events
are told. What is not known has no value from before: `was` is None, as it is where there was
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from weir.corrections import CorrectionRecord, Figures
from weir.query.aggregates import exactly
from weir.query.answer import AnsweredSeries
from weir.query.cells import Cell
from weir.query.grouping import REST, Group, Grouping, k_of
from weir.query.named import short_name
from weir.query.reading import Plan, Reading
from weir.series import OTHER
from weir.sketches import Bounded

MOST: Final = 200
"""How many windows of all series are told, the newest."""


@dataclass(slots=True)
class _Change:
    """What all records say of one window of one series.

    Attributes:
        group: The series; None for all others together.
        events: How many more there are.
        sum: How much the sum of their values grew.
        late_ms: How long after the end of their pane the last of the latest came.
        first: The oldest record.
        rows: Of how many rows of panes they are.
        taken: Their keys: both sides of an expression may read one pane.
    """

    group: Group
    events: int
    sum: float
    late_ms: int
    first: CorrectionRecord
    rows: set[tuple[int, int, str]]
    taken: set[str]

    def take(self, older: CorrectionRecord) -> None:
        """Take in one record more, older than those before; none twice."""
        if older.key in self.taken:
            return
        self.taken.add(older.key)
        self.events += older.events
        self.sum += _sum(older.now) - _sum(older.was)
        self.late_ms = max(self.late_ms, older.late_ms)
        self.first = older
        self.rows.add(_row(older))


def corrected(
    plan: Plan, series: Sequence[AnsweredSeries], records: Iterable[CorrectionRecord]
) -> list[dict[str, Any]]:
    """Return what late events changed, as an answer tells it, the newest windows first.

    Args:
        plan: What was asked.
        series: The series of the answer.
        records: Corrections of the plan's metrics, the newest of each first; those of panes that
            the plan does not read are passed over.
    """
    records, readings = list(records), plan.lines[0].readings
    reading = readings[0]
    before = _unknown if len(readings) > 1 else _BEFORE.get(short_name(reading.name), _as_recorded)
    shown = {one.group: one for one in series}
    changes: dict[tuple[int, Group], _Change] = {}
    for one in readings:
        others = [other for other in readings if other is not one]
        _take_changes(changes, one, others, set(shown), records)
    found: list[dict[str, Any]] = []
    for (at, group), change in changes.items():
        cell = shown[group].cells[at]
        if cell.events is not None and change.events:
            was = before(cell, change, reading)
            found.append(
                {
                    "t_ms": plan.windows.ends_ms[at],
                    "k": k_of(group),
                    **_with_ends("was", was),
                    **_with_ends("is", cell.value),
                    "events": change.events,
                    "late_ms": change.late_ms,
                }
            )
    return sorted(found, key=lambda one: (-one["t_ms"], one["k"]))[:MOST]


def _with_ends(name: str, told: Bounded | None) -> dict[str, float | None]:
    value, low, high = told or (None, None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def _take_changes(
    found: dict[tuple[int, Group], _Change],
    reading: Reading,
    others: Sequence[Reading],
    groups: set[Group],
    records: Sequence[CorrectionRecord],
) -> None:
    """Add what was changed in which window of which of the series that are shown."""
    groupings = dict[int, Grouping]()
    versions = {version.vid: version for version in reading.served.versions}
    for record in records:
        start_ms = record.start_s * 1000
        if reading.keys.get(start_ms) != (record.vid, record.res_s, record.start_s):
            continue
        if record.vid not in groupings:
            groupings[record.vid] = Grouping(versions[record.vid], reading.by, reading.where)
        is_asked, named = groupings[record.vid].of(record.series)
        group = named if named in groups else REST
        # A filter cannot judge `*`: it may be of what is answered, or nothing of it.
        is_told = is_asked and not (record.series == OTHER and reading.where)
        if not is_told or group not in groups:
            continue
        for at in _windows(reading, others, record):
            change = found.get((at, group))
            if change is None:
                change = found[at, group] = _Change(group, 0, 0.0, 0, record, set(), set())
            change.take(record)


def _windows(reading: Reading, others: Sequence[Reading], record: CorrectionRecord) -> range:
    """Return the windows that a pane lies in and that were final when late events came.

    A window of an expression was final when that of each side was: `before` moves one of them.
    """
    windows, start_ms = reading.windows, record.start_s * 1000
    lateness_ms = record.final_ms - start_ms - record.res_s * 1000
    newest_ms = min(start_ms + windows.length_ms, record.received_ms - lateness_ms)
    first = max(0, (start_ms - windows.first_end_ms) // windows.step_ms + 1)
    last = min(windows.count - 1, (newest_ms - windows.first_end_ms) // windows.step_ms)
    for other in others:
        final_ms = record.received_ms - other.served.newest.metric.lateness_ms
        last = min(last, (final_ms - other.windows.first_end_ms) // windows.step_ms)
    return range(first, last + 1)


# ── what a window was before ────────────────────────────────────────────────

_Before = Callable[[Cell, _Change, Reading], Bounded | None]


def _unknown(cell: Cell, change: _Change, reading: Reading) -> Bounded | None:
    del cell, change, reading
    return None


def _count(cell: Cell, change: _Change, reading: Reading) -> Bounded | None:
    del reading
    return _fewer(cell, change, 1.0)


def _rate(cell: Cell, change: _Change, reading: Reading) -> Bounded | None:
    return _fewer(cell, change, reading.windows.length_ms / 1000)


def _fewer(cell: Cell, change: _Change, seconds: float) -> Bounded | None:
    """Return a count before; `other` only grows, so what may belong here was no more then."""
    if cell.value is None or cell.events is None:
        return None
    was, may_belong = (cell.events - change.events) / seconds, cell.value.high - cell.value.value
    return Bounded(was, was, was + may_belong)


def _total(cell: Cell, change: _Change, reading: Reading) -> Bounded | None:
    del reading
    return None if cell.value is None else exactly(cell.value.value - change.sum)


def _mean(cell: Cell, change: _Change, reading: Reading) -> Bounded | None:
    del reading
    if cell.value is None or cell.events is None or cell.events <= change.events:
        return None
    return exactly((cell.value.value * cell.events - change.sum) / (cell.events - change.events))


def _as_recorded(cell: Cell, change: _Change, reading: Reading) -> Bounded | None:
    del cell
    was, name = _only_pane(change, reading), short_name(reading.name)
    if was is None:
        return None
    if name not in _FIGURES:
        return (was.estimates or {}).get(name)
    value = _FIGURES[name](was)
    return None if value is None else exactly(value)


def _only_pane(change: _Change, reading: Reading) -> Figures | None:
    """Return what a window was that is one pane of one series; None if it is more.

    `other` is never one series: a limit puts several there, and a cap a row of each shard.
    """
    if change.group is REST:
        return None
    version = next(v for v in reading.served.versions if v.vid == change.first.vid)
    is_whole = reading.windows.length_ms == reading.pane_ms and len(change.rows) == 1
    is_series = Grouping(version, reading.by, reading.where).leaf
    return change.first.was if is_whole and is_series else None


_BEFORE: Final[dict[str, _Before]] = {
    "count": _count,
    "rate": _rate,
    "sum": _total,
    "avg": _mean,
}

# What a record has as a figure; all else that it has is an estimate.
_FIGURES: Final[dict[str, Callable[[Figures], float | None]]] = {
    "min": attrgetter("min"),
    "max": attrgetter("max"),
    "stddev": attrgetter("stddev"),
    "last": lambda was: None if was.last is None else was.last.value,
}


def _sum(row: Figures | None) -> float:
    return 0.0 if row is None or row.sum is None else row.sum


def _row(record: CorrectionRecord) -> tuple[int, int, str]:
    return record.vid, record.start_s, record.series
