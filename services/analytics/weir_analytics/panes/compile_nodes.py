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
from weir.expressions import functions as language
from weir.expressions.texts import REST
from weir.expressions.tree import (
    Absent,
    Arithmetic,
    Call,
    Case,
    Compare,
    Constant,
    Has,
    IsNull,
    Like,
    Logic,
    Not,
    OneOf,
    Read,
    Size,
    walk,
)

from weir_analytics.panes.compile_functions import FUNCTIONS, finite, quoted
from weir_analytics.panes.compile_views import View, item_view

Reader: TypeAlias = Callable[[Path, View], Column]
"""Gives the column of a path, read in one way."""

_TYPES: Final = {Kind.NUMBER: "double", Kind.TEXT: "string", Kind.BOOL: "boolean"}
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


def compile_node(node: Node, read: Reader) -> Column:
    """Return the column of an expression.

    Args:
        node: A tree from `weir.expressions.parse`.
        read: Where its paths are.
    """
    match node:
        case Read():
            return read(node.path, View.of(node.kind))
        case Constant():
            return _constant(node)
        case Absent():
            return ~read(node.path, View.PRESENT)
        case Size():
            return read(node.path, View.SIZE)
        case Has():
            return _has(node, read)
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
            return _like(node, read)
        case Call():
            return _call(node, read)
        case Case():
            return _case(node, read)


def _has(node: Has, read: Reader) -> Column:
    def is_it(item: Column) -> Column:
        return F.coalesce(item_view(item, node.item.kind) == _constant(node.item), F.lit(False))

    return F.exists(read(node.path, View.ITEMS), is_it)


def _constant(node: Constant) -> Column:
    return F.lit(None).cast(_TYPES[node.kind]) if node.value is None else F.lit(node.value)


def _arithmetic(node: Arithmetic, read: Reader) -> Column:
    left, right = compile_node(node.left, read), compile_node(node.right, read)
    result = _ARITHMETIC[node.op](left, right)
    return result if node.op == "%" else finite(result)


def _one_of(node: OneOf, read: Reader) -> Column:
    operand = compile_node(node.operand, read)
    if node.kind is Kind.NUMBER:
        # A long list becomes a hash set, in which -0.0 is not 0.0.
        operand = operand + F.lit(0.0)
    values: list[Any] = [option.value for option in node.options]
    return operand.isin(*values)


def _like(node: Like, read: Reader) -> Column:
    operand = compile_node(node.operand, read)
    if any(isinstance(part, Case) for part in walk(node.operand)):
        # In a `case` a condition may stand below a text, and that text in a condition again: a
        # lambda names the operand once, where the plan would else grow threefold at each level.
        return F.get(F.transform(F.array(operand), lambda text: _matches(text, node.segments)), 0)
    return _matches(operand, node.segments)


def _matches(text: Column, segments: tuple[str, ...]) -> Column:
    """Match by looking for the segments in order: linear, where a regex could go back."""
    if len(segments) == 1:
        return text == segments[0]
    first, *inner, last = segments
    rest = F.substring(text, len(first) + 1, REST)
    for segment in inner:
        # Names `rest` once: with `locate` and `substring` each segment would double the plan.
        rest = F.get(F.split(rest, quoted(segment), 2), 1)
    ends = F.coalesce(F.endswith(rest, F.lit(last)), F.lit(False))
    return F.when(text.isNotNull(), F.startswith(text, F.lit(first)) & ends)


def _case(node: Case, read: Reader) -> Column:
    chosen: Any = F
    for test, result in node.branches:
        chosen = chosen.when(compile_node(test, read), compile_node(result, read))
    column: Column = chosen.otherwise(compile_node(node.otherwise, read))
    return column


def _call(node: Call, read: Reader) -> Column:
    function = language.FUNCTIONS.get(node.name)
    if function is None or all(operand.rule is None for operand in function.takes):
        return FUNCTIONS[node.name](*(compile_node(operand, read) for operand in node.operands))
    operands: list[Any] = []
    for operand, wanted in zip(node.operands, function.takes, strict=False):
        # What must be a literal goes to Spark as one, and not as a column.
        if wanted.rule is not None and isinstance(operand, Constant):
            operands.append(operand.value)
        else:
            operands.append(compile_node(operand, read))
    return FUNCTIONS[node.name](*operands)
