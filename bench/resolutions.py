"""What it costs to store every kept resolution with each batch, and to compose it on reading.

The case that hurts: 10,000 series and three resolutions, a row of each in every batch. The
writer's own commits (`ShardStore`) store panes into an empty Redis, once of all three
resolutions and once of the finest alone; then one pane of each resolution is read, in the
second case as the sum of the finest ones within it. CPU is that of the writer or reader and
of Redis. It is done for plain rows and for rows with sketches, in alternating rounds.

Both ways must come to the same rows, and those to what was drawn.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import harness
import numpy as np
import redis
from rows import START_S, VID, Shard, series_name
from sketch_trials import hll_of, kll_of
from weir import names
from weir.rows import Row, decode, merge_all
from weir.sketches import HLL_LG_K, kll_k
from weir_analytics.panes.commit_job import Limits, Part
from weir_local.redis import RedisServer

SEED = 5
FINEST_S, RESOLUTIONS_S = 10, (10, 60, 600)
# A pane of the longest begins here, so that all finest ones lie within it.
FIRST_S = START_S // RESOLUTIONS_S[-1] * RESOLUTIONS_S[-1]
EVENTS_A_ROW = 10
DIFFERENT_ROWS = 2_000
PERCENTILE = 0.95
# The kernel tells CPU in hundredths of a second, and a short read takes about as long.
READS = 3
SUM_ERROR = 1e-9
WAYS: dict[str, tuple[int, ...]] = {"stored": RESOLUTIONS_S, "composed": (FINEST_S,)}


@dataclass(frozen=True)
class Case:
    """What is written: the same in both ways.

    Attributes:
        rows: Some rows; each series has one of them in each finest pane.
        series: How many there are.
        panes: How many finest panes, each written by one batch.
    """

    rows: Sequence[Row]
    series: int
    panes: int

    def row(self, pane: int, series: int) -> Row:
        """Return what a batch adds to one series."""
        return self.rows[(pane * 31 + series * 7) % len(self.rows)]

    def parts(self, pane: int, resolutions_s: Sequence[int]) -> list[Part]:
        """Return the parts of one batch."""
        start_s = FIRST_S + pane * FINEST_S
        return [
            Part(VID, res_s, start_s // res_s * res_s, series_name(at), self.row(pane, at))
            for res_s in resolutions_s
            for at in range(self.series)
        ]

    def total(self, series: int, res_s: int) -> Row:
        """Return numbers of the first pane of a resolution, added up here; no sketches."""
        found = [self.row(pane, series) for pane in range(min(self.panes, res_s // FINEST_S))]
        return Row(
            sum(row.n for row in found),
            math.fsum(row.sum or 0.0 for row in found),
            min(row.min or 0.0 for row in found),
            max(row.max or 0.0 for row in found),
        )


def drawn(*, sketches: bool) -> list[Row]:
    """Return some different rows, the same at every call."""
    rng, found = random.Random(SEED), []  # noqa: S311 - the same input each time, not a secret
    k = kll_k([PERCENTILE])
    for _ in range(DIFFERENT_ROWS):
        values = np.array([round(rng.lognormvariate(3, 1), 2) for _ in range(EVENTS_A_ROW)])
        row = Row(len(values), math.fsum(values), float(values.min()), float(values.max()))
        if sketches:
            row.hll, row.kll = hll_of(values, HLL_LG_K), kll_of(values, k)
        found.append(row)
    return found


# ── what is measured ────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Used:
    """Seconds of some work: by the wall, and CPU of this process and of Redis."""

    wall_s: float
    own_s: float
    redis_s: float

    @property
    def cpu_s(self) -> float:
        """Return the CPU seconds of both."""
        return self.own_s + self.redis_s


def used(pid: int, work: Callable[[], Any]) -> Used:
    """Return what some work took; `pid` is that of Redis."""
    own_s, redis_s, began_s = time.process_time(), harness.own_cpu_s(pid), time.monotonic()
    work()
    return Used(
        time.monotonic() - began_s,
        time.process_time() - own_s,
        harness.own_cpu_s(pid) - redis_s,
    )


def write(shard: Shard, case: Case, resolutions_s: Sequence[int], pid: int) -> list[Used]:
    """Return what each batch took to commit."""
    found = []
    for pane in range(case.panes):
        found.append(used(pid, partial(shard.commit, case.parts(pane, resolutions_s))))
    return found


def read(client: redis.Redis, res_s: int, from_s: int) -> dict[bytes, Row]:
    """Return the first pane of a resolution by series, put together from those of `from_s`.

    Args:
        client: Of the filled Redis.
        res_s: The resolution.
        from_s: That of the panes that are stored.
    """
    by_series: dict[bytes, list[Row]] = {}
    for start_s in range(FIRST_S, FIRST_S + res_s, from_s):
        pane = client.hgetall(names.pane_key(0, VID, from_s, start_s))
        for number, packed in cast("dict[bytes, bytes]", pane).items():
            by_series.setdefault(number, []).append(decode(packed))
    if res_s == from_s:
        return {number: found[0] for number, found in by_series.items()}
    return {number: merge_all(found) for number, found in by_series.items()}


def round_of(client: redis.Redis, server: RedisServer, case: Case, way: str) -> dict[str, float]:
    """Return the figures of one round of one way, after a comparison with what was drawn."""
    stored_s, pid = WAYS[way], server.part.pid() or 0
    limits = Limits(keep_s=dict.fromkeys(stored_s, 86_400), max_series=case.series)
    shard = Shard(client, server.url, limits)
    try:
        before = shard.used_bytes()
        batches = write(shard, case, stored_s, pid)
        found = {
            "ms_a_batch": 1e3 * sum(one.wall_s for one in batches) / len(batches),
            "cpu_ms_a_batch": 1e3 * sum(one.cpu_s for one in batches) / len(batches),
            "of_which_redis": 1e3 * sum(one.redis_s for one in batches) / len(batches),
            "bytes": float(shard.used_bytes() - before),
        }
        for res_s in RESOLUTIONS_S:
            from_s = res_s if res_s in stored_s else FINEST_S
            reads = [used(pid, partial(read, client, res_s, from_s)) for _ in range(READS)]
            found[f"cpu_ms_to_read_{res_s}_s"] = 1e3 * sum(one.cpu_s for one in reads) / READS
            compare(client, case, res_s, read(client, res_s, from_s))
    finally:
        shard.end()
    return found


def compare(client: redis.Redis, case: Case, res_s: int, pane: Mapping[bytes, Row]) -> None:
    """End the benchmark if a row is not what was drawn.

    Raises:
        SystemExit: If so; or if a series is missing, or one too many.
    """
    texts = cast("dict[bytes, bytes]", client.hgetall(names.names_key(0, VID)))
    by_name = {texts[number].decode(): row for number, row in pane.items()}
    for at in range(case.series):
        got, want = by_name.pop(series_name(at), None), case.total(at, res_s)
        if got is None or not is_right(got, want):
            msg = f"series {at} of the pane of {res_s} s must be {want}, got {got}"
            raise SystemExit(msg)
    if by_name:
        msg = f"the pane of {res_s} s must have {case.series} series, has {len(by_name)} more"
        raise SystemExit(msg)


def is_right(got: Row, want: Row) -> bool:
    """Tell whether a row's numbers are those that were added up here."""
    return (
        (got.n, got.min, got.max) == (want.n, want.min, want.max)
        and got.sum is not None
        and want.sum is not None
        and abs(got.sum - want.sum) <= SUM_ERROR * want.sum
    )


def measured(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of each kind of row, by way."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            client = redis.Redis.from_url(server.url)
            for kind, sketches in (("plain", False), ("with sketches", True)):
                case = Case(drawn(sketches=sketches), options.series, options.panes)
                runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
                for number in range(options.rounds):
                    for way in WAYS:
                        one = round_of(client, server, case, way)
                        runs[way].append(one)
                        told = ", ".join(f"{name} {value:,.0f}" for name, value in one.items())
                        sys.stderr.write(f"  round {number + 1}: {kind}, {way}: {told}\n")
                yield kind, {way: summed(found) for way, found in runs.items()}
        finally:
            server.stop()


def summed(runs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return the rounds of one way as medians with ends."""
    return {name: harness.median_of([run[name] for run in runs], 1) for name in runs[0]}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--panes", type=int, default=60, help="of 10 s, each written by a batch")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    figures: dict[str, Any] = dict(measured(options))
    figures["notes"] = [
        "stored: a row of each resolution with each batch; composed: of 10 s only, and panes of a"
        " minute and of ten are added up when somebody reads one",
        "numbers of every row read were compared with what was drawn",
    ]
    path = harness.write("resolutions", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
