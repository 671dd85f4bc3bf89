"""What the engine and its peers count: events, metrics over them, and what must come out.

Events are drawn from a seed, so they are the same bytes for every contestant. What must come
out is added up here from the fields as drawn, by code that knows neither contestant.
"""

from __future__ import annotations

import random
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from confluent_kafka import Producer
from shares import Estimates
from weir.admission import Admitted, Terms, admit
from weir.definitions.metric import Metric

TYPES = 10
PARTITIONS = 4
# Far ahead: Redis drops panes of before its own present at once.
BASE_MS = 2_016_000_000_000
# Event time moves on as if 10,000 events came a second: a batch touches few panes.
EVENTS_A_SECOND = 10_000
EVENT: list[tuple[str, str | bytes | None]] = [
    ("content-type", b"application/cloudevents+json; charset=UTF-8")
]
SEED = 20
REGIONS, STATUSES = 5, (200, 404)
DIMENSIONS = ["data.region", "data.route", "data.status"]
PERCENTILE = 0.95
# What the sketches promise in 99 of 100 trials at least: KLL of 200 an error of rank, HLL of lgK
# 12 three of its standard errors. Twice as far off is one in ten million: that is an error in
# any run, and how many are beyond once is looked at over all runs.
RANK_ERROR, DISTINCT_ERROR = 0.0133, 3 * 0.016
BEYOND = 2
SUM_ERROR = 1e-9


class Drawn(NamedTuple):
    """The fields of one event that metrics read."""

    number: int
    type: str
    region: str
    route: str
    env: str
    status: int
    latency_ms: float
    bytes: int
    user: str


def draw(count: int, combinations: int, types: int = TYPES) -> Iterator[Drawn]:
    """Draw events of so many combinations of the three dimensions; types take turns."""
    chance = random.Random(SEED)  # noqa: S311 - the same input each time, not a secret
    many = combinations >= REGIONS * len(STATUSES)
    regions, statuses = (REGIONS, STATUSES) if many else (combinations, STATUSES[:1])
    routes = max(1, combinations // (regions * len(statuses)))
    for i in range(count):
        yield Drawn(
            number=i,
            type=f"type.{i % types}",
            region=f"r{chance.randrange(regions)}",
            route=f"/api/{chance.randrange(routes)}",
            env=chance.choice(("prod", "prod", "test")),
            status=chance.choice(statuses),
            latency_ms=round(chance.lognormvariate(3, 1), 3),
            bytes=chance.randrange(90_000),
            user=f"u{chance.randrange(20_000)}",
        )


def sent(drawn: Drawn, at_ms: int | None = None) -> str:
    """Return an event as a client sends it; without `at_ms` ingest gives it a time."""
    data = (
        f'{{"region":"{drawn.region}","route":"{drawn.route}","env":"{drawn.env}",'
        f'"status":{drawn.status},"latency_ms":{drawn.latency_ms:.3f},"bytes":{drawn.bytes},'
        f'"user":"{drawn.user}","agent":"{"x" * 60}"}}'
    )
    when = ""
    if at_ms is not None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ms // 1000))
        when = f'"time":"{moment}.{at_ms % 1000:03d}Z",'
    return (
        f'{{"specversion":"1.0","id":"{drawn.number}","source":"bench","type":"{drawn.type}",'
        f'{when}"data":{data}}}'
    )


def record_of(drawn: Drawn, at_ms: int | None = None) -> Admitted:
    """Return an event as ingest writes it, about 440 bytes; `at_ms` in place of its own time."""
    if at_ms is None:
        at_ms = BASE_MS + drawn.number * 1000 // EVENTS_A_SECOND
    terms = Terms("default", "bench", at_ms, "bench")
    found = admit(sent(drawn, at_ms).encode(), 0, terms)
    if not isinstance(found, Admitted):
        raise TypeError(found)
    return found


def fill(bootstrap: str, topic: str, events: Iterable[Drawn]) -> dict[int, int]:
    """Write events; return the end of each partition."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 20, "enable.idempotence": True}
    )
    ends = dict.fromkeys(range(PARTITIONS), 0)
    for drawn in events:
        found, partition = record_of(drawn), drawn.number % PARTITIONS
        ends[partition] += 1
        while True:
            try:
                producer.produce(topic, found.value, found.key, partition, headers=EVENT)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)
    return ends


# ── metrics ─────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Wanted:
    """One metric, said once for every contestant and for the recount.

    Attributes:
        type: The type of its events.
        value: Which field of `data` it measures.
        filtered: Whether it asks for `status < 500` and `env = 'prod'`.
        sketches: Whether it keeps percentiles and distinct users.
    """

    number: int
    type: str
    value: str
    filtered: bool
    sketches: bool

    def matches(self, drawn: Drawn) -> bool:
        """Return whether an event is one of its own."""
        passes = not self.filtered or (drawn.status < 500 and drawn.env == "prod")
        return drawn.type == self.type and passes

    def metric(self) -> Metric:
        """Return its definition for Weir."""
        aggregates = ["count", "avg", "min", "max"]
        if self.sketches:
            aggregates += ["p50", "p95", "distinct(data.user)"]
        given: dict[str, Any] = {
            "kind": "metric",
            "name": f"m{self.number}",
            "events": {"type": self.type},
            "by": DIMENSIONS,
            "aggregates": aggregates,
            "value": f"data.{self.value}",
            "keep": {"10s": "24h", "1m": "7d"},
            "max_series": 10_000,
        }
        if self.filtered:
            given["where"] = "data.status < 500 and data.env = 'prod'"
        return Metric.model_validate(given)


def wanted(count: int, *, sketches: bool, types: int = TYPES, alike: bool = False) -> list[Wanted]:
    """Return metrics over the types in turn.

    Args:
        count: How many.
        sketches: Whether a third of them keeps percentiles and distinct users.
        types: Over how many types.
        alike: Whether all are of one kind: each keeps sketches if any does, none is filtered.
    """
    return [
        Wanted(
            number=i,
            type=f"type.{i % types}",
            value="latency_ms" if i % 2 or alike else "bytes",
            filtered=i % 4 == 3 and not alike,
            sketches=sketches and (i % 3 == 0 or alike),
        )
        for i in range(count)
    ]


# ── what must come out ──────────────────────────────────────────────────────


@dataclass
class Truth:
    """All events of one metric."""

    values: array[float] = field(default_factory=lambda: array("d"))
    users: set[str] = field(default_factory=set)
    _ordered: array[float] = field(default_factory=lambda: array("d"), repr=False, compare=False)

    def wrong(self, said: Any, *, sketches: bool) -> str | None:
        """Say what is wrong with the totals that somebody counted; None if nothing is.

        Args:
            said: Members `count`, `sum`, `min`, `max`; with sketches `distinct` and `p95`.
            sketches: Whether the metric keeps any.
        """
        if said["count"] != len(self.values):
            return f"count must be {len(self.values)}, got {said['count']}"
        total = sum(self.values)
        if abs(said["sum"] - total) > SUM_ERROR * abs(total):
            return f"sum must be {total}, got {said['sum']}"
        if (said["min"], said["max"]) != (min(self.values), max(self.values)):
            return f"least and most must be {min(self.values)} and {max(self.values)}, got {said}"
        return self._wrong_sketches(said) if sketches else None

    def off(self, said: Any) -> dict[str, float]:
        """Return how far estimates are off, in bounds: at most 1 is within what is promised."""
        distinct, low, high = len(self.users), *self._ranks(said["p95"])
        return {
            "distinct": abs(said["distinct"] - distinct) / (DISTINCT_ERROR * distinct),
            "p95": max(low - PERCENTILE, PERCENTILE - high, 0.0) / RANK_ERROR,
        }

    def _wrong_sketches(self, said: Any) -> str | None:
        off = self.off(said)
        if off["distinct"] > BEYOND:
            return f"distinct must be about {len(self.users)}, got {said['distinct']}"
        if off["p95"] > BEYOND:
            low, high = self._ranks(said["p95"])
            return f"p95 must be of rank {PERCENTILE}, got {said['p95']} of {low} to {high}"
        return None

    def _ranks(self, value: float) -> tuple[float, float]:
        """Return which share of the values is below a value, and which is not above it."""
        # Values are only added: as many are the same ones.
        if len(self._ordered) != len(self.values):
            self._ordered = array("d", sorted(self.values))
        ordered = self._ordered
        ends = bisect_left(ordered, value), bisect_right(ordered, value)
        return ends[0] / len(ordered), ends[1] / len(ordered)


def recount(
    events: Iterable[Drawn], metrics: Sequence[Wanted], before: list[Truth] | None = None
) -> list[Truth]:
    """Return what each metric must come to.

    Args:
        events: What is counted.
        metrics: By what.
        before: What came before those events, to which they are added; None: nothing.
    """
    found = [Truth() for _ in metrics] if before is None else before
    by_type: dict[str, list[Wanted]] = {}
    for one in metrics:
        by_type.setdefault(one.type, []).append(one)
    for drawn in events:
        for one in by_type.get(drawn.type, ()):
            if one.matches(drawn):
                found[one.number].values.append(float(getattr(drawn, one.value)))
                if one.sketches:
                    found[one.number].users.add(drawn.user)
    return found


def check(
    who: str,
    said: Sequence[Any],
    truths: Sequence[Truth],
    metrics: Sequence[Wanted],
    estimates: Estimates | None = None,
) -> None:
    """End the benchmark if what a contestant counted is wrong.

    Args:
        who: Counted it.
        said: Of each metric its totals.
        truths: What they must be.
        metrics: The metrics.
        estimates: What became of those of earlier runs; those of this one are added.

    Raises:
        SystemExit: Says who, which metric, and what is wrong; or of which estimates too few
            were within the promised bound.
    """
    estimates = Estimates() if estimates is None else estimates
    for one, totals, truth in zip(metrics, said, truths, strict=True):
        if mistake := truth.wrong(totals, sketches=one.sketches):
            msg = f"{who}, metric m{one.number}: {mistake}"
            raise SystemExit(msg)
        if one.sketches:
            off = truth.off(totals)
            # Registers of the same users are the same ones, also of another metric.
            users = len(truth.users), totals["distinct"]
            estimates.note("distinct", users, held=off["distinct"] <= 1)
            estimates.note("p95", estimates.count("p95"), held=off["p95"] <= 1)
    if mistake := estimates.wrong():
        msg = f"{who}: {mistake}"
        raise SystemExit(msg)
