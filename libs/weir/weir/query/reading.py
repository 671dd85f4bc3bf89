"""Readings: what a query reads, from which panes, decided before any pane is there.

Of the panes only the keys are known here, so whoever holds the panes can fetch exactly
these. `plan.py` makes them from a query.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from weir.definitions.aggregates import parse_aggregate
from weir.expressions import Path
from weir.panes import Windows, kept_since
from weir.query.aggregates import Aggregate
from weir.query.facts import PaneKey, Served, Version
from weir.query.grouping import lacking
from weir.query.model import Query
from weir.query.named import ALWAYS, declared_as, short_name


class Note(NamedTuple):
    """Something to say about an answer: a code and a sentence."""

    code: str
    message: str


@dataclass(frozen=True)
class Reading:
    """One aggregate read over one row of windows: panes of one length, one filter.

    Attributes:
        served: The metric's versions.
        name: The aggregate's name.
        aggregate: How it is computed.
        by: Dimensions to group by.
        where: Conditions on dimensions.
        windows: The windows, moved back already if the reading is for comparison.
        pane_ms: Length of the panes that are merged.
        now_ms: From when back panes are kept.
    """

    served: Served
    name: str
    aggregate: Aggregate
    by: tuple[str, ...]
    where: tuple[Any, ...]
    windows: Windows
    pane_ms: int
    now_ms: int

    @cached_property
    def kept_since_ms(self) -> int:
        """Panes that start earlier are no longer kept, whatever version they are of."""
        return kept_by(self.served.newest, self.pane_ms, self.now_ms)

    @property
    def names(self) -> list[str]:
        """Return every dimension that the reading needs."""
        return [*self.by, *(condition[0] for condition in self.where)]

    def version_of(self, start_ms: int) -> Version | None:
        """Return the version that a pane belongs to; None if none can answer, or keeps it."""
        version = self.served.at(self.pane_ms // 1000, start_ms // 1000)
        if version is None or start_ms < self._answers.get(version.vid, start_ms + 1):
            return None
        return version

    def answered_by(self, version: Version) -> bool:
        """Tell whether a version has the dimensions, aggregate and panes that are read."""
        return version.vid in self._answers

    def key_of(self, start_ms: int) -> PaneKey | None:
        """Return the key of a pane; None if there is none to be read."""
        version = self.version_of(start_ms)
        if version is None or start_ms < self.kept_since_ms:
            return None
        return version.vid, self.pane_ms // 1000, start_ms // 1000

    @property
    def pane_count(self) -> int:
        """Return how many panes are read at most, without listing them."""
        return self.windows.pane_count(self.pane_ms, self.kept_since_ms)

    @cached_property
    def keys(self) -> dict[int, PaneKey]:
        """Return the panes to be read: start in ms -> key."""
        starts = self.windows.pane_starts(self.pane_ms, self.kept_since_ms)
        found = ((start, self.key_of(start)) for start in starts)
        return {start: key for start, key in found if key is not None}

    @cached_property
    def _answers(self) -> dict[int, int]:
        """Of each version that can answer: start of the oldest pane that it keeps."""
        return {
            version.vid: kept_by(version, self.pane_ms, self.now_ms)
            for version in self.served.versions
            if not lacking(version, self.names)
            and self.pane_ms in version.metric.keep_ms
            and declares(version, self.name)
            and self._path_in(version) == self._path_in(self.served.newest)
        }

    def _path_in(self, version: Version) -> Path | None:
        """Return whose texts the aggregate is of: of two paths they are not one set."""
        declared = declared_as(self.name, version.metric.aggregates)
        return parse_aggregate(declared).path if "(" in declared else None


class Line(NamedTuple):
    """What is answered for one row of windows: one reading, or the two of an expression.

    Attributes:
        offset: How far back, as asked (`1w`); None for the windows themselves.
        readings: One, or left and right.
    """

    offset: str | None
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Plan:
    """Everything that follows from a query before any pane is read.

    Attributes:
        query: The query.
        windows: The windows that are answered.
        lines: The main line first, then one for each comparison.
        notes: What was decided in a way that the reader should know.
    """

    query: Query
    windows: Windows
    lines: tuple[Line, ...]
    notes: tuple[Note, ...]

    @cached_property
    def keys(self) -> frozenset[PaneKey]:
        """Return the keys of all panes that the answer is made of."""
        return frozenset(key for reading in self.readings for key in reading.keys.values())

    @property
    def readings(self) -> list[Reading]:
        """Return all readings, those of the main line first."""
        return [reading for line in self.lines for reading in line.readings]


def declares(version: Version, aggregate: str) -> bool:
    """Tell whether a version keeps what an aggregate is computed from."""
    declared = {short_name(name) for name in version.metric.aggregates}
    return aggregate in ALWAYS or short_name(aggregate) in declared


def kept_by(version: Version, pane_ms: int, now_ms: int) -> int:
    """Return the start of the oldest pane of a length that a version keeps."""
    return kept_since(now_ms, pane_ms=pane_ms, keep_ms=version.metric.keep_ms[pane_ms])


def all_kept_since(served: Served, pane_ms: int, now_ms: int) -> int:
    """Return the start from which on all panes of a length are kept, by whichever version."""
    newest_ms = kept_by(served.newest, pane_ms, now_ms)
    since_ms = now_ms
    for version, from_ms, to_ms in served.stretches(pane_ms):
        if pane_ms not in version.metric.keep_ms:
            break
        kept_ms = max(newest_ms, kept_by(version, pane_ms, now_ms))
        if to_ms is not None and kept_ms >= to_ms:
            break
        since_ms = kept_ms if from_ms is None else max(kept_ms, from_ms)
        if since_ms == kept_ms:
            break
    return since_ms
