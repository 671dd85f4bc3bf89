"""The tree of a checked expression: a closed list of nodes, each with one kind of result.

Whoever gives an expression a meaning (the reference, Spark) writes one branch
for each class here and needs no other check: `parse.py` builds only trees whose
operands have the kinds that the node takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from weir.expressions.paths import Path


class Kind(Enum):
    """What an expression yields; each may also be null."""

    NUMBER = "a number"
    TEXT = "text"
    BOOL = "true or false"


@dataclass(frozen=True, slots=True)
class Read:
    """The value at a path if its JSON type is that of `kind`, else null; never a cast."""

    path: Path
    kind: Kind


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: a finite double, a text or a boolean; None is the null of a kind."""

    value: float | str | bool | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`+ - * / %` on doubles; null if an operand is, if the divisor is zero, or beyond 1.8e308.

    The remainder has the sign of the dividend, as in SQL.
    """

    op: str
    left: Node
    right: Node

    kind: Kind = Kind.NUMBER


@dataclass(frozen=True, slots=True)
class Compare:
    """`= != < <= > >=` on two operands of one kind; text by code point."""

    op: str
    left: Node
    right: Node

    kind: Kind = Kind.BOOL


@dataclass(frozen=True, slots=True)
class Logic:
    """`and` or `or` of two or more, with SQL's three values."""

    op: str
    operands: tuple[Node, ...]

    kind: Kind = Kind.BOOL


@dataclass(frozen=True, slots=True)
class Not:
    """`not`; of null it is null."""

    operand: Node

    kind: Kind = Kind.BOOL


@dataclass(frozen=True, slots=True)
class OneOf:
    """`in` a list of literals of the operand's kind."""

    operand: Node
    options: tuple[Constant, ...]

    kind: Kind = Kind.BOOL


@dataclass(frozen=True, slots=True)
class Like:
    """`like` with `%` for any characters, cut at them: `a%b` is `("a", "b")`.

    One segment means equality. There is no sign for a single character, so that
    a match needs no backtracking.
    """

    operand: Node
    segments: tuple[str, ...]

    kind: Kind = Kind.BOOL


@dataclass(frozen=True, slots=True)
class Absent:
    """`is null` of a path: no such member, or JSON null; of whatever type."""

    path: Path

    kind: Kind = Kind.BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    """`is null` of anything but a path."""

    operand: Node

    kind: Kind = Kind.BOOL


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `functions.py`; its operands have the kinds that it takes."""

    name: str
    operands: tuple[Node, ...]
    kind: Kind


@dataclass(frozen=True, slots=True)
class Case:
    """`case`: the result beside the first condition that is true, else `otherwise`."""

    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node
    kind: Kind


@dataclass(frozen=True, slots=True)
class Size:
    """How many elements the array at a path has; null of anything else."""

    path: Path

    kind: Kind = Kind.NUMBER


@dataclass(frozen=True, slots=True)
class Has:
    """Whether the array at a path has an element that is a literal; null of anything else.

    An element of another JSON type than the literal's is another element, never cast.
    """

    path: Path
    item: Constant

    kind: Kind = Kind.BOOL


Node: TypeAlias = (
    Read
    | Constant
    | Arithmetic
    | Compare
    | Logic
    | Not
    | OneOf
    | Like
    | Absent
    | IsNull
    | Call
    | Case
    | Size
    | Has
)


def children(node: Node) -> tuple[Node, ...]:
    """Return the operands of a node."""
    match node:
        case Arithmetic() | Compare():
            return (node.left, node.right)
        case Logic() | Call():
            return node.operands
        case OneOf():
            return (node.operand, *node.options)
        case Not() | Like() | IsNull():
            return (node.operand,)
        case Case():
            return (*(node for branch in node.branches for node in branch), node.otherwise)
        case Has():
            return (node.item,)
        case Read() | Constant() | Absent() | Size():
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it."""
    yield node
    for child in children(node):
        yield from walk(child)


def extent(node: Node) -> tuple[int, int]:
    """Return how many nodes a tree has, and how many lie on the longest way down.

    An operand that stands at two places is counted twice, but looked at once: what
    `between` and `nullif` repeat would else double the work at each level.
    """
    known: dict[int, tuple[int, int]] = {}

    def of(part: Node) -> tuple[int, int]:
        if id(part) not in known:
            below = [of(child) for child in children(part)]
            nodes = 1 + sum(count for count, _levels in below)
            known[id(part)] = nodes, 1 + max((levels for _count, levels in below), default=0)
        return known[id(part)]

    return of(node)


def paths_of(node: Node) -> tuple[Path, ...]:
    """Return every path that an expression reads, in order, each once."""
    found = (n.path for n in walk(node) if isinstance(n, Read | Absent | Size | Has))
    return tuple(dict.fromkeys(found))
