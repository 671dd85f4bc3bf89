"""Contestants over one topic, in alternating rounds: the engine, and who is measured beside it.

CPU is that of the whole tree: driver, JVM, Python workers, broker, Redis. A round's work is
measured; what came out of it is checked afterwards, and ends the benchmark if it is wrong.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import harness
import msgspec
import redis
from past import Past
from pyspark.sql import DataFrame, SparkSession
from shares import Estimates
from weir import names, rows
from weir.commit import Fence, Mark
from weir.definitions.history import Horizons
from weir.sketches import distinct_in, hll_union, kll_union, quantile_in
from weir.topics import Topic
from weir_analytics.panes.activation import keeps_of
from weir_analytics.panes.arrow_plan import AnyPlan, ArrowPlan, make_plan
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.checkpoint import starting_offsets
from weir_analytics.panes.plan import Counted
from weir_analytics.panes.plans import run
from weir_analytics.panes.session import open_session, source_options
from weir_analytics.panes.versions import Version
from weir_analytics.settings import Settings
from weir_local.kafka import Broker
from weir_local.redis import RedisServer
from weir_local.repository import SPARK_JARS
from workload import PARTITIONS, PERCENTILE, Drawn, Truth, Wanted, check, fill

FINEST_S = 10
# What the optimizing compiler makes of the floor and of Flink takes minutes, and must not be
# measured while it does (docs/decisions/0036).
WARM = 10


@dataclass(frozen=True)
class Log:
    """One filled topic.

    Attributes:
        ends: The end of each partition.
        past: What dedup remembers of before its first event; None: nothing.
    """

    topic: str
    ends: Mapping[int, int]
    past: Past | None = None

    @property
    def start(self) -> dict[int, int]:
        """Where its events begin in each partition."""
        return dict.fromkeys(self.ends, self.past.batches if self.past else 0)

    @property
    def total(self) -> int:
        """How many events it holds."""
        return sum(self.ends.values()) - sum(self.start.values())

    def slices(self, size: int) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """Yield it in ranges of about `size` records."""
        at = self.start
        while at != self.ends:
            end = {p: min(n, at[p] + size // PARTITIONS) for p, n in self.ends.items()}
            yield at, end
            at = end

    def first(self, count: int) -> Log:
        """Return its first events as if they were all."""
        ends = {p: at + count // PARTITIONS for p, at in self.start.items()}
        return replace(self, ends=ends)


@dataclass
class Bench:
    """The servers and the session of the engine."""

    spark: SparkSession
    settings: Settings
    broker: Broker
    redis_pid: int
    # Processes of others beside it, whose CPU is not its own.
    beside: list[int] = field(default_factory=list)
    _client: Any = field(init=False)

    def __post_init__(self) -> None:
        self._client = redis.Redis.from_url(self.settings.redis_url)

    def fill(
        self, topic: str, events: Sequence[Drawn] | Iterator[Drawn], past: Past | None = None
    ) -> Log:
        """Write events to a new topic, after the records of a past."""
        self.broker.create_topics([Topic(topic, PARTITIONS)])
        start = past.precede(self.broker.bootstrap, topic) if past else {}
        counts = fill(self.broker.bootstrap, topic, events)
        return Log(topic, {p: start.get(p, 0) + n for p, n in counts.items()}, past)

    def read(self, log: Log, start: dict[int, int], end: dict[int, int]) -> DataFrame:
        """Return a range of a topic."""
        return reading(self.spark, self.settings, log.topic, start, end)

    def cpu_s(self) -> float:
        """Return the CPU seconds of all processes so far."""
        return harness.tree_cpu_s([os.getpid(), self.redis_pid]) - harness.tree_cpu_s(self.beside)

    def begin(self, log: Log) -> None:
        """Empty Redis, let dedup know the log's past alone, and set the marks to its beginning."""
        self._client.flushall()
        shutil.rmtree(self.settings.dedup_dir, ignore_errors=True)
        if log.past:
            log.past.put(self.settings.dedup_dir, log.topic)
        fence = Fence(1, "definitions")
        self._client.set(names.fence_key(0), msgspec.json.encode(fence))
        mark = Mark(epoch=1, batch=-1, topic_id=log.topic, end=log.start, shards=1)
        self._client.set(names.mark_key(0), msgspec.json.encode(mark))

    def count(self, log: Log, plan: AnyPlan, size: int) -> None:
        """Count every event of a log into an empty Redis, as the driver does."""
        self.begin(log)
        for number, (at, end) in enumerate(log.slices(size)):
            frame = None if isinstance(plan, ArrowPlan) else self.read(log, at, end)
            run(self.spark, frame, plan, self.batch(log, number, at, end))

    def batch(self, log: Log, number: int, at: dict[int, int], end: dict[int, int]) -> Batch:
        """Return what the tasks of a batch are told."""
        settings = self.settings
        batch = Batch(
            topic=log.topic,
            topic_id=log.topic,
            definitions_id="definitions",
            epoch=1,
            fence=1,
            number=number,
            start=at,
            end=end,
            shards=1,
            horizons=(Horizons({}, settings.horizon_ms, settings.beyond_ms),),
            kafka_bootstrap=settings.kafka_bootstrap,
            redis_url=settings.redis_url,
            dedup_dir=str(settings.dedup_dir),
        )
        return replace(batch, single=batch.records <= settings.small_batch)

    def counted(self) -> int:
        """Return how many events the ledger accounts for."""
        return sum(row.n for row in _rows(self._client, -1, 60))

    def totals(self, one: Wanted) -> dict[str, float]:
        """Return what the finest panes of a metric add up to."""
        return totals(self._client, one)


def reading(
    spark: SparkSession,
    settings: Settings,
    topic: str,
    start: Mapping[int, int],
    end: Mapping[int, int],
) -> DataFrame:
    """Return a range of a topic, as Spark's source reads it."""
    options = source_options(settings, starting_offsets(topic, start))
    options |= {"subscribe": topic, "endingOffsets": starting_offsets(topic, end)}
    return spark.read.format("kafka").options(**options).load()


@contextmanager
def bench(folder: Path, *, heap: str = "2g") -> Iterator[Bench]:
    """Start broker, durable Redis and session in a folder; end all of them afterwards."""
    broker, server = Broker(folder / "kafka"), RedisServer(folder / "redis", durable=True)
    try:
        broker.start()
        server.start()
        settings = Settings(
            kafka_bootstrap=broker.bootstrap,
            redis_url=server.url,
            state_dir=folder / "state",
            jars_dir=SPARK_JARS,
            driver_memory=heap,
        )
        with open_session(settings) as spark:
            yield Bench(spark, settings, broker, server.part.pid() or 0)
    finally:
        server.kill()
        broker.kill()


def plan_of(metrics: Sequence[Wanted]) -> AnyPlan:
    """Return the engine's plan of some metrics; of version n + 1 is metric n."""
    found: list[Counted] = []
    for one in metrics:
        metric = one.metric()
        version = Version(
            one.number + 1, "default", metric.name, keeps_of(metric), max_series=metric.max_series
        )
        found.append(Counted(version, metric))
    return make_plan(found, (Horizons({}, 3_600_000, 400 * 86_400_000),))


def totals(client: Any, one: Wanted, vid: int | None = None) -> dict[str, float]:
    """Return what the finest panes of a metric in Redis add up to."""
    found = list(_rows(client, one.number + 1 if vid is None else vid, FINEST_S))
    added: dict[str, float] = {
        "count": sum(row.n for row in found),
        "sum": sum(row.sum or 0.0 for row in found),
        "min": min(row.min for row in found if row.min is not None),
        "max": max(row.max for row in found if row.max is not None),
    }
    if one.sketches:
        union = kll_union([row.kll for row in found if row.kll])
        added["distinct"] = distinct_in(hll_union([r.hll for r in found if r.hll])).value
        added["p95"] = quantile_in(union, PERCENTILE).value
    return added


def _rows(client: Any, vid: int, res_s: int) -> Iterator[rows.Row]:
    for key in client.keys(f"{names.shard_prefix(0)}p:{vid}:{res_s}:*"):
        yield from map(rows.decode, client.hgetall(key).values())


def parser_of(about: str | None, *, events: int | Sequence[int]) -> argparse.ArgumentParser:
    """Return what reads the options that every contest over one topic has.

    Args:
        about: What the benchmark measures.
        events: How many there are by default, in one log or in several.
    """
    parser = argparse.ArgumentParser(description=about)
    several = None if isinstance(events, int) else "+"
    parser.add_argument("--events", type=int, nargs=several, default=events, help="of a log")
    parser.add_argument("--combinations", type=int, default=200, help="of the dimensions")
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm", type=int, default=WARM, help="rounds before")
    return parser


# ── rounds ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Spent:
    """What a run took: seconds by the wall, and CPU seconds of all processes, for some events."""

    events: int
    wall_s: float
    cpu_s: float


class Contestant(Protocol):
    """Somebody who counts a log."""

    def run(self) -> Spent:
        """Count all of it; return what that took."""
        ...

    def check(self) -> None:
        """End the benchmark if what came out of the last run is wrong."""
        ...


def spent(events: int, work: Callable[[], None], cpu_s: Callable[[], float]) -> Spent:
    """Return what some work took."""
    used_s, began_s = cpu_s(), time.monotonic()
    work()
    return Spent(events, time.monotonic() - began_s, cpu_s() - used_s)


@dataclass
class Engine:
    """The engine, with dedup, ledger, sketches and Redis, over one log."""

    bench: Bench
    log: Log
    metrics: Sequence[Wanted]
    truths: Sequence[Truth]
    size: int
    plan: AnyPlan = field(init=False)
    estimates: Estimates = field(default_factory=Estimates)

    def __post_init__(self) -> None:
        self.plan = plan_of(self.metrics)

    def run(self) -> Spent:
        """Count the log."""
        return spent(
            self.log.total,
            lambda: self.bench.count(self.log, self.plan, self.size),
            self.bench.cpu_s,
        )

    def check(self) -> None:
        """Compare ledger and all totals of each metric with the recount."""
        accounted = self.bench.counted()
        if accounted != self.log.total:
            msg = f"the engine must account for {self.log.total} events, got {accounted}"
            raise SystemExit(msg)
        said = [self.bench.totals(one) for one in self.metrics]
        check("engine", said, self.truths, self.metrics, self.estimates)


def rounds(contestants: Mapping[str, Contestant], count: int, warm: int) -> dict[str, Any]:
    """Run the contestants in turn; return the median of each, with least and most.

    Args:
        contestants: By name.
        count: How often each is measured.
        warm: How often each runs before that. A job runs for months, and what its JVM compiles
            in the first minutes is not its pace: of the engine it is a third of the third round.
    """
    warm_up(contestants, warm)
    return {name: _summary(runs) for name, runs in _in_turn(contestants, count).items()}


def by_size(
    contestants: Mapping[int, Mapping[str, Contestant]], count: int, warm: int
) -> dict[str, dict[str, Any]]:
    """Run the contestants over logs of several sizes, all in turn; return figures by size.

    Beside the median of each stands what an event costs, in µs of CPU, so that a curve shows
    that bends; and but for the smallest log, what one costs beyond those of the next smaller
    log, which leaves out what a run costs however many events there are.

    Args:
        contestants: By size of the log and name.
        count: How often each is measured.
        warm: How often each over the largest log runs before that. Those over the others, which
            share its processes, run once more.
    """
    largest = max(contestants)
    warm_up(contestants[largest], warm)
    for events in contestants.keys() - {largest}:
        warm_up(contestants[events], min(1, warm))
    named = {(n, name): one for n, of in contestants.items() for name, one in of.items()}
    runs = _in_turn({f"{name} {n}": one for (n, name), one in named.items()}, count)
    found: dict[str, dict[str, Any]] = {str(n): {} for n in contestants}
    for n, name in named:
        of = _summary(runs[f"{name} {n}"])
        found[str(n)][name] = of | {"µs_an_event": round(1e6 / of["per_cpu_s"]["median"], 2)}
    for less, more in pairwise(sorted(contestants)):
        for name, of in found[str(more)].items():
            of["µs_of_one_more"] = _one_more(runs[f"{name} {less}"], runs[f"{name} {more}"])
    return found


def _in_turn(contestants: Mapping[str, Contestant], count: int) -> dict[str, list[Spent]]:
    found: dict[str, list[Spent]] = {name: [] for name in contestants}
    for number in range(count):
        for name, one in contestants.items():
            took = one.run()
            one.check()
            found[name].append(took)
            tell(f"round {number + 1}", name, took.events / took.cpu_s)
    return found


def _one_more(less: Sequence[Spent], more: Sequence[Spent]) -> dict[str, float]:
    """Return µs of CPU by which a log is dearer than a smaller one, for each event more."""
    rounds = zip(less, more, strict=True)
    return harness.median_of(
        [1e6 * (b.cpu_s - a.cpu_s) / (b.events - a.events) for a, b in rounds], 2
    )


def warm_up(contestants: Mapping[str, Contestant], times: int) -> None:
    """Run and check contestants so often, one after the other."""
    for one in contestants.values():
        for _ in range(times):
            one.run()
            one.check()


def tell(what: str, name: str, per_cpu_s: float) -> None:
    """Say how it goes: a whole run takes minutes."""
    sys.stderr.write(f"  {what}: {name} {per_cpu_s:,.0f} events a CPU-second\n")


def _summary(runs: Sequence[Spent]) -> dict[str, Any]:
    paces = {
        "per_s": [one.events / one.wall_s for one in runs],
        "per_cpu_s": [one.events / one.cpu_s for one in runs],
    }
    return {
        kind: {
            "median": round(statistics.median(values)),
            "min": round(min(values)),
            "max": round(max(values)),
        }
        for kind, values in paces.items()
    }


def ratio(found: Mapping[str, Any], one: str, other: str) -> float:
    """Return how many times the events a CPU-second of another one makes, by the medians."""
    return round(
        float(found[one]["per_cpu_s"]["median"]) / float(found[other]["per_cpu_s"]["median"]), 3
    )
