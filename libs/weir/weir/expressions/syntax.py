"""From text to sqlglot's syntax tree, within limits that are checked before it recurses.

What comes out is not yet safe: sqlglot knows all of SQL. `parse.py` walks it and
takes what its allow-list names. Functions come out as they were written, with their
operands, and not as the nodes by which sqlglot knows some hundreds of them.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser

from weir.expressions.errors import ExpressionError, not_allowed, too_large, wrong
from weir.expressions.paths import MAX_PARTS, TOO_MANY_PARTS

MAX_BYTES: Final = 4096
MAX_DEPTH: Final = 20
MAX_NODES: Final = 200
_QUOTED: Final = re.compile("'[^']*'" + '|"[^"]*"')
_STATEMENT: Final = re.compile(r"[;`]|(?<![.\w])select\b", re.IGNORECASE)
# The one chain in which the parser recurses and not only what walks its tree.
_ELEMENTS: Final = re.compile(rf"(\[\s*\d+\s*\]\s*){{{MAX_PARTS}}}")
# Words before an operand, and brackets, are what makes a parser recurse.
_MAX_RECURSING: Final = 120
_PREFIXES: Final = ("not", "case", "then", "else", "when")
# Functions with a grammar of their own; the last is taken to be refused by its name.
_WRITTEN_OTHERWISE: Final = ("POSITION", "SUBSTRING", "TRIM", "EXTRACT", "CAST", "TRY_CAST")


class _Functions(Parser):  # type: ignore[misc]  # sqlglot is followed as Any
    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: Parser.FUNCTION_PARSERS[name] for name in _WRITTEN_OTHERWISE
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: Parser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF")
    }

    # Else the element of a member that is called so would be an array made of one literal.
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> Any:
        token = self._curr
        found = super()._parse_function_call(*args, **kwargs)
        if isinstance(found, exp.Expression) and "start" not in found.meta:
            found.update_positions(token)
        return found


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
    dialect = Dialect.get_or_raise(None)
    try:
        trees = _Functions(dialect=dialect).parse_into(exp.Condition, dialect.tokenize(text), text)
    except RecursionError:
        elements = _ELEMENTS.search(text)
        if elements:
            at = elements.start()
            raise wrong(text[at:], *TOO_MANY_PARTS, at) from None
        raise _too_deep(text, None) from None
    except SqlglotError as error:
        raise _no_sql(text, error) from None
    if len(trees) != 1 or trees[0] is None:
        raise wrong(text, "one expression", "write one condition on members of the event")
    return trees[0]


def call_of(node: Any) -> tuple[str, list[Any]] | None:
    """Return name and operands of a function as `functions.py` knows it; None of all else."""
    match node:
        case exp.Anonymous():
            return node.name.lower(), node.expressions
        case exp.Substring():
            return "substr", _given(node, "this", "start", "length")
        case exp.StrPosition():
            return "position", _given(node, "this", "substr", "position", "occurrence")
        case exp.Trim() if not node.args.get("collation"):
            side = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")))
            return side or "trim", _given(node, "this", "expression")
        case exp.Extract():
            return str(node.this.name).lower(), [node.expression]
        case exp.DPipe():
            return "concat", list(node.flatten())
        case exp.If():
            return "if", _given(node, "this", "true", "false")
    return None


def _given(node: Any, *members: str) -> list[Any]:
    return [node.args[member] for member in members if node.args.get(member) is not None]


def position(node: Any) -> int | None:
    """Return the character at which a node begins, if sqlglot kept it."""
    places = (found.meta.get("start") for found in node.walk())
    return min((at for at in places if isinstance(at, int)), default=None)


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
    nested = 0
    for at, sign in enumerate(text):
        nested += (sign in "([{") - (sign in ")]}")
        if nested > MAX_DEPTH:
            raise _too_deep(text[at:], at)
    words = text.lower().split()
    if sum(words.count(word) for word in _PREFIXES) + text.count("- -") > _MAX_RECURSING:
        raise _too_deep(text, None)


def _too_deep(text: str, at: int | None) -> ExpressionError:
    return too_large(text, f"at most {MAX_DEPTH} levels deep", "use fewer brackets", at)


def _no_sql(text: str, error: SqlglotError) -> ExpressionError:
    left_open = re.search("['\"]", _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text))
    if left_open:
        start, sign = left_open.start(), left_open[0]
        required, mend = f"a text that ends in {sign}", f"close the text with {sign}"
        return wrong(text[start:], required, mend, start)
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
