"""D13: a partition that no mark names begins at its end: `startingOffsets=latest`."""

from __future__ import annotations

from collections.abc import Callable

from weir.commit import Offsets
from weir.commit_found import LogBounds

TARGET = "weir.commit_recovery:_everywhere"

Everywhere = Callable[[Offsets, LogBounds], dict[int, int]]


def mutate(original: Everywhere) -> Everywhere:
    """Return offsets in which what is new has been counted already."""

    def everywhere(end: Offsets, log: LogBounds) -> dict[int, int]:
        new = {p: n for p, n in log.end.items() if p not in end} if end else {}
        return {**original(end, log), **new}

    return everywhere
