"""Folders for what only one life of a process needs, gone after it, however it ended.

A JVM that is killed leaves what it had put aside: folders of its block manager, libraries it had
unpacked, sockets of its workers; a hundred files for a few restarts, for ever. Here each life has
a folder that it holds by a lock, which the system frees at any end of it. Who comes next deletes
the folders that nobody holds.
"""

from __future__ import annotations

import atexit
import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path

LOCK = "lock"
# A socket's path, in the shorter of two systems: 104 bytes on macOS, with the 0 at its end.
LONGEST_SOCKET = 103
# As Spark calls one: ".", a UUID and ".sock".
_NAME = "/." + 36 * "x" + ".sock"


@contextmanager
def scratch(root: Path, prefix: str) -> Iterator[Path]:
    """Yield a folder of this process's own; delete it afterwards, and those of the dead before.

    Only folders that begin with the prefix and have a lock are looked at. Where the file system
    knows no locks, what others left stays. After a failure the folder is left for who comes
    next: what was begun in it may still be writing.
    """
    root.mkdir(parents=True, exist_ok=True)
    for other in root.glob(f"{prefix}*"):
        _delete_if_left(other)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
    # Held before it has the name by which others look for it.
    with (folder / "taken").open("w") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / "taken").rename(folder / LOCK)
        yield folder
        shutil.rmtree(folder, ignore_errors=True)


@cache
def folder_of_jvm() -> Path:
    """Return where this process's JVM puts its temporary files, until the process ends.

    Not until a session ends: PySpark keeps its JVM for the next one, which makes its sockets there.
    """
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(scratch(short_root(), "weir-panes-"))


def short_root() -> Path:
    """Return where temporary folders may be made in which Spark makes its sockets, too."""
    usual = Path(tempfile.gettempdir())
    is_short = len(str(usual)) + len("/weir-panes-12345678") + len(_NAME) <= LONGEST_SOCKET
    return usual if is_short else Path("/tmp")  # noqa: S108  the folder within is made as mkdtemp does


def _delete_if_left(folder: Path) -> None:
    # Another's, another user's, or deleted by another start meanwhile.
    with suppress(OSError), (folder / LOCK).open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
