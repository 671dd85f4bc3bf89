"""Dedup as a function of the log: against the rule written down the slow way."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weir_analytics.panes.dedup import PartitionState
from weir_analytics.panes.runs import (
    FAN_IN,
    LARGEST,
    MOST_SMALL,
    NEVER,
    Identities,
    Run,
    _mergeable,
    chain_before,
    held,
    read_run,
    tidy,
    write_run,
)
from weir_analytics.panes.shared_sieves import searched
from weir_analytics.panes.sieves import SIEVE_BITS, SIEVED, passing
from weir_analytics.panes.states import forget_lanes, log_folder

from .dedup_rule import HORIZON_MS, Record, feed, slow

records_of_a_log = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1_000)), max_size=60
)


def run_of(start: int, end: int) -> Run:
    """Return a run of one identity, before which nothing was seen."""
    one = np.array([7], np.uint64)
    return Run(start, end, NEVER, 1_000, Identities.of_ordered(one, one, np.array([990], np.int64)))


def _of_size(start: int, end: int, size: int) -> Run:
    """Return a run of so many identities; which they are is of no weight."""
    none = np.broadcast_to(np.uint64(0), size)
    return Run(start, end, NEVER, 0, Identities(none, none, none.view(np.int64)))


def merged_chain(sizes: list[int]) -> tuple[list[Run], int]:
    """Return the runs that batches of some sizes leave, and how many identities were merged."""
    chain, merged = list[Run](), 0
    for at, events in enumerate(sizes):
        chain.insert(0, _of_size(at, at + 1, events))
        while group := _mergeable(chain):
            size = sum(len(run.identities) for run in group)
            chain[: len(group)] = [_of_size(group[-1].start, at + 1, size)]
            merged += size
    return chain, merged


class TestPartitionState:
    @given(records_of_a_log, st.lists(st.integers(0, 60), max_size=6))
    def test_any_cut_into_slices_gives_the_answer_of_the_rule(
        self, records: list[Record], cuts: list[int]
    ) -> None:
        """Where batches begin does not change which records are duplicates."""
        state = PartitionState(0)
        edges = sorted({0, len(records), *(c for c in cuts if c < len(records))})
        answer = [x for a, b in itertools.pairwise(edges) for x in feed(state, records[a:b])]

        assert answer == slow(records)

    @pytest.mark.parametrize(
        ("later_ms", "duplicate"), [(HORIZON_MS, True), (HORIZON_MS + 1, False)]
    )
    def test_edge_of_the_horizon(self, later_ms: int, duplicate: bool) -> None:
        """A repetition exactly one horizon later is a duplicate, a millisecond later it is not."""
        state = PartitionState(0)

        assert feed(state, [(1, 1, 0), (1, 1, later_ms)]) == [False, duplicate]

    def test_a_clock_that_steps_back_does_not_shorten_the_past(self) -> None:
        """R is a running maximum: a broker's clock stepping back changes no decision."""
        state = PartitionState(0)

        assert feed(state, [(1, 1, 0), (2, 2, 500), (1, 1, 0)]) == [False, False, False]


class TestRuns:
    @settings(deadline=None, max_examples=100)
    @given(records_of_a_log, st.lists(st.integers(0, 60), max_size=30))
    def test_a_state_through_files_gives_the_answer_of_the_rule(
        self, tmp_path_factory: pytest.TempPathFactory, records: list[Record], cuts: list[int]
    ) -> None:
        """Writing, merging and deleting runs between batches changes no decision."""
        folder = tmp_path_factory.mktemp("runs")
        edges = sorted({0, len(records), *(c for c in cuts if c < len(records))})
        answer: list[bool] = []
        for start, end in itertools.pairwise(edges):
            chain = chain_before(folder, start, HORIZON_MS)
            assert chain is not None
            older = searched(folder, chain, HORIZON_MS)
            state = PartitionState.after(chain, start, older)
            answer += feed(state, records[start:end])
            write_run(folder, state.run(end), HORIZON_MS)
            tidy(folder, start, HORIZON_MS)

        assert answer == slow(records)

    @pytest.mark.thorough
    def test_many_small_runs_become_few(self, tmp_path: Path) -> None:
        """A thousand batches leave a bounded number of files."""
        for at in range(1_000):
            identities = Identities.of_ordered(
                np.array([at], np.uint64), np.array([0], np.uint64), np.array([at], np.int64)
            )
            write_run(tmp_path, Run(at, at + 1, at - 1, at, identities), 10_000)
            tidy(tmp_path, at, 10_000)

        assert len(list(tmp_path.iterdir())) <= 3 * FAN_IN
        assert chain_before(tmp_path, 1_000, 10_000) is not None

    @pytest.mark.parametrize(
        ("events", "times"), [(100, 4), (1_250, 3), (2_500, 3), (5_000, 2), (40_000, 1)]
    )
    def test_an_identity_is_seldom_merged_again(self, events: int, times: int) -> None:
        """Once for each size that lies between a batch and the largest one, at most."""
        chain, merged = merged_chain([events] * 6_000)
        assert merged / (6_000 * events) <= times
        assert sum(len(run.identities) < LARGEST for run in chain) < 4 * FAN_IN

    @given(st.lists(st.sampled_from([0, 1, 600, 5_000, 40_000]), min_size=600, max_size=900))
    def test_whatever_comes_small_runs_stay_few(self, sizes: list[int]) -> None:
        """Sizes that change all the time leave no more between those that are merged."""
        chain, _merged = merged_chain(sizes)
        assert sum(len(run.identities) < LARGEST for run in chain) < MOST_SMALL

    def test_seven_small_ones_before_each_larger_one(self) -> None:
        """As by clients that send every two seconds, for batches of a quarter of a second."""
        chain, _merged = merged_chain([*[0] * 7, 5_000] * 500)
        assert sum(len(run.identities) < LARGEST for run in chain) < MOST_SMALL

    def test_runs_beyond_the_horizon_are_deleted(self, tmp_path: Path) -> None:
        """A run whose youngest record is older than the horizon goes as a whole."""
        for at, received_ms in enumerate([0, 1_000, 2_000]):
            run = Run(at, at + 1, received_ms - 1_000, received_ms, Identities.empty())
            write_run(tmp_path, run, HORIZON_MS)
        tidy(tmp_path, 3, HORIZON_MS)

        assert os.listdir(tmp_path) == [f"{2:020d}-{3:020d}.run"]

    def test_a_gap_is_no_state(self, tmp_path: Path) -> None:
        """A chain that does not reach one horizon back is refused, not used."""
        write_run(tmp_path, Run(5, 9, 1_000, 1_010, Identities.empty()), HORIZON_MS)

        assert chain_before(tmp_path, 9, HORIZON_MS) is None
        assert chain_before(tmp_path, 8, HORIZON_MS) is None

    def test_two_identities_that_share_eight_bytes(self) -> None:
        """The last 8 bytes confirm: an identity that shares the first 8 is another one."""
        both = Identities.of_ordered(
            np.array([7, 7], np.uint64), np.array([1, 3], np.uint64), np.array([10, 30], np.int64)
        )
        found = np.array([NEVER, NEVER, 20], np.int64)
        both.latest(np.array([7, 7, 7], np.uint64), np.array([3, 2, 1], np.uint64), found)

        assert list(found) == [30, NEVER, 20]

    @pytest.mark.parametrize("size", [SIEVED - 1, SIEVED, 5_000, 65_536])
    def test_a_sieve_hides_nothing(self, tmp_path: Path, size: int) -> None:
        """What a run holds is found through it, at both ends, too; of others few are looked for."""
        drawn = np.random.default_rng(size)
        high = np.sort(drawn.integers(0, 2**64, size, np.uint64, endpoint=False))
        high[[0, -1]] = 0, 2**64 - 1
        held_ms = np.arange(size, dtype=np.int64)
        write_run(tmp_path, Run(0, size, -1, size, Identities(high, high + 1, held_ms)), 2 * size)
        (path,) = tmp_path.glob("*.run")
        found = read_run(path).identities

        latest = np.full(size, NEVER, np.int64)
        found.latest(high, high + 1, latest)
        assert (latest == held_ms).all()
        others = np.sort(drawn.integers(0, 2**64, 20_000, np.uint64, endpoint=False))
        latest = np.full(len(others), NEVER, np.int64)
        found.latest(others, others, latest)
        assert (latest == NEVER).all()
        if size < SIEVED:
            assert found.sieve is None
        else:
            assert found.sieve is not None
            assert len(passing(found.sieve, others)) < len(others) / SIEVE_BITS
        assert held(path, path.stat().st_size) == size

    def test_a_run_of_the_release_before_serves(self, tmp_path: Path) -> None:
        """It has no sieve; made again from the log it would hold up the first batch."""
        high = np.arange(SIEVED, dtype=np.uint64) << np.uint64(40)
        run = Run(0, SIEVED, -1, 9, Identities(high, high, np.full(SIEVED, 9, np.int64)))
        write_run(tmp_path, run, HORIZON_MS)
        path = tmp_path / run.name
        path.write_bytes(b"WEIRRUN2" + path.read_bytes()[8 : 56 + 24 * SIEVED])

        (before,) = chain_before(tmp_path, SIEVED, HORIZON_MS) or []
        latest = np.full(1, NEVER, np.int64)
        before.identities.latest(high[-1:], high[-1:], latest)
        assert (before.identities.sieve, latest.tolist()) == (None, [9])

    def test_a_cut_file_is_refused(self, tmp_path: Path) -> None:
        """A run that is not whole is named, and the error says what to do."""
        write_run(tmp_path, Run(0, 1, -1, 5, Identities.empty()), HORIZON_MS)
        path = next(tmp_path.glob("*.run"))
        path.write_bytes(path.read_bytes()[:20])

        with pytest.raises(ValueError, match="must begin with WEIRRUN3"):
            read_run(path)

    @pytest.mark.parametrize(
        "harm",
        [
            lambda raw: raw[:20],
            lambda raw: raw[:-1],
            lambda raw: b"\0" * len(raw),
            lambda raw: b"WEIRRUN1" + raw[8:],
            lambda raw: raw[:0],
        ],
    )
    def test_a_file_that_cannot_be_read_is_absent(
        self, tmp_path: Path, harm: Callable[[bytes], bytes]
    ) -> None:
        """A run that is cut, empty or of another form is deleted, and the state is rebuilt."""
        for start in (0, 1):
            write_run(tmp_path, run_of(start, start + 1), HORIZON_MS)
        last = tmp_path / run_of(1, 2).name
        last.write_bytes(harm(last.read_bytes()))

        assert chain_before(tmp_path, 2, HORIZON_MS) is None
        assert not last.exists()
        assert chain_before(tmp_path, 1, HORIZON_MS) is not None
        tidy(tmp_path, 2, HORIZON_MS)

    def test_a_shorter_run_serves_where_a_longer_one_cannot_be_read(self, tmp_path: Path) -> None:
        """Of two runs with one end the whole one is used."""
        write_run(tmp_path, run_of(0, 2), HORIZON_MS)
        write_run(tmp_path, run_of(1, 2), HORIZON_MS)
        (tmp_path / run_of(0, 2).name).write_bytes(b"")
        chain = chain_before(tmp_path, 2, HORIZON_MS)

        assert chain is not None
        assert [(run.start, run.end) for run in chain] == [(1, 2)]

    def test_a_longer_horizon_needs_more_than_was_kept(self, tmp_path: Path) -> None:
        """What was kept for one horizon, also by a rebuild, serves a shorter one and no longer."""
        write_run(tmp_path, run_of(500, 900), HORIZON_MS)
        write_run(tmp_path, run_of(900, 950), HORIZON_MS)

        for horizon_ms, served in ((HORIZON_MS - 1, True), (HORIZON_MS, True)):
            assert (chain_before(tmp_path, 950, horizon_ms) is not None) == served
        assert chain_before(tmp_path, 950, HORIZON_MS + 1) is None

    def test_a_rebuild_for_a_longer_horizon_is_used(self, tmp_path: Path) -> None:
        """A wider run of a shorter horizon does not hide the run that was rebuilt."""
        write_run(tmp_path, run_of(0, 900), HORIZON_MS)
        write_run(tmp_path, run_of(400, 900), 2 * HORIZON_MS)
        chain = chain_before(tmp_path, 900, 2 * HORIZON_MS)

        assert chain is not None
        assert [run.start for run in chain] == [400]

    def test_writers_on_two_hosts_do_not_meet(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A process of the same number on another host writes to a file of its own."""
        seen: list[set[str]] = []
        monkeypatch.setattr(os, "fsync", lambda _file: seen.append(set(os.listdir(tmp_path))))
        for host in ("one", "two"):
            monkeypatch.setattr(socket, "gethostname", lambda host=host: host)
            write_run(tmp_path, run_of(0, 1), HORIZON_MS)
            (tmp_path / run_of(0, 1).name).unlink()

        assert len(set.union(*seen)) == 2

    def test_what_a_dead_writer_left_is_deleted(self, tmp_path: Path) -> None:
        """Temporary files of earlier batches go; of the batch at hand they stay."""
        write_run(tmp_path, run_of(0, 5), HORIZON_MS)
        old, own = (tmp_path / f".{run_of(*span).name}.weir-exec-3-77" for span in ((0, 5), (5, 9)))
        for path in (old, own):
            path.write_bytes(b"half")
        tidy(tmp_path, 5, HORIZON_MS)

        assert (old.exists(), own.exists()) == (False, True)


def test_lanes_that_are_done_leave_nothing_on_the_disk(tmp_path: Path) -> None:
    """The runs of those that go on, and of other logs, stay."""
    for name in ("log/live/0", "log/7/0", "log/9/0", "logs/7/0", "other/7/0"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.run").touch()

    forget_lanes(log_folder(tmp_path, "log", 0), {"live", "9"})

    left = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")}
    assert left == {"log/live", "log/9", "logs/7", "other/7"}

    for name in ("log@5/live/0", "log@6/live/0", "log@6/9/0"):
        (tmp_path / name).mkdir(parents=True)
    forget_lanes(log_folder(tmp_path, "log", 6), {"live"})
    assert {path.name for path in tmp_path.iterdir()} == {"log@6", "logs", "other"}
    assert [path.name for path in (tmp_path / "log@6").iterdir()] == ["live"]
