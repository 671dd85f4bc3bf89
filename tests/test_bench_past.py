"""The past that dedup is measured with is one that dedup takes for its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contest import Log
from past import Past
from weir.names import LIVE_LANE
from weir_analytics.panes import runs, shared_sieves
from weir_analytics.panes.runs import chain_before, tidy
from weir_analytics.panes.shared_sieves import Behind, searched, share
from weir_analytics.panes.states import log_folder
from workload import PARTITIONS

HOUR_MS = 3_600_000
BATCHES = 100


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """Return a past of a hundred batches, of which eight become a run that is large."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "LARGEST", 4_096)
        for name, value in {"LARGEST": 4_096, "TAKEN_IN": 16_384, "ROOM": 2**18}.items():
            patch.setattr(shared_sieves, name, value)
        yield Past.write(tmp_path_factory.mktemp("past"), BATCHES, 2_400, HOUR_MS)


def test_dedup_goes_on_from_it(small: Past, tmp_path: Path) -> None:
    """All of it is in the state that the first batch begins with, most behind one sieve."""
    small.put(tmp_path / "dedup", "a/topic")
    for partition in range(PARTITIONS):
        folder = log_folder(tmp_path / "dedup", "a/topic", 0) / LIVE_LANE / str(partition)
        chain = chain_before(folder, BATCHES, HOUR_MS)
        assert chain is not None, "it reaches one horizon back"
        assert sum(len(run.identities) for run in chain) == 600 * BATCHES
        shared, *alone = searched(folder, chain, HOUR_MS)
        assert isinstance(shared, Behind)
        assert (len(shared.parts), len(alone)) == (12, 4)


def test_batches_tidied_it(small: Past, tmp_path: Path) -> None:
    """But for the last one's, which the next one tidies, too."""
    small.put(tmp_path / "dedup", "t")
    folder = log_folder(tmp_path / "dedup", "t", 0) / LIVE_LANE / "0"
    there = sorted(path.name for path in folder.iterdir())
    share(folder, tidy(folder, BATCHES - 1, HOUR_MS), HOUR_MS)
    assert sorted(path.name for path in folder.iterdir()) == there


def test_it_can_be_put_again(small: Past, tmp_path: Path) -> None:
    """What a round deletes of it is still there for the next."""
    for topic in ("one", "another"):
        small.put(tmp_path / topic, topic)
        found = sorted((tmp_path / topic).rglob("*.run"))
        assert len(found) == len(list(small.folder.rglob("*.run")))
        for one in found:
            one.unlink()


def test_its_records_are_not_counted(tmp_path: Path) -> None:
    """A log begins after them, in every partition."""
    log = Log("t", dict.fromkeys(range(PARTITIONS), 109), Past(tmp_path, 9, 0))
    assert log.total == 400
    at, end = next(log.slices(200))
    assert (at, end) == (dict.fromkeys(range(4), 9), dict.fromkeys(range(4), 59))
    assert log.first(40).total == 40
    assert Log("t", {0: 5, 1: 5}).start == {0: 0, 1: 0}
