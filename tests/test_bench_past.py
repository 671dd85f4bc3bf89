"""The past that dedup is measured with is one that dedup takes for its own."""

from __future__ import annotations

from pathlib import Path

import past
import pytest
from contest import Log
from past import Past
from weir.names import LIVE_LANE
from weir_analytics.panes import runs
from weir_analytics.panes.runs import Behind, Identities, chain_before, searched, tidy
from weir_analytics.panes.states import log_folder
from workload import PARTITIONS

HOUR_MS = 3_600_000


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Past:
    """Return a past of nine runs, more than are merged at once, each just too large for that.

    Eight of them share a sieve, as they would have come to when the ninth was written.
    """
    monkeypatch.setattr(past, "LARGEST", 2_048)
    monkeypatch.setattr(runs, "LARGEST", 2_048)
    return Past.write(tmp_path / "past", 9, HOUR_MS)


def test_dedup_goes_on_from_it(small: Past, tmp_path: Path) -> None:
    """Every run is in the state that the first batch begins with, also after runs are tidied."""
    small.put(tmp_path / "dedup", "a/topic")
    for partition in range(PARTITIONS):
        folder = log_folder(tmp_path / "dedup", "a/topic", 0) / LIVE_LANE / str(partition)
        there = sorted(path.name for path in folder.iterdir())
        tidy(folder, small.runs, HOUR_MS)
        assert sorted(path.name for path in folder.iterdir()) == there, "it was tidy"
        chain = chain_before(folder, small.runs, HOUR_MS)
        assert chain is not None, "it reaches one horizon back"
        assert [len(run.identities) for run in chain] == 9 * [2_048]
        shared, alone = searched(folder, chain, HOUR_MS)
        assert isinstance(shared, Behind)
        assert (len(shared.parts), isinstance(alone, Identities)) == (8, True)
    assert small.told == "73,728 identities in 9 runs a partition"


def test_it_can_be_put_again(small: Past, tmp_path: Path) -> None:
    """What a round deletes of it is still there for the next."""
    for topic in ("one", "another"):
        small.put(tmp_path / topic, topic)
        found = sorted((tmp_path / topic).rglob("*.run"))
        assert len(found) == 9 * PARTITIONS
        for one in found:
            one.unlink()


def test_its_records_are_not_counted(tmp_path: Path) -> None:
    """A log begins after them, in every partition."""
    log = Log("t", dict.fromkeys(range(PARTITIONS), 109), Past(tmp_path, 9))
    assert log.total == 400
    at, end = next(log.slices(200))
    assert (at, end) == (dict.fromkeys(range(4), 9), dict.fromkeys(range(4), 59))
    assert Log("t", {0: 5, 1: 5}).start == {0: 0, 1: 0}
