"""What a metric costs at most: memory in Redis, and rows written with a batch.

The estimate takes every series that `max_series` allows to be busy in every pane
that is kept. It is a ceiling to decide by, shown where a metric is edited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weir.definitions.metric import Metric

# Bytes of a row: the packed header with its place in the hash, and the sketches of a
# pane with about a hundred events, where they still hold the values themselves.
ROW_BYTES: Final = 42
KLL_BYTES: Final = 850
HLL_BYTES: Final = 450


@dataclass(frozen=True, slots=True)
class Budget:
    """What one metric may cost.

    Attributes:
        memory_bytes: Of all its panes together.
        rows_a_batch: Written with one batch.
    """

    memory_bytes: int = 64 * 2**30
    rows_a_batch: int = 400_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a metric costs at most.

    Attributes:
        series: How many it may have.
        rows: Pane rows when all are kept: series times the sum of keep / resolution.
        memory_bytes: Of these rows.
        rows_a_batch: A row for each series and resolution, of the pane that is open.
    """

    series: int
    rows: int
    memory_bytes: int
    rows_a_batch: int


def estimate(metric: Metric) -> Estimate:
    """Return what a metric costs at most."""
    series = metric.max_series if metric.by else 1
    panes = sum(-(-keep // resolution) for resolution, keep in metric.keep.items())
    row_bytes = ROW_BYTES + KLL_BYTES * metric.needs_kll + HLL_BYTES * metric.needs_hll
    rows = series * panes
    return Estimate(series, rows, rows * row_bytes, series * len(metric.keep))
