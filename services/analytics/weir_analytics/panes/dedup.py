"""Dedup: which records of one partition repeat an earlier one.

The rule is RELIABILITY 2.1: a record is a duplicate if and only if an earlier
record of its partition with the same identity, itself duplicate or not, has R
within the horizon. R is the running maximum of the append time. A record that
was quarantined whole is no earlier record.

So the answer depends on the log alone: not on where batches begin, not on a
clock, not on what was counted. Nothing here does I/O; `runs.py` keeps the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from weir_analytics.panes.runs import FAN_IN, I64, NEVER, Earlier, Identities, Run, identity_order
from weir_analytics.panes.sieves import U64

Flags = npt.NDArray[np.bool_]


@dataclass
class PartitionState:
    """What one partition has shown up to some offset.

    Attributes:
        received_ms: R of the last record, `NEVER` before the first.
        older: What earlier batches left, in which each identity is looked for.
        rows: Records seen since the state was opened.
    """

    start: int
    received_ms: int = NEVER
    older: Sequence[Earlier] = ()
    rows: int = 0
    _recent: list[Identities] = field(default_factory=list)
    _received_before: int = NEVER

    @classmethod
    def after(cls, chain: Sequence[Run], start: int, older: Sequence[Earlier]) -> PartitionState:
        """Return the state that a chain of runs (newest first) leads to.

        Args:
            chain: The runs.
            start: The offset of the next record.
            older: Where their identities are looked for.
        """
        before = chain[0].received_end if chain else NEVER
        return cls(start, before, older, _received_before=before)

    def advance(self, appended_ms: I64) -> I64:
        """Return R of the next records of the partition, given their append times."""
        received = np.maximum.accumulate(np.maximum(appended_ms, self.received_ms))
        self.received_ms = int(received[-1])
        self.rows += len(received)
        return received

    def repeats(self, high: U64, low: U64, received: I64, horizon_ms: I64) -> Flags:
        """Tell which of the next events are duplicates, and remember them all.

        Args:
            high: First 8 bytes of each identity.
            low: Last 8 bytes.
            received: R of each, in the order of offsets.
            horizon_ms: The dedup horizon by which each is counted.
        """
        order = identity_order(high, low)
        high, low, received = high[order], low[order], received[order]
        earlier = self._latest(high, low)
        again = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        earlier[1:][again] = received[:-1][again]
        duplicate = (earlier != NEVER) & (received - earlier <= horizon_ms[order])
        self._remember(Identities.of_ordered(high, low, received))
        answer = np.empty(len(order), bool)
        answer[order] = duplicate
        return answer

    def remember(self, high: U64, low: U64, received: I64) -> None:
        """Remember the next events; whether they are duplicates is known, or nobody asks."""
        order = identity_order(high, low)
        self._remember(Identities.of_ordered(high[order], low[order], received[order]))

    def _latest(self, high: U64, low: U64) -> I64:
        latest = np.full(len(high), NEVER, np.int64)
        for part in (*self.older, *self._recent):
            part.latest(high, low, latest)
        return latest

    def _remember(self, part: Identities) -> None:
        self._recent.append(part)
        if len(self._recent) == FAN_IN:
            self._recent = [Identities.of(self._recent)]

    def run(self, end: int) -> Run:
        """Return what was seen since the state was opened, as the run `[start, end)`."""
        identities = Identities.of(self._recent)
        return Run(self.start, end, self._received_before, self.received_ms, identities)
