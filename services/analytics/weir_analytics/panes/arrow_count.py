"""A batch counted by Python's workers: from records of the log to rows of panes, in one task.

Read this file first of those whose name begins with `arrow`. A task does what `dispose`,
`parse`, `judge`, `explode`, `aggregate` and `spread` of `dataflow.py` do one after the other,
and leaves the same rows; the writer adds up what several tasks leave. Values are decoded
once and become columns of numpy and Arrow, so that no step works event by event
(docs/decisions/0032).

    take    records of a partition, in order -> their fates, their content
    judge   the fates that need what an event says
    rows    the account of every record, and the panes of every metric
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import TaskContext
from weir.event import TIME_END

from weir_analytics.panes.accounts import KEYS
from weir_analytics.panes.arrow_account import account_rows, table_of
from weir_analytics.panes.arrow_decode import Decoder, decoder_of
from weir_analytics.panes.arrow_events import Events
from weir_analytics.panes.arrow_groups import Longs
from weir_analytics.panes.arrow_judge import Records, judge
from weir_analytics.panes.arrow_lists import values_of
from weir_analytics.panes.arrow_members import Members
from weir_analytics.panes.arrow_metrics import ROWS_AT_ONCE, MetricCount, Panes
from weir_analytics.panes.arrow_plan import read_told
from weir_analytics.panes.arrow_reads import Reads
from weir_analytics.panes.batch import Batch, current_batch
from weir_analytics.panes.dispose import TAKES, DisposeTask
from weir_analytics.panes.erased import SUBJECT
from weir_analytics.panes.kinds import Fate, Use
from weir_analytics.panes.measures import IDENTITY, TIME, output_type
from weir_analytics.panes.places import identities_of, times_ms_of
from weir_analytics.panes.plan import KEPT
from weir_analytics.panes.shares import shares
from weir_analytics.panes.small import disposed_slices
from weir_analytics.panes.task_watch import awaited, note_step, watched
from weir_analytics.panes.writer import answer_of, write

_ZEROS: Final = b"0" * TIME_END
# So many records are counted at once: rows of a group, with its sketches, are made once for all
# of them, and what is held of each is some hundred bytes.
AT_ONCE: Final = 400_000
# Or as many as take so many bytes once they are decoded: a metric may read long texts and lists.
BYTES_AT_ONCE: Final = 128 * 1024 * 1024

_ARROW: Final = {
    "bigint": pa.int64(),
    "string": pa.string(),
    "tinyint": pa.int8(),
    "double": pa.float64(),
    "binary": pa.binary(),
}
_NEWEST: Final = pa.struct([(TIME, pa.int64()), (IDENTITY, pa.binary()), ("value", pa.float64())])


@watched
def count_log(
    told: str, outputs: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Count what Spark's source has read; runs in a Python worker, one call a task.

    Takes what `classify` leaves, the records of a partition in order.
    """
    batch = current_batch()
    task, dispose = CountTask(told, outputs, batch), DisposeTask(batch)
    for records in awaited(batches):
        fates = dispose.answer(*(records[name] for name in TAKES))
        values = values_of(records["value"])
        task.take(records["partition"], records["offset"], records["kind"], fates, values)
        if task.is_full:
            yield from task.rows()
    dispose.finish()
    yield from task.rows()


@watched
def count_range(
    told: str, outputs: Sequence[str], tasks: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read a task's part of the running batch's range and count it; one call a task."""
    for _row in awaited(batches):
        pass  # Spark ends a worker that leaves some of its input: a second a batch
    batch = current_batch()
    if tasks > 1:
        context = TaskContext.get()
        batch = own_part(batch, context.partitionId() if context is not None else 0, tasks)
    task = CountTask(told, outputs, batch)
    for records in disposed_slices(batch):
        task.take(*records)
        if task.is_full:
            yield from task.rows()
    yield from task.rows()


def count_and_write(
    told: str, outputs: Sequence[str], rows: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Take all steps of a small batch in one process; runs in a Python worker."""
    counted = write(count_range(told, outputs, 1, rows))
    return answer_of(rows, counted) if current_batch().dry else counted


def own_part(batch: Batch, task: int, tasks: int) -> Batch:
    """Return the partitions of a batch that one of several tasks reads: about as many records.

    By the range alone, so that a task that runs again reads the same.
    """
    own = shares({p: n - batch.start.get(p, 0) for p, n in batch.end.items()}, tasks)[task]
    start = {p: n for p, n in batch.start.items() if p in own}
    return replace(batch, start=start, end={p: n for p, n in batch.end.items() if p in own})


class CountTask:
    """One task: the records that it has taken and not counted yet."""

    def __init__(self, told: str, outputs: Sequence[str], batch: Batch) -> None:
        self._told, self._outputs, self._batch = read_told(told), outputs, batch
        self._reading = reading_of(told)
        self._ordered = any(one.metric.needs_last for one in self._told.counted)
        self._clear()

    @property
    def is_full(self) -> bool:
        """Whether what is held should be counted now."""
        return self._members.size >= AT_ONCE or self._members.bytes >= BYTES_AT_ONCE

    def take(
        self,
        partition: pa.Array,
        offset: pa.Array,
        kind: pa.Array,
        fates: pa.StructArray,
        values: Sequence[bytes | None],
        times_ms: Longs | None = None,
    ) -> None:
        """Take the next records.

        Args:
            partition: Partition of each.
            offset: Place of each.
            kind: See `Kind`.
            fates: What `DisposeTask.answer` says.
            values: The bytes of each.
            times_ms: Event time of those whose own bytes are counted; None: it is read here.
        """
        told = dict(zip(fates.type.names, fates.flatten(), strict=True))
        fate = told["fate"].to_numpy(zero_copy_only=False)
        values = _events_in(values, told["value"], fate)
        if times_ms is None or told["value"].null_count < len(values):
            times_ms = times_ms_of(_or_zeros(values))
        times_ms = np.where(fate <= Fate.DUPLICATE, times_ms, 0)
        if self._ordered:
            self._identities.append(identities_of(_or_zeros(values)))
        self._members.add(values)
        received_ms, seen = told["received_ms"], told["seen"].fill_null(-1)
        numbers = (partition, offset, kind, told["fate"], received_ms, seen)
        self._numbers.append(tuple(one.to_numpy(zero_copy_only=False) for one in numbers))
        self._times_ms.append(times_ms)
        for name, words in self._words.items():
            if told[name].null_count < len(told[name]):
                at = self._members.size - len(values)
                words.update(
                    (at + n, text)
                    for n, text in enumerate(told[name].to_pylist())
                    if text is not None
                )
        note_step()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Count what was taken, and hold nothing of it any more."""
        panes = Panes(self._outputs)
        if self._members.size:
            events = Events(self._members, np.concatenate(self._times_ms))
            numbers = tuple(map(np.concatenate, zip(*self._numbers, strict=True)))
            records, through_ms = Records(numbers, self._words), self._batch.final_through_ms
            judged, hidden = judge(self._told, events, records, through_ms)
            panes.rows += account_rows(judged)
            note_step()
            nobody_asks = np.empty((len(events), 0), np.uint64)
            identities = np.concatenate([*self._identities] or [nobody_asks])
            count = MetricCount.of(self._told, judged, identities, self._batch)
            self._clear()
            for found in count.count(events, hidden, panes):
                yield from record_batches(found)

    def _clear(self) -> None:
        self._members = Members(*self._reading)
        self._times_ms: list[Longs] = []
        self._identities: list[npt.NDArray[np.uint64]] = []
        self._numbers: list[tuple[npt.NDArray[Any], ...]] = []
        # What only refused and foreign records are told of; by place.
        self._words: dict[str, dict[int, str]] = {"tenant": {}, "source": {}, "reason": {}}


@lru_cache(KEPT)
def reading_of(told: str) -> tuple[Decoder, Reads]:
    """Return what the metrics of a plan read, and who decodes it; made once a plan and worker."""
    found = read_told(told)
    always = () if found.erased is None else (SUBJECT[0],)
    metrics = ((one.version.tenant, one.metric.events, one.metric.paths) for one in found.counted)
    reads = Reads(always, metrics)
    return decoder_of(reads.all), reads


def _events_in(
    values: Sequence[bytes | None], meant: pa.Array, fate: npt.NDArray[np.int8]
) -> Sequence[bytes | None]:
    """Return the values of events, of a foreign one what ingest would have written; else None."""
    if meant.null_count < len(meant):
        pairs = zip(values, meant.to_pylist(), strict=True)
        values = [own if other is None else other for own, other in pairs]
    is_event = fate <= Fate.DUPLICATE
    if not is_event.all():
        pairs_of = zip(values, is_event.tolist(), strict=True)
        values = [one if is_one else None for one, is_one in pairs_of]
    return values


def _or_zeros(values: Sequence[bytes | None]) -> Sequence[bytes]:
    """Return the values; where there is none, zeros at all fixed places."""
    return [_ZEROS if one is None else one for one in values]


# ── what leaves ─────────────────────────────────────────────────────────────


def record_batches(panes: Panes) -> Iterator[pa.RecordBatch]:
    """Yield rows of panes in the shape of `ArrowPlan.schema`."""
    rows = panes.rows + panes.unused
    blocks = list(panes.blocks)
    if rows:
        use = [int(Use.USED)] * len(panes.rows) + [int(Use.VALUE_QUARANTINED)] * len(panes.unused)
        blocks.append((len(rows), table_of(rows, use)))
    types = {**_KEYS, **{name: _ARROW.get(output_type(name), _NEWEST) for name in panes.outputs}}
    found = pa.RecordBatch.from_pydict(
        {name: _column(blocks, name, kind) for name, kind in types.items()},
        schema=pa.schema(list(types.items())),
    )
    for at in range(0, len(found), ROWS_AT_ONCE):
        yield found.slice(at, ROWS_AT_ONCE)


_KEYS: Final = dict(
    zip(
        (*KEYS, "n"),
        (pa.int64(), pa.string(), pa.int64(), pa.int64(), pa.int8(), pa.int64()),
        strict=True,
    )
)


def _column(blocks: Sequence[tuple[int, dict[str, Any]]], name: str, kind: pa.DataType) -> pa.Array:
    parts = [
        pa.array(columns[name], kind) if name in columns else pa.nulls(size, kind)
        for size, columns in blocks
    ]
    return pa.concat_arrays(parts) if parts else pa.nulls(0, kind)
