"""One reading, kept up to date: panes in, and for each group and window a merged part out.

Panes are merged into blocks, blocks into windows (`sliding.py`), and what did not change
is not merged again: a changed pane costs its block, and the windows over that block, of
the groups that it changed. A late event costs no more than a timely one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from weir.frequent import Texts
from weir.query.aggregates import Part
from weir.query.aggregates_of_texts import Frequent
from weir.query.cells import Cell
from weir.query.facts import PaneRows
from weir.query.grouping import REST, Group, Grouping
from weir.query.reading import Reading
from weir.query.sliding import Sliding, joined
from weir.rows import Row


class Result(NamedTuple):
    """What the panes of one window say about one group.

    Attributes:
        cell: How many events, and what the aggregate reads from them; None of no rows.
        known: Whether every pane has told everything about the group. A pane with a row
            `other` tells only of those series that have a row of their own.
    """

    cell: Cell | None
    known: bool


@dataclass(slots=True)
class _Block:
    """Panes that every window holds all or none of, merged.

    Attributes:
        parts: Group -> its rows, merged.
        capped: How many of the panes have a row `other`.
        present: Group -> in how many of those it has a row of its own.
    """

    parts: dict[Group, Part] = field(default_factory=dict)
    capped: int = 0
    present: dict[Group, int] = field(default_factory=dict)


class Windowed:
    """The windows of one reading over panes that change."""

    def __init__(self, reading: Reading) -> None:
        """Prepare for a reading; no pane is known yet."""
        self._set(reading)
        self._panes: dict[int, PaneRows] = {}
        self._read: set[int] = set()
        self._blocks: dict[int, _Block] = {}
        self._sliding: dict[Group, Sliding] = {}
        self._results: dict[Group, dict[int, Result]] = {}
        self._groupings: dict[int, Grouping] = {}
        # Numbers of the capped blocks, in order; None if they are to be found again.
        self._capped: list[int] | None = None
        self._merged: tuple[frozenset[Group], Sliding, dict[int, Result]] | None = None
        # Of each capped block, whether some of these groups may be in its `other`.
        self._lacking: tuple[frozenset[Group], dict[int, bool]] | None = None

    def _set(self, reading: Reading) -> None:
        self.reading = reading
        windows = reading.windows
        self._block_ms = math.gcd(windows.length_ms, windows.step_ms)
        self._origin_ms = windows.first_end_ms % self._block_ms
        self._width = windows.length_ms // self._block_ms
        newest = Grouping(reading.served.newest, reading.by, reading.where)
        self._leaf = newest.leaf
        # Ascending: the merges of one window are the start of those of the next.
        self._ends = [self._number(end_ms) for end_ms in windows.ends_ms]

    # ── following time ──────────────────────────────────────────────────────

    def follow(self, reading: Reading) -> bool:
        """Go on to a later reading of the same query, keeping what is still in it.

        Returns:
            Whether it could: not if the panes' length or versions are others now.
        """
        before = self._shape()
        self._set(reading)
        if self._shape() != before:
            return False
        for start_ms in self._read - reading.keys.keys():
            self._read.discard(start_ms)
            if self._panes.pop(start_ms, None) is not None:
                self._blocks.pop(self._number(start_ms), None)
                self._capped = None
        # One whose panes lost their last rows is left over: its panes go without a sign.
        for number in [n for n in self._blocks if n < self._ends[0] - self._width]:
            del self._blocks[number]
        ends, groups = set(self._ends), self.groups()
        for group in self._results.keys() - groups:
            del self._results[group]
            self._sliding.pop(group, None)
        kept = [*self._results.values(), *(() if self._merged is None else (self._merged[2],))]
        for results in kept:
            for end in results.keys() - ends:
                del results[end]
        if self._lacking is not None:
            for number in self._lacking[1].keys() - self._blocks.keys():
                del self._lacking[1][number]
        return True

    def _shape(self) -> tuple[object, ...]:
        reading = self.reading
        versions = tuple((v.vid, v.cut) for v in reading.served.versions)
        asked = reading.name, reading.by, reading.where
        return reading.pane_ms, self._block_ms, self._origin_ms, self._width, versions, asked

    def missing(self) -> list[int]:
        """Return the starts of the panes that were never given."""
        return [start_ms for start_ms in self.reading.keys if start_ms not in self._read]

    def take(self, changed: Mapping[int, PaneRows | None]) -> None:
        """Put in what panes hold now: start in ms -> rows; None for a pane that is not there."""
        dirty: dict[int, set[Group]] = {}
        for start_ms, rows in changed.items():
            self._read.add(start_ms)
            if rows:
                relisted = self._relisted(start_ms, rows)
                self._panes[start_ms] = rows
                dirty.setdefault(self._number(start_ms), set()).update(relisted)
            elif self._panes.pop(start_ms, None) is not None:
                dirty.setdefault(self._number(start_ms), set())
        for number in sorted(dirty):
            self._replace(number, dirty[number])

    def _relisted(self, start_ms: int, rows: PaneRows) -> set[Group]:
        """Return the groups of which a list has changed; of other aggregates the count says it."""
        if not isinstance(self.reading.aggregate, Frequent):
            return set()
        before, grouping = self._panes.get(start_ms), self._grouping(start_ms)
        if before is None or grouping is None:
            return set()
        return {
            grouping.of(text)[1]
            for text, row in rows.items()
            if _texts(row) != _texts(before.get(text))
        }

    @property
    def newest_with_rows(self) -> int | None:
        """Return the start of the newest pane that has rows; None of none."""
        return max(self._panes, default=None)

    # ── blocks ──────────────────────────────────────────────────────────────

    def _number(self, at_ms: int) -> int:
        return (at_ms - self._origin_ms) // self._block_ms

    def _replace(self, number: int, relisted: set[Group]) -> None:
        before, after = self._blocks.get(number) or _Block(), self._merge(number)
        self._blocks[number] = after
        if self._lacking is not None:
            self._lacking[1].pop(number, None)
        capped = before.capped or after.capped
        for group in before.parts.keys() | after.parts.keys():
            one, other = before.parts.get(group), after.parts.get(group)
            # Rows only ever gain events, so an equal count is an equal row; only a cap
            # moves rows, into `other`, and only an erasure takes a name out of a list.
            is_equal = one is not None and other is not None and one[0] == other[0]
            if capped or not is_equal or group in relisted:
                self._forget(group, number)
        if capped:
            self._capped = None
            # What a group's window says then depends on `other`, too.
            for results in self._results.values():
                self._drop(results, number)
        if self._merged is not None:
            self._merged[1].touch(number)
            self._drop(self._merged[2], number)

    def _forget(self, group: Group, number: int) -> None:
        if group in self._sliding:
            self._sliding[group].touch(number)
            self._drop(self._results.get(group, {}), number)

    def _drop(self, results: dict[int, Result], number: int) -> None:
        for end in range(number + 1, number + self._width + 1):
            results.pop(end, None)

    def _merge(self, number: int) -> _Block:
        begin_ms = self._origin_ms + number * self._block_ms
        block = _Block()
        rows: dict[Group, list[Row]] = {}
        # A block may be far longer than panes are kept.
        since_ms = max(begin_ms, self.reading.kept_since_ms)
        for start_ms in range(since_ms, begin_ms + self._block_ms, self.reading.pane_ms):
            pane = self._panes.get(start_ms)
            if pane is not None:
                self._sort_in(start_ms, pane, rows, block)
        block.parts = {group: self.reading.aggregate.of(of) for group, of in rows.items()}
        return block

    def _sort_in(
        self, start_ms: int, pane: PaneRows, rows: dict[Group, list[Row]], block: _Block
    ) -> None:
        grouping = self._grouping(start_ms)
        if grouping is None:
            return
        found = set()
        capped = False
        for text, row in pane.items():
            asked, group = grouping.of(text)
            if asked:
                rows.setdefault(group, []).append(row)
                found.add(group)
                capped = capped or group is REST
        if capped:
            block.capped += 1
            for group in found:
                # A group of several series may have more of them in `other`.
                block.present[group] = block.present.get(group, 0) + grouping.leaf

    def _grouping(self, start_ms: int) -> Grouping | None:
        version = self.reading.version_of(start_ms)
        if version is None:
            return None
        found = self._groupings.get(version.vid)
        if found is None:
            found = Grouping(version, self.reading.by, self.reading.where)
            self._groupings[version.vid] = found
        return found

    # ── windows ─────────────────────────────────────────────────────────────

    def groups(self) -> set[Group]:
        """Return every group that has a row in some pane; the total always."""
        found: set[Group] = set()
        for block in self._blocks.values():
            found.update(block.parts)
        if not self.reading.by:
            found.discard(REST)
            found.add(())
        return found

    def capped(self) -> bool:
        """Tell whether some pane has a row `other`."""
        return any(block.capped for block in self._blocks.values())

    def results(self, group: Group) -> list[Result]:
        """Return what each window says about a group, oldest first."""
        results = self._results.setdefault(group, {})
        for end in self._ends:
            if end not in results:
                results[end] = self._result(group, end)
        return [results[end] for end in self._ends]

    def result_at(self, group: Group, at: int) -> Result:
        """Return what one window, by its place in the row, says about a group."""
        results = self._results.setdefault(group, {})
        end = self._ends[at]
        if end not in results:
            results[end] = self._result(group, end)
        return results[end]

    def merged(self, groups: Iterable[Group]) -> list[Result]:
        """Return what each window says about several groups together.

        A filter cannot judge `other`: all of it may belong to them, or nothing.
        """
        members = frozenset(groups)
        unjudged = REST in members and bool(self.reading.where)
        if self._merged is None or self._merged[0] != members:
            self._merged = (members, self._union_of(members), {})
        _, sliding, results = self._merged
        for end in self._ends:
            if end not in results:
                cell = self._cell(sliding.window(end))
                results[end] = self._widened(cell, end) if unjudged else Result(cell, True)
        return [results[end] for end in self._ends]

    def are_told(self, groups: Iterable[Group]) -> list[bool]:
        """Tell of each window whether nothing of some groups is in `other`."""
        members = frozenset(groups)
        if self._lacking is None or self._lacking[0] != members:
            self._lacking = (members, {})
        known = self._lacking[1]
        for number in self._capped_blocks():
            if number not in known:
                block = self._blocks[number]
                known[number] = any(block.capped > block.present.get(g, 0) for g in members)
        short = [number for number in self._capped_blocks() if known[number]]
        return [
            bisect_left(short, end - self._width) == bisect_left(short, end) for end in self._ends
        ]

    def _union_of(self, members: frozenset[Group]) -> Sliding:
        # Nothing that holds `self`: a query that has been answered is freed at once.
        join, blocks = self.reading.aggregate.join, self._blocks

        if self.reading.where:
            members -= {REST}

        def block(number: int) -> Part | None:
            parts = blocks[number].parts if number in blocks else {}
            return reduce(lambda one, group: joined(one, parts.get(group), join), members, None)

        return Sliding(self._width, block, join)

    def _result(self, group: Group, end: int) -> Result:
        cell = self._cell(self._part(group, end))
        if group is REST or self._all_told(group, end):
            return Result(cell, True)
        return Result(None, False) if self._leaf else self._widened(cell, end)

    def _widened(self, cell: Cell | None, end: int) -> Result:
        """Return what is said of a window where any of `other` may belong to a cell, too."""
        unassigned = self._part(REST, end)
        if unassigned is None:
            return Result(cell, True)
        if cell is None:
            return Result(None, False)
        # What is said besides a value has no bounds for what may belong here, too.
        value = cell.value and self.reading.aggregate.widen(cell.value, unassigned)
        return Result(Cell(cell.events, value), False)

    def _cell(self, part: Part | None) -> Cell | None:
        if part is None:
            return None
        aggregate = self.reading.aggregate
        value = aggregate.read(part)
        finite = value is not None and all(map(math.isfinite, value))
        return Cell(part[0], value if finite else None, aggregate.found(part))

    def _all_told(self, group: Group, end: int) -> bool:
        capped = self._capped_blocks()
        for at in range(bisect_left(capped, end - self._width), len(capped)):
            if capped[at] >= end:
                break
            block = self._blocks[capped[at]]
            if block.capped > block.present.get(group, 0):
                return False
        return True

    def _capped_blocks(self) -> list[int]:
        if self._capped is None:
            self._capped = sorted(number for number, of in self._blocks.items() if of.capped)
        return self._capped

    def _part(self, group: Group, end: int) -> Part | None:
        sliding = self._sliding.get(group)
        if sliding is None:
            blocks = self._blocks

            def block(number: int) -> Part | None:
                found = blocks.get(number)
                return None if found is None else found.parts.get(group)

            sliding = Sliding(self._width, block, self.reading.aggregate.join)
            self._sliding[group] = sliding
        return sliding.window(end)


def _texts(row: Row | None) -> Texts | None:
    return None if row is None or row.further is None else row.further.top
