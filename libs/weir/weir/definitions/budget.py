"""What a metric costs at most: memory in Redis, and rows written with a batch.

The estimate takes every series that `max_series` allows to be there in every pane that is
kept, and a tenant that sends `EVENTS_PER_S` all the time. Of all ways to spread its events
over the series the even one makes the longest rows: a sketch grows ever slower. So a series
has its share of them in each pane, and its sketches are as long as that makes them, or as
their size allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weir.definitions.metric import Metric
from weir.frequent import capacity

EVENTS_PER_S: Final = 10_000
TENANT_BYTES: Final = 512 * 2**30
"""Of all metrics of a tenant together, unless the installation says otherwise."""

# Bytes of a row: the packed header with its place in the hash.
ROW_BYTES: Final = 42
SPREAD_BYTES: Final = 9
LAST_BYTES: Final = 33
# A counter of `top` with its text, of up to 36 characters.
COUNTER_BYTES: Final = 48


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
    rows = size = 0
    for resolution_ms, keep_ms in metric.keep.items():
        panes = -(-keep_ms // resolution_ms)
        events = max(1, EVENTS_PER_S * resolution_ms // 1000 // series)
        rows += series * panes
        size += series * panes * row_bytes(metric, events)
    return Estimate(series, rows, size, series * len(metric.keep))


def row_bytes(metric: Metric, events: int) -> int:
    """Return how long a row with some events is at most, however they differ."""
    sizes = metric.sketches
    kept = (
        (_kll_bytes(metric.kll_k, events), metric.needs_kll),
        (_hll_bytes(sizes.hll_lg_k, events), metric.needs_hll),
        (_theta_bytes(sizes.theta_lg_k, events), metric.theta_path is not None),
        (_top_bytes(sizes.top_lg_k, events), metric.top_path is not None),
        (SPREAD_BYTES, metric.needs_spread),
        (LAST_BYTES, metric.needs_last),
    )
    return ROW_BYTES + sum(size for size, needed in kept if needed)


# ── sketches as they are stored; bench/sketches.py has their bounds ─────────


def _kll_bytes(k: int, events: int) -> int:
    """Of levels each has two thirds of the room of the one above, but at least eight."""
    return 200 + 8 * min(events, 3 * k + 160)


def _hll_bytes(lg_k: int, events: int) -> int:
    """A list while few registers are set, then a byte for each."""
    return 16 + 4 * events if events < 3 << (lg_k - 5) else 40 + (1 << lg_k)


def _theta_bytes(lg_k: int, events: int) -> int:
    """Its table is halved when it is fifteen sixteenths full."""
    return 32 + 8 * min(events, (15 << lg_k) // 8)


def _top_bytes(lg_k: int, events: int) -> int:
    return 60 + COUNTER_BYTES * min(events, capacity(lg_k))
