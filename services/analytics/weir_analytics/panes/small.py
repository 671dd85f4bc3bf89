"""A small batch: one task reads its range of the log itself, and Spark plans nothing.

A frame over Spark's Kafka source is of one range and is planned anew for each batch:
a quarter of a second of CPU with 20 metrics, whether the range holds five records or
five thousand. The frame that begins here is the same for every batch. Its first task
asks which batch is running, as all others do, so Spark plans the frame once a plan
and runs it as often as there are batches (docs/decisions/0014).

The first task does what `classify` and `dispose` do with a large batch: a test holds
the two ways equal, record by record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession
from weir.event import placed

from weir_analytics.panes import crowded
from weir_analytics.panes.batch import current_batch
from weir_analytics.panes.dispose import DisposeTask
from weir_analytics.panes.history import headers_of, read_ranges
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.states import kind_of

DISPOSED: Final = (
    "partition int, offset bigint, kind tinyint, fate tinyint, received_ms bigint, seen bigint,"
    f" tenant string, source string, reason string, bounds {crowded.TYPE}, value binary"
)


def disposed_range(spark: SparkSession) -> DataFrame:
    """Return the records of whichever batch is running, as `dispose` leaves them."""
    return spark.range(0, 1, 1, 1).mapInArrow(read_and_dispose, DISPOSED)


def read_and_dispose(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the running batch's range and give each record its fate; one call a batch."""
    for _row in rows:
        pass  # Spark ends a worker that leaves some of its input: a second a batch
    batch = current_batch()
    task = DisposeTask(batch)
    for messages in read_ranges(batch.kafka, batch.topic, batch.start, batch.end):
        yield _disposed(task, messages)
    task.finish(all_partitions=True)


def _disposed(task: DisposeTask, messages: Sequence[Message]) -> pa.RecordBatch:
    headers = [headers_of(message) for message in messages]
    values = [message.value() for message in messages]
    kinds = list(map(kind_of, headers, values))
    unusual = [kind in (Kind.REFUSED, Kind.FOREIGN) for kind in kinds]
    partition = pa.array([message.partition() for message in messages], pa.int32())
    offset = pa.array([message.offset() for message in messages], pa.int64())
    kind, value = pa.array(map(int, kinds), pa.int8()), pa.array(values, pa.binary())
    told = task.answer(
        partition,
        offset,
        pa.array([message.timestamp()[1] for message in messages], pa.int64()),
        kind,
        pa.array(map(_identity, kinds, values), pa.binary()),
        pc.if_else(pa.array(unusual), value, pa.scalar(None, pa.binary())),
        pa.array(map(_headers_text, unusual, headers), pa.string()),
    )
    fates: dict[str, pa.Array] = dict(zip(told.type.names, told.flatten(), strict=True))
    is_event = pc.less_equal(fates["fate"], int(Fate.DUPLICATE))
    meant = pc.coalesce(fates.pop("value"), value)
    fates["value"] = pc.if_else(is_event, meant, pa.scalar(None, pa.binary()))
    return pa.RecordBatch.from_pydict(
        {"partition": partition, "offset": offset, "kind": kind, **fates}
    )


def _identity(kind: Kind, value: bytes | None) -> bytes | None:
    return placed(value or b"").digest if kind <= Kind.SAMPLED else None


def _headers_text(unusual: bool, headers: Sequence[tuple[str, bytes | None]] | None) -> str | None:
    """Return the headers as `<key>=<value>,…` in hexadecimal, like the column in `decode.py`."""
    if not unusual or headers is None:
        return None
    pairs = (k.encode().hex() + (f"={v.hex()}" if v is not None else "") for k, v in headers)
    return ",".join(pairs)
