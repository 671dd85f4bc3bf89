"""What one source of a tenant sends wrong changes no number of another one (I8)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import redis
from weir.rows import Row
from weir_analytics.panes.versions import SYSTEM

from .log_frames import EVENT, NOW_MS, TICK, Record, batch_of, event, log_of, open_shards, run_batch
from .test_plan import Panes, metric, panes_in, plan_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.redis]

BASE_MS = NOW_MS - NOW_MS % 60_000
MINUTE_MS, DAY_MS = 60_000, 86_400_000
# So few that no sketch has to throw dice.
SENT = 150
HOSE = [("weir-tenant", b"acme"), ("weir-source", b"hose")]
METRIC = metric(
    value="data.x",
    by=["data.who"],
    aggregates=[
        *("count", "sum", "min", "max", "stddev", "last", "p50"),
        *("distinct(data.u)", "theta(data.u)", "top(data.u, 3)"),
    ],
    max_series=10_000,
)
VALUES: tuple[Any, ...] = (1.7e308, -1.7e308, "12", None, True, [], {"x": 1}, 5e-324, -0.0)


def good(n: int) -> Record:
    """Return an event of the source that sends what it should."""
    at_ms = BASE_MS + 997 * n
    return event(f"g-{n}", at_ms, who="good", x=n % 50, u=f"u{n % 7}"), EVENT, at_ms


def hostile(rng: random.Random, n: int) -> Record:
    """Return a record of the other source: broken, of no type that is meant, or of another time."""
    at_ms = BASE_MS + 997 * n
    data: dict[str, Any] = {
        "who": rng.choice(["bad", "", 5, None, "x" * 5_000, f"series-{n}", "=good", "\0"]),
        "x": rng.choice(VALUES),
        "u": rng.choice(["u1", "ü" * 3_000, 7, None]),
    }
    shifted_ms = at_ms + rng.choice([0, 0, -10 * MINUTE_MS, -40 * DAY_MS, 5 * MINUTE_MS])
    value = event(f"b-{n % 150}", shifted_ms, source="hose", **data)
    records: list[Record] = [
        (value, EVENT, at_ms),
        (value, EVENT, at_ms),
        (b"\xff{", [("weir-reason", b"invalid_json"), *HOSE], at_ms),
        (b'{"who": "good", "x": 1}', [], at_ms),
        (value[:-9], EVENT, at_ms),
        (b"", EVENT, at_ms),
        (None, TICK, at_ms),
    ]
    return rng.choice(records)


def of_the_good(panes: Panes) -> dict[tuple[Any, ...], Row]:
    """Return the rows of the good series, and those of the good source in the ledger."""
    system = {version.vid for version in SYSTEM}
    return {
        (*place, text): row
        for place, rows in panes.items()
        for text, row in rows.items()
        if (place[0] in system and "=web" in text) or (place[0] == 1 and text == "=good")
    }


def emptied(url: str) -> None:
    """Leave nothing in a Redis."""
    client = redis.Redis.from_url(url)
    client.flushall()
    client.close()


@pytest.mark.parametrize("columns", [False, True])
def test_bad_input_of_one_changes_nothing_of_another(
    spark: SparkSession, redis_url: str, tmp_path: Path, columns: bool
) -> None:
    """Each of its rows, sketches as well, is the one of a log without the other's records."""
    rng = random.Random(8)  # noqa: S311
    alone = [good(n) for n in range(SENT)]
    mixed = [one for n in range(SENT) for one in (*[hostile(rng, n)] * rng.randint(0, 2), good(n))]
    found = []
    for name, records in (("alone", alone), ("mixed", mixed)):
        batch = batch_of(tmp_path / name, len(records), redis_url=redis_url, copies="none")
        emptied(redis_url)
        open_shards(redis_url, batch)
        run_batch(spark, log_of(spark, records), plan_of(METRIC, columns=columns), batch)
        found.append(panes_in(redis_url))
    assert of_the_good(found[1]) == of_the_good(found[0])
    per_minute = [row.n for place, row in of_the_good(found[0]).items() if place[:2] == (1, 60)]
    assert sum(per_minute) == SENT
    others = {text for rows in found[1].values() for text in rows} - {
        text for rows in found[0].values() for text in rows
    }
    assert len(others) > 10, "the other source has rows of its own"
