"""The plan of a query: which windows, from which panes of which versions.

A plan is a function of the query, the metrics and the instant, and a refusal says what
was required, what came and what fits. No pane is needed to make one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from weir.definitions.aggregates import parse_aggregate
from weir.definitions.durations import format_duration, parse_duration_ms
from weir.event_time import format_time
from weir.expressions.errors import ExpressionError
from weir.panes import Windows, resolution_for
from weir.problems import ProblemError, Reason, echo
from weir.query.facts import Facts, Served, Version
from weir.query.grouping import lacking
from weir.query.limits import check_multiple, check_panes, check_window, refuse
from weir.query.model import Query, Side
from weir.query.named import ALWAYS, aggregate_named, declared_as, short_name
from weir.query.reading import Line, Note, Plan, Reading, all_kept_since, declares, kept_by
from weir.query.span import windows_of
from weir.sets import OPERATIONS as OF_SETS

_LENGTH = re.compile(r",\s*\d{1,3}\s*\)$")
Metrics = Mapping[str, Served] | Callable[[str], Served | None]


def plan(query: Query, metrics: Metrics, facts: Facts) -> Plan:
    """Return how a query is answered.

    Args:
        query: What is asked.
        metrics: The metrics that are served, by name.
        facts: Only `now_ms` is read here.

    Raises:
        ProblemError: `metric_unknown` (404), `query_invalid` or `query_too_large` (422).
    """
    sides = [(side, _served(side, metrics)) for side in query.sides]
    places = ("",) if query.expr is None else ("/expr/left", "/expr/right")
    for place, (side, served) in zip(places, sides, strict=True):
        _check_side(query, place, side, served.newest)
    _check_kinds(query)
    windows = windows_of(query, [of.newest.metric.keep_ms for _, of in sides], facts.now_ms)
    lines = [Line(None, _readings(query, sides, windows, facts))]
    for at, offset in enumerate(query.compare):
        offset_ms = parse_duration_ms(offset)
        for _, served in sides:
            check_multiple(f"/compare/{at}", offset_ms, min(served.newest.metric.keep_ms))
        earlier = windows.earlier(offset_ms)
        lines.append(Line(offset, _readings(query, sides, earlier, facts)))
    notes = [*_notes_on_range(query, windows), *_notes(lines, facts)]
    made = Plan(query, windows, tuple(lines), tuple(notes))
    check_panes(_panes_to_read(made))
    return made


def _panes_to_read(made: Plan) -> int:
    """Return how many panes a plan reads, before any list of them is made.

    Both sides of an expression on one metric read the same ones; panes that a comparison
    shares with the main line count twice.
    """
    different = {
        (tuple(version.vid for version in r.served.versions), r.windows, r.pane_ms): r.pane_count
        for r in made.readings
    }
    return sum(different.values())


def _served(side: Side, metrics: Metrics) -> Served:
    found = metrics(side.metric) if callable(metrics) else metrics.get(side.metric)
    if found is not None and side.version is not None:
        found = found.only(side.version)
    if found is None:
        which = f'"{echo(side.metric)}"' + (f" version {side.version}" if side.version else "")
        message = f"metric must be one that is served, got {which}; GET /api/v1/metrics lists them"
        raise ProblemError(404, Reason.METRIC_UNKNOWN, message)
    return found


def _check_side(query: Query, place: str, side: Side, version: Version) -> None:
    metric = version.metric
    if not _is_kept(version, side.aggregate):
        names = metric.aggregates if "(" in side.aggregate else map(short_name, metric.aggregates)
        known = ", ".join(dict.fromkeys((*ALWAYS, *names)))
        mend = f"ask for one of them, or declare it in {metric.name}"
        required = f"one that {metric.name} keeps ({known})"
        refuse(f"{place}/aggregate", required, side.aggregate, mend)
    asked = (("/by", name) for name in query.by), (("/where", c[0]) for c in side.where)
    for pointer, name in (*asked[0], *asked[1]):
        if lacking(version, [name]):
            known = ", ".join(metric.dimension_names) or "none"
            mend = f"ask for one of them, or add it to the definition of {metric.name}"
            refuse(pointer, f"a dimension of {metric.name} ({known})", name, mend)


def _is_kept(version: Version, asked: str) -> bool:
    """Tell whether a version keeps an aggregate; one that is written in full, of that path."""
    if aggregate_named(asked) is None or not declares(version, asked):
        return False
    if "(" not in asked:
        return True
    try:
        written = parse_aggregate(asked)
    except ExpressionError:
        return False
    declared = parse_aggregate(declared_as(asked, version.metric.aggregates))
    # A `top` may be asked for without its length.
    is_long = written.items == declared.items or _LENGTH.search(asked) is None
    return written.path == declared.path and is_long


def _check_kinds(query: Query) -> None:
    """Refuse what a list of texts, or what is no set, cannot be asked."""
    names = [short_name(side.aggregate) for side in query.sides]
    if "top" in names and query.expr is not None:
        refuse("/expr", "an expression of numbers", "top", "ask for the top alone")
    if "top" in names and query.compare:
        refuse("/compare", "left out with top", query.compare[0], "ask for the earlier time")
    if query.expr is not None and query.expr.op in OF_SETS and names != ["theta", "theta"]:
        got = next(name for name in names if name != "theta")
        mend = "declare theta(path) in both metrics, and ask for it on both sides"
        refuse("/expr/op", f"{query.expr.op} of two sets", got, mend)


def _readings(
    query: Query, sides: Iterable[tuple[Side, Served]], windows: Windows, facts: Facts
) -> tuple[Reading, ...]:
    return tuple(_reading(query, side, served, (windows, facts.now_ms)) for side, served in sides)


def _reading(query: Query, side: Side, served: Served, when: tuple[Windows, int]) -> Reading:
    windows, now_ms = when
    metric = served.newest.metric
    if side.before is not None:
        windows = _before(side, windows, min(metric.keep_ms))
    since = {pane_ms: all_kept_since(served, pane_ms, now_ms) for pane_ms in metric.keep_ms}
    pane_ms = resolution_for(windows, since)
    aggregate = aggregate_named(declared_as(side.aggregate, metric.aggregates))
    if pane_ms is None or aggregate is None:
        msg = "windows and aggregate must have been checked before panes are chosen"
        raise AssertionError(msg)
    return Reading(
        served=served,
        name=side.aggregate,
        aggregate=aggregate,
        by=tuple(query.by),
        where=tuple(side.where),
        windows=windows,
        pane_ms=pane_ms,
        now_ms=now_ms,
    )


def _before(side: Side, windows: Windows, grain_ms: int) -> Windows:
    """Return the spans that end where windows begin."""
    length_ms = parse_duration_ms(side.before or "")
    check_multiple("/expr/before", length_ms, grain_ms)
    check_window(length_ms, windows.step_ms, grain_ms)
    return replace(windows.earlier(windows.length_ms), length_ms=length_ms)


def _notes_on_range(query: Query, windows: Windows) -> Iterable[Note]:
    """Say what of a range from one instant to another is less than a step, and not shown."""
    to_ms, end_ms = query.range.to_ms, windows.last_end_ms
    if to_ms is not None and end_ms < to_ms:
        span = f"from {_told(end_ms)} to {_told(to_ms)}"
        yield Note("cut", f"{span} is less than a step and left out; ask for a later end")


def _told(at_ms: int) -> str:
    try:
        return format_time(at_ms)
    except OverflowError:  # beyond the year 9999
        return f"{at_ms} ms"


def _notes(lines: Iterable[Line], facts: Facts) -> list[Note]:
    said: dict[Note, None] = {}
    for line in lines:
        for reading in line.readings:
            said.update(dict.fromkeys(_notes_on(reading, facts)))
    return list(said)


def _notes_on(reading: Reading, facts: Facts) -> Iterable[Note]:
    metric, pane = reading.served.newest.metric, format_duration(reading.pane_ms)
    keep, start_ms = metric.keep_ms, reading.windows.start_ms
    finest = min(keep)
    finest_since = kept_by(reading.served.newest, finest, facts.now_ms)
    if finest_since > start_ms and reading.pane_ms > finest:
        kept = f"panes of {format_duration(finest)} are kept for {format_duration(keep[finest])}"
        yield Note("coarser", f"{metric.name} is read from panes of {pane}; {kept}")
    if reading.kept_since_ms > start_ms:
        kept = format_duration(keep[reading.pane_ms])
        yield Note("not_kept", f"panes of {pane} of {metric.name} are kept for {kept} only")
    for version in reading.served.versions:
        if not reading.answered_by(version):
            message = (
                f"version {version.number} of {metric.name} has no {reading.name} or dimension"
            )
            yield Note("version_differs", f"{message} as asked; its panes are left out")
    yield from _notes_on_versions(reading)


def _notes_on_versions(reading: Reading) -> Iterable[Note]:
    """Say of panes that are asked for and of an older version, what is not as in the newest."""
    pane, newest = format_duration(reading.pane_ms), reading.served.newest
    for version, from_ms, to_ms in reading.served.stretches(reading.pane_ms):
        first_ms = max(reading.windows.start_ms, reading.kept_since_ms, from_ms or 0)
        if to_ms is None or first_ms >= to_ms or not reading.answered_by(version):
            continue
        which = f"version {version.number} of {newest.metric.name}"
        if first_ms < kept_by(version, reading.pane_ms, reading.now_ms):
            kept = format_duration(version.metric.keep_ms[reading.pane_ms])
            yield Note("not_kept", f"panes of {pane} of {which} are kept for {kept} only")
        if version.metric.counted != newest.metric.counted:
            message = f"panes that start before {_told(to_ms)} are of {which}"
            yield Note("version_differs", f"{message}, which counts otherwise")
