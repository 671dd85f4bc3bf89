"""What the driver takes of its machine: memory, threads, open files, disk. All of it levels off.

Looking at the processes of a tree looks at all of the machine, so it is done every few
seconds at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import psutil

from weir_analytics.panes.runs import held
from weir_analytics.settings import Settings


class Process(StrEnum):
    """What processes the job has."""

    DRIVER = "driver"
    """This one."""
    JVM = "jvm"
    """Spark's, on the driver's machine."""
    WORKERS = "workers"
    """Python's, all together: how many there are is a matter of cores."""


@dataclass(frozen=True)
class Own:
    """What the driver took when it was measured last.

    Attributes:
        resident: Resident memory, bytes, by process; what several share counts in each.
        threads: Of all of them.
        open_files: Files and sockets that all of them have open.
        dedup_bytes: Size of dedup's runs and sieves: levels off after one horizon.
        dedup_entries: Identities in them; one that is in two runs is two.
        checkpoint_files: Files of Spark's checkpoint.
    """

    resident: Mapping[Process, int] = field(default_factory=dict)
    threads: int = 0
    open_files: int = 0
    dedup_bytes: int = 0
    dedup_entries: int = 0
    checkpoint_files: int = 0

    @property
    def rss_bytes(self) -> int:
        """Resident memory of all of them."""
        return sum(self.resident.values())


def measure(settings: Settings) -> Own:
    """Return what the driver takes now; what is gone meanwhile counts nothing."""
    own = psutil.Process()
    children = own.children(recursive=True)
    told = [(Process.DRIVER, *_of(own)), *((_kind(child), *_of(child)) for child in children)]
    resident = Counter[Process]()
    for kind, rss_bytes, _threads, _files in told:
        resident[kind] += rss_bytes
    dedup = list(_sizes(settings.dedup_dir))
    return Own(
        resident=resident,
        threads=sum(threads for _kind, _rss, threads, _files in told),
        open_files=sum(files for _kind, _rss, _threads, files in told),
        dedup_bytes=sum(size_bytes for _path, size_bytes in dedup),
        dedup_entries=sum(held(path, size_bytes) for path, size_bytes in dedup),
        checkpoint_files=sum(1 for _ in _sizes(settings.checkpoint_dir)),
    )


def _kind(child: psutil.Process) -> Process:
    try:
        return Process.JVM if child.name().startswith("java") else Process.WORKERS
    except psutil.Error:  # it has ended in the meantime
        return Process.WORKERS


def _of(process: psutil.Process) -> tuple[int, int, int]:
    """Return resident bytes, threads and open files of a process; zeros if it has ended."""
    try:
        with process.oneshot():
            return int(process.memory_info().rss), process.num_threads(), process.num_fds()
    except psutil.Error:
        return 0, 0, 0


def _sizes(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield each file below a folder, and its bytes."""
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path, path.stat().st_size
        except OSError:  # it was deleted in the meantime
            continue
