"""From text to a checked tree: the allow-list and the typing of the language.

A path has no type of its own: it takes the type that its place asks for, the
literal's in a comparison. So typing goes from the known to the unknown, and a
place where nothing is known is refused with a way to say it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import Any, Final, NoReturn

from sqlglot import exp

from weir.expressions.errors import ExpressionError as ExpressionError
from weir.expressions.errors import not_allowed, too_large, wrong
from weir.expressions.functions import COALESCE, FUNCTIONS, NAMES
from weir.expressions.paths import TEXT_ATTRIBUTES, TIME, Path, fault_of
from weir.expressions.patterns import segments_of
from weir.expressions.syntax import MAX_DEPTH, MAX_NODES, position, said, syntax_of
from weir.expressions.tree import (
    Absent,
    Arithmetic,
    Call,
    Compare,
    Constant,
    IsNull,
    Kind,
    Like,
    Logic,
    Node,
    Not,
    OneOf,
    Read,
    depth,
    walk,
)

_COMPARE: Final = {exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">"} | {
    exp.GTE: ">="
}
_ARITHMETIC: Final = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_LOGIC: Final = {exp.And: "and", exp.Or: "or"}
_CALLS: Final = {
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Substring: ("substr", ("this", "start", "length")),
    exp.StartsWith: ("starts_with", ("this", "expression")),
    exp.EndsWith: ("ends_with", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.Abs: ("abs", ("this",)),
    exp.Round: ("round", ("this",)),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Coalesce: (COALESCE, ("this", "expressions")),
}
_FLAGS: Final = frozenset(("is_nvl", "is_null", "typed", "safe"))
_ORDERED: Final = frozenset(("<", "<=", ">", ">="))


def parse_where(text: str) -> Node:
    """Return the tree of a condition.

    Raises:
        ExpressionError: With place, requirement and mend.
    """
    return _parse(text, Kind.BOOL)


def parse_number(text: str) -> Node:
    """Return the tree of an expression that yields a number.

    Raises:
        ExpressionError: With place, requirement and mend.
    """
    return _parse(text, Kind.NUMBER)


def parse_path(text: str) -> Path:
    """Return a path, as `by` and `distinct` name it.

    Raises:
        ExpressionError: If it is no path.
    """
    syntax = syntax_of(text)
    if not isinstance(syntax, exp.Column | exp.Dot):
        raise wrong(text, "a path", "name a member of the event: data.region")
    return _path(syntax)


def _parse(text: str, kind: Kind) -> Node:
    try:
        tree = _build(syntax_of(text), kind)
        nodes, levels = sum(1 for _ in walk(tree)), depth(tree)
    except RecursionError:
        raise too_large(text, f"at most {MAX_DEPTH} levels deep", "simplify it") from None
    if nodes > MAX_NODES:
        raise too_large(str(nodes), f"at most {MAX_NODES} nodes", "split the metric")
    if levels > MAX_DEPTH:
        raise too_large(str(levels), f"at most {MAX_DEPTH} levels deep", "simplify it")
    return tree


def _build(syntax: Any, want: Kind) -> Node:
    """Build a node that yields `want`."""
    syntax = syntax.unnest()
    if isinstance(syntax, exp.Column | exp.Dot):
        return _read(syntax, want)
    if isinstance(syntax, exp.Literal | exp.Boolean | exp.Neg) and _kind(syntax) is not None:
        built = _literal(syntax) or _negated(syntax)
    else:
        built = _builder(syntax)(syntax, want)
    if built.kind is not want:
        mend = f"this is {built.kind.value}; it cannot stand here"
        raise wrong(said(syntax), want.value, mend, position(syntax))
    return built


def _builder(syntax: Any) -> Callable[[Any, Kind], Node]:
    kind = type(syntax)
    if kind in _CALLS:
        return _call
    for classes, builder in _BUILDERS:
        if kind in classes:
            return builder
    return _refuse


def _kind(syntax: Any) -> Kind | None:
    """Return what an expression yields as far as it alone can tell."""
    syntax = syntax.unnest()
    kind = type(syntax)
    if kind is exp.Literal:
        return Kind.TEXT if syntax.is_string else Kind.NUMBER
    if kind in _ARITHMETIC or kind is exp.Neg:
        return Kind.NUMBER
    if kind is exp.Column and not syntax.table:
        return _attribute_kind(syntax.name)
    if kind in (exp.Column, exp.Dot):
        return None
    if kind is exp.Coalesce:
        kinds = (_kind(operand) for operand in (syntax.this, *syntax.expressions))
        return next((found for found in kinds if found), None)
    if kind in _CALLS:
        return FUNCTIONS[_CALLS[kind][0]].gives
    return Kind.BOOL if kind is exp.Boolean else _kind_of_operator(syntax)


def _kind_of_operator(syntax: Any) -> Kind:
    """Return what an operator yields: all but arithmetic are conditions."""
    if _builder(syntax) is _refuse:
        _refuse(syntax, Kind.BOOL)
    return Kind.BOOL


def _attribute_kind(name: str) -> Kind | None:
    if name == TIME:
        return Kind.NUMBER
    return Kind.TEXT if name in TEXT_ATTRIBUTES else None


# ── leaves ──────────────────────────────────────────────────────────────────


def _path(syntax: Any) -> Path:
    parts = tuple(str(part.name) for part in syntax.parts)
    if not all(isinstance(part, exp.Identifier) for part in syntax.parts):
        raise not_allowed(said(syntax), "name one member: data.amount", position(syntax))
    fault = fault_of(parts)
    if fault:
        raise wrong(said(syntax), fault[0], fault[1], position(syntax))
    return Path(parts)


def _read(syntax: Any, want: Kind) -> Node:
    path = _path(syntax)
    fixed = None if path.in_data else _attribute_kind(path.parts[0])
    if fixed is not None and fixed is not want:
        mend = f"{path} is {fixed.value}; compare it with {fixed.value}"
        raise wrong(said(syntax), want.value, mend, position(syntax))
    return Read(path, want)


def _literal(syntax: Any) -> Constant | None:
    """Return a literal, with its sign; None if it is not one."""
    if isinstance(syntax, exp.Neg):
        inner = _literal(syntax.this.unnest())
        if inner is None or inner.kind is not Kind.NUMBER:
            return None
        return Constant(0.0 - float(inner.value), Kind.NUMBER)
    if isinstance(syntax, exp.Boolean):
        return Constant(bool(syntax.this), Kind.BOOL)
    if not isinstance(syntax, exp.Literal):
        return None
    if syntax.is_string:
        return Constant(str(syntax.this), Kind.TEXT)
    try:
        number = float(str(syntax.this))
    except ValueError:
        number = math.inf
    if not math.isfinite(number):
        raise wrong(said(syntax), "a number between -1.8e308 and 1.8e308", "write a smaller one")
    return Constant(number, Kind.NUMBER)


def _negated(syntax: Any) -> Node:
    operand = _build(syntax.this, Kind.NUMBER)
    return Arithmetic("-", Constant(0.0, Kind.NUMBER), operand)


# ── operators ───────────────────────────────────────────────────────────────


def _arithmetic(syntax: Any, _want: Kind) -> Node:
    left, right = _build(syntax.this, Kind.NUMBER), _build(syntax.expression, Kind.NUMBER)
    return Arithmetic(_ARITHMETIC[type(syntax)], left, right)


def _compare(syntax: Any, _want: Kind) -> Node:
    left, right = syntax.this, syntax.expression
    for side in (left, right):
        if isinstance(side.unnest(), exp.Null):
            raise wrong(said(syntax), "a value", 'nothing equals null; write "is null"')
    kind = _shared_kind(syntax, (left, right))
    op = _COMPARE[type(syntax)]
    if kind is Kind.BOOL and op in _ORDERED:
        raise wrong(said(syntax), "numbers or text", "true and false have no order; use = or !=")
    return Compare(op, _build(left, kind), _build(right, kind))


def _shared_kind(syntax: Any, operands: tuple[Any, ...]) -> Kind:
    kinds = (_kind(operand) for operand in operands)
    found = next((kind for kind in kinds if kind is not None), None)
    if found is None:
        mend = (
            "a path has no type of its own: add 0 to compare numbers (data.a + 0 = data.b), "
            "or use coalesce(data.a, '') for text"
        )
        raise wrong(said(syntax), "at least one side of known type", mend, position(syntax))
    return found


def _logic(syntax: Any, _want: Kind) -> Node:
    operands: list[Node] = []
    pending = [syntax]
    while pending:
        part = pending.pop()
        if type(part.unnest()) is type(syntax):
            part = part.unnest()
            pending += [part.expression, part.this]
        else:
            operands.append(_build(part, Kind.BOOL))
    return Logic(_LOGIC[type(syntax)], tuple(operands))


def _not(syntax: Any, _want: Kind) -> Node:
    return Not(_build(syntax.this, Kind.BOOL))


def _is_null(syntax: Any, _want: Kind) -> Node:
    if not isinstance(syntax.expression, exp.Null):
        raise not_allowed(said(syntax), 'write "= true" or "is null"', position(syntax))
    operand = syntax.this.unnest()
    if isinstance(operand, exp.Column | exp.Dot):
        return Absent(_path(operand))
    return IsNull(_build(operand, _shared_kind(syntax, (operand,))))


def _one_of(syntax: Any, _want: Kind) -> Node:
    if syntax.args.get("query"):
        raise not_allowed(said(syntax), "write the values out: in ('a', 'b')", position(syntax))
    options = [_literal(option.unnest()) for option in syntax.expressions]
    literals = [option for option in options if option is not None]
    if len(literals) != len(options) or not literals:
        raise wrong(said(syntax), "a list of literals after in", "write in ('a', 'b')")
    kind = literals[0].kind
    if any(literal.kind is not kind for literal in literals):
        raise wrong(said(syntax), "literals of one type after in", "split it into two, with or")
    return OneOf(_build(syntax.this, kind), tuple(literals))


def _between(syntax: Any, _want: Kind) -> Node:
    low, high = syntax.args["low"], syntax.args["high"]
    kind = _shared_kind(syntax, (syntax.this, low, high))
    if kind is Kind.BOOL:
        raise wrong(said(syntax), "numbers or text", "true and false have no order; use =")
    operand = _build(syntax.this, kind)
    above = Compare(">=", operand, _build(low, kind))
    return Logic("and", (above, Compare("<=", operand, _build(high, kind))))


def _like(syntax: Any, _want: Kind) -> Node:
    pattern = _literal(syntax.expression.unnest())
    if pattern is None or pattern.kind is not Kind.TEXT:
        mend = "write the pattern as a literal: like 'a%'"
        raise wrong(said(syntax), "a text literal after like", mend, position(syntax))
    match = Like(_build(syntax.this, Kind.TEXT), segments_of(str(pattern.value)))
    return Not(match) if syntax.args.get("negate") else match


# ── functions ───────────────────────────────────────────────────────────────


def _call(syntax: Any, want: Kind) -> Node:
    name, members = _CALLS[type(syntax)]
    extra = {k for k, v in syntax.args.items() if v and k not in _FLAGS} - set(members)
    operands: list[Any] = []
    for member in members:
        found = syntax.args.get(member)
        operands += found if isinstance(found, list) else [found] if found else []
    if name == COALESCE and not extra:
        kind = _kind(syntax) or want
        return Call(name, tuple(_build(operand, kind) for operand in operands), kind)
    function = FUNCTIONS[name]
    least = len(function.takes) - function.optional
    if extra or not least <= len(operands) <= len(function.takes):
        raise wrong(said(syntax), f"like {function.example}", "change the operands")
    built = tuple(map(_build, operands, function.takes))
    for place, operand in enumerate(built[function.literal_from :]):
        if not _is_count(operand, at_least=0 if place else 1):
            raise wrong(said(syntax), f"like {function.example}", "give whole numbers from 1 on")
    return Call(name, built, function.gives)


def _is_count(node: Node, *, at_least: int) -> bool:
    if not isinstance(node, Constant) or not isinstance(node.value, float):
        return False
    return node.value.is_integer() and at_least <= node.value < 2**31


def _refuse(syntax: Any, _want: Kind) -> NoReturn:
    name = str(syntax.this if isinstance(syntax, exp.Anonymous) else syntax.key).lower()
    if not isinstance(syntax, exp.Func):
        raise not_allowed(said(syntax), "see docs/definitions.md", position(syntax))
    near = difflib.get_close_matches(name, NAMES, n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    mend = f"{hint}the functions are {', '.join(NAMES)}"
    raise not_allowed(said(syntax), mend, position(syntax))


_BUILDERS: Final[tuple[tuple[tuple[type, ...], Callable[[Any, Kind], Node]], ...]] = (
    (tuple(_ARITHMETIC), _arithmetic),
    (tuple(_COMPARE), _compare),
    (tuple(_LOGIC), _logic),
    ((exp.Not,), _not),
    ((exp.Is,), _is_null),
    ((exp.In,), _one_of),
    ((exp.Between,), _between),
    ((exp.Like,), _like),
    ((exp.Neg,), lambda syntax, _want: _negated(syntax)),
)
