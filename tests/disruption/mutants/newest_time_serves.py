"""D16, D20: processed-through is the newest time of any partition: of one that is ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TARGET = "weir_analytics.panes.outcome:processed_through"

Through = Callable[[Mapping[int, int], Mapping[int, int], int], int]


def mutate(original: Through) -> Through:
    """Return the maximum over all partitions instead of the minimum."""

    def processed_through(
        received_ms: Mapping[int, int], end: Mapping[int, int], before_ms: int
    ) -> int:
        newest_ms = max(received_ms.values(), default=0)
        return original(dict.fromkeys(received_ms, newest_ms), end, before_ms)

    return processed_through
