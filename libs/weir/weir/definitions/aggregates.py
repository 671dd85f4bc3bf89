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
    "stddev": True,
    "last": True,
}
"""Aggregates without parameter -> whether they need the metric to have a `value`."""

OF_TEXTS: Final = ("distinct", "theta", "top")
"""Aggregates of the texts at a path, which is their parameter."""

USUAL_TOP: Final = 10
MAX_TOP: Final = 100

_PERCENTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d)?)")
_OF_TEXTS: Final = re.compile(rf"({'|'.join(OF_TEXTS)})\((.*)\)", re.DOTALL)
_TOP: Final = re.compile(r"(.*?)(?:,\s*(\d{1,9})\s*)?", re.DOTALL)
SUFFIXES: Final = "|".join(sorted({*PLAIN, "distinct"} - {"rate"}))
"""Words that the Prometheus API puts behind a metric's name, as a pattern: `avg|count|…`."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of a metric.

    Attributes:
        name: As written in definitions and queries: `avg`, `p99.9`, `distinct(subject)`.
        percentile: 99.9 for `p99.9`; None for others.
        path: Whose texts `distinct`, `theta` and `top` are of; None for others.
        items: How many texts `top` lists; 0 for others.
    """

    name: str
    percentile: float | None = None
    path: Path | None = None
    items: int = 0

    @property
    def word(self) -> str:
        """The name without its parameter, by which it is asked: `distinct`."""
        return self.name.partition("(")[0]

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
    of_texts = _OF_TEXTS.fullmatch(text)
    if of_texts is None:
        raise _unknown(text)
    word, inside = of_texts.groups()
    if word == "top":
        return _top(text, inside)
    path = parse_path(inside)
    return Aggregate(f"{word}({path})", path=path)


def _top(text: str, inside: str) -> Aggregate:
    written = _TOP.fullmatch(inside)
    if written is None:
        raise _unknown(text)
    path, items = parse_path(written[1]), int(written[2] or USUAL_TOP)
    if not 1 <= items <= MAX_TOP:
        mend = f"ask for fewer: top({path}, {USUAL_TOP})"
        raise wrong(text, f"a top of 1 to {MAX_TOP} texts", mend)
    return Aggregate(f"top({path}, {items})", path=path, items=items)


def _unknown(text: str) -> ExpressionError:
    names = f"{', '.join(PLAIN)}, p1 to p99.9, distinct(path), theta(path), top(path, n)"
    mend = f"the aggregates are {names}"
    if text in OF_TEXTS:
        mend = f"say of what: {text}(subject)"
    return wrong(text, "an aggregate", mend)
