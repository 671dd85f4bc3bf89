"""Panes that are full: who can have no row of its own there is counted as `other` at once.

In each pane and shard the series with the smallest digests have rows of their own. Once a
pane has as many as it may, the largest digest among them is a bound, and it only falls: a
series beyond it never gets a row, whatever comes later. So the next batches need not make a
group with sketches of it, only to add that to `other`; a flood of new series costs hardly
more than one series (bench/tenants.py).

A bound says something about the log, not about Redis: as many series with digests up to it
are counted in that pane. So it stays true when Redis is emptied or a batch runs again, and a
driver that knows no bounds makes the same panes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from weir.series import OTHER, series_digest, shard_of

from weir_analytics.panes.commit_job import Bound

# Each record of a batch carries them; events of one moment fall into a few panes of a metric.
MOST: Final = 32
TYPE: Final = "map<bigint,string>"
ARROW_TYPE: Final = pa.map_(pa.int64(), pa.string())
# Ids of versions are offsets of definitions, far below 2^28; a start in seconds is below 2^35.
_VID_BITS: Final = 28
_START_BITS: Final = 35


@dataclass
class Crowded:
    """What a driver knows of full panes: those that it was told of last."""

    shards: int
    _found: dict[tuple[int, int], dict[int, str]] = field(default_factory=dict)

    def take(self, told: Iterable[tuple[int, Bound]]) -> None:
        """Take in bounds, each with its shard."""
        for shard, bound in told:
            key = bound.vid, bound.start_s
            # Taken out and put back: the order is that of the last news.
            self._found[key] = {**self._found.pop(key, {}), shard: bound.digest}
        while len(self._found) > MOST:
            self._found.pop(next(iter(self._found)))

    def bounds(self) -> tuple[Bound, ...]:
        """Return the bounds that hold in every shard."""
        return tuple(
            Bound(vid, start_s, max(by_shard.values()))
            for (vid, start_s), by_shard in self._found.items()
            if len(by_shard) == self.shards
        )


# ── in the tasks ────────────────────────────────────────────────────────────


def bounds_column(bounds: Sequence[Bound], size: int) -> pa.Array:
    """Return the bounds as a column that holds all of them in each of its rows."""
    # Of panes beyond what a key holds, in the year 3058, nobody needs to know that they are full.
    bounds = [one for one in bounds if abs(one.start_s) < 1 << _START_BITS]
    if not bounds:
        return pa.nulls(size, ARROW_TYPE)
    count = len(bounds)
    at = np.tile(np.arange(count), size)
    keys = np.array([(one.start_s << _VID_BITS) + one.vid for one in bounds], np.int64)
    digests = pa.array([one.digest for one in bounds]).take(pa.array(at))
    offsets = np.arange(0, (size + 1) * count, count, dtype=np.int32)
    return pa.MapArray.from_arrays(pa.array(offsets), pa.array(keys[at]), digests)


def counted_as(series: Column, bounds: Column, shards: int) -> Column:
    """Return the series that a metric's row is counted in: `other` beyond the bound.

    Reads: vid, start_s. What is told of `other` has its shard behind it; `placed` reads it.
    """
    key = F.shiftleft(F.col("start_s"), _VID_BITS) + F.col("vid")
    # In this order: without a bound no digest is made.
    is_beyond = bounds[key] < _digest(series)
    other = F.lit(f"{OTHER}0")
    if shards > 1:
        other = F.concat(F.lit(OTHER), _shard(series, shards).cast("string"))
    return F.when(is_beyond, other).otherwise(series)


def shard_column(series: Column, shards: int) -> Column:
    """Return the shard of a row: its series', or what stands behind `other`."""
    told = F.substring(series, len(OTHER) + 1, 10).cast("bigint")
    return F.when(F.startswith(series, F.lit(OTHER)), told).otherwise(_shard(series, shards))


def placed(series: str, shards: int) -> tuple[int, str]:
    """Return the shard of what a task is told of, and its series."""
    if series.startswith(OTHER):
        return int(series.removeprefix(OTHER)), OTHER
    return (shard_of(series_digest(series), shards) if shards > 1 else 0), series


def _digest(series: Column) -> Column:
    return F.md5(series.cast("binary"))


def _shard(series: Column, shards: int) -> Column:
    head = F.substring(_digest(series), 1, 8)
    return F.conv(head, 16, 10).cast("bigint") % shards
