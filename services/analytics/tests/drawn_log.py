"""Logs drawn by a seed, ways to count one, and what its panes must be by the recount.

A drawn log has several partitions, tenants and types; events that are late, ahead, resent, of
one instant, or of a value that is none; records that are no events. An event's partition
follows from its identity, as its key would say.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import redis
import row_events
from account import Account, LogRecord, account_for
from recount import identity_of
from row_events import exact, settled
from weir import names
from weir.further import Last
from weir.rows import Row
from weir.series import OTHER, series_digest, shard_of
from weir_analytics.panes.accounts import LATENESS
from weir_analytics.panes.arrow_plan import AnyPlan
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.outcome import Outcome, outcome_of
from weir_analytics.panes.versions import versions_from_json, versions_to_json
from weir_analytics.panes.writer import commit

from .log_frames import EVENT, NOW_MS, TICK, Record, batch_of, event, log_of, open_shards, run_batch
from .test_plan import Panes, metric, panes_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS, SHARDS, MAX_SERIES = 3, 2, 4
BASE_MS = NOW_MS - NOW_MS % 3_600_000
REFUSED = [("weir-reason", b"invalid_json"), ("weir-tenant", b"acme"), ("weir-source", b"web")]
BAD = ("7", None, True, 1e200, {"a": 1})
# The last one keeps events of a month ago, which no other does.
KEEP_S = {1: 86_400, 10: 2 * 86_400, 60: 7 * 86_400, 3_600: 40 * 86_400}

Place = tuple[int, int, int]
Offsets = dict[int, int]
Log = list[list[Record]]

METRIC = metric(
    value="data.x",
    by=["data.k"],
    aggregates=[
        *("count", "sum", "avg", "min", "max", "stddev", "last", "p50"),
        *("distinct(data.u)", "theta(data.u)", "top(data.u, 3)"),
    ],
    # The least: so that rows of some hundred events estimate.
    sketches={"kll_k": 20, "hll_lg_k": 8, "theta_lg_k": 8, "top_lg_k": 6},
    resolution="1s",
    keep={"1s": "1d", "10s": "2d", "1m": "7d", "1h": "40d"},
    max_series=MAX_SERIES,
)


def draw(rng: random.Random, events: int = 400) -> Log:
    """Return the records of each partition, in order."""
    log: Log = [[] for _ in range(PARTITIONS)]
    sent: list[tuple[int, bytes]] = []
    now_ms = BASE_MS
    for n in range(events):
        # Some of what is sent again is so only after the dedup horizon.
        now_ms += 3_000_000 if rng.random() < 0.01 else rng.choice([0, 0, 1, 400, 1_500, -2_000])
        chance = rng.random()
        if chance < 0.03:
            log[rng.randrange(PARTITIONS)].append((b"{", REFUSED, now_ms))
        elif chance < 0.06:
            log[rng.randrange(PARTITIONS)].append((None, TICK, now_ms))
        elif sent and chance < 0.2:
            partition, value = rng.choice(sent)
            log[partition].append((value, EVENT, now_ms))
        else:
            sent.append((n % PARTITIONS, _event(rng, n, now_ms)))
            log[n % PARTITIONS].append((sent[-1][1], EVENT, now_ms))
    return log


def shuffled(rng: random.Random, log: Log) -> Log:
    """Return each event of a log once, in a drawn order and each in a drawn partition.

    All are received at the log's last moment: so what becomes of one depends on no other, not on
    a repetition, nor on when it came.
    """
    last_ms = max(at_ms for of in log for _value, _headers, at_ms in of)
    sent = (value for of in log for value, headers, _at_ms in of if headers == EVENT)
    values = list(dict.fromkeys(sent))
    rng.shuffle(values)
    found: Log = [[] for _ in log]
    for value in values:
        rng.choice(found).append((value, EVENT, last_ms))
    return found


def _event(rng: random.Random, n: int, now_ms: int) -> bytes:
    lag_ms = rng.choice([0, 0, 0, 5_000, 90_000, 3 * 3_600_000, -20_000, 30 * 86_400_000])
    if rng.random() < 0.01:
        lag_ms = 500 * 86_400_000
    at_ms = now_ms - lag_ms
    # Of one instant: who is the last of them is decided by the identity alone.
    at_ms -= at_ms % rng.choice([1, 1_000])
    quarters = rng.randint(-4_000, 4_000)
    x: Any = rng.choice(BAD) if rng.random() < 0.1 else quarters / 4
    data = {"x": x, "k": f"k{min(rng.randrange(9), rng.randrange(9))}"}
    user = f"u{min(rng.randrange(400), rng.randrange(400))}"
    tenant, kind = rng.choice(["acme", "acme", "acme", "zeta"]), rng.choice("tttu")
    return event(f"e{n}", at_ms, kind, tenant, **data, u=user)


def cuts(rng: random.Random, log: Log) -> Iterator[tuple[Offsets, Offsets]]:
    """Yield the ranges of a drawn split: each partition moves on by itself, or stands."""
    ends = {p: len(records) for p, records in enumerate(log)}
    at = dict.fromkeys(ends, 0)
    parts = rng.randint(2, 3)
    for part in range(parts):
        to = {
            p: n if part == parts - 1 else rng.choice([at[p], rng.randint(at[p], n)])
            for p, n in ends.items()
        }
        if to != at:
            yield at, to
        at = to


def account_of(log: Log) -> Account:
    """Return what becomes of each record, by the recount's own rule."""
    records: list[LogRecord] = []
    for partition, of in enumerate(log):
        received_ms = 0
        for offset, (value, headers, at_ms) in enumerate(of):
            received_ms = max(received_ms, at_ms)
            records.append(LogRecord(partition, offset, received_ms, dict(headers), value))
    return account_for(records)


@dataclass(frozen=True)
class Counted(row_events.Event):
    """An event that counts, as a row tells of it."""

    digest: bytes = b""

    @property
    def last(self) -> Last:
        """Return what a row of this event alone has as its last value."""
        return Last(self.at_ms, self.digest, self.value)


def panes_of(
    events: Sequence[dict[str, Any]], tenant: str, kind: str
) -> Mapping[Place, Mapping[str, list[Counted]]]:
    """Return the events of each pane and row of a metric `by: [data.k]` with value `data.x`.

    Of each pane and shard, the series of the smallest digests have a row, the rest is `other`.
    """
    panes: dict[tuple[int, int], list[Counted]] = defaultdict(list)
    for one in events:
        x, at_ms = one["data"].get("x"), one["_time_ms"]
        is_value = isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= 1e100
        if (one["weirtenant"], one["type"]) != (tenant, kind) or not is_value:
            continue
        series, user = f"={one['data']['k']}", one["data"]["u"]
        found = Counted(series, at_ms, float(x), user, bytes.fromhex(identity_of(one)))
        for res_s, keep_s in KEEP_S.items():
            # Nothing is drawn that is about as old as a pane is kept.
            if NOW_MS - at_ms < keep_s * 1000:
                panes[res_s, at_ms // 1000 // res_s * res_s].append(found)
    return {(1, *place): _capped(of) for place, of in panes.items()}


def _capped(events: Sequence[Counted]) -> Mapping[str, list[Counted]]:
    by_shard: dict[int, list[str]] = defaultdict(list)
    for series in sorted({one.series for one in events}, key=series_digest):
        by_shard[shard_of(series_digest(series), SHARDS)].append(series)
    own = {s for found in by_shard.values() for s in found[: MAX_SERIES // SHARDS]}
    rows: dict[str, list[Counted]] = defaultdict(list)
    for one in events:
        rows[one.series if one.series in own else OTHER].append(one)
    return rows


class Counting:
    """One log, counted in one way into a Redis that held nothing."""

    def __init__(
        self, spark: SparkSession, redis_url: str, folder: Path, plan: AnyPlan, log: Log
    ) -> None:
        self.spark, self.url, self.folder, self.plan, self.log = spark, redis_url, folder, plan, log
        self.outcomes: list[Outcome] = []
        self.client: Any = redis.Redis.from_url(redis_url)
        self.client.flushall()
        open_shards(redis_url, self.batch(0, {}, {}))

    def batch(self, number: int, start: dict[int, int], end: dict[int, int]) -> Batch:
        """Return a batch over a range."""
        known: dict[str, Any] = {"redis_url": self.url, "shards": SHARDS, "copies": "none"}
        return batch_of(self.folder, number=number, start=start, end=end, **known)

    def count(self, batch: Batch) -> set[str]:
        """Count a batch as the driver does; return the verdicts of all shards."""
        parts = [of[batch.start[p] : batch.end[p]] for p, of in enumerate(self.log)]
        frame = log_of(self.spark, *parts, start=batch.start)
        reports = run_batch(self.spark, frame, self.plan, batch)
        self.outcomes.append(outcome_of(reports, {}))
        told = {shard: str(v) for report in reports for shard, v in report.verdicts.items()}
        versions = versions_from_json(versions_to_json(self.plan.versions))
        for shard in set(range(SHARDS)) - told.keys():
            told[shard] = str(commit(shard, [], batch, versions).verdict)
        return set(told.values())

    def at_once(self) -> Panes:
        """Return the panes after one batch of all."""
        ends = {p: len(records) for p, records in enumerate(self.log)}
        assert self.count(self.batch(0, dict.fromkeys(ends, 0), ends)) == {"ok"}
        return self.panes()

    def panes(self) -> Panes:
        """Return all panes that there are now."""
        return panes_in(self.url, SHARDS)

    def in_parts(self, rng: random.Random) -> Panes:
        """Return the panes after a drawn split, of which every batch comes again somehow."""
        for number, (start, end) in enumerate(cuts(rng, self.log)):
            batch = self.batch(number, start, end)
            shard = rng.randrange(SHARDS)
            before = self.dump(shard)
            assert self.count(batch) == {"ok"}
            if rng.random() < 0.5:
                # As after a crash between two shards, or a Redis that lost the tail of one.
                self.restore(shard, before)
                assert self.count(batch) == {"ok", "done"}
            else:
                assert self.count(batch) == {"done"}
        return self.panes()

    def dump(self, shard: int) -> dict[bytes, bytes]:
        """Return all that a shard holds."""
        keys = self.client.keys(names.shard_prefix(shard) + "*")
        return {key: self.client.dump(key) for key in keys}

    def restore(self, shard: int, before: dict[bytes, bytes]) -> None:
        """Put a shard back to what it held."""
        self.client.delete(*self.client.keys(names.shard_prefix(shard) + "*"))
        for key, value in before.items():
            self.client.restore(key, 0, value)


def assert_alike(one: Panes, other: Panes) -> None:
    """Assert that two sets of panes are equal in all that no order decides."""
    assert one.keys() == other.keys()
    for place, rows in one.items():
        assert rows.keys() == other[place].keys(), place
        for series, row in rows.items():
            assert told(place[0], row) == told(place[0], other[place][series]), (place, series)


def told(vid: int, row: Row) -> object:
    """Return what of a row no order decides."""
    if vid == 1:
        return exact(row), settled(row)
    return (row.n, row.sum, row.min, row.max) if vid == LATENESS else row
