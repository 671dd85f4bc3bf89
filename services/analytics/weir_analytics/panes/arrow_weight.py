"""How many bytes the columns of an expression take, before they are made.

Everything that an expression makes of a batch is there until it is computed, and texts that it
joins may be many times those of the events. So it is computed for so many events at a time that
all of it fits; by each event's own texts, since one may be a thousand times another's
(docs/decisions/0033).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from weir.expressions import Kind, Node, Path
from weir.expressions.functions import CHOOSING, TO_TEXT
from weir.expressions.tree import Call, Case, Constant, Read, children, walk

# Of a number, and at least of anything else that a column holds of an event.
_VALUE: Final = 8
# Bytes a character, at most. Functions that change characters make no more of them than three
# times as many (upper case), once: what has been through one does not grow again.
_UTF8: Final = 4
_CHANGING: Final = ("lower", "upper", "replace")
_JOINING: Final = ("concat", *CHOOSING)
_PADDING: Final = ("lpad", "rpad")
# The text of the longest number: `-2.2250738585072014e-308`.
_NUMBER: Final = 24
# To weigh a condition takes ten times as long as to find that it was weighed.
_KEPT: Final = 2_000


@dataclass(frozen=True)
class Weight:
    """Bytes of an event at most.

    Attributes:
        own: Whatever the event holds.
        times: And how many times the bytes of the text at a path.
    """

    own: int
    times: dict[Path, int]

    @classmethod
    @lru_cache(_KEPT)
    def of(cls, tree: Node) -> Weight:
        """Return what all nodes of a tree take together; a plan asks for each batch."""
        nodes = list(walk(tree))
        found: Counter[Path | None] = Counter({None: _VALUE * len(nodes)})
        for node in nodes:
            if node.kind is Kind.TEXT:
                text = _text(node)
                found.update(text.plain)
                found.update(text.changed)
        times = {path: times for path, times in found.items() if path is not None}
        return cls(found[None], times)


@dataclass
class _Text:
    """What a text is made of: how many times a path's, and as None bytes of its own.

    Attributes:
        plain: What is as the event has it.
        changed: What has been through a function that may have made more of it.
    """

    plain: Counter[Path | None] = field(default_factory=Counter)
    changed: Counter[Path | None] = field(default_factory=Counter)


def _text(node: Node) -> _Text:
    match node:
        case Read():
            return _Text(Counter({node.path: 1}))
        case Constant():
            return _Text(Counter({None: len(str(node.value or "").encode())}))
        case Case():
            return _joined(one for one in children(node) if one.kind is Kind.TEXT)
        case Call() if node.name in _JOINING:
            return _joined(children(node))
        case Call(name=name) if name == TO_TEXT:
            return _Text(Counter({None: _NUMBER}))
        case Call():
            found = _text(children(node)[0])
            if node.name in _PADDING:
                found.changed[None] += _UTF8 * max(map(_number, children(node)))
            if node.name in _CHANGING:
                grown = {of: _UTF8 * times for of, times in found.plain.items()}
                return _Text(Counter(), found.changed + Counter(grown))
            return found
    msg = f"no text is made by {node}"
    raise AssertionError(msg)


def _joined(nodes: Iterable[Node]) -> _Text:
    found = _Text()
    for one in map(_text, nodes):
        found.plain.update(one.plain)
        found.changed.update(one.changed)
    return found


def _number(node: Node) -> int:
    if isinstance(node, Constant) and isinstance(node.value, float):
        return int(node.value)
    return 0
