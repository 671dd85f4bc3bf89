"""Whether a bar is reached, told from the two texts that a result has of it.

What is to be reached is written as clauses, `p50 < 800 ms, p99 < 1500 ms`, each a limit with
the name of its figure before it and the unit behind it, where it has any. Records stand at
the end in brackets and in the same order, `≤ 0.3 core, ≤ 2.5 GB (record 0.15, 1.8)`; a bar
that has only those is written `record ≤ 1 %, ≤ 4 KB`. A clause is about the number that
comes after its name, or before its unit; of several the worst counts. What cannot be read is
said to be so, and never taken for reached.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
CLAUSE = re.compile(rf"(?:(?P<name>\S+) )?(?P<sign>[≥≤<>]) (?P<limit>{NUMBER})(?: (?P<unit>.+))?")
HOLDS: dict[str, Callable[[float, float], bool]] = {
    "≥": operator.ge,
    ">": operator.gt,
    "≤": operator.le,
    "<": operator.lt,
}


class Reached(IntEnum):
    """How a bar stands, the worst first."""

    MISSED = 0  # what was to be reached is not
    UNREADABLE = 1  # one of its texts is none that can be judged
    YES = 2  # reached; there is no record, or it is missed
    RECORD = 3  # the record too
    NONE = 4  # nothing was to be reached


@dataclass(frozen=True)
class Verdict:
    """How a bar stands, and the same in words."""

    reached: Reached
    words: str


@dataclass(frozen=True)
class Clause:
    """One limit.

    Attributes:
        name: What its figure is called, "" if nothing.
        sign: One of `HOLDS`.
        limit: What is to be reached; None if there is only a record.
        record: What would be a record; None if nothing would.
        unit: Of the figure, "" if it has none.
    """

    name: str
    sign: str
    limit: float | None
    record: float | None
    unit: str

    def figures(self, got: str) -> list[float]:
        """Return the numbers in what was measured that this is about."""
        if self.name:
            found = re.findall(rf"(?<!\S){re.escape(self.name)} ({NUMBER})", got)
        elif self.unit:
            found = re.findall(rf"({NUMBER}) {re.escape(self.unit)}(?!\w)", got)
        else:
            found = [got] if re.fullmatch(NUMBER, got) else []
        return [_number(one) for one in found]

    def holds(self, figures: Sequence[float], limit: float) -> bool:
        """Tell whether all figures are within a limit."""
        return all(HOLDS[self.sign](one, limit) for one in figures)

    def short(self, figures: Sequence[float], limit: float) -> str:
        """Say by how much the worst figure is off a limit."""
        most = self.sign in "≤<"
        worst = max(figures) if most else min(figures)
        way = "above" if most else "below"
        share = f" by {_short(100 * abs(worst - limit) / limit)} %" if limit else ""
        name, unit = self.name and f"{self.name} ", self.unit and f" {self.unit}"
        return f"{name}{worst:g}{unit} is {way} {limit:g}{unit}{share}"


def judge(reach: Any, got: Any) -> Verdict:
    """Return how a bar stands.

    Args:
        reach: What is to be reached, as the module says; "" if nothing is.
        got: What was measured.
    """
    if reach == "":
        return Verdict(Reached.NONE, "")
    clauses = read(str(reach))
    if clauses is None:
        return Verdict(Reached.UNREADABLE, "not judged: what is to be reached cannot be read")
    found = [(clause, clause.figures(str(got))) for clause in clauses]
    if not all(figures for _clause, figures in found):
        return Verdict(Reached.UNREADABLE, "not judged: what was measured cannot be read")
    missed = _missed(found, "limit")
    if missed:
        return Verdict(Reached.MISSED, f"**missed**: {missed}")
    if all(clause.record is None for clause in clauses):
        return Verdict(Reached.YES, "reached")
    missed, only = _missed(found, "record"), all(clause.limit is None for clause in clauses)
    if missed:
        return Verdict(Reached.YES, f"{'' if only else 'reached; '}record missed: {missed}")
    return Verdict(Reached.RECORD, "record")


def read(reach: str) -> list[Clause] | None:
    """Return the clauses of what is to be reached; None if that cannot be read."""
    if reach.startswith("record "):
        found = _clauses(reach.removeprefix("record "))
        return found and [replace(one, limit=None, record=one.limit) for one in found]
    usual, _, records = reach.partition(" (record ")
    found = _clauses(usual)
    if found is None or not records:
        return found
    numbers = [re.match(NUMBER, one.lstrip("≥≤<> ")) for one in records.split(", ")]
    if not records.endswith(")") or None in numbers or len(numbers) != len(found):
        return None
    pairs = zip(found, numbers, strict=True)
    return [replace(clause, record=_number(n[0])) for clause, n in pairs if n is not None]


def _clauses(text: str) -> list[Clause] | None:
    found = [CLAUSE.fullmatch(one) for one in text.split(", ")]
    if None in found:
        return None
    return [
        Clause(one["name"] or "", one["sign"], _number(one["limit"]), None, one["unit"] or "")
        for one in found
        if one is not None
    ]


def _missed(found: Sequence[tuple[Clause, list[float]]], kind: str) -> str:
    """Say which limits of a kind are missed; "" if none is."""
    limits = [(clause, figures, getattr(clause, kind)) for clause, figures in found]
    return ", ".join(
        clause.short(figures, limit)
        for clause, figures, limit in limits
        if limit is not None and not clause.holds(figures, limit)
    )


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _short(number: float) -> str:
    """Return a number in two digits, those before the point always in full."""
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"
