"""What it costs to store every kept resolution with each batch, and to compose it on reading.

The case that hurts: 10,000 series and three resolutions, a row of each in every batch, and
several batches in a finest pane. The writer's own commits (`ShardStore`) store panes into an
empty Redis, once of all three resolutions and once of the finest alone; then one pane of each
resolution is read, in the second case as the sum of the finest ones within it. CPU is that of
the writer or reader and of Redis. It is done for plain rows and for rows with sketches, in
alternating rounds.

Both ways must come to what was drawn: in numbers of every row, and of some in sketches.
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
from rows import START_S, VID, Shard, is_right, series_name
from sketch_trials import Values, hll_of, kll_of
from weir import names
from weir.rows import Row, decode, merge_all
from weir.sketches import HLL_LG_K, hll_estimate, kll_k, kll_union
from weir_analytics.panes.commit_job import Limits, Part
from weir_local.redis import RedisServer

SEED = 5
FINEST_S, RESOLUTIONS_S = 10, (10, 60, 600)
# A pane of the longest begins here, so that all finest ones lie within it.
FIRST_S = START_S // RESOLUTIONS_S[-1] * RESOLUTIONS_S[-1]
EVENTS_A_ROW = 10
# As many batches as a pane of ten seconds meets at least, live: the first one finds no rows.
BATCHES_A_PANE = 5
DIFFERENT_ROWS = 2_000
PERCENTILE = 0.95
# The kernel tells CPU in hundredths of a second, and a short read takes about as long.
READS = 3
# Of so many series the sketches are looked at, by the 3 standard errors of the distinct count.
LOOKED_AT, DISTINCT_ERROR = 20, 0.05
WAYS: dict[str, tuple[int, ...]] = {"stored": RESOLUTIONS_S, "composed": (FINEST_S,)}


@dataclass(frozen=True)
class Case:
    """What is written: the same in both ways.

    Attributes:
        values: Those of some different rows; each batch adds one of them to each series.
        rows: The same as the writer gets them.
        series: How many there are.
        panes: How many finest panes.
    """

    values: Sequence[Values]
    rows: Sequence[Row]
    series: int
    panes: int

    @property
    def batches(self) -> int:
        """Return how many there are."""
        return self.panes * BATCHES_A_PANE

    def at(self, batch: int, series: int) -> int:
        """Return which row a batch adds to one series."""
        return (batch * 31 + series * 7) % len(self.rows)

    def parts(self, batch: int, resolutions_s: Sequence[int]) -> list[Part]:
        """Return the parts of one batch."""
        start_s = FIRST_S + batch // BATCHES_A_PANE * FINEST_S
        return [
            Part(VID, res_s, start_s // res_s * res_s, series_name(n), self.rows[self.at(batch, n)])
            for res_s in resolutions_s
            for n in range(self.series)
        ]

    def of(self, series: int, res_s: int) -> Values:
        """Return all values of a series in the first pane of a resolution."""
        batches = range(min(self.batches, res_s // FINEST_S * BATCHES_A_PANE))
        return np.concatenate([self.values[self.at(batch, series)] for batch in batches])


def case_of(series: int, panes: int, *, sketches: bool) -> Case:
    """Draw a case, the same at every call."""
    rng, k = random.Random(SEED), kll_k([PERCENTILE])  # noqa: S311 - not a secret
    drawn = [
        np.array([round(rng.lognormvariate(3, 1), 2) for _ in range(EVENTS_A_ROW)])
        for _ in range(DIFFERENT_ROWS)
    ]
    rows = [Row(len(v), math.fsum(v), float(v.min()), float(v.max())) for v in drawn]
    if sketches:
        for row, values in zip(rows, drawn, strict=True):
            row.hll, row.kll = hll_of(values, HLL_LG_K), kll_of(values, k)
    return Case(drawn, rows, series, panes)


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
    for batch in range(case.batches):
        found.append(used(pid, partial(shard.commit, case.parts(batch, resolutions_s))))
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
        got, want = by_name.pop(series_name(at), None), case.of(at, res_s)
        if got is None or not is_right(got, want.tolist()):
            told = f"{len(want)} values from {want.min()} to {want.max()}, {want.sum()} in all"
            msg = f"series {at} of the pane of {res_s} s must be of {told}, got {got}"
            raise SystemExit(msg)
        if at < LOOKED_AT and case.rows[0].kll is not None and not is_sketched(got, want):
            msg = f"sketches of series {at} of the pane of {res_s} s must hold its values"
            raise SystemExit(msg)
    if by_name:
        msg = f"the pane of {res_s} s must have {case.series} series, has {len(by_name)} more"
        raise SystemExit(msg)


def is_sketched(got: Row, want: Values) -> bool:
    """Tell whether a row's sketches are of some values: how many, and how many different ones."""
    if got.hll is None or got.kll is None:
        return False
    different = len(set(want.tolist()))
    off = abs(hll_estimate(got.hll).value - different)
    return kll_union([got.kll]).n == len(want) and off <= DISTINCT_ERROR * different


def measured(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of each kind of row, by way."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            client = redis.Redis.from_url(server.url)
            for kind, sketches in (("plain", False), ("with sketches", True)):
                case = case_of(options.series, options.panes, sketches=sketches)
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
    parser.add_argument("--panes", type=int, default=60, help="of 10 s, each of five batches")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    figures: dict[str, Any] = dict(measured(options))
    figures["notes"] = [
        "stored: a row of each resolution with each batch; composed: of 10 s only, and panes of a"
        " minute and of ten are added up when somebody reads one",
        f"each finest pane is written by {BATCHES_A_PANE} batches",
        "bytes: of the span that was written; composed, short panes would have to be kept as long"
        " as the longest",
        "numbers of every row read were compared with what was drawn, and sketches of some",
    ]
    path = harness.write("resolutions", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
