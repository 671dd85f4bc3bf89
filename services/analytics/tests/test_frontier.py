"""Which batches begin a lane or set it back, and what dedup has of what they count again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from weir.commit import Verdict
from weir.names import LIVE_LANE
from weir_analytics.panes import cycle as cycle_module
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.runs import NEVER, Identities, Run, write_run
from weir_analytics.panes.states import Frontier, dedup_folder

from .log_frames import batch_of

HORIZON_MS = 1_000


def batch_in(folder: Path, start: int, end: int, lane: str = LIVE_LANE) -> Batch:
    """Return a batch of two partitions; the second one has no more records than five."""
    starts, ends = {0: start, 1: min(start, 5)}, (end, min(end, 5))
    return replace(batch_of(folder, *ends, start=starts), lane=lane)


def write(batch: Batch) -> None:
    """Write the runs of a batch, as its task does."""
    seen = np.zeros(1, np.uint64)
    for partition, end in batch.end.items():
        if batch.start[partition] == end:
            continue  # it has no task
        identities = Identities(seen, seen, np.full(1, 5))
        run = Run(batch.start[partition], end, NEVER, 5, identities)
        write_run(dedup_folder(batch, partition), run, HORIZON_MS)


def stale(frontier: Frontier, batch: Batch) -> set[tuple[str, str, int]]:
    """Return lane, partition and start of the files that are stale with a batch, and run it."""
    found = frontier.stale(batch)
    frontier.move(batch)
    return {(path.parts[-3], path.parts[-2], int(path.name[:20])) for path in found}


class TestStale:
    def test_going_on(self, tmp_path: Path) -> None:
        """Nothing is stale where a batch begins at the end of the one before."""
        frontier = Frontier()
        for start, end in ((3, 5), (5, 9), (9, 9), (9, 12)):
            batch = batch_in(tmp_path, start, end)
            write(batch_in(tmp_path, start, end + 1))  # of whoever came later
            begins = {("live", p, 3) for p in "01"} if start == 3 else set()
            assert stale(frontier, batch) == begins

    def test_going_back(self, tmp_path: Path) -> None:
        """Of each partition what ends behind the new start; of other lanes nothing."""
        frontier = Frontier()
        for start, end in ((0, 4), (4, 7), (7, 9)):
            for lane in (LIVE_LANE, "12"):
                assert not stale(frontier, batch_in(tmp_path, start, end, lane))
                write(batch_in(tmp_path, start, end, lane))
        assert stale(frontier, batch_in(tmp_path, 4, 6)) == {
            ("live", "0", 4),
            ("live", "0", 7),
            ("live", "1", 4),
        }
        assert stale(frontier, batch_in(tmp_path, 9, 10, "12")) == set()
        assert not stale(frontier, batch_in(tmp_path, 6, 8))

    def test_a_new_life(self, tmp_path: Path) -> None:
        """It knows of no batch before, and so what was left behind its start is stale."""
        for start, end in ((0, 4), (4, 7)):
            write(batch_in(tmp_path, start, end))
        assert stale(Frontier(), batch_in(tmp_path, 4, 9)) == {
            ("live", "0", 4),
            ("live", "1", 4),
        }
        assert stale(Frontier(), batch_in(tmp_path, 7, 9)) == set()


class TestCycle:
    """It deletes what is stale before the batch runs."""

    @pytest.mark.parametrize("beside", [False, True])
    def test_a_cycle_deletes_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, beside: bool
    ) -> None:
        """Before the batch runs, and once it is known that nobody has taken over: they may need it.

        Where that is not known it is asked when the range comes again, of each partition.
        """
        batch = batch_in(tmp_path, 5, 9)
        write(replace(batch, end={0: 9, 1: 9}))
        there = set(tmp_path.rglob("*.run"))
        assert len(there) == 2
        seen: list[list[Path]] = []

        def run(*_: object) -> list[str]:
            seen.append(list(tmp_path.rglob("*.run")))
            return []

        unknown = [TimeoutError("no answer"), VerdictError(Verdict.FENCED, "overtaken")]
        cycle = self.cycle(monkeypatch, run, unknown)
        for words in ("overtaken", "no answer"):
            with pytest.raises((VerdictError, TimeoutError), match=words):
                self.evaluate(cycle, batch, beside=beside)
            assert (seen, set(tmp_path.rglob("*.run"))) == ([], there)

        self.evaluate(cycle, batch, beside=beside)
        assert seen == [[]]

    def evaluate(self, cycle: Cycle, batch: Batch, *, beside: bool) -> None:
        """Evaluate a batch as a live one is, or as one of several lanes."""
        if beside:
            cycle.evaluate_beside([batch], cast("Any", None))
        else:
            cycle.evaluate(None, batch, cast("Any", None))

    def cycle(
        self, monkeypatch: pytest.MonkeyPatch, run: Callable[..., list[str]], said: list[Exception]
    ) -> Cycle:
        """Return what begins batches and runs them by a function; its fence says what is `said`."""

        def check(_fence: int) -> None:
            if said:
                raise said.pop()

        cycle: Any = Cycle.__new__(Cycle)
        cycle.spark, cycle._frontier = None, Frontier()
        cycle._same_log = SimpleNamespace(check=lambda: None)
        cycle.stores = SimpleNamespace(definitions=SimpleNamespace(check_fence_now=check))
        cycle.footing = SimpleNamespace(fence=SimpleNamespace(fence=1))
        monkeypatch.setattr(cycle_module, "run", run)
        monkeypatch.setattr(cycle_module, "run_beside", lambda *given: run(*given) or [""])
        monkeypatch.setattr(cycle, "_settled", lambda *_: None)
        found: Cycle = cycle
        return found
