"""From text to sqlglot's syntax tree, within limits that are checked before it recurses.

What comes out is not yet safe: sqlglot knows all of SQL. `parse.py` walks it and
takes what its allow-list names.
"""

from __future__ import annotations

import re
from typing import Any, Final

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from weir.expressions.errors import ExpressionError, not_allowed, too_large, wrong

MAX_BYTES: Final = 4096
MAX_DEPTH: Final = 20
MAX_NODES: Final = 200
_QUOTED: Final = re.compile("'[^']*'" + '|"[^"]*"')
_STATEMENT: Final = re.compile(r"[;`]|(?<![.\w])select\b", re.IGNORECASE)
# Prefix operators and brackets are what makes a parser recurse.
_MAX_RECURSING: Final = 120


def syntax_of(text: str) -> Any:
    """Return sqlglot's tree of an expression.

    Raises:
        ExpressionError: If it is empty, too long, too deep or no SQL.
    """
    if not text.strip():
        raise wrong(text, "an expression", "write one, or leave the member out")
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        raise too_large(str(size), f"at most {MAX_BYTES} bytes", "split the metric")
    _check_statement(text)
    _check_nesting(text)
    try:
        return parse_one(text, into=exp.Condition)
    except RecursionError:
        raise _too_deep(text) from None
    except SqlglotError as error:
        raise _no_sql(text, error) from None


def position(node: Any) -> int | None:
    """Return the character at which a node begins, if sqlglot kept it."""
    for found in node.find_all(exp.Identifier, exp.Column, exp.Func):
        start = found.meta.get("start")
        if isinstance(start, int):
            return start
    return None


def said(node: Any) -> str:
    """Return a node as SQL, to say it back."""
    return str(node.sql())


def _check_statement(text: str) -> None:
    """Refuse statements, subqueries and file relations, also where they are no right SQL."""
    found = _STATEMENT.search(_QUOTED.sub(lambda quoted: " " * len(quoted[0]), text))
    if found:
        mend = "write one condition on members of the event"
        raise not_allowed(text[found.start() :], mend, found.start())


def _check_nesting(text: str) -> None:
    """Refuse what would make sqlglot recurse deeply: brackets, `not`, signs in a row."""
    nested = deepest = 0
    for sign in text:
        nested += (sign in "([{") - (sign in ")]}")
        deepest = max(deepest, nested)
    words = text.lower().split()
    if deepest > MAX_DEPTH or words.count("not") + text.count("- -") > _MAX_RECURSING:
        raise _too_deep(text)


def _too_deep(text: str) -> ExpressionError:
    return too_large(text, f"at most {MAX_DEPTH} levels deep", "use fewer brackets")


def _no_sql(text: str, error: SqlglotError) -> ExpressionError:
    places = getattr(error, "errors", None) or [{}]
    found = places[0]
    word = found.get("highlight") or text
    before = len(found.get("start_context") or "")
    # sqlglot gives the last 100 characters before the fault: enough to find it again.
    at = text.find(word, before) if found.get("highlight") else None
    mend = (
        f'put a name that is also a word of SQL in double quotes: data."{word}"'
        if word.isidentifier() and at not in (None, -1) and text[at - 1 : at] == "."
        else "see docs/definitions.md for what can be said"
    )
    return wrong(word, "an expression in SQL's spelling", mend, at if at != -1 else None)
