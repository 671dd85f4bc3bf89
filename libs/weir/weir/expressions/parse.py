"""From text to a checked tree: the allow-list and the typing of the language.

A path has no type of its own: it takes the type that its place asks for, the
literal's in a comparison. So typing goes from the known to the unknown, and a
place where nothing is known is refused with a way to say it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

from sqlglot import exp

from weir.expressions.errors import ExpressionError as ExpressionError
from weir.expressions.errors import not_allowed, too_large, wrong
from weir.expressions.kinds import as_kind, mend_of_kind
from weir.expressions.leaves import (
    attribute_kind,
    check_paths,
    is_path,
    literal_of,
    path_at,
    quoted_alone,
)
from weir.expressions.limits import check_size
from weir.expressions.parse_calls import Builders, build_call, kind_of_call, refuse
from weir.expressions.paths import DATA, Path, fault_of
from weir.expressions.patterns import segments_of
from weir.expressions.slips import slip_of
from weir.expressions.syntax import MAX_DEPTH, call_of, position, said, syntax_of, text_of
from weir.expressions.texts import lower
from weir.expressions.tree import (
    Absent,
    Arithmetic,
    Call,
    Case,
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
)
from weir.problems import echo

_COMPARE: Final = {exp.EQ: "=", exp.NEQ: "!=", exp.LT: "<", exp.LTE: "<=", exp.GT: ">"} | {
    exp.GTE: ">="
}
_ARITHMETIC: Final = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_LOGIC: Final = {exp.And: "and", exp.Or: "or"}
_MEMBER_OF: Final = "write in ('a', 'b'), or of an array has({}, 'a')"
_ORDERED: Final = frozenset(("<", "<=", ">", ">="))
_T = TypeVar("_T")


def parse_where(text: str, *, written: bool = False) -> Node:
    """Return the tree of a condition; see `parse_kind`.

    Raises:
        ExpressionError: With place, requirement and mend.
    """
    return parse_kind(text, Kind.BOOL, written=written)


def parse_number(text: str, *, written: bool = False) -> Node:
    """Return the tree of an expression that yields a number; see `parse_kind`.

    Raises:
        ExpressionError: With place, requirement and mend.
    """
    return parse_kind(text, Kind.NUMBER, written=written)


def parse_kind(text: str, kind: Kind, *, written: bool = False) -> Node:
    """Return the tree of an expression that yields a kind.

    Args:
        text: The expression.
        kind: What it must yield.
        written: It is about to be written. What was stored is read for ever, so what is
            refused since is refused here alone.

    Raises:
        ExpressionError: With place, requirement and mend.
    """
    return located(text, lambda: _parse(text, kind, written=written))


def parse_path(text: str) -> Path:
    """Return a path, as `by` and `distinct` name it.

    Raises:
        ExpressionError: If it is no path.
    """
    return located(text, lambda: _parse_path(text))


def located(text: str, parse: Callable[[], _T]) -> _T:
    """Return what becomes of a text; what refuses it shows its place there.

    Raises:
        ExpressionError: If it is refused, or nests too deeply to be read.
    """
    try:
        return parse()
    except RecursionError:
        refused = too_large(text, f"at most {MAX_DEPTH} levels deep", "simplify it")
    except ExpressionError as error:
        refused = error
    refused.text = text
    raise refused


def _parse_path(text: str) -> Path:
    syntax = syntax_of(text)
    check_paths(syntax)
    if not is_path(syntax):
        mend = "name a member of the event: data.region"
        raise wrong(said(syntax), "a path", mend, position(syntax))
    return path_at(syntax)


def _parse(text: str, kind: Kind, *, written: bool) -> Node:
    syntax = syntax_of(text)
    check_paths(syntax)
    _check_quotes(syntax, written=written)
    tree = _build(syntax, kind)
    check_size(tree)
    return tree


def _check_quotes(syntax: Any, *, written: bool) -> None:
    """Refuse a text in double quotes, which SQL takes for a name.

    A stored expression may name an attribute so, and goes on meaning that.
    """
    slips = []
    for node in syntax.find_all(exp.Column):
        name = quoted_alone(node)
        if name is not None and (written or attribute_kind(name) is None) and name != DATA:
            slips.append((position(node) or 0, node, name))
    if not slips:
        return
    at, node, name = min(slips, key=lambda slip: slip[0])
    mend = f"text stands in single quotes: {said(exp.Literal.string(name))}"
    if attribute_kind(name) is not None:
        mend += f"; the attribute is {name}, without quotes"
    elif fault_of((DATA, name)) is None:
        mend += f"; a member of that name is {Path((DATA, name))}"
    raise wrong(said(node), "a path or a literal", mend, at)


def _build(syntax: Any, want: Kind) -> Node:
    """Build a node that yields `want`."""
    syntax = syntax.unnest()
    if is_path(syntax):
        return _read(syntax, want)
    built = literal_of(syntax) or _builder(syntax)(syntax, want)
    if built.kind is not want:
        mend = mend_of_kind(syntax, built.kind, want)
        raise wrong(said(syntax), want.value, mend, position(syntax))
    return built


def _builder(syntax: Any) -> Callable[[Any, Kind], Node]:
    if call_of(syntax) is not None:
        return _call
    for classes, builder in _BUILDERS:
        if type(syntax) in classes:
            return builder
    return refuse


def kind_of(text: str) -> Kind | None:
    """Return what an expression yields as far as it alone can tell; a path has no kind.

    Raises:
        ExpressionError: If it is no expression, or says what cannot be said.
    """
    syntax = syntax_of(text)
    check_paths(syntax)
    return _kind(syntax)


def _kind(syntax: Any) -> Kind | None:
    """Return what an expression yields as far as it alone can tell."""
    syntax = syntax.unnest()
    kind = type(syntax)
    if kind is exp.Literal:
        return Kind.TEXT if syntax.is_string else Kind.NUMBER
    if kind in _ARITHMETIC or kind is exp.Neg:
        return Kind.NUMBER
    if is_path(syntax):
        alone = kind is exp.Column and not syntax.table
        return attribute_kind(syntax.name) if alone else None
    if kind is exp.Null:
        return None
    if kind is exp.Case:
        return _first_kind(_results(syntax))
    if call_of(syntax) is not None:
        return kind_of_call(syntax, _first_kind)
    if kind is not exp.Boolean and _builder(syntax) is refuse:
        refuse(syntax, Kind.BOOL)
    return Kind.BOOL


def _first_kind(operands: list[Any]) -> Kind | None:
    return next((kind for kind in map(_kind, operands) if kind is not None), None)


def _read(syntax: Any, want: Kind) -> Node:
    path = path_at(syntax)
    fixed = attribute_kind(path.parts[0])
    if fixed is not None and fixed is not want:
        made = as_kind(str(path), fixed, want)
        mend = f"{path} is {fixed.value}; compare it with {fixed.value}, or {made}"
        raise wrong(said(syntax), want.value, mend, position(syntax))
    return Read(path, want)


# ── operators ───────────────────────────────────────────────────────────────


def _negated(syntax: Any, _want: Kind) -> Node:
    operand = _build(syntax.this, Kind.NUMBER)
    return Arithmetic("-", Constant(0.0, Kind.NUMBER), operand)


def _arithmetic(syntax: Any, _want: Kind) -> Node:
    left, right = _build(syntax.this, Kind.NUMBER), _build(syntax.expression, Kind.NUMBER)
    return Arithmetic(_ARITHMETIC[type(syntax)], left, right)


def _compare(syntax: Any, _want: Kind) -> Node:
    left, right = syntax.this, syntax.expression
    for side in (left, right):
        if isinstance(side.unnest(), exp.Null):
            _wrong(side, "a value", 'nothing equals null; write "is null"')
    kind = _shared_kind(syntax, [left, right])
    op = _COMPARE[type(syntax)]
    if kind is Kind.BOOL and op in _ORDERED:
        _wrong(syntax, "numbers or text", "true and false have no order; use = or !=")
    return Compare(op, _build(left, kind), _build(right, kind))


def _shared_kind(syntax: Any, operands: list[Any]) -> Kind:
    found = _first_kind(operands)
    if found is None:
        _check_names(operands)
        mend = (
            "a path has no type of its own: add 0 to compare numbers (data.a + 0 = data.b), "
            "or use coalesce(data.a, '') for text"
        )
        _wrong(syntax, "at least one side of known type", mend)
    return found


def _check_names(operands: list[Any]) -> None:
    """Refuse a name that stands alone and is no word: a sign of another language is before it."""
    for operand in operands:
        name = operand if isinstance(operand, exp.Column) and not operand.table else None
        if name is not None and not name.this.args.get("quoted") and not name.name.isidentifier():
            slip = slip_of(text_of(operand) or "")
            if slip is not None:
                raise slip


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
        raise not_allowed(said(syntax), _mend_of_is(syntax), position(syntax))
    operand = syntax.this.unnest()
    if is_path(operand):
        return Absent(path_at(operand))
    return IsNull(_build(operand, _shared_kind(syntax, [operand])))


def _mend_of_is(syntax: Any) -> str:
    """Return what to write for `is` of what is not null, and for `is not` of it."""
    around, compared = syntax.parent, syntax.expression
    is_negated = isinstance(around, exp.Not) and position(around) == position(syntax)
    sign, asked = ("!=", "is not null") if is_negated else ("=", "is null")
    typed = echo(said(compared))
    written = f'write "{sign} {typed}" or "{asked}"'
    try:
        kind = _first_kind([compared, syntax.this])
        _build(compared, kind or Kind.TEXT)
    except ExpressionError:  # a word for what is not there: missing, empty
        return f'"is" asks for null alone; write "{asked}"'
    if kind is None:
        written = (
            f'write "{sign} {typed} + 0" of a number, "{sign} coalesce({typed}, \'\')" of text'
        )
    return f'"is" asks for null alone; {written}'


def _one_of(syntax: Any, _want: Kind) -> Node:
    if syntax.args.get("query"):
        raise not_allowed(said(syntax), "write the values out: in ('a', 'b')", position(syntax))
    if syntax.args.get("field"):
        _wrong(syntax, "a list of literals after in", _MEMBER_OF.format(said(syntax.args["field"])))
    options = [literal_of(option.unnest()) for option in syntax.expressions]
    literals = [option for option in options if option is not None]
    if len(literals) != len(options) or not literals:
        others = zip(syntax.expressions, options, strict=True)
        place = next((node for node, literal in others if literal is None), syntax)
        mend = "write in ('a', 'b'), or = coalesce(data.b, '') for what an event holds"
        _wrong(place, "a list of literals after in", mend)
    kind = literals[0].kind
    for option, literal in zip(syntax.expressions, literals, strict=True):
        if literal.kind is not kind:
            _wrong(option, "literals of one type after in", "split it into two, with or")
    return OneOf(_build(syntax.this, kind), tuple(literals))


def _between(syntax: Any, _want: Kind) -> Node:
    low, high = syntax.args["low"], syntax.args["high"]
    kind = _shared_kind(syntax, [syntax.this, low, high])
    if kind is Kind.BOOL:
        _wrong(syntax, "numbers or text", "true and false have no order; use =")
    operand = _build(syntax.this, kind)
    above = Compare(">=", operand, _build(low, kind))
    return Logic("and", (above, Compare("<=", operand, _build(high, kind))))


def _like(syntax: Any, _want: Kind) -> Node:
    pattern = literal_of(syntax.expression.unnest())
    if pattern is None or pattern.kind is not Kind.TEXT:
        mend = "write the pattern as a literal: like 'a%'"
        _wrong(syntax.expression, "a text literal after like", mend)
    operand, wanted = _build(syntax.this, Kind.TEXT), str(pattern.value)
    if isinstance(syntax, exp.ILike):
        operand, wanted = Call("lower", (operand,), Kind.TEXT), lower(wanted)
    segments = segments_of(wanted, position(syntax.expression), said(syntax.expression))
    match = Like(operand, segments)
    return Not(match) if syntax.args.get("negate") else match


# ── case ────────────────────────────────────────────────────────────────────


def _results(syntax: Any) -> list[Any]:
    default = syntax.args.get("default")
    return [branch.args["true"] for branch in syntax.args["ifs"]] + ([default] if default else [])


def _case(syntax: Any, want: Kind) -> Node:
    kind = _kind(syntax) or want
    branches = syntax.args["ifs"]
    if not branches:
        _wrong(syntax, "case with when", "write case when data.a > 1 then 2 else 3 end")
    tests = [branch.this for branch in branches]
    if syntax.this is None:
        conditions = [_build(test, Kind.BOOL) for test in tests]
    else:
        compared = _shared_kind(syntax, [syntax.this, *tests])
        operand = _build(syntax.this, compared)
        conditions = [Compare("=", operand, _build(test, compared)) for test in tests]
    results = [_result(branch.args["true"], kind) for branch in branches]
    otherwise = _result(syntax.args.get("default"), kind)
    return Case(tuple(zip(conditions, results, strict=True)), otherwise, kind)


def _result(syntax: Any, kind: Kind) -> Node:
    """Build what may also be the word null, or nothing at all, which is null as well."""
    if syntax is None or isinstance(syntax.unnest(), exp.Null):
        return Constant(None, kind)
    return _build(syntax, kind)


# ── calls, and what is refused ──────────────────────────────────────────────


def _call(syntax: Any, want: Kind) -> Node:
    return build_call(syntax, want, Builders(_build, _result, _first_kind, _shared_kind))


def _null(syntax: Any, _want: Kind) -> Node:
    _wrong(syntax, "a value", 'null is a result of case and if only; write "is null" to ask for it')


def _wrong(syntax: Any, required: str, mend: str) -> NoReturn:
    raise wrong(said(syntax), required, mend, position(syntax))


_BUILDERS: Final[tuple[tuple[tuple[type, ...], Callable[[Any, Kind], Node]], ...]] = (
    (tuple(_ARITHMETIC), _arithmetic),
    (tuple(_COMPARE), _compare),
    (tuple(_LOGIC), _logic),
    ((exp.Not,), _not),
    ((exp.Is,), _is_null),
    ((exp.In,), _one_of),
    ((exp.Between,), _between),
    ((exp.Like, exp.ILike), _like),
    ((exp.Neg,), _negated),
    ((exp.Case,), _case),
    ((exp.Null,), _null),
)
