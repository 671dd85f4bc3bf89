"""Read a growing file of JSON lines from where one left off."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Follower:
    """Reads the complete lines that were added since the last look."""

    def __init__(self, path: Path, *, from_end: bool = False) -> None:
        """Begin at the start of the file, or at its present end."""
        self._path = path
        self._at = path.stat().st_size if from_end and path.exists() else 0

    def new(self) -> list[dict[str, Any]]:
        """Return what was added; a line still being written waits for the next look."""
        try:
            with self._path.open("rb") as file:
                if self._path.stat().st_size < self._at:
                    self._at = 0  # it was emptied
                file.seek(self._at)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._at += len(whole)
        return [note for line in whole.splitlines() if (note := _parsed(line)) is not None]


def _parsed(line: bytes) -> dict[str, Any] | None:
    # A full disk leaves half a line.
    try:
        note = json.loads(line)
    except ValueError:
        return None
    return note if isinstance(note, dict) else None
