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
from weir.expressions.quotes import without_comments, without_texts
from weir.expressions.slips import slip_of

MAX_BYTES: Final = 4096
MAX_DEPTH: Final = 20
MAX_NODES: Final = 200
_STATEMENT: Final = re.compile(r"[;`]|(?<![.\w])select\b", re.IGNORECASE)
# Where a node's meta has the text that it was read from, its start and its end.
_SPAN: Final = "weir_span"
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

    # These tell where everything stands: what is not made by them has operands that are, at its
    # start and at its end. Each takes a frame at every level, so they are no more.
    def _parse_unary(self) -> Any:
        token = self._curr
        return self._placed(super()._parse_unary(), token)

    def _parse_atom(self) -> Any:
        token = self._curr
        return self._placed(super()._parse_atom(), token)

    def _parse_range(self, this: Any = None, parse_is: bool = False) -> Any:
        token = self._curr
        found = super()._parse_range(this, parse_is)
        if token and isinstance(found, exp.Expr) and found is not this:
            begun = None if this is None else position(this)
            # Of `a not in (1)` the whole, which is `not` around `a in (1)`, has no place yet;
            # where `not` stands in front it has one, and what it is around begins behind it.
            is_negated = type(found) is exp.Not and _SPAN not in found.meta
            self._place(found, token.start if begun is None else begun)
            if is_negated:
                self._place(found.this, position(found))
        return found

    def _placed(self, node: Any, token: Any) -> Any:
        if token and isinstance(node, exp.Expr):
            self._place(node, token.start)
        return node

    def _place(self, node: Any, start: int | None) -> None:
        """Note in a node which part of the text it is read from, unless that is known."""
        node.meta.setdefault(_SPAN, (self.sql, start, self._prev.end + 1))


def syntax_of(text: str) -> Any:
    """Return sqlglot's tree of an expression.

    Raises:
        ExpressionError: If it is empty, too long, too deep or no SQL.
    """
    size = len(text.encode(errors="replace"))
    if size > MAX_BYTES:
        raise too_large(str(size), f"at most {MAX_BYTES} bytes", "split the metric")
    if not without_comments(text).strip():
        raise wrong(text, "an expression", "write one, or leave the member out")
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
        slip = slip_of(text)
        if slip is not None:
            raise slip
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
    """Return the character at which a node begins, None if nothing of it is known."""
    span = _span(node)
    return None if span is None else span[1]


def said(node: Any) -> str:
    """Return a node as it was typed, to say it back."""
    span = _span(node)
    return str(node.sql()) if span is None else span[0][span[1] : span[2]]


def text_of(node: Any) -> str | None:
    """Return the whole text that a node is a part of, None if nothing of it is known."""
    while node is not None:
        span = _span(node)
        if span is not None:
            return span[0]
        node = node.parent
    return None


def _span(node: Any) -> tuple[str, int, int] | None:
    """Return the text and which part of it a node is: its own, or from its first operand on."""
    if _SPAN in node.meta:
        own: tuple[str, int, int] = node.meta[_SPAN]
        return own
    spans = [found.meta[_SPAN] for found in node.walk() if _SPAN in found.meta]
    if not spans:
        return None
    return spans[0][0], min(span[1] for span in spans), max(span[2] for span in spans)


def _check_statement(text: str) -> None:
    """Refuse statements, subqueries and file relations, also where they are no right SQL."""
    found = _STATEMENT.search(without_texts(text))
    if found:
        mend = "write one condition on members of the event"
        if found[0] == "`":
            mend += "; a name stands in double quotes, a text in single ones"
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
    slip = slip_of(text)
    if slip is not None:
        return slip
    places = getattr(error, "errors", None) or [{}]
    found = places[0]
    word = found.get("highlight") or text
    before = len(found.get("start_context") or "")
    # sqlglot gives the last 100 characters before the fault: enough to find it again.
    at = text.find(word, before) if found.get("highlight") else None
    mend = (
        f'put a name that is also a word of SQL in double quotes: data."{word}"'
        if word.isidentifier() and at not in (None, -1) and text[at - 1 : at] == "."
        else "write a value, an operator and a value there, like data.total > 10"
    )
    return wrong(word, "an expression in SQL's spelling", mend, at if at != -1 else None)
