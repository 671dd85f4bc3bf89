"""What an event is to a metric, as far as the last digits of functions do not decide it. Pure.

Panes are counted with Java's StrictMath, recounted with the C library, and the two differ in
the last digits of the functions that are `APPROXIMATED`. Each result of one is taken as a span
of `ULPS` to both sides: Java promises one unit in the last place of the exact result
(java.lang.Math), the GNU C library lists two at most (its manual, "Errors in Math Functions",
`log10`), and beyond a power of two a unit is twice as long. All other operators round the
exact result (IEEE 754) and so keep the order of their operands: what they give lies between
what they give at the ends of spans. A threshold inside a span leaves the event unsure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final, TypeAlias

from weir.definitions.metric import Metric
from weir.expressions import Used, evaluate, use
from weir.expressions.functions import APPROXIMATED, CHOOSING
from weir.expressions.tree import (
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
    walk,
)
from weir.expressions.use import MAX_VALUE
from weir.series import encode_series

ULPS: Final = 4
# A greater operand never gives less, or never more; `abs` does so on either side of 0.
_ORDERED: Final = frozenset(
    (*APPROXIMATED, *CHOOSING, "abs", "sign", "round", "floor", "ceil", "sqrt")
)

Event: TypeAlias = Mapping[str, Any]
Span: TypeAlias = tuple[Any, Any]
"""Between which a value lies, both included; they are equal where it is certain."""


class UnsureError(Exception):
    """The last digits decide: nobody can say what the engine made of it."""


@dataclass(frozen=True, slots=True)
class Near:
    """An event that a metric uses, or may use.

    Attributes:
        used: What it is to the metric by the reference.
        span: Between which its value lies; twice None without one.
        sure: Whether the engine must have used it.
    """

    used: Used
    span: Span
    sure: bool = True


def near(metric: Metric, event: Event) -> Near | None:
    """Return what an event is to a metric; None if the metric certainly does not use it."""
    used = use(metric, event)
    if not any(tree is not None and _is_near(tree) for tree in _trees(metric)):
        return Near(used, (used.value, used.value)) if isinstance(used, Used) else None
    if not metric.selects(event):
        return None
    try:
        span = _used_span(metric, event)
    except UnsureError:
        series = _series(metric, event)
        return None if series is None else Near(Used(series, None, None), (None, None), sure=False)
    return Near(used, span) if span is not None and isinstance(used, Used) else None


def _trees(metric: Metric) -> tuple[Node | None, Node | None]:
    return metric.where_tree, metric.value_tree


def _is_near(node: Node) -> bool:
    return any(isinstance(one, Call) and one.name in APPROXIMATED for one in walk(node))


def _used_span(metric: Metric, event: Event) -> Span | None:
    """Return between which a used event's value lies, `(None, None)` if nothing is measured.

    None if it is certainly not used.
    """
    where, value = _trees(metric)
    if where is not None and span_of(where, event)[0] is not True:
        return None
    if value is None:
        return None, None
    low, high = span_of(value, event)
    if low is None or low > MAX_VALUE or high < -MAX_VALUE:
        return None
    if low < -MAX_VALUE or high > MAX_VALUE:
        raise UnsureError
    return low, high


def _series(metric: Metric, event: Event) -> str | None:
    try:
        return encode_series([one.read(event) for one in metric.dimensions])
    except TypeError:
        return None


def span_of(node: Node, event: Event) -> Span:
    """Return between which an expression's value lies for an event.

    Raises:
        UnsureError: If it may be null or not, or is a truth or a text that hangs on last digits.
    """
    if not _is_near(node):
        value = evaluate(node, event)
        return value, value
    match node:
        case Case():
            taken = (result for test, result in node.branches if span_of(test, event)[0] is True)
            return span_of(next(taken, node.otherwise), event)
        case Logic():
            return _logic(node, event)
        case Arithmetic() | Compare():
            return _spanned(node, [span_of(part, event) for part in (node.left, node.right)])
        case Call():
            return _spanned(node, [span_of(part, event) for part in node.operands])
        case Not() | IsNull() | Like() | OneOf():
            return _spanned(node, [span_of(node.operand, event)])
    msg = f"no meaning for {node}"
    raise AssertionError(msg)


def _logic(node: Logic, event: Event) -> Span:
    """Return a certain truth: one operand may decide whatever an unsure one is."""
    known: list[Node] = []
    unsure = False
    for operand in node.operands:
        try:
            known.append(Constant(span_of(operand, event)[0], Kind.BOOL))
        except UnsureError:
            unsure = True
    value = evaluate(replace(node, operands=tuple(known)), event)
    if unsure and value is not (node.op == "or"):
        raise UnsureError
    return value, value


def _spanned(node: Node, spans: Sequence[Span]) -> Span:
    """Return the span of a node by those of its operands."""
    if _takes_no_null(node) and (None, None) in spans:
        return None, None
    if all(low == high for low, high in spans):
        found = [_at(node, [low for low, _high in spans])]
    elif _holds_order(node, spans):
        found = [_at(node, ends) for ends in product(*map(_ends, spans))]
    else:
        raise UnsureError
    if any(value is None for value in found):
        if any(value is not None for value in found):
            raise UnsureError
        return None, None
    low, high = min(found), max(found)
    if node.kind is not Kind.NUMBER and low != high:
        raise UnsureError
    is_call = isinstance(node, Call) and node.name in APPROXIMATED
    return _widened(low, high) if is_call else (low, high)


def _takes_no_null(node: Node) -> bool:
    """Tell whether a node is null as soon as one of its operands is."""
    return not isinstance(node, IsNull) and not (isinstance(node, Call) and node.name in CHOOSING)


def _ends(span: Span) -> tuple[Any, ...]:
    low, high = span
    if low == high:
        return (low,)
    return (low, 0.0, high) if low < 0.0 < high else (low, high)


def _holds_order(node: Node, spans: Sequence[Span]) -> bool:
    """Tell whether what lies inside of spans cannot give more, less or other than their ends."""
    match node:
        case Arithmetic():
            return node.op != "%"
        case Compare() if node.op in ("=", "!="):
            (left, right) = spans
            return bool(left[1] < right[0] or right[1] < left[0])
        case OneOf():
            low, high = spans[0]
            return not any(low <= option.value <= high for option in node.options)
        case Call() if node.name == "power":
            (base, exponent) = spans
            return bool(base[0] > 0.0) or exponent[0] == exponent[1]
        case Call():
            return node.name in _ORDERED
    return True


def _at(node: Node, values: Sequence[Any]) -> Any:
    """Return what a node yields of some values."""
    match node:
        case Arithmetic() | Compare():
            left, right = map(Constant, values, (node.left.kind, node.right.kind))
            return evaluate(replace(node, left=left, right=right), {})
        case Call():
            kinds = [part.kind for part in node.operands]
            return evaluate(replace(node, operands=tuple(map(Constant, values, kinds))), {})
        case Not() | IsNull() | Like() | OneOf():
            return evaluate(replace(node, operand=Constant(values[0], node.operand.kind)), {})
    msg = f"no operands in {node}"
    raise AssertionError(msg)


def _widened(low: float, high: float) -> Span:
    span = (low - ULPS * math.ulp(low), high + ULPS * math.ulp(high))
    if not all(map(math.isfinite, span)):
        raise UnsureError
    return span
