"""A small disk, to be filled."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """Mount a disk of memory on a folder.

    Args:
        folder: Where; made if it is not there.
        size: How large, as `mount` is told it: "64m".
    """
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "weir-test", str(folder)]
    subprocess.run(mount, check=True)  # noqa: S603
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S603, S607


def fill(folder: Path) -> Path:
    """Return a file that takes all that is free of a disk, whoever else writes meanwhile."""
    filler = folder / "filler"
    with contextlib.suppress(OSError):  # the last bytes may fail
        filler.write_bytes(b"\0" * shutil.disk_usage(folder).free)
    return filler
