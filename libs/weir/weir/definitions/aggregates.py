"""Aggregates: the words of a metric's `aggregates`, and what each needs to be kept.

A new aggregate is one line in `PLAIN`, or one pattern, here, and its place in the
packed row (`weir/rows.py`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weir.definitions.sketch_sizes import MAX_KLL_K
from weir.expressions import Path, parse_number, parse_path, parse_where
from weir.expressions.errors import ExpressionError, moved, wrong
from weir.expressions.parse import located
from weir.problems import echo
from weir.sketches import GREATEST_KLL_K, least_kll_k

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

_PERCENTILE: Final = re.compile(r"p(\d+(?:\.\d+)?)")
# Two digits before the point and one behind it: those that a sketch of some size carries.
_CARRIED: Final = re.compile(r"\d{1,2}(?:\.\d0{0,2})?")
LEAST_PERCENTILE, GREATEST_PERCENTILE = 0.1, 99.9
_OF_TEXTS: Final = re.compile(rf"({'|'.join(OF_TEXTS)})\((.*)\)", re.DOTALL)
_TOP: Final = re.compile(r"(.*?)(?:,\s*(\d{1,9})\s*)?", re.DOTALL)
# What SQL counts where it counts every event.
_EVERY: Final = ("", "*", "1")
_DISTINCT: Final = re.compile(r"distinct\b\s*", re.IGNORECASE)
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
        ExpressionError: If there is none of that name, with the place.
    """
    return located(text, lambda: _parse(text))


def _parse(text: str) -> Aggregate:
    if text in PLAIN:
        return Aggregate(text)
    percentile = _PERCENTILE.fullmatch(text)
    if percentile:
        return _percentile(text, percentile[1])
    of_texts = _OF_TEXTS.fullmatch(text)
    if of_texts is None:
        raise _unknown(text)
    word, inside = of_texts.groups()
    if word == "top":
        return _top(of_texts)
    path = _path(inside, of_texts.start(2))
    return Aggregate(f"{word}({path})", path=path)


def _path(text: str, start: int) -> Path:
    """Return the path that begins at a character of an aggregate."""
    try:
        return parse_path(text)
    except ExpressionError as error:
        raise moved(error, start) from None


def _percentile(text: str, digits: str) -> Aggregate:
    of = float(digits)
    if _CARRIED.fullmatch(digits) and of > 0:
        return Aggregate(f"p{of:g}", percentile=of)
    required = f"a percentile from p{LEAST_PERCENTILE} to p{GREATEST_PERCENTILE}, such as p95"
    if of in (0, 100):
        raise wrong(text, required, f"write {'max' if of else 'min'}, which is exact", 0)
    if of > 100:
        near = f"{digits[:2]}.{digits[2:3]}"
        mend = f"write p{near} if that is meant" if digits.isdecimal() else "ask for a smaller one"
        raise wrong(text, required, mend, 0)
    least = least_kll_k(min(of, 100 - of) / 100)
    if least is not None and least <= MAX_KLL_K:
        raise wrong(text, f"{required}, with one digit behind the point", f"write p{of:.1f}", 0)
    takes = f"of {least}" if least is not None else f"beyond the {GREATEST_KLL_K} that there are"
    mend = (
        f"{text} takes a kll_k {takes}, and {MAX_KLL_K} is the largest that is allowed; "
        f"the most extreme are p{LEAST_PERCENTILE} and p{GREATEST_PERCENTILE}"
    )
    raise wrong(text, "a percentile that a sketch carries", mend, 0)


def _top(found: re.Match[str]) -> Aggregate:
    written, start = _TOP.fullmatch(found[2]), found.start(2)
    if written is None:
        raise _unknown(found[0])
    path, items = _path(written[1], start), int(written[2] or USUAL_TOP)
    if not 1 <= items <= MAX_TOP:
        mend = f"{'ask for fewer' if items else 'ask for some'}: top({path}, {USUAL_TOP})"
        raise wrong(written[2], f"a top of 1 to {MAX_TOP} texts", mend, start + written.start(2))
    return Aggregate(f"top({path}, {items})", path=path, items=items)


def _unknown(text: str) -> ExpressionError:
    word, bracket, inside = text.partition("(")
    name, percentile = word.strip().lower(), _PERCENTILE.fullmatch(word)
    if percentile:
        _percentile(word, percentile[1])
    if bracket and (name in PLAIN or percentile):
        return _with_operand(text, name, inside.strip(), len(word))
    percentiles = f"p{LEAST_PERCENTILE} to p{GREATEST_PERCENTILE}"
    names = f"{', '.join(PLAIN)}, {percentiles}, distinct(path), theta(path), top(path, n)"
    near = difflib.get_close_matches(name, (*PLAIN, *OF_TEXTS), n=1)
    hint = f'did you mean "{near[0]}"? ' if near and near[0] != text else ""
    if text in OF_TEXTS:
        return wrong(text, "an aggregate", f"say of what: {text}(subject)", 0)
    return wrong(text, "an aggregate", f"{hint}the aggregates are {names}", 0)


def _with_operand(text: str, name: str, inside: str, at: int) -> ExpressionError:
    """Return the error of an aggregate that says, as in SQL, of what it is.

    Args:
        text: The whole.
        name: Of the aggregate.
        inside: What stands behind the bracket, with the one that closes it if there is one.
        at: Where the bracket stands.
    """
    if inside.count(")") > inside.count("("):
        inside = inside.removesuffix(")")
    distinct = _DISTINCT.match(inside)
    operand = inside[distinct.end() if distinct else 0 :].strip()
    # The smallest of distinct values is the smallest of all.
    if distinct and name not in ("min", "max"):
        return wrong(text, "an aggregate", _of_distinct(name, operand), 0)
    if PLAIN.get(name, True):
        measured = _taken(operand, parse_number) or "data.amount"
        mend = f"write {name}; what is measured says the metric: value: {measured}"
    elif operand in _EVERY:
        mend = f"write {name}; it is events that are counted"
    else:
        mend = f"write {name}; which events are counted says the metric: {_where(operand)}"
    at = at if text.startswith(name) else 0
    return wrong(text[at:], f"{name} alone", mend, at)


def _of_distinct(name: str, operand: str) -> str:
    """Return what to write for an aggregate of distinct values, of which there is only a count."""
    path = _taken(operand.strip("() "), parse_path)
    if name == "count":
        return f"write distinct({path})" if path else "name one path: distinct(subject)"
    how_many = f", or distinct({path}) for how many there are" if path else ""
    return f"there is no {name} of distinct values: write {name} for that of all{how_many}"


def _where(operand: str) -> str:
    """Return the member that says what is counted: where it holds, or where it is there."""
    path = _taken(operand.strip("() "), parse_path)
    if path:
        return f"where: {path} is not null"
    found = _taken(operand, parse_where) or _taken(f"({operand}) is not null", parse_where)
    return f"where: {found}" if found else "by where, such as where: data.status >= 500"


def _taken(operand: str, parse: Callable[[str], object]) -> str | None:
    """Return an operand, to say it again; None if the language does not take it."""
    try:
        parse(operand)
    except ExpressionError:
        return None
    return echo(operand)
