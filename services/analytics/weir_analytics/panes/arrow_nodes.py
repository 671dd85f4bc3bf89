"""One Arrow kernel for each node of an expression, over all events of a batch at once.

The meaning is that of `weir.expressions.evaluate`, and null is SQL's. What reads no event
stays one scalar as long as it can. A node that stands at two places of a tree is computed
once. Nothing here raises for what an event holds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from weir.expressions import Kind, Node, Path
from weir.expressions import functions as language
from weir.expressions.evaluate import matches
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
    Like,
    Logic,
    Not,
    OneOf,
    Read,
    Size,
    children,
    walk,
)

from weir_analytics.panes.arrow_functions import (
    FUNCTIONS,
    MAX_SEARCHED,
    TYPES,
    Column,
    by_distinct,
    finite,
    remainder,
)
from weir_analytics.panes.compile_views import View

ReadArray: TypeAlias = Callable[[Path, View], Any]
"""Gives the array of a path, read in one way, with a value for each event.

Numbers are finite doubles; `PRESENT` is never null. `ITEMS` alone is no array of Arrow, but
a list of Python: for each event the decoded elements, or None.
"""

_COMPARE: Final[dict[str, Callable[[Column, Column], Column]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC: Final[dict[str, Callable[[Column, Column], Column]]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
    "/": pc.divide,
}
_ZERO: Final = pa.scalar(0.0)
_UNKNOWN: Final = pa.scalar(None, pa.bool_())


def run_node(node: Node, read: ReadArray, size: int) -> pa.Array:
    """Return what an expression yields for each event of a batch.

    Args:
        node: A tree from `weir.expressions.parse` that has a kernel.
        read: Where its paths are.
        size: How many events there are.
    """
    made = _Batch(read).column(node)
    return pa.repeat(made, size) if isinstance(made, pa.Scalar) else made


def has_kernel(node: Node) -> bool:
    """Tell whether everything in a tree can be computed here."""
    return all(part.name in FUNCTIONS for part in walk(node) if isinstance(part, Call))


class _Batch:
    """The columns of one tree's nodes, each made once."""

    def __init__(self, read: ReadArray) -> None:
        self._read = read
        self._made: dict[int, Column] = {}
        self._items: dict[Path, list[_Items | None]] = {}

    def column(self, node: Node) -> Column:
        """Return the array of a node, or a scalar if it reads no event."""
        made = self._made.get(id(node))
        if made is None:
            made = self._made[id(node)] = self._make(node)
        return made

    def _make(self, node: Node) -> Column:
        match node:
            case Read():
                return self._read(node.path, View.of(node.kind))
            case Constant():
                return pa.scalar(node.value, TYPES[node.kind])
            case Absent():
                return pc.invert(self._read(node.path, View.PRESENT))
            case Size():
                return self._read(node.path, View.SIZE)
            case Has():
                if node.path not in self._items:
                    self._items[node.path] = list(map(_items, self._read(node.path, View.ITEMS)))
                return _has(node, self._items[node.path])
        operands = [self.column(child) for child in children(node)]
        if any(isinstance(operand, pa.Array) for operand in operands):
            return _of_operands(node, operands)
        # Kernels of one array have no form for a scalar: a batch of one event is as good.
        single = [pa.repeat(operand, 1) for operand in operands]
        return _of_operands(node, single)[0]


def _of_operands(node: Node, operands: list[Column]) -> Column:
    match node:
        case Compare():
            return _COMPARE[node.op](*operands)
        case Arithmetic(op="%"):
            return remainder(*operands)
        case Arithmetic():
            return finite(_ARITHMETIC[node.op](*operands))
        case Logic():
            return reduce(pc.and_kleene if node.op == "and" else pc.or_kleene, operands)
        case Not():
            return pc.invert(operands[0])
        case IsNull():
            return pc.is_null(operands[0])
        case OneOf():
            return _one_of(operands[0], node.options)
        case Like():
            return _matches(operands[0], node.segments)
        case Case():
            return _case(operands)
        case Call():
            return _call(node, operands)
    msg = f"no kernel for {node}"
    raise AssertionError(msg)


# What an array is searched for: values of one type, which Python might take for another's.
_Items: TypeAlias = "list[_Item] | frozenset[_Item]"
_Item: TypeAlias = tuple[Kind, Any]
# A longer array is hashed: there may be hundreds of thousands, and dozens that are looked for.
_FEW_ITEMS: Final = 16


def _items(array: list[Any] | None) -> _Items | None:
    """Return the scalars of an array; None if it is none."""
    if array is None:
        return None
    found = [item for item in map(_item, array) if item is not None]
    return found if len(found) <= _FEW_ITEMS else frozenset(found)


def _item(value: Any) -> _Item | None:
    if isinstance(value, str):
        return Kind.TEXT, value
    if isinstance(value, bool):
        return Kind.BOOL, value
    number = as_double(value)
    return None if number is None else (Kind.NUMBER, number)


def _has(node: Has, arrays: list[_Items | None]) -> Column:
    wanted = node.item.kind, node.item.value
    held = [None if items is None else wanted in items for items in arrays]
    return pa.array(held, pa.bool_())


def _one_of(operand: Column, options: tuple[Constant, ...]) -> Column:
    if operand.type == TYPES[Kind.NUMBER]:
        # Options are found by their bits, in which -0.0 is not 0.0.
        operand = pc.add(operand, _ZERO)
    values = pa.array([option.value for option in options], operand.type)
    found = pc.is_in(operand, value_set=values)
    return pc.if_else(pc.is_valid(operand), found, _UNKNOWN) if operand.null_count else found


def _matches(text: Column, segments: tuple[str, ...]) -> Column:
    if len(segments) == 1:
        return pc.equal(text, segments[0])
    first, *inner, last = segments
    if not inner:
        if not last:
            return pc.starts_with(text, pattern=first)
        if not first:
            return pc.ends_with(text, pattern=last)
    if len(inner) == 1 and not first and not last:
        return pc.match_substring(text, pattern=inner[0])
    if sum(map(len, segments)) > MAX_SEARCHED:
        return by_distinct(text, lambda one: matches(one, segments), Kind.BOOL)
    # RE2 never goes back over a text, and `\C` is a byte: no part of a character is one.
    pattern = r"\C*".join(map(_quoted, segments))
    return pc.match_substring_regex(text, pattern=rf"\A{pattern}\z")


def _quoted(text: str) -> str:
    """Return the regex that matches a text and nothing else."""
    return "".join(c if c.isalnum() or not c.isascii() else rf"\x{{{ord(c):x}}}" for c in text)


def _case(operands: list[Column]) -> Column:
    """Choose from the last branch to the first: Arrow's own kernel is the slower one."""
    *branches, chosen = operands
    for at in reversed(range(0, len(branches), 2)):
        chosen = pc.if_else(pc.coalesce(branches[at], False), branches[at + 1], chosen)
    return chosen


def _call(node: Call, operands: list[Column]) -> Column:
    function = language.FUNCTIONS.get(node.name)
    if function is None or all(operand.rule is None for operand in function.takes):
        return FUNCTIONS[node.name](*operands)
    # What must be a literal goes to the kernel as one.
    given = [
        operand.value if wanted.rule is not None and isinstance(operand, Constant) else column
        for operand, column, wanted in zip(node.operands, operands, function.takes, strict=False)
    ]
    return FUNCTIONS[node.name](*given)
