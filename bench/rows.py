"""P7: what a pane's row costs in Redis, all included, and how fast rows are merged.

A real Redis server takes the panes of 10,000 rows, as the writer stores them: one hash a
pane with 2-byte fields, absolute expiry, packed rows of count, sum, min and max. What its
memory grew by, keys and expiry included, is divided by the rows. The names of the series
are counted apart: they are stored once, however many panes there are.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import harness
import redis
from weir import names
from weir.rows import Row, decode, encode, merge_packed
from weir_local.redis import RedisServer, find_server, server_version

SEED = 3
ROWS = 10_000
ROUNDS = 5
EVENTS_A_ROW = 30
PER_PANE = (10, 100, 500)
Draw = Callable[[random.Random], float]

VALUES: dict[str, Draw] = {
    "whole, up to 2,000": lambda rng: float(rng.randint(0, 2000)),
    "lognormal, 2 decimals": lambda rng: round(rng.lognormvariate(3, 1), 2),
    "lognormal, full doubles": lambda rng: rng.lognormvariate(3, 1),
}


def rows_of(draw: Draw, rng: random.Random) -> list[Row]:
    """Return the rows of 10,000 groups of about 30 events."""
    made = []
    for _ in range(ROWS):
        values = [draw(rng) for _ in range(rng.randint(1, 2 * EVENTS_A_ROW))]
        made.append(Row(len(values), sum(values), min(values), max(values)))
    return made


def bytes_a_row(client: redis.Redis, rows: list[Row], per_pane: int) -> float:
    """Return what a row costs if a pane holds so many; fails if one reads back otherwise."""
    client.flushall()
    before = client.info("memory")["used_memory"]
    packed = [encode(row) for row in rows]
    start_s = 1_795_181_520
    for at in range(0, ROWS, per_pane):
        fields = {
            (i + 1).to_bytes(2, "big"): value for i, value in enumerate(packed[at : at + per_pane])
        }
        key = names.pane_key(0, 123_456, 10, start_s + at)
        client.hset(key, mapping=fields)  # type: ignore[arg-type]  # bytes are taken
        client.expireat(key, start_s + at + 172_800 + 86_400 * 365)
    used = client.info("memory")["used_memory"] - before
    stored = cast(dict[bytes, bytes], client.hgetall(names.pane_key(0, 123_456, 10, start_s)))
    if [decode(value) for value in stored.values()] != rows[:per_pane]:
        msg = "rows must read back as they were written"
        raise AssertionError(msg)
    return float(used) / ROWS


def merges_a_second(rows: list[Row]) -> dict[str, float]:
    """Return how many packed rows one core merges with a part a second."""
    packed = [encode(row) for row in rows]
    rates = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for stored, added in zip(packed, rows, strict=True):
            merge_packed(stored, added)
        rates.append(ROWS / (time.process_time() - begun))
    median, least, most = statistics.median(rates), min(rates), max(rates)
    return {"median": round(median), "min": round(least), "max": round(most)}


def measure(client: redis.Redis) -> dict[str, Any]:
    """Return the figures of every kind of value."""
    figures: dict[str, Any] = {}
    for name, draw in VALUES.items():
        rows = rows_of(draw, random.Random(SEED))  # noqa: S311
        figures[name] = {
            "packed_bytes": round(statistics.mean(len(encode(row)) for row in rows), 1),
            "redis_bytes_a_row": {
                f"{n} rows a pane": round(bytes_a_row(client, rows, n), 1) for n in PER_PANE
            },
            "merges_a_second": merges_a_second(rows),
        }
    return figures


def main() -> None:
    """Measure and write the result."""
    version = ".".join(map(str, server_version(find_server())))
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder))
        server.start()
        try:
            client = redis.Redis.from_url(server.url)
            figures = measure(client)
        finally:
            server.stop()
    got = ", ".join(
        f"{found['redis_bytes_a_row']['100 rows a pane']} B ({name})"
        for name, found in figures.items()
    )
    bar = {"id": "P7", "what": "Redis bytes a row, 100 rows a pane", "reach": "≤ 42 B (record 28)"}
    figures["bars"] = [{**bar, "got": got}]
    settings = {"redis": version, "rows": ROWS, "events_a_row": EVENTS_A_ROW, "seed": SEED}
    path = harness.write("rows", settings=settings, figures=figures)
    print(path.read_text())  # noqa: T201  what the command is for


if __name__ == "__main__":
    main()
