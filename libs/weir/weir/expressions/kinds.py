"""Mends of what is of another kind than its place asks for: the function that makes it of it."""

from __future__ import annotations

from typing import Any, Final

from sqlglot import exp

from weir.expressions.leaves import literal_of
from weir.expressions.slips import slip_of
from weir.expressions.syntax import said
from weir.expressions.texts import to_number
from weir.expressions.times import to_time
from weir.expressions.tree import Kind

# A longer one is not said again in a mend.
_MAX_SAID: Final = 40
_MADE: Final = {
    (Kind.TEXT, Kind.NUMBER): "to_number({})",
    (Kind.BOOL, Kind.NUMBER): "if({}, 1, 0)",
    (Kind.NUMBER, Kind.TEXT): "to_text({})",
    (Kind.BOOL, Kind.TEXT): "to_text({})",
    (Kind.NUMBER, Kind.BOOL): "{} > 0",
    (Kind.TEXT, Kind.BOOL): "{} = 'x'",
}
"""What it is and what is wanted -> how the one becomes the other."""


def mend_of_kind(syntax: Any, came: Kind, wanted: Kind) -> str:
    """Return what to do with what is no path and not of the kind that is wanted."""
    typed = said(syntax)
    return f"this is {came.value}; {_mend(syntax, typed, came, wanted)}"


def as_kind(typed: str, came: Kind, wanted: Kind) -> str:
    """Return what to write for what is of a kind where another is wanted."""
    # sqlglot takes a call of `trim` without its last bracket: in another call it is none.
    is_whole = len(typed) <= _MAX_SAID and slip_of(typed) is None
    return f"write {_MADE[came, wanted].format(typed if is_whole else '…')}"


def _mend(syntax: Any, typed: str, came: Kind, wanted: Kind) -> str:
    if literal_of(syntax) is not None:
        return _of_literal(syntax, typed, came, wanted)
    if isinstance(syntax, exp.DPipe) and wanted is Kind.BOOL:
        return "|| joins texts; write or between conditions"
    return as_kind(typed, came, wanted)


def _of_literal(syntax: Any, typed: str, came: Kind, wanted: Kind) -> str:
    value = str(syntax.this)
    if wanted is Kind.BOOL:
        return f"compare something with it: data.a = {typed}"
    if wanted is Kind.TEXT:
        mend = f"a text stands in single quotes: '{typed}'"
        # `a = 1 || b = 2` is `a = (1 || b) = 2` to whoever knows SQL.
        joined = "; || joins texts, conditions are joined by or"
        return mend + (joined if isinstance(syntax.parent, exp.DPipe) else "")
    if came is Kind.TEXT and to_number(value) is not None:
        return f"a number has no quotes: {value}"
    if came is Kind.TEXT and to_time(value) is not None:
        return f"write to_time({typed})"
    return "write a number, or read one: data.amount"
