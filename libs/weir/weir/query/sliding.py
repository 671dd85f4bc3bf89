"""Windows as merges of blocks, without merging each block again for each window.

Blocks are cut into runs as long as a window. Within a run the merges from its start up
to each block, and from each block to its end, are made once; every window is then the
end of one run and the start of the next: three merges a window, however long it is
(van Herk, Gil and Werman). Nothing is ever subtracted, so sums do not drift, and
sketches, which cannot be subtracted, work the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from weir.query.aggregates import Part

Join = Callable[[Part, Part], Part]
BlockOf = Callable[[int], Part | None]
# A window touches two runs. Two more, so that windows which a late event changed do not
# push out those at the live edge.
_RUNS_KEPT = 4


def joined(one: Part | None, other: Part | None, join: Join) -> Part | None:
    """Return both parts together, where None is nothing."""
    if one is None or other is None:
        return one or other
    return join(one, other)


@dataclass(slots=True)
class _Run:
    """Merges within one run: `heads[i]` of blocks 0..i, `tails[j]` of the last j+1."""

    heads: list[Part | None] = field(default_factory=list)
    tails: list[Part | None] = field(default_factory=list)


class Sliding:
    """The windows of one series: each is the merge of `width` consecutive blocks."""

    def __init__(self, width: int, block: BlockOf, join: Join) -> None:
        """Prepare; nothing is merged yet.

        Args:
            width: Blocks of a window, at least 1.
            block: The part of a block by its number; None if nothing is in it.
            join: How two parts merge.
        """
        self._width = width
        self._block = block
        self._join = join
        self._runs: dict[int, _Run] = {}

    def window(self, end: int) -> Part | None:
        """Return the merge of the blocks from `end - width` up to, not including, `end`."""
        if self._width == 1:
            return self._block(end - 1)
        run, into = divmod(end, self._width)
        if into == 0:
            return self._head(run - 1, self._width - 1)
        return joined(self._tail(run - 1, into), self._head(run, into - 1), self._join)

    def touch(self, block: int) -> None:
        """Forget every merge that a changed block is part of."""
        number, at = divmod(block, self._width)
        run = self._runs.get(number)
        if run is not None:
            del run.heads[at:]
            del run.tails[self._width - 1 - at :]

    def _head(self, number: int, last: int) -> Part | None:
        heads, base = self._run(number).heads, number * self._width
        while len(heads) <= last:
            before = heads[-1] if heads else None
            heads.append(joined(before, self._block(base + len(heads)), self._join))
        return heads[last]

    def _tail(self, number: int, first: int) -> Part | None:
        tails, after = self._run(number).tails, (number + 1) * self._width
        count = self._width - first
        while len(tails) < count:
            before = tails[-1] if tails else None
            tails.append(joined(self._block(after - 1 - len(tails)), before, self._join))
        return tails[count - 1]

    def _run(self, number: int) -> _Run:
        run = self._runs.pop(number, None) or _Run()
        self._runs[number] = run
        if len(self._runs) > _RUNS_KEPT:
            # The one not used for longest: a dict keeps the order of insertion.
            del self._runs[next(iter(self._runs))]
        return run
