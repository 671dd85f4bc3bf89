"""A driver's checkpoint: cut off, an old one in its place; and what it was at when it died."""

from __future__ import annotations

import shutil
from pathlib import Path


def cut_newest(folder: Path) -> None:
    """Cut the newest file of a folder in half, as a full disk or a power cut leaves it."""
    newest = max((p for p in folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    text = newest.read_bytes()
    newest.write_bytes(text[: len(text) // 2])


def is_under_way(checkpoint: Path) -> bool:
    """Return whether a batch is planned that is not noted as done: it comes again."""
    planned, done = (
        max((int(p.name) for p in (checkpoint / name).iterdir() if p.name.isdigit()), default=-1)
        for name in ("offsets", "commits")
    )
    return planned > done


def put_back(folder: Path, kept: Path) -> None:
    """Put an old copy in a folder's place."""
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
