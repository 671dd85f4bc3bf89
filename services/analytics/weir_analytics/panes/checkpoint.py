"""Spark's checkpoint, read from its files: which range was planned as which batch.

The range of a batch comes from here and not from its rows: an offset range may
hold no rows. The checkpoint is a convenience; the marks in Redis are the truth
about progress, and a checkpoint that does not fit them is set aside, never mended.
"""

from __future__ import annotations

import json
from pathlib import Path

from weir.commit_found import Planned

from weir_analytics.panes.batch import Offsets

KEPT_ASIDE = 3


def planned(folder: Path, batch: int, topic: str) -> Planned:
    """Return the range that Spark planned as one batch.

    Raises:
        ValueError: If the files do not say it; names the file.
    """
    end = _offsets(folder / "offsets" / str(batch), topic)
    if batch == 0:
        start = _offsets(folder / "sources" / "0" / "0", topic)
    else:
        start = _offsets(folder / "offsets" / str(batch - 1), topic)
    # A partition that was added meanwhile begins at 0, or at its first batch's end if empty.
    committed = (folder / "commits" / str(batch)).exists()
    return Planned(batch, start, end, committed)


def last_planned(folder: Path, topic: str) -> Planned | None:
    """Return the batch planned last; None without a usable checkpoint."""
    numbers = [int(p.name) for p in (folder / "offsets").glob("*") if p.name.isdigit()]
    if not numbers:
        return None
    try:
        return planned(folder, max(numbers), topic)
    except ValueError:
        return None


def set_aside(folder: Path, name: str) -> None:
    """Rename a checkpoint so that a new one begins; the newest few are kept for people."""
    if folder.exists():
        folder.rename(folder.with_name(f"{folder.name}.{name}"))
    old = sorted(folder.parent.glob(f"{folder.name}.*"), key=lambda p: p.stat().st_mtime_ns)
    for path in old[:-KEPT_ASIDE]:
        _remove(path)


def starting_offsets(topic: str, offsets: Offsets) -> str:
    """Return offsets in the form of the source's option `startingOffsets`."""
    return json.dumps({topic: {str(p): offset for p, offset in sorted(offsets.items())}})


def _offsets(path: Path, topic: str) -> dict[int, int]:
    """Return the offsets of a file: the last line that is an object naming the topic."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
        found = json.loads(text[text.rindex('{"' + topic) :])[topic]
        return {int(p): int(offset) for p, offset in found.items()}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        msg = (
            f"checkpoint file {path.parent.name}/{path.name} must name offsets of {topic}; {error}"
        )
        raise ValueError(msg) from error


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    folder.rmdir()
