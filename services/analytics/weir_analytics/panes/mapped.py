"""Files of a task's process that stay mapped from one batch to the next.

Of an hour of much traffic there are dozens in a folder, and a batch looks into all: to map them
anew, and to have each page of them found again, would take longer than to look. A file is never
written twice, but another one may come in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

from weir.clock import Clock

T = TypeVar("T")

# A partition may be another worker's for some batches; a lane that is done never comes again.
KEPT_S = 60.0


class Files:
    """Reads each file anew, and keeps none."""

    def read(self, path: Path, read: Callable[[Path], T]) -> T:
        """Return what `read` makes of a file."""
        return read(path)

    def keep_only(self, folder: Path, names: Collection[str]) -> None:
        """Let go of the other files of a folder: they are not there any more."""


class Mapped(Files):
    """Keeps what was read for as long as the file is there and its folder is asked for.

    A mapped file is an open one: there are no more than the folders of the last minute hold. What
    is deleted takes its place on the disk until the next look at its folder, or at any a minute
    later.
    """

    def __init__(self, clock: Clock) -> None:
        """Keep nothing yet."""
        self._clock = clock
        # By folder and name: inode, time of writing and size, and what was read.
        self._folders: dict[Path, dict[str, tuple[tuple[int, int, int], Any]]] = {}
        self._asked_s: dict[Path, float] = {}

    def read(self, path: Path, read: Callable[[Path], T]) -> T:
        """Return what `read` made of a file; it is called again for another file only.

        Raises:
            OSError: If the file is not there, or `read` raises it.
        """
        stat = path.stat()
        is_of = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        files = self._folders.setdefault(path.parent, {})
        found = files.get(path.name)
        if found is None or found[0] != is_of:
            found = files[path.name] = is_of, read(path)
        kept: T = found[1]
        return kept

    def keep_only(self, folder: Path, names: Collection[str]) -> None:
        """Let go of a folder's other files, and of folders that nobody has looked at in a while."""
        now_s = self._clock.monotonic_s()
        self._asked_s[folder] = now_s
        for other in [one for one, at_s in self._asked_s.items() if now_s - at_s > KEPT_S]:
            del self._asked_s[other]
            self._folders.pop(other, None)
        files = self._folders.get(folder, {})
        for name in files.keys() - set(names):
            del files[name]
