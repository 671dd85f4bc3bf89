"""Files that a worker has mapped stay so from one batch to the next.

Of an hour of much traffic there are hundreds, and a batch looks into all: to map them anew, and to
have each page of them found again, would take longer than to look. A file is never written twice,
but another one may come in its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

# A file that is deleted takes its place on the disk until it is let go.
KEPT_S = 60.0
_SWEPT_S = 1.0


@dataclass
class _File:
    inode: int
    written_ns: int
    size_bytes: int
    what: Any
    asked_s: float


_files: dict[Path, _File] = {}
_swept_s = 0.0


def mapped(path: Path, read: Callable[[Path], T]) -> T:
    """Return what a file holds, as `read` does; it is called again for another file only.

    Raises:
        OSError: If the file is not there.
    """
    now_s = time.monotonic()
    _let_go(now_s)
    stat = path.stat()
    found = _files.get(path)
    is_same = found is not None and (stat.st_ino, stat.st_mtime_ns, stat.st_size) == (
        found.inode,
        found.written_ns,
        found.size_bytes,
    )
    if found is None or not is_same:
        what = read(path)
        found = _File(stat.st_ino, stat.st_mtime_ns, stat.st_size, what, now_s)
        _files[path] = found
    found.asked_s = now_s
    kept: T = found.what
    return kept


def _let_go(now_s: float) -> None:
    """Let go of what was not asked for in a while: what is gone, and others' partitions."""
    global _swept_s
    if now_s - _swept_s < _SWEPT_S:
        return
    _swept_s = now_s
    for path in [path for path, one in _files.items() if now_s - one.asked_s > KEPT_S]:
        del _files[path]
