"""Holes of the log: what a task lacks, what is known of it, and when it is given up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.dedup import PartitionState
from weir_analytics.panes.dispose import DisposeTask
from weir_analytics.panes.holes import (
    MOST_TOLD,
    TRIES,
    Hole,
    HoleError,
    Met,
    Reading,
    beyond,
    last_record,
    up_to,
)
from weir_analytics.panes.kinds import Kind

from .log_frames import NOW_MS, batch_of

END = 12
FIRST_OFFSETS = "weir_analytics.panes.dispose.first_offsets"
STATE_BEFORE = "weir_analytics.panes.dispose.state_before"


def offsets_of(holes: list[Hole], partition: int = 0) -> set[int]:
    """Return the offsets in some holes of a partition."""
    return {n for p, a, b in holes if p == partition for n in range(a, b + 1)}


class TestReading:
    @given(st.sets(st.integers(2, END - 1)), st.integers(1, 5))
    def test_holes_are_what_did_not_come(self, there: set[int], at_once: int) -> None:
        """At the start of a range, at its end and within, however the records come."""
        reading = Reading({0: 2}, {0: END})
        came = sorted(there)
        for n in range(0, len(came), at_once):
            reading.take(0, np.array(came[n : n + at_once], np.int64))

        found = reading.holes(all_partitions=True)
        assert offsets_of(found) == set(range(2, END)) - there
        assert len(found) == len(set(found))
        assert last_record(0, END, found) == max(there, default=1)

    def test_a_task_of_sparks_answers_for_its_own_partitions(self) -> None:
        """One that saw no record knows nothing of any; one that read all knows of all."""
        reading = Reading({1: 3}, {0: 2, 1: 5, 2: 0})
        reading.take(0, np.array([0, 1], np.int64))

        assert reading.holes(all_partitions=False) == []
        assert reading.holes(all_partitions=True) == [Hole(1, 3, 4)]


spans = st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 5)).map(
    lambda span: Hole(span[0], span[1], span[1] + span[2])
)


class TestBeyond:
    @given(st.lists(spans, max_size=4), st.lists(spans, max_size=4))
    def test_what_is_known_is_left_out(self, holes: list[Hole], known: list[Hole]) -> None:
        """Offset by offset, also where a range cuts what is known, or two of them meet."""
        left = beyond(holes, known)
        for p in (0, 1):
            assert offsets_of(left, p) == offsets_of(holes, p) - offsets_of(known, p)

    def test_a_range_knows_the_holes_up_to_its_end(self) -> None:
        """Both edges; also those before it, across which a dedup state is read back."""
        holes = [Hole(0, 3, 4), Hole(0, 8, 9), Hole(1, 0, 0)]
        assert up_to(holes, {0: 9}) == (holes[0], holes[1])
        assert up_to(holes, {0: 8, 1: 0}) == (holes[0],)
        assert up_to(holes, {0: 3, 1: 1}) == (holes[2],)


class TestMet:
    def test_one_that_stays_is_lost_and_told(self) -> None:
        """After some readings; place and count are named."""
        met, hole = Met(), Hole(3, 17, 19)
        error = RuntimeError("what Spark says of a task")
        with capture_logs() as logs:
            given_up = [met.take(error, [hole]) for _ in range(TRIES)]

        assert given_up == [False] * (TRIES - 1) + [True]
        assert met.lost == (hole,)
        *before, line = logs
        assert {one["event"] for one in before} == {"offset_hole"}
        assert (line["event"], line["log_level"]) == ("log_lost", "error")
        assert (line["partition"], line["first"], line["last"], line["count"]) == (3, 17, 19, 3)
        assert not met.take(error, [hole])

    def test_one_that_is_filled_is_forgotten_by_nobody(self) -> None:
        """Another error in between tells of no hole, and gives none up."""
        met, hole = Met(), Hole(0, 1, 1)
        for missing in ([hole], [], [hole], []):
            assert not met.take(TimeoutError("the log is away"), missing)
        assert met.lost == ()

    def test_what_is_found_after_the_commit_is_lost_at_once(self) -> None:
        """The driver raises it itself: the marks lie behind the hole."""
        met, holes = Met(), [Hole(0, 1, 1), Hole(2, 5, 9)]
        with capture_logs():
            assert met.take(HoleError(holes), holes)
        assert met.lost == tuple(holes)

    def test_an_error_is_bounded(self) -> None:
        """The others are met again when these are given up."""
        met, holes = Met(), [Hole(0, n, n) for n in range(0, 4 * MOST_TOLD, 2)]
        with capture_logs():
            error = HoleError(holes)
            met.take(error, error.holes)
        assert met.lost == tuple(holes[:MOST_TOLD])


class TestTask:
    """The task that gives records their fate, on ticks."""

    @staticmethod
    def run(batch: Batch, offsets: list[int]) -> list[int | None]:
        """Run a task that reads some offsets of partition 0; return `seen` of each."""
        size = len(offsets)
        task = DisposeTask(batch)
        told = task.answer(
            pa.array([0] * size, pa.int32()),
            pa.array(offsets, pa.int64()),
            pa.array([NOW_MS] * size, pa.int64()),
            pa.array([int(Kind.TICK)] * size, pa.int8()),
            pa.nulls(size, pa.binary()),
            pa.nulls(size, pa.binary()),
            pa.nulls(size, pa.string()),
        )
        task.finish(all_partitions=True)
        found: list[int | None] = told.field("seen").to_pylist()
        return found

    @pytest.mark.parametrize("offsets", [[0, 1, 3], [1, 2, 3], [0, 1, 2]])
    def test_records_that_lack_end_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offsets: list[int]
    ) -> None:
        """Within, at the start and at the end of the range; nothing of it is kept."""
        monkeypatch.setattr(FIRST_OFFSETS, lambda *_: {0: 0})
        (missing,) = {0, 1, 2, 3} - set(offsets)
        with pytest.raises(HoleError, match=f"partition 0 from {missing} to {missing}"):
            self.run(batch_of(tmp_path, 4), offsets)
        assert not list(tmp_path.rglob("*.run"))

    def test_what_a_state_lacks_ends_it_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With all that the task lacks itself: each partition costs no tries of its own."""
        monkeypatch.setattr(FIRST_OFFSETS, lambda *_: {0: 0})
        state = PartitionState(4)
        monkeypatch.setattr(STATE_BEFORE, lambda *_: (state, [Hole(0, 1, 2)]))
        told = "partition 0 from 1 to 2, partition 0 from 5 to 5; the range"
        with pytest.raises(HoleError, match=told):
            self.run(batch_of(tmp_path, 7, start={0: 4}), [4, 6])
        assert not list(tmp_path.rglob("*.run"))

    def test_what_retention_took_is_told_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A lane goes on where the log begins now: who opened it has told what is gone."""
        monkeypatch.setattr(FIRST_OFFSETS, lambda *_: {0: 2})
        assert self.run(batch_of(tmp_path, 4), [2, 3]) == [None, 2]

    @pytest.mark.parametrize("offsets", [[1, 2], [2], [0, 1, 2], [2, 3]])
    def test_what_is_lost_is_not_looked_for(self, tmp_path: Path, offsets: list[int]) -> None:
        """The last record there is says how many the task saw; one that came after all counts."""
        lost = (Hole(0, 0, 1), Hole(0, 3, 5))
        found = self.run(batch_of(tmp_path, 4, lost=lost), offsets)
        assert found == [None] * (len(offsets) - 1) + [len(offsets)]
