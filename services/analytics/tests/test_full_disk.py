"""The engine's own disk is full: counting stands still and says why, and then goes on as before."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.dispose import DisposeTask
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.passing import first_line
from weir_analytics.panes.runs import chain_before, read_run

from .log_frames import NOW_MS, batch_of

EVENTS = 400


@contextmanager
def little_room(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no file grow beyond some bytes: a write is cut in its midst, as on a disk that fills."""
    del monkeypatch
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def full_when_synced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take every write, and say only at the sync that there is no room, as some disks do."""

    def refuse(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        yield


@contextmanager
def no_more_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refuse folders and files, as a disk without inodes does."""

    def refuse(*_given: object, **_also: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", refuse)
        yield


def run(batch: Batch, ids: list[int]) -> list[Fate]:
    """Run the task that gives events their fate, and writes what it has seen; return the fates."""
    size, first = len(ids), batch.start.get(0, 0)
    task = DisposeTask(batch)
    told = task.answer(
        pa.array([0] * size, pa.int32()),
        pa.array(range(first, first + size), pa.int64()),
        pa.array([NOW_MS] * size, pa.int64()),
        pa.array([int(Kind.EVENT)] * size, pa.int8()),
        pa.array([n.to_bytes(16, "big") for n in ids], pa.binary()),
        pa.nulls(size, pa.binary()),
        pa.nulls(size, pa.string()),
    )
    task.finish(all_partitions=True)
    return [Fate(fate) for fate in told.field("fate").to_pylist()]


@pytest.mark.parametrize("full", [little_room, full_when_synced, no_more_names])
def test_a_full_disk_loses_and_doubles_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    full: Callable[[pytest.MonkeyPatch], AbstractContextManager[None]],
) -> None:
    """The batch ends before it is committed, leaves nothing, and comes again as if never tried."""
    ids = list(range(EVENTS))
    assert set(run(batch_of(tmp_path, EVENTS), ids)) == {Fate.COUNTED}
    before = sorted(tmp_path.rglob("*"))
    second = batch_of(tmp_path, 2 * EVENTS, start={0: EVENTS})
    mixed = [n + EVENTS // 2 for n in ids]
    for _again in range(3):
        with full(monkeypatch), pytest.raises(OSError, match="could not write dedup run") as told:
            run(second, mixed)
        said = first_line(told.value)
        assert said.startswith("OSError: [Errno ")
        assert said.endswith("; make room there, nothing is lost meanwhile")
        assert os.strerror(told.value.errno or 0) in said
        assert sorted(tmp_path.rglob("*")) == before  # what is half written takes no room

    half = EVENTS // 2
    assert run(second, mixed) == [Fate.DUPLICATE] * half + [Fate.COUNTED] * half
    third = batch_of(tmp_path, 3 * EVENTS, start={0: 2 * EVENTS})
    assert set(run(third, mixed)) == {Fate.DUPLICATE}
    (folder,) = {path.parent for path in tmp_path.rglob("*.run")}
    assert chain_before(folder, 3 * EVENTS, second.horizon_ms) is not None
    assert all(np.all(np.diff(read_run(p).identities.low) > 0) for p in folder.glob("*.run"))
