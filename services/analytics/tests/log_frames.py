"""Finite logs for tests: records as Spark reads them from Kafka, without a broker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import redis
from weir import names
from weir.admission import Admitted, Terms, admit
from weir.commit import Fence, Mark
from weir.definitions.history import Horizons
from weir_analytics.panes.arrow_plan import AnyPlan
from weir_analytics.panes.batch import PROPERTY, Batch
from weir_analytics.panes.dataflow import dataflow
from weir_analytics.panes.versions import PROPERTY as VERSIONS_PROPERTY
from weir_analytics.panes.versions import versions_to_json
from weir_analytics.panes.writer import Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Far ahead: Redis drops panes of before its own present at once.
NOW_MS = 2_016_000_000_000
EVENT = [("content-type", b"application/cloudevents+json; charset=UTF-8")]
SAMPLED = [("weir-tail", b"1"), *EVENT]
TICK = [("weir-tick", b"1")]
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp,"
    " timestampType int, headers array<struct<key: string, value: binary>>"
)

HORIZONS = Horizons({}, 3_600_000, 400 * 86_400_000)

Record = tuple[bytes | None, list[tuple[str, bytes]], int]


def event(
    event_id: str,
    at_ms: int = NOW_MS,
    event_type: str = "t",
    tenant: str = "acme",
    *,
    subject: str | None = None,
    source: str = "web",
    **data: Any,
) -> bytes:
    """Return the value of an event as ingest writes it."""
    item = {
        "specversion": "1.0",
        "id": event_id,
        "source": "s",
        "type": event_type,
        "time": datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(),
        "data": data,
    }
    item |= {} if subject is None else {"subject": subject}
    found = admit(json.dumps(item).encode(), 0, Terms(tenant, source, max(at_ms, 0), "test"))
    assert isinstance(found, Admitted)
    return found.value


def counted(event_id: str, at_ms: int = NOW_MS, **data: Any) -> Record:
    """Return an event that was received when it happened."""
    return event(event_id, at_ms, **data), EVENT, at_ms


def log_of(
    spark: SparkSession,
    *partitions: Sequence[Record],
    start: Mapping[int, int] | None = None,
) -> DataFrame:
    """Return records in one task; offsets begin at `start`, by default at 0."""
    rows = [
        (
            b"k",
            value,
            names.EVENTS,
            partition,
            (start or {}).get(partition, 0) + at,
            datetime.fromtimestamp(at_ms / 1000, UTC),
            1,
            headers,
        )
        for partition, records in enumerate(partitions)
        for at, (value, headers, at_ms) in enumerate(records)
    ]
    return spark.createDataFrame(rows, SCHEMA).coalesce(1)


def batch_of(folder: Path, *ends: int, redis_url: str = "", **changes: Any) -> Batch:
    """Return a batch that begins at the log's start."""
    fields: dict[str, Any] = {
        "topic": names.EVENTS,
        "topic_id": "t",
        "definitions_id": "d",
        "epoch": 1,
        "fence": 1,
        "number": 0,
        "start": dict.fromkeys(range(len(ends)), 0),
        "end": dict(enumerate(ends)),
        "shards": 1,
        "horizons": (HORIZONS,),
        "kafka_bootstrap": "127.0.0.1:1",
        "redis_url": redis_url,
        "dedup_dir": str(folder),
        "single": False,
    }
    return Batch(**fields | changes)


def open_shards(url: str, batch: Batch) -> None:
    """Give every shard the fence and the mark that a driver's start leaves."""
    client = redis.Redis.from_url(url)
    for shard in range(batch.shards):
        fence = Fence(batch.fence, batch.definitions_id)
        mark = Mark(
            epoch=batch.epoch,
            batch=-1,
            topic_id=batch.topic_id,
            end=dict(batch.start),
            shards=batch.shards,
        )
        client.set(names.fence_key(shard), msgspec.json.encode(fence))
        client.set(names.mark_key(shard), msgspec.json.encode(mark))
    client.close()


def run_batch(spark: SparkSession, log: DataFrame, plan: AnyPlan, batch: Batch) -> list[Report]:
    """Run the whole pass; return what each task reported."""
    spark.sparkContext.setLocalProperty(PROPERTY, batch.to_json())
    spark.sparkContext.setLocalProperty(VERSIONS_PROPERTY, versions_to_json(plan.versions))
    return [Report.from_json(row.report) for row in dataflow(log, plan, batch).collect()]
