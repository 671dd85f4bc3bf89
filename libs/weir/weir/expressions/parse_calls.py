"""Calls: which functions can be said, with which operands, and what is said of the rest."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from sqlglot import exp

from weir.expressions.errors import not_allowed, wrong
from weir.expressions.functions import (
    AGE,
    ALIASES,
    ARRAY_LENGTH,
    CHOOSING,
    COALESCE,
    FUNCTIONS,
    HAS,
    IF,
    MOD,
    NAMES,
    NULLIF,
    SAID_OTHERWISE,
    TO_TEXT,
    Operand,
)
from weir.expressions.leaves import is_path, literal_of, path_at
from weir.expressions.paths import TIME, Path
from weir.expressions.slip_words import ELSEWHERE
from weir.expressions.slips import slip_of
from weir.expressions.syntax import call_of, position, said, text_of
from weir.expressions.tree import (
    Arithmetic,
    Call,
    Case,
    Compare,
    Constant,
    Has,
    Kind,
    Node,
    Not,
    Read,
    Size,
)

_OPERANDS: Final = {IF: (2, 3), NULLIF: (2, 2), MOD: (2, 2), HAS: (2, 2)}
"""How many operands at least and at most; of those that are not here, one."""
_ANOTHER_TIME: Final = "a number must be the same whenever it is counted; the event's is time"
_HINTS: Final = {
    **dict.fromkeys(("now", "currenttimestamp", "currentdate", "current_timestamp"), _ANOTHER_TIME),
    **dict.fromkeys(("rand", "random", "uuid"), "a number must be the same whenever it is counted"),
    "log": 'write "ln" or "log10"',
    "cast": "write to_number(data.size) for a number out of a text",
    "trycast": "write to_number(data.size) for a number out of a text",
    **dict.fromkeys(("regexplike", "regexp_like", "rlike", "regexp_extract"), "use like"),
    **{"xor": "write (data.a = 1) != (data.b = 2)", "exists": "write data.a is not null"},
    **dict.fromkeys(("str", "tostring", "to_string", "to_char"), "write to_text(data.total)"),
}
_OTHERS: Final = {
    exp.Tuple: "a list stands behind in alone: data.a in (1, 2)",
    exp.Array: "a list stands behind in, in round brackets: data.a in (1, 2)",
    exp.Star: "name one member: data.amount",
}
"""What is no function and has a mend of its own."""


@dataclass(frozen=True, slots=True)
class Builders:
    """What `parse.py` lends.

    Attributes:
        build: From a node of sqlglot and the kind that it must yield to a node of ours.
        result: The same of what may be the word null, or left out.
        first_kind: The kind of the first of some nodes that tells one.
        shared_kind: The same, refused at a node where none does.
    """

    build: Callable[[Any, Kind], Node]
    result: Callable[[Any, Kind], Node]
    first_kind: Callable[[list[Any]], Kind | None]
    shared_kind: Callable[[Any, list[Any]], Kind]


def kind_of_call(syntax: Any, first_kind: Callable[[list[Any]], Kind | None]) -> Kind | None:
    """Return what a call yields as far as it alone can tell.

    Raises:
        ExpressionError: If there is no such function.
    """
    name, operands = _known(syntax)
    if name in FUNCTIONS:
        return FUNCTIONS[name].gives
    if name in (*CHOOSING, NULLIF, IF):
        return first_kind(operands[1:] if name == IF else operands)
    return Kind.BOOL if name == HAS else Kind.NUMBER


def build_call(syntax: Any, want: Kind, builders: Builders) -> Node:
    """Return the node of a call.

    Raises:
        ExpressionError: If there is no such function, or its operands are wrong.
    """
    name, operands = _known(syntax)
    if name == TO_TEXT and builders.first_kind(operands[:1]) is not Kind.NUMBER:
        return _to_text(syntax, operands, builders)
    if name in FUNCTIONS:
        return _plain(syntax, name, operands, builders)
    if name in CHOOSING:
        return _choosing(syntax, name, operands, builders, want)
    least, most = _OPERANDS.get(name, (1, 1))
    if not least <= len(operands) <= most:
        _unlike(syntax, SAID_OTHERWISE[name], least, most)
    if name in (IF, NULLIF):
        return (_if if name == IF else _nullif)(operands, builders, want)
    if name == ARRAY_LENGTH:
        return Size(_array(operands[0], name))
    if name == HAS:
        return _has(operands)
    built = [builders.build(operand, Kind.NUMBER) for operand in operands]
    if name == AGE:
        return Arithmetic("-", Read(Path((TIME,)), Kind.NUMBER), built[0])
    return Arithmetic("%", built[0], built[1])


def _known(syntax: Any) -> tuple[str, list[Any]]:
    called = call_of(syntax)
    name = ALIASES.get(called[0], called[0]) if called else ""
    if called is None or name not in NAMES:
        refuse(syntax, Kind.BOOL)
    return name, called[1]


def _plain(syntax: Any, name: str, operands: list[Any], builders: Builders) -> Node:
    function = FUNCTIONS[name]
    takes = function.takes
    if function.repeats:
        takes += takes[-1:] * (len(operands) - len(takes))
    least = len(function.takes) - function.optional
    if not least <= len(operands) <= len(takes):
        _unlike(syntax, function.example, least, None if function.repeats else len(takes))
    built = tuple(
        _operand(syntax, given, wanted, function.example, builders)
        for given, wanted in zip(operands, takes, strict=False)
    )
    if name == "replace":
        _check_replace(operands[2], *built[1:])
    return Call(name, built, function.gives)


def _operand(call: Any, given: Any, wanted: Operand, example: str, builders: Builders) -> Node:
    if wanted.rule is None:
        return builders.build(given, wanted.kind)
    built = None if is_path(given.unnest()) else builders.build(given, wanted.kind)
    if not isinstance(built, Constant) or not wanted.rule.holds(built.value):
        mend = f"it is part of the definition, not of an event: {example}"
        if isinstance(built, Constant):
            mend = f"write {wanted.rule.required}, as in {example}"
        place = position(given)
        raise wrong(
            said(given), wanted.rule.required, mend, position(call) if place is None else place
        )
    return built


def _check_replace(syntax: Any, wanted: Node, by: Node) -> None:
    if isinstance(wanted, Constant) and isinstance(by, Constant):
        most = len(str(wanted.value))
        if len(str(by.value)) > most:
            required = f"at most {most} characters, as many as are replaced"
            mend = "put in no more than is taken out: texts must not grow"
            raise wrong(said(syntax), required, mend, position(syntax))


def _choosing(syntax: Any, name: str, operands: list[Any], builders: Builders, want: Kind) -> Node:
    least = 1 if name == COALESCE else 2
    if len(operands) < least:
        _unlike(syntax, f"{name}(data.a, data.b)", least, None)
    kind = builders.first_kind(operands) or want
    if name != COALESCE and kind is Kind.BOOL:
        mend = "true and false have no order; write and or or between them"
        raise wrong(said(syntax), "numbers or text", mend, position(syntax))
    return Call(name, tuple(builders.build(operand, kind) for operand in operands), kind)


def _if(operands: list[Any], builders: Builders, want: Kind) -> Node:
    kind = builders.first_kind(operands[1:]) or want
    condition = builders.build(operands[0], Kind.BOOL)
    result = builders.result(operands[1], kind)
    return Case(
        ((condition, result),), builders.result(operands[2] if operands[2:] else None, kind), kind
    )


def _nullif(operands: list[Any], builders: Builders, want: Kind) -> Node:
    kind = builders.first_kind(operands) or want
    value, other = (builders.build(operand, kind) for operand in operands)
    return Case(((Compare("=", value, other), Constant(None, kind)),), value, kind)


def _to_text(syntax: Any, operands: list[Any], builders: Builders) -> Node:
    """Build the text of what is no number by itself: a path is read as one, a truth is said.

    A truth has two texts, so other nodes say it, and a null has none.
    """
    if len(operands) == 1 and builders.first_kind(operands) is Kind.BOOL:
        return truth_text(builders.build(operands[0], Kind.BOOL))
    return _plain(syntax, TO_TEXT, operands, builders)


def truth_text(truth: Node) -> Node:
    """Return the node that says `true` or `false`, null of null."""
    yes, no, nothing = (Constant(value, Kind.TEXT) for value in ("true", "false", None))
    return Case(((truth, yes), (Not(truth), no)), nothing, Kind.TEXT)


def _has(operands: list[Any]) -> Node:
    path, item = _array(operands[0], HAS), literal_of(operands[1].unnest())
    if item is None:
        mend = f"it is part of the definition, not of an event: {SAID_OTHERWISE[HAS]}"
        raise wrong(said(operands[1]), "a literal", mend, position(operands[1]))
    return Has(path, item)


def _array(syntax: Any, name: str) -> Path:
    operand = syntax.unnest()
    path = path_at(operand) if is_path(operand) else None
    if path is None or not path.in_data:
        mend = f"name the array: {SAID_OTHERWISE[name]}"
        raise wrong(said(syntax), "a path below data", mend, position(syntax))
    return path


def _unlike(syntax: Any, example: str, least: int, most: int | None) -> NoReturn:
    """Refuse a call for the number of its operands; `most` is None if there is no most."""
    called = call_of(syntax)
    came = len(called[1]) if called else 0
    takes = f"{least}" if least == most else f"{least} or more" if most is None else ""
    mend = f"write {takes or f'{least} to {most}'} operands, not {came}"
    mend = mend.replace("write 1 operands", "write 1 operand")
    raise wrong(said(syntax), f"like {example}", mend, position(syntax))


def refuse(syntax: Any, _want: Kind) -> NoReturn:
    """Refuse what is not on the allow-list.

    Raises:
        ExpressionError: Always, for a function with the functions that there are.
    """
    called = call_of(syntax)
    name = called[0] if called else str(syntax.key).lower()
    text = text_of(syntax)
    slip = slip_of(text) if called is None and text is not None else None
    if slip is not None:
        raise slip
    if called is None and not isinstance(syntax, exp.Func):
        mend = _OTHERS.get(type(syntax), f"leave it out; {ELSEWHERE}")
        raise not_allowed(said(syntax), mend, position(syntax))
    near = difflib.get_close_matches(name, (*NAMES, *ALIASES), n=1)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    if name in _HINTS:
        hint = f"{_HINTS[name]}; "
    mend = f"{hint}the functions are {', '.join(NAMES)}"
    raise not_allowed(said(syntax), mend, position(syntax))
