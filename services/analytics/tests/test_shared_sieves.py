"""Sieves that runs share: they save searches, and change no decision."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir_analytics.panes import runs, shared_sieves, sieves
from weir_analytics.panes.dedup import PartitionState
from weir_analytics.panes.dispose import DisposeTask
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.mapped import Mapped
from weir_analytics.panes.runs import (
    NEVER,
    Identities,
    Run,
    chain_before,
    files_beyond,
    tidy,
    write_run,
)
from weir_analytics.panes.shared_sieves import Behind, searched, share
from weir_analytics.panes.states import Frontier, state_before

from .dedup_rule import HORIZON_MS, Record, feed
from .log_frames import NOW_MS, batch_of

LONGER_MS = 3 * HORIZON_MS
# Sixteen identities, of which each has a bit of its own in a sieve of one word.
HIGHS = [n << 60 for n in range(16)]


# Two identities of one batch, which has a sieve of 64 bits, and the sieve of two such runs, of 256:
# one in sixteen of them is the place of an identity of `HIGHS`.
STORED = {
    "00000000000000000001-00000000000000000002.run": bytes.fromhex(
        "5745495252554e33"  # WEIRRUN3
        "0100000000000000 0200000000000000"  # offsets: start, end
        "fbffffffffffffff 0500000000000000"  # R before and at the end
        "6400000000000000 0200000000000000"  # horizon, identities
        "0000000000000020 0000000000000030"  # their first halves
        "0000000000000020 0000000000000030"  # their second halves
        "0500000000000000 0500000000000000"  # their R
        "0011000000000000"  # the sieve
    ),
    "00000000000000000000-00000000000000000002.sieve": bytes.fromhex(
        "5745495253495631"  # WEIRSIV1
        "0000000000000000 0200000000000000"  # offsets: start, end
        "6400000000000000 0400000000000000"  # horizon, identities
        "0400000000000000"  # words
        "0100010001000100 0000000000000000 0000000000000000 0000000000000000"
    ),
}


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have runs be large that hold two identities, and a sieve take in four and be full with 16."""
    monkeypatch.setattr(runs, "FAN_IN", 2)
    monkeypatch.setattr(runs, "SMALLEST", 1)
    monkeypatch.setattr(runs, "LARGEST", 2)
    monkeypatch.setattr(runs, "MOST_SMALL", 8)
    monkeypatch.setattr(sieves, "SIEVED", 1)
    for name, value in {"LARGEST": 2, "TAKEN_IN": 4, "ROOM": 16, "_MOST": 4}.items():
        monkeypatch.setattr(shared_sieves, name, value)


def run_of(start: int, end: int, received_ms: int, *highs: int) -> Run:
    """Return a run of some identities, all received at once."""
    high = np.array(sorted(highs), np.uint64)
    identities = Identities(high, high, np.full(len(high), received_ms))
    return Run(start, end, NEVER if start == 0 else received_ms - 10, received_ms, identities)


def large_runs(folder: Path, count: int) -> None:
    """Write large runs of two identities each, one after the other, as batches do."""
    for n in range(count):
        write_run(folder, run_of(n, n + 1, 5 * n, HIGHS[2 * n], HIGHS[2 * n + 1]), HORIZON_MS)
        share(folder, tidy(folder, n + 1, HORIZON_MS), HORIZON_MS)


def sieves_in(folder: Path) -> list[tuple[int, int]]:
    """Return the ranges of the sieves that are there."""
    return [found[:2] for found in runs.files_of(folder, runs.SIEVE, os.listdir(folder))]


def looked_up(folder: Path, offset: int, high: int, horizon_ms: int = HORIZON_MS) -> int:
    """Return what the state before an offset knows of an identity."""
    chain = chain_before(folder, offset, horizon_ms)
    assert chain is not None
    found = np.full(1, NEVER, np.int64)
    for one in searched(folder, chain, horizon_ms):
        one.latest(np.array([high], np.uint64), np.array([high], np.uint64), found)
    return int(found[0])


def behind(folder: Path, offset: int) -> list[int]:
    """Return how many runs are behind each sieve that serves the state before an offset."""
    chain = chain_before(folder, offset, HORIZON_MS)
    assert chain is not None
    found = searched(folder, chain, HORIZON_MS)
    return [len(one.parts) for one in found if isinstance(one, Behind)]


def full(*_: object) -> None:
    """Take nothing, as a disk does that is full."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@dataclass
class Log:
    """One partition that is counted again and again, from wherever, in whichever batches."""

    folder: Path
    records: Sequence[Record]
    running: list[int] = field(init=False)
    behind: int = 0
    files: Mapped = field(default_factory=lambda: Mapped(ManualClock()))

    def __post_init__(self) -> None:
        received = np.maximum.accumulate(np.array([r[2] for r in self.records], np.int64))
        self.running = received.tolist()

    def rule(self, at: int, horizon_ms: int) -> bool:
        """Tell whether a record is a duplicate, by looking at every earlier one."""
        since = self.running[at] - horizon_ms
        return any(
            self.records[j][:2] == self.records[at][:2] and self.running[j] >= since
            for j in range(at)
        )

    def count(self, start: int, end: int, horizon_ms: int) -> list[bool]:
        """Count a batch as a task does; return which records are duplicates."""
        chain = chain_before(self.folder, start, horizon_ms, self.files)
        if chain is None:
            chain = [self._read_back(start, horizon_ms)]
        older = searched(self.folder, chain, horizon_ms, self.files)
        self.behind += sum(isinstance(one, Behind) for one in older)
        state = PartitionState.after(chain, start, older)
        told = feed(state, list(self.records[start:end]), horizon_ms)
        write_run(self.folder, state.run(end), horizon_ms)
        chain = tidy(self.folder, start, horizon_ms, self.files)
        share(self.folder, chain, horizon_ms, self.files)
        return told

    def _read_back(self, start: int, horizon_ms: int) -> Run:
        since = self.running[start] - horizon_ms
        begin = next(at for at in range(start + 1) if self.running[at] >= since or at == start)
        state = PartitionState(begin)
        if begin < start:
            feed(state, list(self.records[begin:start]), horizon_ms)
        run = state.run(start)
        write_run(self.folder, run, horizon_ms)
        return run


records_of_a_log = st.lists(
    st.tuples(st.sampled_from(HIGHS), st.integers(0, 1), st.integers(0, 400)),
    min_size=1,
    max_size=100,
).map(lambda records: sorted(records, key=lambda one: one[2] // 50))
steps = st.lists(
    st.tuples(
        st.integers(0, 30),  # by how many records it goes back before it
        st.integers(1, 12),
        st.sampled_from((HORIZON_MS, HORIZON_MS, HORIZON_MS, LONGER_MS)),
        st.integers(0, 40),  # which file is lost, if there are so many
    ),
    min_size=20,
    max_size=60,
)


class TestDecisions:
    @settings(deadline=None, max_examples=150)
    @given(records_of_a_log, steps)
    def test_no_decision_is_another(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        records: list[Record],
        steps: list[tuple[int, int, int, int]],
    ) -> None:
        """Batches of other cuts after going back, other horizons, files that are lost."""
        log, at = Log(tmp_path_factory.mktemp("runs"), records), 0
        for back, size, horizon_ms, lost in steps:
            start = max(0, at - back) if back > 20 else at
            end = min(len(records), start + size)
            if start == end:
                at = 0
                continue
            paths = sorted(log.folder.iterdir())
            if lost < len(paths):
                paths[lost].unlink()
            told = log.count(start, end, horizon_ms)
            assert told == [log.rule(i, horizon_ms) for i in range(start, end)]
            at = end

    def test_sieves_are_made_use_of(self, tmp_path: Path) -> None:
        """Where time passes slowly all large runs are behind one."""
        records = [(HIGHS[n % 16], n // 16, n) for n in range(90)]
        log = Log(tmp_path, records)
        for start in range(0, 90, 2):
            assert log.count(start, start + 2, HORIZON_MS) == [False, False]
        assert log.behind > 60

    def test_files_that_went_are_let_go(self, tmp_path: Path) -> None:
        """Each that is kept is an open one."""
        log = Log(tmp_path, [(HIGHS[n % 16], n // 16, n) for n in range(60)])
        for start in range(60):
            log.count(start, start + 1, HORIZON_MS)
        chain_before(tmp_path, 60, HORIZON_MS, log.files)
        assert log.files._folders[tmp_path].keys() <= set(os.listdir(tmp_path))

    def test_what_a_later_end_forgot(self, tmp_path: Path) -> None:
        """A sieve serves no state before its end: its runs left out what was old only then."""
        write_run(tmp_path, run_of(0, 2, 0, HIGHS[1], HIGHS[2]), HORIZON_MS)
        gone = Run(0, 4, NEVER, 150, run_of(0, 4, 150, HIGHS[3], HIGHS[4]).identities)
        write_run(tmp_path, gone, HORIZON_MS)
        (tmp_path / run_of(0, 2, 0).name).unlink()
        write_run(tmp_path, run_of(4, 5, 160, HIGHS[5], HIGHS[6]), HORIZON_MS)
        share(tmp_path, tidy(tmp_path, 5, HORIZON_MS), HORIZON_MS)
        assert sieves_in(tmp_path) == [(0, 5)]

        write_run(tmp_path, run_of(0, 2, 0, HIGHS[1], HIGHS[2]), HORIZON_MS)
        assert looked_up(tmp_path, 2, HIGHS[1]) == 0

    def test_what_a_shorter_horizon_forgot(self, tmp_path: Path) -> None:
        """A sieve serves no longer horizon, though runs were read back for that."""
        large_runs(tmp_path, 2)
        assert sieves_in(tmp_path) == [(0, 2)]
        early = run_of(0, 2, 5, HIGHS[0], HIGHS[7])
        write_run(tmp_path, early, LONGER_MS)
        assert looked_up(tmp_path, 2, HIGHS[7], LONGER_MS) == 5

        write_run(tmp_path, run_of(2, 3, 10, HIGHS[8], HIGHS[9]), LONGER_MS)
        share(tmp_path, tidy(tmp_path, 3, LONGER_MS), LONGER_MS)
        assert sieves_in(tmp_path) == [(0, 3)], "it is made anew, of what the longer one keeps"
        assert looked_up(tmp_path, 3, HIGHS[7], LONGER_MS) == 5

    def test_what_is_between_is_in_none(self, tmp_path: Path) -> None:
        """A sieve takes in what follows without a gap; behind a run that shares none one begins."""
        for n, highs in enumerate((HIGHS[:2], HIGHS[2:4], HIGHS[4:9], HIGHS[9:11], HIGHS[11:13])):
            write_run(tmp_path, run_of(n, n + 1, 10 * n, *highs), HORIZON_MS)
            share(tmp_path, tidy(tmp_path, n + 1, HORIZON_MS), HORIZON_MS)
        assert sieves_in(tmp_path) == [(0, 2), (3, 5)]
        assert looked_up(tmp_path, 5, HIGHS[6]) == 20

    def test_what_grew_serves_the_shortest_of_its_horizons(self, tmp_path: Path) -> None:
        """What came later may have been kept for longer: what came first was not."""
        large_runs(tmp_path, 2)
        for n in (2, 3):
            later = run_of(n, n + 1, 5 * n, HIGHS[2 * n], HIGHS[2 * n + 1])
            write_run(tmp_path, later, LONGER_MS)
            share(tmp_path, tidy(tmp_path, n + 1, HORIZON_MS), HORIZON_MS)
        assert sieves_in(tmp_path) == [(0, 2), (0, 4)]
        write_run(tmp_path, run_of(0, 2, 5, HIGHS[0], HIGHS[14]), LONGER_MS)
        assert looked_up(tmp_path, 4, HIGHS[14], LONGER_MS) == 5


class TestFiles:
    def test_what_is_stored_stays_readable(self, tmp_path: Path) -> None:
        """Other bytes of the same meaning need another word at their beginning."""
        large_runs(tmp_path, 2)
        assert {name: (tmp_path / name).read_bytes() for name in STORED} == STORED
        for name, content in STORED.items():
            (tmp_path / name).unlink()
            (tmp_path / name).write_bytes(content)
        assert behind(tmp_path, 2) == [2]
        found = [looked_up(tmp_path, 2, HIGHS[n]) for n in range(5)]
        assert found == [0, 0, 5, 5, NEVER]

    def test_one_grows_until_it_is_full(self, tmp_path: Path) -> None:
        """Then another one begins; each run is behind one of them, and is found there."""
        large_runs(tmp_path, 4)
        assert sieves_in(tmp_path) == [(0, 2), (0, 4)]
        large_runs(tmp_path, 8)
        assert behind(tmp_path, 8) == [8]
        for n in range(10):
            more = run_of(8 + n, 9 + n, 36 + n, HIGHS[n], HIGHS[n + 1])
            write_run(tmp_path, more, HORIZON_MS)
            share(tmp_path, tidy(tmp_path, 9 + n, HORIZON_MS), HORIZON_MS)
        assert behind(tmp_path, 18) == [8, 8, 2]
        assert [looked_up(tmp_path, 18, HIGHS[n]) for n in (0, 5, 10, 11, 15)] == [
            36,
            41,
            45,
            25,
            35,
        ]

    def test_what_is_in_none_passes_none(self, tmp_path: Path) -> None:
        """Of eight identities a sieve over four lets four pass."""
        large_runs(tmp_path, 2)
        chain = chain_before(tmp_path, 2, HORIZON_MS)
        assert chain is not None
        (found,) = searched(tmp_path, chain, HORIZON_MS)
        assert isinstance(found, Behind)
        assert list(sieves.passing(found.sieve, np.array(HIGHS[:8], np.uint64))) == [0, 1, 2, 3]

    def test_small_ones_between_large_ones_are_in_it(self, tmp_path: Path) -> None:
        """They are merged no more, and must not keep others from sharing."""
        for n, highs in enumerate((HIGHS[:2], HIGHS[2:3], [], HIGHS[3:5], HIGHS[5:6])):
            write_run(tmp_path, run_of(n, n + 1, 10 * n, *highs), HORIZON_MS)
            share(tmp_path, tidy(tmp_path, n + 1, HORIZON_MS), HORIZON_MS)
        assert sieves_in(tmp_path) == [(0, 4)]
        assert [looked_up(tmp_path, 5, HIGHS[n]) for n in range(6)] == [0, 0, 10, 30, 30, 40]

    def test_what_comes_later_stays(self, tmp_path: Path) -> None:
        """A batch that is run again deletes nothing of those behind it."""
        large_runs(tmp_path, 4)
        share(tmp_path, tidy(tmp_path, 1, HORIZON_MS), HORIZON_MS)
        assert sieves_in(tmp_path) == [(0, 2), (0, 4)]

    def test_one_of_no_run_is_deleted(self, tmp_path: Path) -> None:
        """Of runs that are older than the horizon nothing is left."""
        large_runs(tmp_path, 4)
        write_run(tmp_path, Run(4, 5, 15, 125, Identities.empty()), HORIZON_MS)
        share(tmp_path, tidy(tmp_path, 5, HORIZON_MS), HORIZON_MS)
        assert sieves_in(tmp_path) == []
        assert len(list(tmp_path.iterdir())) == 1

    @pytest.mark.parametrize(
        "harm",
        [
            lambda raw: raw[:20],
            lambda raw: raw[:-1],
            lambda raw: raw[:48],
            lambda raw: b"\0" * len(raw),
            lambda raw: b"WEIRSIV2" + raw[8:],
            lambda raw: raw[:8] + raw[16:24] + raw[16:],
            lambda raw: raw[:40] + b"\3" + raw[41:-8],
        ],
    )
    def test_one_that_is_not_whole_is_made_again(
        self, tmp_path: Path, harm: Callable[[bytes], bytes]
    ) -> None:
        """Meanwhile its runs are looked through one by one."""
        large_runs(tmp_path, 2)
        (path,) = tmp_path.glob("*.sieve")
        content = path.read_bytes()
        path.write_bytes(harm(content))

        assert looked_up(tmp_path, 2, HIGHS[3]) == 5
        assert not path.exists()
        share(tmp_path, tidy(tmp_path, 2, HORIZON_MS), HORIZON_MS)
        assert path.read_bytes() == content

    def test_a_run_of_a_whole_horizon_shares_none(self, tmp_path: Path) -> None:
        """What was read back holds so many that a sieve over it would be as large as its own."""
        for n, highs in enumerate((HIGHS[:2], HIGHS[2:7], HIGHS[7:9], HIGHS[9:11])):
            write_run(tmp_path, run_of(n, n + 1, 10 * n, *highs), HORIZON_MS)
        share(tmp_path, tidy(tmp_path, 4, HORIZON_MS), HORIZON_MS)
        assert sieves_in(tmp_path) == [(2, 4)]

    def test_a_full_disk_is_told_and_no_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It saves time, and no batch waits for it; where little room is left none is tried."""
        large_runs(tmp_path, 1)
        write_run(tmp_path, run_of(1, 2, 5, HIGHS[2], HIGHS[3]), HORIZON_MS)
        chain = tidy(tmp_path, 2, HORIZON_MS)

        with monkeypatch.context() as patch:
            patch.setattr(runs, "_write_synced", full)
            with capture_logs() as told:
                assert share(tmp_path, chain, HORIZON_MS) is True, "one a batch is tried"
        assert [one["event"] for one in told] == ["dedup_sieve_not_written"]
        assert looked_up(tmp_path, 2, HIGHS[3]) == 5
        with monkeypatch.context() as patch:
            patch.setattr(shared_sieves, "_FREE_BYTES", 2**60)
            assert share(tmp_path, chain, HORIZON_MS) is False
        assert sieves_in(tmp_path) == []
        assert share(tmp_path, chain, HORIZON_MS) is True
        assert sieves_in(tmp_path) == [(0, 2)]

    def test_a_file_that_cannot_be_opened_says_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is deleted. Out of descriptors a batch fails; else the log is read again."""
        large_runs(tmp_path, 2)
        there = sorted(tmp_path.iterdir())

        def fail(code: int) -> Callable[[Path], Run]:
            def read(path: Path) -> Run:
                raise OSError(code, os.strerror(code), str(path))

            return read

        with monkeypatch.context() as patch:
            patch.setattr(runs, "read_run", fail(errno.EMFILE))
            with pytest.raises(OSError, match="Too many open files"):
                chain_before(tmp_path, 2, HORIZON_MS)
            for code in (errno.ENOENT, errno.EIO, errno.EACCES, errno.ESTALE):
                patch.setattr(runs, "read_run", fail(code))
                assert chain_before(tmp_path, 2, HORIZON_MS) is None
        with monkeypatch.context() as patch:
            patch.setattr(shared_sieves, "read_shared", fail(errno.EMFILE))
            assert looked_up(tmp_path, 2, HIGHS[3]) == 5
        assert sorted(tmp_path.iterdir()) == there


class TestWhatComesBack:
    """Records that were given up as lost, and are there when the log is read again."""

    @pytest.mark.parametrize(
        "again", [[(1, 3), (3, 4)], [(1, 4)], [(1, 2), (2, 4)], [(1, 2), (2, 3), (3, 4)]]
    )
    @pytest.mark.parametrize("merged", [(0, 4), (1, 4), (2, 4), (0, 3)])
    def test_they_are_found(
        self, tmp_path: Path, again: list[tuple[int, int]], merged: tuple[int, int]
    ) -> None:
        """No sieve and no run of before hides them, however batches divide the range."""
        large_runs(tmp_path, 4)
        assert sieves_in(tmp_path)[-1] == (0, 4)
        write_run(tmp_path, run_of(*merged, 15, *HIGHS[2:8]), HORIZON_MS)
        for path in files_beyond(tmp_path, again[0][0]):
            path.unlink()
        for start, end in again:
            back = run_of(start, end, 15, HIGHS[2 * start], HIGHS[14 + (start > 1)])
            write_run(tmp_path, back, HORIZON_MS)
            share(tmp_path, tidy(tmp_path, end, HORIZON_MS), HORIZON_MS)
        assert looked_up(tmp_path, 4, HIGHS[14]) == 15
        if len(again) > 1:
            assert looked_up(tmp_path, 4, HIGHS[15]) == 15

    def test_what_ends_before_stays(self, tmp_path: Path) -> None:
        """Of all that is there only what ends behind the place is told, runs as well as sieves."""
        large_runs(tmp_path, 8)
        whole = {p.name for p in tmp_path.iterdir()}
        assert sieves_in(tmp_path)[-1] == (0, 8)
        beyond = {p.name for p in files_beyond(tmp_path, 6)}
        assert {p.suffix for p in files_beyond(tmp_path, 6)} == {".run", ".sieve"}
        assert whole - beyond == {name for name in whole if int(name[21:41]) <= 6}
        assert files_beyond(tmp_path, 8) == []
        assert {p.name for p in files_beyond(tmp_path, 0)} == whole
        assert files_beyond(tmp_path / "none", 0) == []

    def test_who_was_overtaken_takes_nothing(self, tmp_path: Path) -> None:
        """A task that ends late writes its run; what was merged beyond it serves as before."""
        horizon_ms = 1_000
        for n in range(8):
            write_run(tmp_path, run_of(n, n + 1, 5 * n, HIGHS[n]), horizon_ms)
        tidy(tmp_path, 8, horizon_ms)
        write_run(tmp_path, run_of(2, 3, 10, HIGHS[2]), horizon_ms)
        share(tmp_path, tidy(tmp_path, 2, horizon_ms), horizon_ms)
        chain = chain_before(tmp_path, 8, horizon_ms)
        assert chain is not None
        assert [(run.start, run.end) for run in chain] == [(0, 8)]


class TestTask:
    """What a task makes of it, two partitions at a time."""

    def count(self, folder: Path, number: int, *, lost: bool = False) -> list[int]:
        """Count the next four events of each of two partitions; return their fates.

        With `lost` in place of all of them two of the first come, twice.
        """
        start, end = 4 * number, 4 * number + 4
        batch = batch_of(folder, end, end, start={0: start, 1: start}, number=number)
        task = DisposeTask(batch)
        drawn = [0, 1] * 2 if lost else [number % 4 * 4 + n for n in range(4)]
        identities = [(one << 124).to_bytes(16, "big") for one in drawn]
        told = task.answer(
            pa.array([0] * 4 + [1] * 4, pa.int32()),
            pa.array(2 * list(range(start, end)), pa.int64()),
            pa.array([NOW_MS] * 8, pa.int64()),
            pa.array([int(Kind.EVENT)] * 8, pa.int8()),
            pa.array(2 * identities, pa.binary()),
            pa.nulls(8, pa.binary()),
            pa.nulls(8, pa.string()),
        )
        task.finish(all_partitions=True)
        fates: list[int] = told.field("fate").to_pylist()
        return fates

    def test_one_sieve_a_batch(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Partitions that come to it at once have theirs in turn, and then look there."""
        monkeypatch.setattr(shared_sieves, "TAKEN_IN", 8)
        monkeypatch.setattr(shared_sieves, "ROOM", 64)
        made = []
        for number in range(4):
            assert self.count(tmp_path, number) == 8 * [Fate.COUNTED]
            made.append(len(list(tmp_path.rglob("*.sieve"))))
        assert made == [0, 0, 1, 2]
        assert self.count(tmp_path, 4) == 8 * [Fate.DUPLICATE]
        again = batch_of(tmp_path, 20, 20, start={0: 16, 1: 16})
        for partition in (0, 1):
            state, _holes = state_before(again, partition, NOW_MS)
            assert sum(isinstance(one, Behind) for one in state.older) == 1

    def test_what_comes_back(self, tmp_path: Path) -> None:
        """A batch that is read again, with events that were not there, has them seen behind it."""
        for number in range(6):
            self.count(tmp_path, number, lost=number == 2)
        (folder,) = tmp_path.rglob("0")
        assert any(start <= 8 and end >= 12 for start, end in sieves_in(folder))
        for path in Frontier().stale(batch_of(tmp_path, 12, 12, start={0: 8, 1: 8}, number=2)):
            path.unlink()
        for number in (2, 3):
            assert self.count(tmp_path, number) == 8 * [Fate.COUNTED]
        for number in (4, 5, 6):
            assert self.count(tmp_path, number) == 8 * [Fate.DUPLICATE]


@pytest.mark.parametrize("words", [1, 64, 4_096])
def test_bits_are_added(words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the bit that is asked for, whether slices begin within a word or not."""
    monkeypatch.setattr(sieves, "_AT_ONCE", 7)
    drawn = np.random.default_rng(words)
    sieve, slow = np.zeros(words, np.uint64), set[int]()
    bits = (64 * words - 1).bit_length()
    for size in (1, 7, 40, 300):
        high = np.sort(drawn.integers(0, 2**64, size, np.uint64, endpoint=False))
        sieves.add(sieve, high)
        slow |= {int(one) >> (64 - bits) for one in high}
        assert len(sieves.passing(sieve, high)) == size
    assert {at for at in range(64 * words) if int(sieve[at // 64]) >> at % 64 & 1} == slow
