"""What becomes of a driver's checkpoint: cut off, or an old one in its place."""

from __future__ import annotations

import shutil
from pathlib import Path


def cut_newest(folder: Path) -> None:
    """Cut the newest file of a folder in half, as a full disk or a power cut leaves it."""
    newest = max((p for p in folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    text = newest.read_bytes()
    newest.write_bytes(text[: len(text) // 2])


def put_back(folder: Path, kept: Path) -> None:
    """Put an old copy in a folder's place."""
    shutil.rmtree(folder)
    shutil.copytree(kept, folder)
