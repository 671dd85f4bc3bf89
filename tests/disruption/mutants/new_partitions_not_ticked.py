"""D13: the partitions that are ticked are listed once, at the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.panes.log_offsets:LogOffsets.partitions"

Partitions = Callable[[Any], list[int]]


def mutate(original: Partitions) -> Partitions:
    """Return a list that stays what it was when it was first asked for."""

    def partitions(self: Any) -> list[int]:
        found: list[int] = vars(self).setdefault("_listed", original(self))
        return found

    return partitions
