"""The rule of dedup (RELIABILITY 2.1), written down the slow way, and a state that is fed."""

from __future__ import annotations

import numpy as np
from weir_analytics.panes.dedup import PartitionState

HORIZON_MS = 100

Record = tuple[int, int, int]  # first 8 bytes, last 8 bytes, append time


def slow(records: list[Record]) -> list[bool]:
    """Decide by looking at every earlier record."""
    answer: list[bool] = []
    running: list[int] = []
    for i, (high, low, at_ms) in enumerate(records):
        running.append(max([at_ms, *running[-1:]]))
        answer.append(
            any(
                records[j][:2] == (high, low) and running[i] - running[j] <= HORIZON_MS
                for j in range(i)
            )
        )
    return answer


def feed(state: PartitionState, records: list[Record], horizon_ms: int = HORIZON_MS) -> list[bool]:
    """Give records to a state, as one slice."""
    if not records:
        return []
    received = state.advance(np.array([r[2] for r in records], np.int64))
    high = np.array([r[0] for r in records], np.uint64)
    low = np.array([r[1] for r in records], np.uint64)
    return [bool(x) for x in state.repeats(high, low, received, np.full(len(received), horizon_ms))]
