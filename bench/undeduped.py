"""The reading of a task without its dispose step, for P11; workers import it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from weir_analytics.panes import arrow_count
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.dispose import TOLD
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.writer import write


class AllCounted:
    """Stands in for the dispose step: every event counts, R is its own append time."""

    def __init__(self, batch: Batch) -> None:
        """Take the batch, of which nothing is needed."""

    def answer(self, *columns: pa.Array) -> pa.Array:
        """Return the fates of the next records."""
        at_ms, kind = columns[2], columns[3].to_numpy()
        fate = np.where(kind <= Kind.SAMPLED, int(Fate.COUNTED), int(Fate.TICK)).astype(np.int8)
        known = {"fate": pa.array(fate), "received_ms": at_ms}
        return pa.StructArray.from_arrays(
            [known.get(one.name, pa.nulls(len(kind), one.type)) for one in TOLD], fields=list(TOLD)
        )

    def finish(self, *, all_partitions: bool = False) -> None:
        """Do nothing: there is no run to write."""


def count_and_write(
    told: str, outputs: Sequence[str], rows: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Take all steps of a small batch but that one."""
    return write(count_range(told, outputs, 1, rows))


def count_range(
    told: str, outputs: Sequence[str], tasks: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Count a task's part of the running batch; workers live on, so the step comes back."""
    reading: Any = importlib.import_module("weir_analytics.panes.small")
    kept = reading.DisposeTask
    reading.DisposeTask = AllCounted
    try:
        yield from arrow_count.count_range(told, outputs, tasks, batches)
    finally:
        reading.DisposeTask = kept
