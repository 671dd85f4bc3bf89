"""What one writer task has received: the parts of its panes, and what travels with them.

Pure: Arrow rows in, parts and reports out. A group of the finest resolution becomes
a part of every resolution that is kept, so that Spark aggregates each event once.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

import pyarrow as pa
from weir import rows
from weir.rows import Row
from weir.series import cut_text

from weir_analytics.panes.accounts import (
    FATE,
    GAP,
    LATE,
    LATE_ROWS,
    PROGRESS,
    REASONS,
    UNREADABLE,
)
from weir_analytics.panes.arrow_lists import values_of
from weir_analytics.panes.commit_job import Part
from weir_analytics.panes.kinds import Use
from weir_analytics.panes.measures import RowReader
from weir_analytics.panes.task_watch import note_step
from weir_analytics.panes.versions import LatePanes, Version, late_panes

Series = tuple[int, int, int, str]  # version, length, start, series text
LateGroup = tuple[str, str, str, int, int, int]
"""Tenant, source, type, start of the finest pane, received minute (s), events."""
LateRow = tuple[str, int, str, str, int, int, int]
"""Tenant, version, source, series, start of its finest pane, received minute (s), events."""
AnyLate = TypeVar("AnyLate", bound=LateGroup | LateRow)
# In place of a source: there are as many groups of a version's late events, of which none is told.
LEFT_OUT: Final = ""
# Most groups of one tenant's late events that a task tells of; a load of old events has any
# number.
MAX_LATE = 10_000
# Most copies of one version, partition and task: a wrong path makes every event unusable, and the
# next version counts them from the log. What nobody can use comes back by its copy alone.
MAX_COPIES = 1_000
# In place of an offset: a row tells how many events there are besides those that have one each.
NO_COPY = -1


@dataclass(frozen=True)
class Unusable:
    """One event that one version (or, with none, nobody) could not use.

    Attributes:
        left_out: How many later ones of the same version and partition are not copied.
    """

    vid: int | None
    partition: int
    offset: int
    code: str
    left_out: int = 0


@dataclass
class Copies:
    """The events to be copied: all that nobody can use, and of what a version cannot use some.

    Of each version and partition those with the lowest offsets, and not the first to come: a batch
    that runs again copies the same ones.
    """

    most: int = MAX_COPIES
    _heaps: dict[tuple[int | None, int], list[tuple[int, str]]] = field(default_factory=dict)
    _left_out: dict[tuple[int | None, int], int] = field(default_factory=dict)

    def add(self, vid: int | None, partition: int, offset: int, code: str) -> None:
        """Take one event; it may push out a later one."""
        heap = self._heaps.setdefault((vid, partition), [])
        if vid is None or len(heap) < self.most:
            heapq.heappush(heap, (-offset, code))
        else:
            heapq.heappushpop(heap, (-offset, code))
            self.leave_out(vid, partition, 1)

    def leave_out(self, vid: int | None, partition: int, n: int) -> None:
        """Take the number of events that lie behind enough others to be copied."""
        self._left_out[vid, partition] = self._left_out.get((vid, partition), 0) + n

    def left_out(self) -> int:
        """Return how many events have no copy."""
        return sum(self._left_out.values())

    def chosen(self) -> list[Unusable]:
        """Return the events to copy; the last of a version and partition says what is missing."""
        found: list[Unusable] = []
        for (vid, partition), heap in self._heaps.items():
            *others, last = sorted(heap, reverse=True)
            found += [Unusable(vid, partition, -at, code) for at, code in others]
            missing = self._left_out.get((vid, partition), 0)
            found.append(Unusable(vid, partition, -last[0], last[1], missing))
        return found


@dataclass
class Late(Generic[AnyLate]):
    """Groups of late events; the first member of each is whose they are, the last how many.

    Of each tenant the first in order, and not the first to come: a batch that runs again tells
    the same, and what one tenant sends takes no other's place.

    Attributes:
        left_out: By tenant, how many groups are not among them.
    """

    most: int = MAX_LATE
    left_out: Counter[str] = field(default_factory=Counter)
    _groups: dict[str, Counter[tuple[Any, ...]]] = field(default_factory=dict)

    def add(self, group: AnyLate) -> None:
        """Take one group, to those of its kind; it may push out one behind it."""
        groups = self._groups.setdefault(group[0], Counter())
        groups[group[:-1]] += group[-1]
        if len(groups) >= 2 * self.most:
            self._cut(group[0])

    def kept(self) -> list[AnyLate]:
        """Return what is not left out."""
        for tenant in self._groups:
            self._cut(tenant)
        found: list[Any] = []
        for groups in self._groups.values():
            found += ((*kind, groups[kind]) for kind in sorted(groups))
        return found

    def whole(self) -> list[AnyLate]:
        """Return the groups of those tenants of which none is left out."""
        return [group for group in self.kept() if group[0] not in self.left_out]

    def _cut(self, tenant: str) -> None:
        groups = self._groups[tenant]
        if len(groups) <= self.most:
            return
        for kind in sorted(groups)[self.most :]:
            del groups[kind]
            self.left_out[tenant] += 1


@dataclass
class Inbox:
    """Everything that a writer task received.

    Attributes:
        versions: The versions of the batch, by id; a row of another one is an error.
        final_through_ms: See `Batch`.
        progress: By partition: R at the range's end, and records seen.
        fates: [partition, offset, disposition, reason] of sampled events.
        codes: (partition, offset, version, code) of sampled events.
        copies: Events to be copied to quarantine.
        late: Groups of late events, by source and type.
        late_rows: The same of what each version counted, by series.
        reasons: By reason, how many records nobody could use.
        unused: By reason, how often a version could not use an event.
    """

    versions: Mapping[int, Version]
    final_through_ms: int | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    unused: Counter[str] = field(default_factory=Counter)
    progress: dict[int, tuple[int, int]] = field(default_factory=dict)
    fates: list[tuple[int, int, str, str | None]] = field(default_factory=list)
    codes: list[tuple[int, int, int, str]] = field(default_factory=list)
    copies: Copies = field(default_factory=Copies)
    late: Late[LateGroup] = field(default_factory=Late)
    late_rows: Late[LateRow] = field(default_factory=Late)
    _groups: dict[Series, list[Row]] = field(default_factory=dict)
    # Rows of thousands of series are of the same panes.
    _panes: dict[tuple[int, int, int], list[tuple[int, int]]] = field(default_factory=dict)

    @cached_property
    def _late_panes(self) -> Mapping[str, LatePanes]:
        return late_panes(self.versions.values(), self.final_through_ms)

    def take(self, batch: pa.RecordBatch) -> None:
        """Take the next rows.

        The columns become lists one by one: per row that costs a fraction of
        reading a row as a whole.
        """
        names = batch.schema.names
        columns = {name: values_of(batch.column(at)) for at, name in enumerate(names)}
        read = RowReader(columns)
        keys = zip(
            *(columns[n] for n in ("vid", "series", "start_s", "minute_s", "use")), strict=True
        )
        for at, (vid, series, start_s, minute_s, use) in enumerate(keys):
            if vid == LATE:
                self._note_late(series, start_s, minute_s, columns["n"][at])
                continue
            if vid == LATE_ROWS:
                self._note_late_row(series, start_s, minute_s, columns["n"][at])
                continue
            if vid == REASONS:
                self.reasons[series] += columns["n"][at]
                continue
            if vid <= PROGRESS or (use == Use.VALUE_QUARANTINED and vid >= 0):
                if start_s == NO_COPY and vid >= 0:
                    self._note_more(vid, series, columns["n"][at])
                    continue
                self._note(vid, series, start_s, minute_s)
                continue
            row = read.row(at)
            place = vid, start_s, minute_s
            panes = self._panes.get(place)
            if panes is None:
                panes = self._panes[place] = self.versions[vid].panes(start_s, minute_s)
            for res_s, pane_s in panes:
                self._groups.setdefault((vid, res_s, pane_s, series), []).append(row)

    def parts(self) -> list[Part]:
        """Return the parts; equal groups are merged at once, sketches opened once."""
        return [self._part(key, found) for key, found in self._groups.items()]

    def _part(self, key: Series, found: list[Row]) -> Part:
        if len(found) == 1:
            return Part(*key, found[0])
        note_step()
        return Part(*key, rows.merge_all(found))

    def _note_late(self, series: str, start_s: int, minute_s: int, n: int) -> None:
        tenant, source, event_type = series.split(GAP, 2)
        panes = self._late_panes.get(tenant)
        # Columns of Spark do not know what was final: they tell more, and by shorter panes.
        pane_s = None if panes is None else panes.start_s(start_s)
        if pane_s is not None:
            # All of a task are one line of text, and a type is as long as its client likes.
            self.late.add((tenant, source, cut_text(event_type), pane_s, minute_s, n))

    def _note_late_row(self, text: str, start_s: int, minute_s: int, n: int) -> None:
        vid, source, series = text.split(GAP, 2)
        tenant = self.versions[int(vid)].tenant
        if source == LEFT_OUT:
            self.late_rows.left_out[tenant] += n
        else:
            self.late_rows.add((tenant, int(vid), source, series, start_s, minute_s, n))

    def _note_more(self, vid: int, series: str, n: int) -> None:
        code, partition, _sampled = series.split(GAP)
        self.copies.leave_out(vid, int(partition), n)
        self.unused[code] += n

    def _note(self, vid: int, series: str, at: int, extra: int | None) -> None:
        words = series.split(GAP)
        if vid == PROGRESS:
            # More than one where records came that were given up: both figures only grow.
            partition = int(words[0])
            self.progress[partition] = max((at, extra or 0), self.progress.get(partition, (0, 0)))
        elif vid == FATE:
            self.fates.append((int(words[0]), at, words[1], words[2] or None))
        else:
            code, partition, sampled = words[0], int(words[1]), words[2] == "true"
            self.copies.add(None if vid == UNREADABLE else vid, partition, at, code)
            if vid != UNREADABLE:
                self.unused[code] += 1
            if sampled and vid != UNREADABLE:
                self.codes.append((partition, at, vid, code))
