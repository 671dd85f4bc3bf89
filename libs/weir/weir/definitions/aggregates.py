"""Aggregates: the words of a metric's `aggregates`, and what each needs to be kept.

A new aggregate is one line in `PLAIN`, or one pattern, here, and its place in the
packed row (`weir/rows.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weir.expressions import Path, parse_path
from weir.expressions.errors import ExpressionError, wrong

PLAIN: Final = {
    "count": False,
    "rate": False,
    "sum": True,
    "avg": True,
    "min": True,
    "max": True,
}
"""Aggregates without parameter -> whether they need the metric to have a `value`."""

_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d)?)")
_DISTINCT: Final = re.compile(r"distinct\((.*)\)", re.DOTALL)
_LATER: Final = frozenset(("stddev", "last", "top"))
SUFFIXES: Final = "|".join(sorted({*PLAIN, *_LATER, "distinct"} - {"rate", "top"}))
"""Words that the Prometheus API puts behind a metric's name, as a pattern: `avg|count|…`."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a metric.

    Attributes:
        name: As written in definitions and queries: `avg`, `p99.9`, `distinct(subject)`.
        percentile: 99.9 for `p99.9`; None for others.
        distinct: What is counted distinct; None for others.
    """

    name: str
    percentile: float | None = None
    distinct: Path | None = None

    @property
    def needs_value(self) -> bool:
        """Whether the metric must say what is measured."""
        return self.percentile is not None or PLAIN.get(self.name, False)


def parse_aggregate(text: str) -> Aggregate:
    """Return an aggregate.

    Raises:
        ExpressionError: If there is none of that name.
    """
    if text in PLAIN:
        return Aggregate(text)
    percentile = _PERCENTILE.fullmatch(text)
    if percentile and 0 < float(percentile[1]) < 100:
        return Aggregate(f"p{float(percentile[1]):g}", percentile=float(percentile[1]))
    distinct = _DISTINCT.fullmatch(text)
    if distinct:
        path = parse_path(distinct[1])
        return Aggregate(f"distinct({path})", distinct=path)
    raise _unknown(text)


def _unknown(text: str) -> ExpressionError:
    names = f"{', '.join(PLAIN)}, p1 to p99.9, distinct(path)"
    mend = f"the aggregates are {names}"
    if text.partition("(")[0] in _LATER:
        mend = f"{text.partition('(')[0]} is not in this version; {mend}"
    elif text == "distinct":
        mend = "say what is counted: distinct(subject)"
    return wrong(text, "an aggregate", mend)
