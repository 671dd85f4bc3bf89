"""One query's answer over time, and what changed in it since any revision.

This is the whole of conflation: a client needs no queue, because what it missed
can always be made from the revision that it saw last.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, cast

from weir.live.answers import (
    Answer,
    Cell,
    Delta,
    SeriesDelta,
    SeriesName,
    cells_of,
    columns_of,
    finalized,
    still_told,
    with_cells,
)

# How far back a client can resume.
HISTORY_MS = 300_000


@dataclass(slots=True)
class _Row:
    """A series with, for each cell, the revision that changed it last."""

    series: dict[str, Any]
    added_rev: int
    cell_revs: list[int]


@dataclass
class Track:
    """Keeps the newest answer of a query and what changed since when.

    Attributes:
        answer: The newest answer.
        rev: The revision of the newest answer that differed from the one before.
        floor_rev: The oldest revision from which a delta can still be made.
        life: Counts the answers that no delta leads to: after another epoch, or another
            version of the metric, which comes without a revision of its own.
    """

    answer: Answer
    now_ms: int
    rev: int = field(init=False)
    floor_rev: int = field(init=False)
    life: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._restart(self.answer)

    def advance(self, answer: Answer, now_ms: int) -> bool:
        """Take a newer answer and tell whether it differs from the last one.

        An answer that is not newer is ignored: values read at the same revision may
        differ (panes may run ahead of it), and clients that hold that revision would
        never be told.
        """
        if not self._continues(answer):
            self._restart(answer)
            return True
        if answer["rev"] <= self.answer["rev"]:
            return False
        rev = answer["rev"]
        changed = self._take_series(answer, rev)
        changed |= self._take_rest(answer, rev)
        self.answer = answer
        if changed:
            self.rev = rev
        self._removed_at.append((now_ms, rev))
        self._forget(now_ms - HISTORY_MS)
        return changed

    def since(self, rev: int) -> Delta | None:
        """Return what changed after `rev`, or None where only a snapshot can tell."""
        if rev < self.floor_rev:
            return None
        times = self.answer["t_ms"]
        all_revs = [self._time_revs, *(row.cell_revs for row in self._rows.values())]
        at = sorted({i for revs in all_revs for i, r in enumerate(revs) if r > rev})
        delta: Delta = {
            "epoch": self.answer["epoch"],
            "prev": rev,
            "rev": self.rev,
            "final_to_ms": self.answer["final_to_ms"],
            "first_t_ms": times[0] if times else None,
            "t_ms": [times[i] for i in at],
            "add": [_name(row.series) for row in self._rows.values() if row.added_rev > rev],
            "del": [k for k, r in self._removed.items() if r > rev and k not in self._rows],
            "series": [
                _picked(row.series, at)
                for row in self._rows.values()
                if row.added_rev > rev or any(row.cell_revs[i] > rev for i in at)
            ],
        }
        if self._of_rev > rev:
            delta["of"] = self.answer["of"]
        if self._notes_rev > rev:
            delta["notes"] = self.answer["notes"]
        if self._corrections_rev > rev:
            delta["corrections"] = self.answer["corrections"]
        return delta

    def _restart(self, answer: Answer) -> None:
        self.answer = answer
        self.life += 1
        self.rev = self.floor_rev = answer["rev"]
        self._of_rev = self._notes_rev = self._corrections_rev = answer["rev"]
        # Windows have revisions of their own, for an answer without any series.
        self._time_revs = [answer["rev"]] * len(answer["t_ms"])
        self._rows = {s["k"]: _Row(s, answer["rev"], self._time_revs) for s in answer["series"]}
        self._removed: dict[int, int] = {}
        self._removed_at: deque[tuple[int, int]] = deque()

    def _continues(self, answer: Answer) -> bool:
        """Tell whether deltas can lead from the present answer to this one."""
        before = self.answer
        if (answer["epoch"], answer["metric"]) != (before["epoch"], before["metric"]):
            return False
        return all(
            _shape(s) == _shape(self._rows[s["k"]].series)
            for s in answer["series"]
            if s["k"] in self._rows
        )

    def _take_series(self, answer: Answer, rev: int) -> bool:
        width = len(answer["t_ms"])
        rows: dict[int, _Row] = {}
        changed = bool(answer["t_ms"] != self.answer["t_ms"])
        known = dict(zip(self.answer["t_ms"], self._time_revs, strict=True))
        self._time_revs = [known.get(t, rev) for t in answer["t_ms"]]
        for series in answer["series"]:
            old = self._rows.get(series["k"])
            if old is None:
                rows[series["k"]] = _Row(series, rev, [rev] * width)
                changed = True
                continue
            revs = self._cell_revs(old, series, answer, rev)
            changed |= rev in revs
            rows[series["k"]] = _Row(series, old.added_rev, revs)
        for k in self._rows.keys() - rows.keys():
            self._removed[k] = rev
            changed = True
        self._rows = rows
        return changed

    def _cell_revs(self, old: _Row, new: dict[str, Any], answer: Answer, rev: int) -> list[int]:
        old_times, new_times = self.answer["t_ms"], answer["t_ms"]
        state = finalized(old.series["state"], old_times, answer["final_to_ms"])
        expected = {**old.series, "state": state}
        if old_times == new_times:
            if columns_of(expected) == columns_of(new):
                return old.cell_revs
            pairs = zip(cells_of(expected), cells_of(new), old.cell_revs, strict=True)
            return [was if a == b else rev for a, b, was in pairs]
        known: dict[int, tuple[Cell, int]] = dict(
            zip(old_times, zip(cells_of(expected), old.cell_revs, strict=True), strict=True)
        )
        revs = []
        for t, cell in zip(new_times, cells_of(new), strict=True):
            before = known.get(t)
            revs.append(before[1] if before is not None and before[0] == cell else rev)
        return revs

    def _take_rest(self, answer: Answer, rev: int) -> bool:
        changed = bool(answer["final_to_ms"] != self.answer["final_to_ms"])
        if answer["of"] != self.answer["of"]:
            self._of_rev, changed = rev, True
        if answer["notes"] != self.answer["notes"]:
            self._notes_rev, changed = rev, True
        if answer["corrections"] != still_told(self.answer["corrections"], answer["t_ms"]):
            self._corrections_rev, changed = rev, True
        return changed

    def _forget(self, before_ms: int) -> None:
        """Drop what only clients older than the history could ask for."""
        horizon_rev = None
        while self._removed_at and self._removed_at[0][0] < before_ms:
            horizon_rev = self._removed_at.popleft()[1]
        if horizon_rev is None:
            return
        gone = [k for k, r in self._removed.items() if r <= horizon_rev]
        if gone:
            self.floor_rev = max(self.floor_rev, *(self._removed.pop(k) for k in gone))


def _shape(series: dict[str, Any]) -> tuple[Any, ...]:
    paths = tuple(path for path, _ in columns_of(series))
    return (paths, series["by"], series.get("slot"))


def _name(series: dict[str, Any]) -> SeriesName:
    known = {"k", "by", "slot", "other"}
    return cast("SeriesName", {n: v for n, v in series.items() if n in known})


def _picked(series: dict[str, Any], at: list[int]) -> SeriesDelta:
    cells = cells_of(series)
    picked = with_cells(series, [cells[i] for i in at])
    names = {"by", "slot", "other"}
    return cast("SeriesDelta", {n: v for n, v in picked.items() if n not in names})
