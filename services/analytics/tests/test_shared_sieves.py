"""Sieves that runs share: they save searches, and change no decision."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weir_analytics.panes import runs, sieves
from weir_analytics.panes.dedup import PartitionState
from weir_analytics.panes.runs import (
    NEVER,
    Behind,
    Identities,
    Run,
    chain_before,
    searched,
    tidy,
    write_run,
)

from .dedup_rule import HORIZON_MS, feed, slow

records_of_a_log = st.lists(
    st.tuples(st.integers(0, 7).map(lambda n: n << 61), st.integers(0, 1), st.integers(0, 300)),
    max_size=80,
)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two neighbors share a sieve, and have runs be large that hold two identities."""
    monkeypatch.setattr(runs, "FAN_IN", 2)
    monkeypatch.setattr(runs, "SHARING", 2)
    monkeypatch.setattr(runs, "SMALLEST", 1)
    monkeypatch.setattr(runs, "LARGEST", 2)
    monkeypatch.setattr(sieves, "SIEVED", 1)


def run_of(start: int, received_ms: int, *highs: int) -> Run:
    """Return a run of one record, with some identities."""
    high = np.array(highs, np.uint64)
    identities = Identities(high, high, np.full(len(high), received_ms))
    before = NEVER if start == 0 else received_ms - 10
    return Run(start, start + 1, before, received_ms, identities)


def four_runs(folder: Path) -> None:
    """Write four large runs; the first two share a sieve, and the others another one."""
    for n in range(4):
        write_run(folder, run_of(n, 10 * n, n << 61, n + 4 << 61), HORIZON_MS)
        tidy(folder, n + 1, HORIZON_MS)


def sieves_in(folder: Path) -> list[tuple[int, int]]:
    """Return the ranges of the sieves that are there."""
    return sorted(map(runs.run_range, folder.glob("*.sieve")))


def looked_up(folder: Path, offset: int, high: int) -> int:
    """Return what the state before an offset knows of an identity."""
    chain = chain_before(folder, offset, HORIZON_MS)
    assert chain is not None
    found = np.full(1, NEVER, np.int64)
    for one in searched(folder, chain, HORIZON_MS):
        one.latest(np.array([high], np.uint64), np.array([high], np.uint64), found)
    return int(found[0])


@settings(deadline=None, max_examples=300)
@given(records_of_a_log, st.lists(st.integers(0, 80), max_size=40))
def test_they_change_no_decision(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[int, int, int]], cuts: list[int]
) -> None:
    """Whatever came, in whichever batches, also those that are run again."""
    folder = tmp_path_factory.mktemp("runs")
    edges = sorted({0, len(records), *(c for c in cuts if c < len(records))})
    answer: list[bool] = []
    for number, (start, end) in enumerate(itertools.pairwise(edges)):
        for _ in range(1 + number % 2):
            chain = chain_before(folder, start, HORIZON_MS)
            assert chain is not None
            state = PartitionState.after(chain, start, searched(folder, chain, HORIZON_MS))
            told = feed(state, records[start:end])
            write_run(folder, state.run(end), HORIZON_MS)
            tidy(folder, start, HORIZON_MS)
        answer += told

    assert answer == slow(records)


def test_neighbors_share_one(tmp_path: Path) -> None:
    """Each run is behind one sieve, and what is in none of its runs is looked for in none."""
    four_runs(tmp_path)
    assert sieves_in(tmp_path) == [(0, 2), (2, 4)]

    chain = chain_before(tmp_path, 4, HORIZON_MS)
    assert chain is not None
    found = searched(tmp_path, chain, HORIZON_MS)
    assert all(isinstance(one, Behind) and len(one.parts) == 2 for one in found)
    for n in range(8):
        assert looked_up(tmp_path, 4, n << 61) == 10 * (n % 4)
    first = found[0]
    assert isinstance(first, Behind)
    high = np.arange(8, dtype=np.uint64) << np.uint64(61)
    assert len(sieves.passing(first.sieve, high)) == 4


def test_one_that_ends_later_serves_no_earlier_state(tmp_path: Path) -> None:
    """Its runs may have left out what was old at their end, and is not yet old there."""
    four_runs(tmp_path)
    for offset, shared in ((4, 2), (3, 1), (2, 1), (1, 0)):
        chain = chain_before(tmp_path, offset, HORIZON_MS)
        assert chain is not None
        found = searched(tmp_path, chain, HORIZON_MS)
        assert sum(isinstance(one, Behind) for one in found) == shared
    tidy(tmp_path, 1, HORIZON_MS)
    assert sieves_in(tmp_path) == [(0, 2), (2, 4)], "of what comes later nothing is deleted"


def test_one_of_a_shorter_horizon_is_written_anew(tmp_path: Path) -> None:
    """It may miss what is within a longer one, though runs were read again for that."""
    four_runs(tmp_path)
    for n in range(4):
        write_run(tmp_path, run_of(n, 10 * n, n << 61, n + 4 << 61), 2 * HORIZON_MS)
    chain = chain_before(tmp_path, 4, 2 * HORIZON_MS)
    assert chain is not None
    found = searched(tmp_path, chain, 2 * HORIZON_MS)
    assert not any(isinstance(one, Behind) for one in found)

    tidy(tmp_path, 4, 2 * HORIZON_MS)
    tidy(tmp_path, 4, 2 * HORIZON_MS)
    found = searched(tmp_path, chain, 2 * HORIZON_MS)
    assert sum(isinstance(one, Behind) for one in found) == 2


def test_one_of_no_run_is_deleted(tmp_path: Path) -> None:
    """Of runs that are older than the horizon nothing is left."""
    four_runs(tmp_path)
    write_run(tmp_path, Run(4, 5, 30, 125, Identities.empty()), HORIZON_MS)
    tidy(tmp_path, 5, HORIZON_MS)
    assert sorted(map(runs.run_range, tmp_path.glob("*.run"))) == [(3, 4), (4, 5)]
    assert sieves_in(tmp_path) == [(2, 4)]
    assert looked_up(tmp_path, 5, 3 << 61) == 30


@pytest.mark.parametrize(
    "harm",
    [
        lambda raw: raw[:20],
        lambda raw: raw[:-1],
        lambda raw: raw[:40],
        lambda raw: b"\0" * len(raw),
        lambda raw: b"WEIRSIV2" + raw[8:],
    ],
)
def test_one_that_cannot_be_read_is_made_again(
    tmp_path: Path, harm: Callable[[bytes], bytes]
) -> None:
    """Meanwhile its runs are looked through one by one."""
    four_runs(tmp_path)
    path = min(tmp_path.glob("*.sieve"))
    content = path.read_bytes()
    path.write_bytes(harm(content))

    assert looked_up(tmp_path, 4, 1 << 61) == 10
    assert not path.exists()
    tidy(tmp_path, 4, HORIZON_MS)
    assert path.read_bytes() == content


def test_a_run_of_a_whole_horizon_shares_none(tmp_path: Path) -> None:
    """What was read back holds so many that a sieve over it would be as large as its own."""
    for n, count in enumerate((2, 5, 2, 2)):
        highs = [(at * 4 + n) << 58 for at in range(count)]
        write_run(tmp_path, run_of(n, 10 * n, *highs), HORIZON_MS)
    tidy(tmp_path, 4, HORIZON_MS)
    assert sieves_in(tmp_path) == [(2, 4)]
