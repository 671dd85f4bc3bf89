"""`make logs`: the last lines of every part, and what follows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from weir_local.console import say
from weir_local.process import PartError, last_lines

if TYPE_CHECKING:
    from pathlib import Path

    from weir_local.stack import Stack

LAST_LINES = 20


def logs(stack: Stack, name: str | None, *, follow: bool) -> None:
    """Print the last lines of one part's log, or of all, and go on if `follow`.

    Raises:
        PartError: If there is no part of that name.
    """
    if name and name not in stack.parts:
        msg = f'PART must be one of {", ".join(stack.parts)}, got "{name}"'
        raise PartError(msg)
    chosen = [name] if name else list(stack.parts)
    paths = {part: stack.parts[part].log_path for part in chosen}
    ends = {part: _size(path) for part, path in paths.items()}
    for part, path in paths.items():
        for line in last_lines(path, LAST_LINES):
            say(f"{part:<10} {line}")
    while follow:
        for part, path in paths.items():
            ends[part] = _print_new(part, path, ends[part])
        time.sleep(0.3)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _print_new(part: str, path: Path, at: int) -> int:
    size = _size(path)
    if size <= at:
        return size
    with path.open("rb") as file:
        file.seek(at)
        for line in file.read(size - at).decode("utf-8", "replace").splitlines():
            say(f"{part:<10} {line}")
    return size
