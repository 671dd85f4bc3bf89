"""P7: what a pane's row costs in Redis, all included, as the writer itself stores it.

The rows are written by the writer's own commits (`ShardStore`) into an empty Redis: an hour
of panes of one metric, the same series in each, and every row in several commits, as live
events come. So packing, short ids, names, expiry, and what Redis makes of them are the
product's, and none of them is written down here. What Redis' memory grew by is divided by
the rows; mark, token and outbox, which do not grow with them, stand there before. The names
are in it, once a series. `MEMORY USAGE` of the keys tells the same by kind of key.

Every pane is read back and compared with the values that were drawn.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import harness
import msgspec
import redis
from weir import names
from weir.clock import SystemClock
from weir.commit import Fence, Mark, Verdict
from weir.rows import Row, decode
from weir.series import encode_series
from weir_analytics.panes.commit_job import CommitJob, Limits, Part
from weir_analytics.panes.store import ShardStore
from weir_local.redis import RedisServer, find_server, server_version

SEED = 3
EVENTS_A_ROW = 30
COMMITS = 3
ROUNDS = 5
SERIES = (10, 100, 500)
PANES = 360
VID, RES_S = 123_456, 10
# Now: panes of long ago would be gone as soon as they are written.
START_S = SystemClock().now_ms() // 1000 // RES_S * RES_S
FENCE = Fence(1, "definitions")
BOUNDS = Limits(keep_s={RES_S: 86_400}, max_series=10_000)
SUM_ERROR = 1e-9
SETTLE_S = 0.3
Draw = Callable[[random.Random], float]
Values = list[list[float]]

VALUES: dict[str, Draw] = {
    "whole, up to 2,000": lambda rng: float(rng.randint(0, 2000)),
    "lognormal, 2 decimals": lambda rng: round(rng.lognormvariate(3, 1), 2),
    "lognormal, full doubles": lambda rng: rng.lognormvariate(3, 1),
}


def series_name(number: int) -> str:
    """Return one of the series, of three dimensions."""
    return encode_series([f"r{number % 5}", f"/api/{number // 5}", "200"])


def drawn(draw: Draw, rows: int) -> Values:
    """Return the values of some rows, about 30 in each and the same at every call."""
    rng = random.Random(SEED)  # noqa: S311 - the same input each time, not a secret
    return [[draw(rng) for _ in range(rng.randint(COMMITS, 2 * EVENTS_A_ROW))] for _ in range(rows)]


def row_of(values: Sequence[float]) -> Row:
    """Return what is known of some values."""
    return Row(len(values), sum(values), min(values), max(values))


@dataclass
class Shard:
    """The one shard of an empty Redis, and the commits that are made to it."""

    client: redis.Redis
    url: str
    limits: Limits = BOUNDS
    commits: int = 0

    def __post_init__(self) -> None:
        """Empty Redis, and begin as a driver does."""
        self.client.flushall()
        mark = Mark(epoch=1, batch=-1, topic_id="topic", end={0: 0}, shards=1)
        self.client.set(names.fence_key(0), msgspec.json.encode(FENCE))
        self.client.set(names.mark_key(0), msgspec.json.encode(mark))
        self._store = ShardStore(self.url, 0)
        self.commit([])

    def commit(self, parts: Sequence[Part]) -> None:
        """Commit some parts.

        Raises:
            RuntimeError: If they were not applied.
        """
        job = CommitJob(
            shard=0,
            shards=1,
            fence=FENCE,
            epoch=1,
            batch=self.commits,
            topic_id="topic",
            from_offsets={0: self.commits},
            to_offsets={0: self.commits + 1},
            limits={VID: self.limits},
            trim_outbox=self.commits,
        )
        done = self._store.commit(job, parts)
        if done.verdict is not Verdict.OK:
            msg = f"a commit must be applied, got {done.verdict}"
            raise RuntimeError(msg)
        self.commits += 1

    def used_bytes(self) -> int:
        """Return the memory of all keys, tables included, once the outbox is trimmed.

        What Redis keeps for clients is not of the panes: those that were connected go, and
        what they had is waited for.
        """
        self.commit([])
        self._store.close()
        self.client.connection_pool.disconnect()
        seen = [0, 1]
        while seen[-1] != seen[-2]:
            time.sleep(SETTLE_S)
            told = self.client.info("memory")
            seen.append(int(told["used_memory"]) - int(told["mem_clients_normal"]))
        return seen[-1]

    def key_bytes(self, pattern: str) -> int:
        """Return what Redis says that some keys take, every field looked at."""
        found = self.client.keys(f"{names.shard_prefix(0)}{pattern}")
        return sum(int(self.client.memory_usage(key, samples=0) or 0) for key in found)

    def end(self) -> None:
        """Close the connection."""
        self._store.close()


def panes_of(values: Values, series: int) -> Iterator[tuple[int, Values]]:
    """Yield start and rows of each pane."""
    for number in range(len(values) // series):
        yield START_S + number * RES_S, values[number * series : (number + 1) * series]


def write(shard: Shard, values: Values, series: int) -> float:
    """Commit all panes, each row in several commits; return the CPU seconds of the writer."""
    spent_s = 0.0
    for start_s, rows in panes_of(values, series):
        for turn in range(COMMITS):
            parts = [
                Part(VID, RES_S, start_s, series_name(at), row_of(row[turn::COMMITS]))
                for at, row in enumerate(rows)
            ]
            began_s = time.process_time()
            shard.commit(parts)
            spent_s += time.process_time() - began_s
    return spent_s


def compare(shard: Shard, values: Values, series: int) -> int:
    """Compare all rows with the values that were drawn; return how many there are.

    Raises:
        RuntimeError: If one is missing or wrong.
    """
    texts = cast("dict[bytes, bytes]", shard.client.hgetall(names.names_key(0, VID)))
    compared = 0
    for start_s, rows in panes_of(values, series):
        pane = shard.client.hgetall(names.pane_key(0, VID, RES_S, start_s))
        packed = cast("dict[bytes, bytes]", pane)
        stored = {texts[number].decode(): decode(row) for number, row in packed.items()}
        for at, row in enumerate(rows):
            found = stored.pop(series_name(at), None)
            if found is None or not is_right(found, row):
                msg = f"row {at} of pane {start_s} must be {row_of(row)}, got {found}"
                raise RuntimeError(msg)
            compared += 1
        if stored:
            msg = f"pane {start_s} must have {len(rows)} rows, has {sorted(stored)} besides"
            raise RuntimeError(msg)
    return compared


def packed_bytes(shard: Shard) -> int:
    """Return how long all packed rows are by themselves: what Redis adds is the rest."""
    keys = shard.client.keys(f"{names.shard_prefix(0)}p:{VID}:*")
    return sum(len(row) for key in keys for row in shard.client.hvals(key))


def is_right(found: Row, values: Sequence[float]) -> bool:
    """Tell whether a row is that of some values."""
    total = math.fsum(values)
    return (
        (found.n, found.min, found.max) == (len(values), min(values), max(values))
        and found.sum is not None
        and abs(found.sum - total) <= SUM_ERROR * total
    )


def measured(client: redis.Redis, url: str, draw: Draw, shape: tuple[int, int]) -> dict[str, Any]:
    """Return the figures of one kind of value.

    Args:
        client: Of the server that is used for nothing else.
        url: Of the same.
        draw: Draws one value.
        shape: How many series, and how many panes.
    """
    series, panes = shape
    values = drawn(draw, series * panes)
    shard = Shard(client, url)
    try:
        before = shard.used_bytes()
        spent_s = write(shard, values, series)
        grown = shard.used_bytes() - before
        compared = compare(shard, values, series)
        kinds = {kind: shard.key_bytes(kind) for kind in ("p:*", "ids:*", "names:*")}
    finally:
        shard.end()
    return {
        "bytes_a_row": grown / compared,
        "bytes_a_row_by_memory_usage": sum(kinds.values()) / compared,
        "of_which_the_pane": kinds["p:*"] / compared,
        "of_which_the_packed_row": packed_bytes(shard) / compared,
        "bytes_a_name": (kinds["ids:*"] + kinds["names:*"]) / series,
        "writer_cpu_us_a_row_and_commit": 1e6 * spent_s / (compared * COMMITS),
        "rows_compared": compared,
    }


def rounded(runs: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the rounds of one size as one: times as a median with ends, bytes as the most."""
    time_name = "writer_cpu_us_a_row_and_commit"
    found: dict[str, Any] = {
        name: round(max(run[name] for run in runs), 1) for name in runs[0] if name != time_name
    }
    return found | {time_name: harness.median_of([run[time_name] for run in runs], 2)}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--panes", type=int, default=PANES, help="of 10 s")
    parser.add_argument("--series", type=int, nargs="+", default=SERIES, help="so rows a pane")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    runs: dict[str, dict[str, list[dict[str, float]]]] = {}
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            client = redis.Redis.from_url(server.url)
            allocator = client.info("memory")["mem_allocator"]
            for _ in range(options.rounds):
                for name, draw in VALUES.items():
                    for series in options.series:
                        one = measured(client, server.url, draw, (series, options.panes))
                        size = f"{series} rows a pane"
                        runs.setdefault(name, {}).setdefault(size, []).append(one)
        finally:
            server.stop()
    figures: dict[str, Any] = {
        name: {size: rounded(found) for size, found in sizes.items()}
        for name, sizes in runs.items()
    }
    figures["bars"] = [
        bar(name, size, row) for name, s in figures.items() for size, row in s.items()
    ]
    figures["notes"] = ["every row was read back and compared with the values that were drawn"]
    version = ".".join(map(str, server_version(find_server())))
    settings = {
        "redis": version,
        "allocator": allocator,
        "commits_a_row": COMMITS,
        "events_a_row": EVENTS_A_ROW,
    }
    settings |= {"seed": SEED, **vars(options)}
    sys.stdout.write(harness.write("rows", settings=settings, figures=figures).read_text())


def bar(name: str, size: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return the bar of one size: it stands for 100 rows a pane, the others say how it grows."""
    return {
        "id": "P7",
        "what": f"Redis bytes a row, names once a series, {name}, {size}",
        "reach": "≤ 42 B (record 28)" if size == "100 rows a pane" else "",
        "got": f"{found['bytes_a_row']} B",
    }


if __name__ == "__main__":
    main()
