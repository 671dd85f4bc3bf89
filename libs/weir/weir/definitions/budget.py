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
THETA_BYTES: Final = 850
# A counter takes its text, too.
TOP_BYTES: Final = 3_200
SPREAD_BYTES: Final = 9
LAST_BYTES: Final = 33


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
    rows = series * panes
    return Estimate(series, rows, rows * _row_bytes(metric), series * len(metric.keep))


def _row_bytes(metric: Metric) -> int:
    kept = (
        (KLL_BYTES, metric.needs_kll),
        (HLL_BYTES, metric.needs_hll),
        (THETA_BYTES, metric.theta_path is not None),
        (TOP_BYTES, metric.top_path is not None),
        (SPREAD_BYTES, metric.needs_spread),
        (LAST_BYTES, metric.needs_last),
    )
    return ROW_BYTES + sum(size for size, needed in kept if needed)
