"""P2, P8, P11: what the engine makes of a core, beside Spark's bare read-and-parse.

Floor and engine read the same ranges of the same topic in alternating rounds, in one
session. The floor reads and parses the fields that the metrics need, with plain types,
and throws them away. The engine's figure includes dedup, ledger, sketches and Redis. CPU
is that of the whole tree: driver, JVM, Python workers, Redis. Each engine round checks
what came out against what was sent, and fails if a count is off.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import harness
import msgspec
import redis
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from weir import names, rows
from weir.admission import Admitted, Terms, admit
from weir.commit import Fence, Mark
from weir.definitions.metric import Metric
from weir.topics import Topic
from weir_analytics.panes.activation import keeps_of
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.checkpoint import starting_offsets
from weir_analytics.panes.decode import event_time_ms
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.plan import Counted, Plan, make_plan
from weir_analytics.panes.plans import run
from weir_analytics.panes.session import open_session, source_options
from weir_analytics.panes.versions import Version
from weir_analytics.settings import Settings
from weir_local.kafka import Broker
from weir_local.redis import RedisServer
from weir_local.repository import SPARK_JARS

TYPES = 10
PARTITIONS = 4
BASE_MS = 1_800_000_000_000
# Event time moves on as if 10,000 events came a second: a batch touches few panes.
EVENTS_A_SECOND = 10_000
EVENT: list[tuple[str, str | bytes | None]] = [
    ("content-type", b"application/cloudevents+json; charset=UTF-8")
]
SEED = 20


# ── the same input for everybody ────────────────────────────────────────────


def events(count: int, series: int) -> Iterator[Admitted]:
    """Yield records as ingest writes them, about 440 bytes each, always the same ones."""
    chance = random.Random(SEED)  # noqa: S311 - the same input each time, not a secret
    terms = Terms("default", "bench", BASE_MS, "bench")
    routes = max(1, series // 5)
    for i in range(count):
        data = (
            f'{{"region":"r{chance.randrange(5)}","route":"/api/{chance.randrange(routes)}",'
            f'"env":"{chance.choice(("prod", "prod", "test"))}",'
            f'"status":{chance.choice((200, 404))},'
            f'"latency_ms":{chance.lognormvariate(3, 1):.3f},"bytes":{chance.randrange(90000)},'
            f'"user":"u{chance.randrange(20000)}","agent":"{"x" * 60}"}}'
        )
        at_ms = BASE_MS + i * 1000 // EVENTS_A_SECOND
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at_ms // 1000))
        item = (
            f'{{"specversion":"1.0","id":"{i}","source":"bench","type":"type.{i % TYPES}",'
            f'"time":"{moment}.{at_ms % 1000:03d}Z","data":{data}}}'
        )
        found = admit(item.encode(), 0, terms)
        if not isinstance(found, Admitted):
            raise TypeError(found)
        yield found


def fill(bootstrap: str, topic: str, count: int, series: int) -> dict[int, int]:
    """Write the input; return the end of each partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    ends = dict.fromkeys(range(PARTITIONS), 0)
    for i, found in enumerate(events(count, series)):
        partition = i % PARTITIONS
        ends[partition] += 1
        while True:
            try:
                producer.produce(topic, found.value, found.key, partition, headers=EVENT)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(60)
    return ends


def metrics(count: int, *, sketches: bool) -> list[Metric]:
    """Return metrics over the types in turn: counts, averages, and in a third sketches."""
    found: list[Metric] = []
    for i in range(count):
        given: dict[str, Any] = {
            "kind": "metric",
            "name": f"m{i}",
            "events": {"type": f"type.{i % TYPES}"},
            "by": ["data.region", "data.route", "data.status"][: 1 + i // TYPES % 3],
            "aggregates": ["count", "avg", "min", "max"],
            "value": "data.latency_ms" if i % 2 else "data.bytes",
            "keep": {"10s": "24h", "1m": "7d"},
        }
        if i % 4 == 3:
            given["where"] = "data.status < 500 and data.env = 'prod'"
        if sketches and i % 3 == 0:
            given["aggregates"] = [*given["aggregates"], "p50", "p95", "distinct(data.user)"]
        found.append(Metric.model_validate(given))
    return found


# ── the contestants ─────────────────────────────────────────────────────────


@dataclass
class Bench:
    """The servers, the session, and one filled topic."""

    spark: SparkSession
    settings: Settings
    redis_pid: int
    topic: str
    ends: dict[int, int]

    @property
    def total(self) -> int:
        """How many events the topic holds."""
        return sum(self.ends.values())

    def slices(self, size: int) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """Yield the topic in ranges of about `size` records."""
        at = dict.fromkeys(self.ends, 0)
        while at != self.ends:
            end = {p: min(n, at[p] + size // PARTITIONS) for p, n in self.ends.items()}
            yield at, end
            at = end

    def read(self, start: dict[int, int], end: dict[int, int]) -> DataFrame:
        """Return a range of the topic."""
        options = source_options(self.settings, starting_offsets(self.topic, start))
        options |= {"subscribe": self.topic, "endingOffsets": starting_offsets(self.topic, end)}
        return self.spark.read.format("kafka").options(**options).load()

    def cost(self, work: Callable[[], None]) -> dict[str, float]:
        """Return events a second, by the wall and by the CPU of the whole tree."""
        pids = [os.getpid(), self.redis_pid]
        cpu_s, began_s = harness.tree_cpu_s(pids), time.monotonic()
        work()
        wall_s, used_s = time.monotonic() - began_s, harness.tree_cpu_s(pids) - cpu_s
        return {"per_s": round(self.total / wall_s), "per_cpu_s": round(self.total / used_s)}


FLOOR_SCHEMA = (
    "type string, weirtenant string, weirsource string, data struct<region: string,"
    " route: string, env: string, status: double, latency_ms: double, bytes: double,"
    " user: string>"
)


def floor(bench: Bench, size: int) -> None:
    """Read and parse every event, and throw it away."""
    for start, end in bench.slices(size):
        parsed = F.from_json(F.col("value").cast("string"), FLOOR_SCHEMA).alias("e")
        bench.read(start, end).select(parsed).write.format("noop").mode("overwrite").save()


def engine(bench: Bench, plan: Plan, size: int) -> None:
    """Count every event into an empty Redis, and check what came out."""
    client: Any = redis.Redis.from_url(bench.settings.redis_url)
    client.flushall()
    shutil.rmtree(bench.settings.dedup_dir, ignore_errors=True)
    fence = Fence(1, "definitions")
    client.set(names.fence_key(0), msgspec.json.encode(fence))
    start = dict.fromkeys(bench.ends, 0)
    mark = Mark(epoch=1, batch=-1, topic_id=bench.topic, end=start, shards=1)
    client.set(names.mark_key(0), msgspec.json.encode(mark))
    for number, (at, end) in enumerate(bench.slices(size)):
        batch = _batch(bench, number, at, end)
        run(bench.spark, bench.read(at, end), plan, batch)
    counted = sum(
        rows.decode(packed).n
        for key in client.keys(f"{names.shard_prefix(0)}p:-1:*")
        for packed in client.hgetall(key).values()
    )
    client.close()
    if counted != bench.total:
        msg = f"the engine must account for {bench.total} events, got {counted}"
        raise SystemExit(msg)


def _batch(bench: Bench, number: int, at: dict[int, int], end: dict[int, int]) -> Batch:
    batch = Batch(
        topic=bench.topic,
        topic_id=bench.topic,
        definitions_id="definitions",
        epoch=1,
        fence=1,
        number=number,
        start=at,
        end=end,
        shards=1,
        horizon_ms=bench.settings.horizon_ms,
        kafka_bootstrap=bench.settings.kafka_bootstrap,
        redis_url=bench.settings.redis_url,
        dedup_dir=str(bench.settings.dedup_dir),
    )
    return replace(batch, single=batch.records <= bench.settings.small_batch)


def plan_of(count: int, *, sketches: bool) -> Plan:
    """Return the plan of some metrics."""
    found = [
        Counted(Version(vid, "default", m.name, keeps_of(m), max_series=m.max_series), m)
        for vid, m in enumerate(metrics(count, sketches=sketches), 1)
    ]
    return make_plan(found, 400 * 86_400_000)


def without_dedup(records: DataFrame) -> DataFrame:
    """Stand in for the dispose step: every event counts, R is its own append time."""
    is_event = F.col("kind") <= int(Kind.SAMPLED)
    return records.select(
        "partition",
        "offset",
        "kind",
        F.when(is_event, int(Fate.COUNTED)).otherwise(int(Fate.TICK)).cast("tinyint").alias("fate"),
        F.col("at_ms").alias("received_ms"),
        F.lit(None).cast("bigint").alias("seen"),
        F.lit(None).cast("string").alias("tenant"),
        F.lit(None).cast("string").alias("source"),
        F.when(event_time_ms(F.col("value")).isNotNull(), F.col("value")).alias("value"),
    )


# ── rounds ──────────────────────────────────────────────────────────────────


def rounds(
    bench: Bench, contestants: dict[str, Callable[[], None]], count: int
) -> dict[str, dict[str, Any]]:
    """Run the contestants in turn; return the median of each, with least and most."""
    for work in contestants.values():
        work()  # the first of a JVM compiles
    found: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    for _ in range(count):
        for name, work in contestants.items():
            found[name].append(bench.cost(work))
    return {name: _summary(runs) for name, runs in found.items()}


def _summary(runs: list[dict[str, float]]) -> dict[str, Any]:
    return {
        kind: {
            "median": round(statistics.median(r[kind] for r in runs)),
            "min": min(r[kind] for r in runs),
            "max": max(r[kind] for r in runs),
        }
        for kind in ("per_s", "per_cpu_s")
    }


def dedup_off(work: Callable[[], None]) -> Callable[[], None]:
    """Return the same work without the dispose step."""
    flow: Any = importlib.import_module("weir_analytics.panes.dataflow")

    def without() -> None:
        kept = flow.dispose
        flow.dispose = without_dedup
        try:
            work()
        finally:
            flow.dispose = kept

    return without


def measure(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    size = options.batch
    full, plain = plan_of(options.metrics, sketches=True), plan_of(options.metrics, sketches=False)
    contestants: dict[str, Callable[[], None]] = {
        "floor": lambda: floor(bench, size),
        "engine": lambda: engine(bench, full, size),
        "engine_without_sketches": lambda: engine(bench, plain, size),
        "engine_without_dedup": dedup_off(lambda: engine(bench, full, size)),
    }
    found = rounds(bench, contestants, options.rounds)
    grown: dict[str, Any] = {}
    for count in options.growth:
        plan = plan_of(count, sketches=True)
        work = partial(engine, bench, plan, size)
        grown |= rounds(bench, {f"metrics_{count}": work}, max(1, options.rounds // 2))
    return {"rounds": found, "growth_in_metrics": grown}


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--growth", type=int, nargs="*", default=[1, 10, 100])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        figures = _run(Path(name), options)
    path = harness.write("engine", settings=vars(options), figures=figures)
    print(path.read_text())  # noqa: T201 - the benchmark's output


def _run(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    broker, server = Broker(folder / "kafka"), RedisServer(folder / "redis")
    broker.start()
    server.start()
    try:
        broker.create_topics([Topic("bench", PARTITIONS)])
        settings = Settings(
            kafka_bootstrap=broker.bootstrap,
            redis_url=server.url,
            state_dir=folder / "state",
            jars_dir=SPARK_JARS,
            driver_memory="2g",
        )
        ends = fill(broker.bootstrap, "bench", options.events, options.series)
        spark = open_session(settings)
        bench = Bench(spark, settings, server.part.pid() or 0, "bench", ends)
        figures = measure(bench, options)
        spark.stop()
    finally:
        server.kill()
        broker.kill()
    median = {n: f["per_cpu_s"]["median"] for n, f in figures["rounds"].items()}
    return figures | {
        "bars": [
            _bar("P2", "engine over read-and-parse, per CPU-s", 0.35, median, "engine", "floor"),
            _bar("P11", "dedup on over off", 0.75, median, "engine", "engine_without_dedup"),
        ]
    }


def _bar(
    bar: str, what: str, reach: float, median: dict[str, float], one: str, other: str
) -> dict[str, Any]:
    return {"id": bar, "what": what, "reach": reach, "got": round(median[one] / median[other], 3)}


if __name__ == "__main__":
    main()
