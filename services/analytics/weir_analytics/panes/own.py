"""What the driver takes of its machine: memory, threads, open files, disk. All of it levels off.

Looking at the processes of a tree looks at all of the machine, so it is done every few
seconds at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from weir_analytics.panes.runs import held
from weir_analytics.settings import Settings


@dataclass(frozen=True)
class Own:
    """What the driver took when it was measured last.

    Attributes:
        rss_bytes: Resident memory of the driver, its JVM and its workers.
        threads: Of all of them.
        open_files: Files and sockets that all of them have open.
        dedup_bytes: Size of the dedup runs: levels off after one horizon.
        dedup_entries: Identities in them; one that is in two runs is two.
        checkpoint_files: Files of Spark's checkpoint.
    """

    rss_bytes: int = 0
    threads: int = 0
    open_files: int = 0
    dedup_bytes: int = 0
    dedup_entries: int = 0
    checkpoint_files: int = 0


def measure(settings: Settings) -> Own:
    """Return what the driver takes now; what is gone meanwhile counts nothing."""
    own = psutil.Process()
    processes = [own, *own.children(recursive=True)]
    told = [_of(process) for process in processes]
    rss_bytes, threads, open_files = (sum(column) for column in zip(*told, strict=True))
    dedup = list(_sizes(settings.dedup_dir))
    return Own(
        rss_bytes=rss_bytes,
        threads=threads,
        open_files=open_files,
        dedup_bytes=sum(size_bytes for _path, size_bytes in dedup),
        dedup_entries=sum(held(path, size_bytes) for path, size_bytes in dedup),
        checkpoint_files=sum(1 for _ in _sizes(settings.checkpoint_dir)),
    )


def _of(process: psutil.Process) -> tuple[int, int, int]:
    try:
        with process.oneshot():
            return int(process.memory_info().rss), process.num_threads(), process.num_fds()
    except psutil.Error:  # it has ended in the meantime
        return 0, 0, 0


def _sizes(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield each file below a folder, and its bytes."""
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path, path.stat().st_size
        except OSError:  # it was deleted in the meantime
            continue
