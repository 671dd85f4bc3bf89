"""One Spark column for each node of an expression, in a form that never raises.

ANSI mode is on in Spark: a failed cast or a division by zero would end the
query, and at every restart again. So only `try_` forms and functions without
failures stand here.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, Final, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F
from weir.expressions import Kind, Node, Path
from weir.expressions.functions import COALESCE, REST
from weir.expressions.tree import (
    Absent,
    Arithmetic,
    Call,
    Compare,
    Constant,
    IsNull,
    Like,
    Logic,
    Not,
    OneOf,
    Read,
)

Reader: TypeAlias = Callable[[Path, Kind | None], Column]
"""Gives the column of a path as a kind; without a kind, whether anything is there."""

_COMPARE: Final[dict[str, Callable[[Column, Column], Column]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARITHMETIC: Final[dict[str, Callable[[Column, Column], Column]]] = {
    "+": F.try_add,
    "-": F.try_subtract,
    "*": F.try_multiply,
    "/": F.try_divide,
    "%": F.try_mod,
}
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER: Final = _UPPER.lower()

FUNCTIONS: Final[dict[str, Callable[..., Column]]] = {
    "lower": lambda text: F.translate(text, _UPPER, _LOWER),
    "upper": lambda text: F.translate(text, _LOWER, _UPPER),
    "length": lambda text: F.char_length(text).cast("double"),
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "contains": F.contains,
    "abs": F.abs,
    "round": F.rint,
    "floor": lambda number: F.floor(number).cast("double"),
    "ceil": lambda number: F.ceil(number).cast("double"),
    COALESCE: F.coalesce,
}
"""The functions of the language but `substr`, whose numbers must be literals to Spark too."""


def compile_node(node: Node, read: Reader) -> Column:
    """Return the column of an expression.

    Args:
        node: A tree from `weir.expressions.parse`.
        read: Where its paths are.
    """
    match node:
        case Read():
            return read(node.path, node.kind)
        case Constant():
            return F.lit(node.value)
        case Absent():
            return ~read(node.path, None)
        case IsNull():
            return compile_node(node.operand, read).isNull()
        case Not():
            return ~compile_node(node.operand, read)
        case Logic():
            operands = [compile_node(operand, read) for operand in node.operands]
            return reduce(Column.__and__ if node.op == "and" else Column.__or__, operands)
        case Compare():
            return _COMPARE[node.op](compile_node(node.left, read), compile_node(node.right, read))
        case Arithmetic():
            return _arithmetic(node, read)
        case OneOf():
            return _one_of(node, read)
        case Like():
            return _like(compile_node(node.operand, read), node.segments)
        case Call():
            return _call(node, read)


def _arithmetic(node: Arithmetic, read: Reader) -> Column:
    left, right = compile_node(node.left, read), compile_node(node.right, read)
    result = _ARITHMETIC[node.op](left, right)
    return result if node.op == "%" else _finite(result)


def _finite(number: Column) -> Column:
    """Turn what is not finite into null, naming the operand once.

    A `when` would name it twice, and so double the plan at each level of a tree.
    The remainder by infinity is the number itself if it is finite, else NaN.
    """
    return F.nanvl(F.try_mod(number, F.lit(float("inf"))), F.lit(None).cast("double"))


def _one_of(node: OneOf, read: Reader) -> Column:
    operand = compile_node(node.operand, read)
    if node.kind is Kind.NUMBER:
        # A long list becomes a hash set, in which -0.0 is not 0.0.
        operand = operand + F.lit(0.0)
    values: list[Any] = [option.value for option in node.options]
    return operand.isin(*values)


def _like(text: Column, segments: tuple[str, ...]) -> Column:
    """Match by looking for the segments in order: linear, where a regex could go back."""
    if len(segments) == 1:
        return text == segments[0]
    first, *inner, last = segments
    rest = F.substring(text, len(first) + 1, REST)
    for segment in inner:
        # Names `rest` once: with `locate` and `substring` each segment would double the plan.
        rest = F.get(F.split(rest, _quoted(segment), 2), 1)
    ends = F.coalesce(F.endswith(rest, F.lit(last)), F.lit(False))
    return F.when(text.isNotNull(), F.startswith(text, F.lit(first)) & ends)


def _quoted(text: str) -> str:
    r"""Return the regex that matches a text and nothing else, whatever stands in it.

    An `\E` in the text would end the quotation: it is said between two of them.
    """
    return "\\Q" + text.replace("\\E", r"\E\\E\Q") + "\\E"


def _call(node: Call, read: Reader) -> Column:
    if node.name == "substr":
        text, *numbers = node.operands
        start, length = (*(int(n.value) for n in numbers if isinstance(n, Constant)), REST)[:2]
        return F.substring(compile_node(text, read), start, length)
    return FUNCTIONS[node.name](*(compile_node(operand, read) for operand in node.operands))
