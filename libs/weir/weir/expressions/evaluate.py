"""The meaning of an expression: a plain evaluator on a decoded event.

Slow and obvious on purpose. It serves previews and is the oracle that the
engine's compiled columns are tested against. `None` is SQL's null.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from weir.expressions.functions import CHOOSING, COALESCE, FUNCTIONS, LEAST
from weir.expressions.numbers import as_double
from weir.expressions.tree import (
    Absent,
    Arithmetic,
    Call,
    Case,
    Compare,
    Constant,
    Has,
    IsNull,
    Kind,
    Like,
    Logic,
    Node,
    Not,
    OneOf,
    Read,
    Size,
)

Value: TypeAlias = float | str | bool | None
Event: TypeAlias = Mapping[str, Any]

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": math.fmod,
}


def evaluate(node: Node, event: Event) -> Value:
    """Return what an expression yields for an event.

    Args:
        node: A tree from `parse.py`.
        event: The decoded JSON of a record of `weir.events`.
    """
    match node:
        case Read():
            return _read(node, event)
        case Constant():
            return node.value
        case Absent():
            return node.path.read(event) is None
        case IsNull():
            return evaluate(node.operand, event) is None
        case Logic():
            return _logic(node, event)
        case Size():
            array = node.path.read(event)
            return float(len(array)) if isinstance(array, list) else None
        case Has():
            return _has(node, event)
        case Case():
            taken = (result for test, result in node.branches if evaluate(test, event) is True)
            return evaluate(next(taken, node.otherwise), event)
        case Call() if node.name in CHOOSING:
            return _chosen(node.name, [evaluate(operand, event) for operand in node.operands])
    return _of_known(node, event)


def _chosen(name: str, values: list[Value]) -> Value:
    known = [value for value in values if value is not None]
    if not known or name == COALESCE:
        return known[0] if known else None
    return cast(Value, (min if name == LEAST else max)(cast("list[Any]", known)))


def _read(node: Read, event: Event) -> Value:
    return _typed(node.path.read(event), node.kind)


def _typed(value: Any, kind: Kind) -> Value:
    """Return a JSON value if it is of a kind, else null."""
    if kind is Kind.NUMBER:
        return as_double(value)
    wanted = str if kind is Kind.TEXT else bool
    return value if isinstance(value, wanted) else None


def _has(node: Has, event: Event) -> bool | None:
    array = node.path.read(event)
    if not isinstance(array, list):
        return None
    return any(_typed(item, node.item.kind) == node.item.value for item in array)


def _logic(node: Logic, event: Event) -> bool | None:
    decisive = node.op == "or"
    unknown = False
    for operand in node.operands:
        value = evaluate(operand, event)
        if value is decisive:
            return decisive
        unknown = unknown or value is None
    return None if unknown else not decisive


def _of_known(node: Node, event: Event) -> Value:
    """Evaluate what is null as soon as one operand is."""
    match node:
        case Arithmetic() | Compare():
            left, right = evaluate(node.left, event), evaluate(node.right, event)
            if left is None or right is None:
                return None
            if isinstance(node, Compare):
                return _COMPARE[node.op](left, right)
            return calculate(node.op, cast(float, left), cast(float, right))
        case Call():
            values = [evaluate(operand, event) for operand in node.operands]
            if any(value is None for value in values):
                return None
            return cast(Value, FUNCTIONS[node.name].apply(*values))
        case Not() | OneOf() | Like():
            value = evaluate(node.operand, event)
            return None if value is None else _test(node, value)
    msg = f"no meaning for {node}"
    raise AssertionError(msg)


def _test(node: Not | OneOf | Like, value: float | str | bool) -> bool:
    match node:
        case Not():
            return not value
        case OneOf():
            return any(value == option.value for option in node.options)
        case Like():
            return matches(cast(str, value), node.segments)


def calculate(op: str, left: float, right: float) -> float | None:
    """Return the result of an operator on finite doubles; null if it is not finite."""
    if right == 0.0 and op in "/%":
        return None
    result = _ARITHMETIC[op](left, right)
    return result if math.isfinite(result) else None


def matches(text: str, segments: tuple[str, ...]) -> bool:
    """Tell whether a text has the segments of a `like` in order, anchored at both ends."""
    if len(segments) == 1:
        return text == segments[0]
    first, *inner, last = segments
    if not text.startswith(first):
        return False
    text = text[len(first) :]
    for segment in inner:
        _, found, text = text.partition(segment)
        if not found:
            return False
    return text.endswith(last)
