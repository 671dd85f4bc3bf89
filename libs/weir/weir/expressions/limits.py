"""How large a tree may be, and how long the texts that it makes."""

from __future__ import annotations

from typing import Final

from weir.expressions.errors import too_large
from weir.expressions.functions import MAX_JOINED, TO_TEXT
from weir.expressions.syntax import MAX_DEPTH, MAX_NODES
from weir.expressions.tree import Call, Case, Kind, Node, Read, extent, walk

_BOUNDED: Final = ("lpad", "rpad", TO_TEXT)


def check_size(tree: Node) -> None:
    """Check that a tree is within the limits.

    Raises:
        ExpressionError: If it has too many nodes or levels, or joins too many texts.
    """
    nodes, levels = extent(tree)
    if nodes > MAX_NODES:
        raise too_large(str(nodes), f"at most {MAX_NODES} nodes", "split the metric")
    if levels > MAX_DEPTH:
        raise too_large(str(levels), f"at most {MAX_DEPTH} levels deep", "simplify it")
    joined = max((growth(node) for node in walk(tree)), default=0)
    if joined > MAX_JOINED:
        required = f"joined of at most {MAX_JOINED} texts of the event"
        raise too_large(str(joined), required, "leave some out, or test them one by one")


def growth(node: Node) -> int:
    """Return how many texts of an event the text that a node makes is at most as long as.

    Literals, what is filled up to a length and the text of a number do not count: they are
    bounded by the definition. Every other function gives no more characters than it takes.
    """
    match node:
        case Read():
            return 1
        case Case():
            results = (*(result for _test, result in node.branches), node.otherwise)
            return max(map(growth, results))
        case Call(name="concat"):
            return sum(map(growth, node.operands))
        case Call() if node.kind is Kind.TEXT and node.name not in _BOUNDED:
            return max(map(growth, node.operands))
    return 0
