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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession

from weir_analytics.panes import crowded
from weir_analytics.panes.batch import Batch, current_batch
from weir_analytics.panes.dispose import DisposeTask
from weir_analytics.panes.history import QUEUE_BYTES, Headers, all_headers, read_ranges
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.places import places_of
from weir_analytics.panes.states import EVENT_HEADERS, kinds_of
from weir_analytics.panes.task_watch import awaited, watched

_EVENTS: Final = frozenset(EVENT_HEADERS)
# So many records get their fates at once: of fewer each pays more for going to the runs of dedup.
AT_ONCE: Final = 40_000

DISPOSED: Final = (
    "partition int, offset bigint, kind tinyint, fate tinyint, received_ms bigint, seen bigint,"
    f" tenant string, source string, reason string, bounds {crowded.TYPE}, value binary"
)


def disposed_range(spark: SparkSession) -> DataFrame:
    """Return the records of whichever batch is running, as `dispose` leaves them."""
    return spark.range(0, 1, 1, 1).mapInArrow(read_and_dispose, DISPOSED)


@watched
def read_and_dispose(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read the running batch's range and give each record its fate; one call a batch."""
    for _row in awaited(rows):
        pass  # Spark ends a worker that leaves some of its input: a second a batch
    yield from map(_with_meant, disposed_slices(current_batch()))


class Disposed(NamedTuple):
    """Some records of a batch, an array an attribute.

    Attributes:
        partition: Partition of each.
        offset: Place of each.
        kind: See `Kind`.
        told: What `DisposeTask.answer` says.
        values: The bytes of each.
        times_ms: What stands at the place of event time of those that are events.
    """

    partition: pa.Array
    offset: pa.Array
    kind: pa.Array
    told: pa.StructArray
    values: list[bytes | None]
    times_ms: npt.NDArray[np.int64]


def disposed_slices(batch: Batch) -> Iterator[Disposed]:
    """Read a batch's range and give each record its fate."""
    task = DisposeTask(batch)
    gathered = _gathered(read_ranges(batch.kafka, batch.topic, batch.start, batch.end))
    # No name for what was gathered: it would be held while more is.
    yield from map(partial(_disposed, task), gathered)
    task.finish(all_partitions=True)


@dataclass
class _Read:
    """Some records, a list an attribute; numbers are partition, offset and append time."""

    numbers: list[tuple[npt.NDArray[Any], ...]] = field(default_factory=list)
    firsts: list[str | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    headers: list[Headers] = field(default_factory=list)
    size: int = 0

    def add(self, messages: Sequence[Message]) -> None:
        """Take all that is needed of the client's records, so that they can go."""
        count = len(messages)
        headers = all_headers(messages)
        self.headers += headers
        firsts = [of[0][0] if of else None for of in headers]
        if not _EVENTS.issuperset(firsts):  # of another producer they may be long
            self.size += sum(map(_headers_size, headers))
        self.firsts += firsts
        self.values += map(Message.value, messages)
        self.size += sum(map(len, messages))
        at_ms = map(itemgetter(1), map(Message.timestamp, messages))
        self.numbers.append(
            (
                np.fromiter(map(Message.partition, messages), np.int32, count),
                np.fromiter(map(Message.offset, messages), np.int64, count),
                np.fromiter(at_ms, np.int64, count),
            )
        )


def _headers_size(headers: Headers) -> int:
    """Return about how many bytes the headers of a record take."""
    return sum(len(name) + len(value or b"") for name, value in headers or ())


def _gathered(lists: Iterable[Sequence[Message]]) -> Iterator[_Read]:
    """Yield what is in lists of records, several of them at a time.

    The client's records take many times what is needed of them, and are let go list by list; what
    is then done with arrays costs less an event if they are longer.
    """
    read = _Read()
    for messages in lists:
        read.add(messages)
        if len(read.values) >= AT_ONCE or read.size >= QUEUE_BYTES:
            yield read
            read = _Read()
    if read.values:
        yield read


def _disposed(task: DisposeTask, read: _Read) -> Disposed:
    may_be = None
    if not _EVENTS.issuperset(read.firsts):
        may_be = [first in _EVENTS for first in read.firsts]
    found, identity, times_ms = places_of(read.values, may_be)
    kinds = kinds_of(read.firsts, read.values, found)
    unusual = kinds >= Kind.REFUSED
    unusual &= kinds != Kind.TICK
    partition, offset, at_ms = map(pa.array, map(np.concatenate, zip(*read.numbers, strict=True)))
    kind = pa.array(kinds)
    given = _given(unusual, read.values, read.headers)
    told = task.answer(partition, offset, at_ms, kind, identity, *given)
    return Disposed(partition, offset, kind, told, read.values, times_ms)


def _given(
    unusual: npt.NDArray[np.bool_],
    values: Sequence[bytes | None],
    headers: Sequence[Headers],
) -> tuple[pa.Array, pa.Array]:
    """Return value and headers of refused and foreign records, null of all others."""
    if not unusual.any():
        return pa.nulls(len(values), pa.binary()), pa.nulls(len(values), pa.string())
    is_one = unusual.tolist()
    return (
        pa.array([v if one else None for v, one in zip(values, is_one, strict=True)], pa.binary()),
        pa.array(map(_headers_text, is_one, headers), pa.string()),
    )


def _with_meant(records: Disposed) -> pa.RecordBatch:
    """Return records as `dispose` leaves them: with what is counted in place of the value."""
    told = records.told
    fates: dict[str, pa.Array] = dict(zip(told.type.names, told.flatten(), strict=True))
    is_event = pc.less_equal(fates["fate"], int(Fate.DUPLICATE))
    meant = pc.coalesce(fates.pop("value"), pa.array(records.values, pa.binary()))
    fates["value"] = pc.if_else(is_event, meant, pa.scalar(None, pa.binary()))
    kept = {"partition": records.partition, "offset": records.offset, "kind": records.kind}
    return pa.RecordBatch.from_pydict({**kept, **fates})


def _headers_text(unusual: bool, headers: Headers) -> str | None:
    """Return the headers as `<key>=<value>,…` in hexadecimal, like the column in `decode.py`."""
    if not unusual or headers is None:
        return None
    pairs = (k.encode().hex() + (f"={v.hex()}" if v is not None else "") for k, v in headers)
    return ",".join(pairs)
