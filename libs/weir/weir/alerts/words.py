"""What an alert says in words: the title and text of its messages.

Numbers are written as the dashboard writes them: three digits, and thousands as k, M, G, T.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from weir.alerts.machine import Point
from weir.alerts.step import Kind, Transition
from weir.definitions.durations import format_duration
from weir.definitions.rule import Rule

NONE: Final = "-"
_SCALES: Final = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
_BYTES: Final = re.compile(r"(?:B|bytes)(/s)?")
_PLACEHOLDER: Final = re.compile(r"\{([a-z0-9_.]+)\}")
_SIGNS: Final = {"above": ">", "below": "<", "outside": "outside"}


@dataclass(frozen=True, slots=True)
class Subject:
    """What an alert is about.

    Attributes:
        rule: The rule.
        by: Its dimensions and their values; None for an event without one.
        unit: Of the aggregate; empty for none.
    """

    rule: Rule
    by: Mapping[str, str | None]
    unit: str = ""

    @property
    def asked(self) -> str:
        """What the number is: the aggregate, or what a signal says."""
        return self.rule.aggregate if self.rule.signal is None else self.rule.signal.says

    def number(self, value: float | None) -> str:
        """Return a value as it is said: with its unit, and the ages of signals as durations."""
        if self.rule.signal is None or self.unit != "s" or value is None:
            return with_unit(value, self.unit)
        return format_duration(round(value) * 1000)


def short(value: float | None) -> str:
    """Return a value with three digits, such as `617` or `18.2 k`; a hyphen for none."""
    if value is None or not math.isfinite(value):
        return NONE
    size = float(f"{abs(value):.3g}")
    for least, divisor, suffix in _SCALES:
        if size >= least:
            return f"{_three(value / divisor)} {suffix}"
    return _three(value)


def with_unit(value: float | None, unit: str) -> str:
    """Return a value and its unit, such as `617 ms`, `172 kB` or `2.7/s`."""
    text = short(value)
    if text == NONE or not unit:
        return text
    found = _BYTES.fullmatch(unit)
    if found:
        digits, _, suffix = text.partition(" ")
        return f"{digits} {suffix}B{found[1] or ''}"
    return f"{text}{unit}" if unit.startswith("/") else f"{text} {unit}"


def limit_of(subject: Subject) -> str:
    """Return a rule's limit as its messages say it."""
    limit = subject.rule.limit
    if isinstance(limit, tuple):
        return f"{short(limit[0])} to {subject.number(limit[1])}"
    return subject.number(limit)


def title(subject: Subject, told: Transition) -> str:
    """Return the one line that says what has happened."""
    rule = subject.rule
    name = rule.name.replace("_", " ").capitalize()
    value = subject.number(told.point.value if told.point else None)
    crossed = f"{subject.asked} {value} {_SIGNS[rule.side]} {limit_of(subject)}"
    silence = f"no data for {format_duration(rule.no_data.tell_after)}"
    said = {
        Kind.FIRING: crossed if told.point else silence,
        Kind.CONFIRMED: f"confirmed, {crossed}",
        Kind.AMENDED: f"{subject.asked} was {value}, not {subject.number(told.before)}",
        Kind.WITHDRAWN: _withdrawn(subject, told),
        Kind.RESOLVED: f"resolved, {subject.asked} {value}",
        Kind.ENDED: f"ended, {told.reason}",
        Kind.NO_DATA: silence,
    }
    return f"{name}: {said.get(told.kind, told.kind.value)}{_where(subject)}"


def text(subject: Subject, told: Transition) -> str:
    """Return what stands below the title: the rule's own message, the numbers, the verdict."""
    lines = [filled(subject, told.point)] if subject.rule.message else []
    if subject.rule.signal is not None:
        # No window of events: one reading, which is exact and final.
        return "\n".join(lines)
    point = told.point
    if point is not None and point.value is not None:
        lines.append(_numbers(point, subject.unit))
    if (band := _band(told.before_low, told.before_high, subject.unit)) is not None:
        lines.append(f"Before: {band}.")
    if told.kind in (Kind.FIRING, Kind.AMENDED):
        lines.append(
            "Every event of it is in."
            if told.confirmed
            else "Provisional: late events may still change it."
        )
    return "\n".join(lines)


def filled(subject: Subject, point: Point | None) -> str:
    """Return the rule's message with its placeholders filled in; an unknown one stays.

    `{value} {unit} {limit} {rule} {metric} {aggregate} {window} {severity}` and the names of
    the rule's dimensions.
    """
    rule = subject.rule
    known = {name: _said(value) for name, value in subject.by.items()} | {
        "value": short(point.value if point else None),
        "unit": subject.unit,
        "limit": rule.limit_text,
        "rule": rule.name,
        "metric": rule.metric,
        "aggregate": rule.aggregate,
        "window": format_duration(rule.window.length),
        "severity": rule.severity,
    }
    return _PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), rule.message)


def _three(value: float) -> str:
    return format(Decimal(f"{value:.3g}"), ",f")


def _withdrawn(subject: Subject, told: Transition) -> str:
    before = subject.number(told.before)
    now = subject.number(told.point.value if told.point else None)
    return f"withdrawn, {subject.asked} was {now}, not {before}"


def _numbers(point: Point, unit: str) -> str:
    events = "1 event" if point.events == 1 else f"{point.events or 0:,} events"
    band = _band(point.low, point.high, unit)
    return f"{events}, exact." if band is None else f"{events}; {band}."


def _band(low: float | None, high: float | None, unit: str) -> str | None:
    """Return the bounds of an estimate; None of what is exact, or was not told."""
    if low is None or high is None or low == high:
        return None
    return f"error band {short(low)} to {with_unit(high, unit)}"


def _where(subject: Subject) -> str:
    values = [_said(value) for value in subject.by.values()]
    return f" in {', '.join(values)}" if values else ""


def _said(value: str | None) -> str:
    return "(none)" if value is None else value
