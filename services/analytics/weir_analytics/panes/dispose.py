"""The second step of a batch: what becomes of each record, decided in offset order.

One Arrow UDF sees of every record its place, append time, kind and 16 bytes of
identity; the value only of refused and foreign ones. It gives R, the fate, and for
a foreign record that is an event after all, the value that ingest would have
written.

The records of a Kafka partition must reach one task in the order of their
offsets: nothing may be shuffled before this step, and the source is read without
`minPartitions`.

Two things leave the task on the side, before its last row does: copies of what
nobody can use, acknowledged by Kafka; and the run of identities of each partition,
a cache that a repeated batch writes again with the same content. A task that lacks records
ends with an error, before anybody commits what the others have told (`holes.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from weir import names
from weir.admission import Refused, admit_foreign
from weir.definitions.history import Horizons
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE, owner
from weir.problems import Reason

from weir_analytics.failpoints import failpoint
from weir_analytics.panes import crowded
from weir_analytics.panes.batch import Batch, current_batch
from weir_analytics.panes.commit_job import Bound
from weir_analytics.panes.dedup import PartitionState
from weir_analytics.panes.history import first_offsets
from weir_analytics.panes.holes import Hole, Reading, check_read, last_record
from weir_analytics.panes.kinds import Fate, Kind
from weir_analytics.panes.quarantine import (
    Copy,
    Origin,
    header_text,
    kept_headers,
    listed,
    quarantine_writer,
    reason_of,
)
from weir_analytics.panes.runs import tidy, write_run
from weir_analytics.panes.shared_sieves import share
from weir_analytics.panes.states import MAPPED, dedup_folder, state_before
from weir_analytics.panes.task_watch import awaited, note_step, watched

RESULT = (
    "fate tinyint, received_ms bigint, seen bigint, tenant string, source string, reason string,"
    f" value binary, bounds {crowded.TYPE}"
)
TOLD = pa.struct(
    [
        ("fate", pa.int8()),
        ("received_ms", pa.int64()),
        ("seen", pa.int64()),
        ("tenant", pa.string()),
        ("source", pa.string()),
        ("reason", pa.string()),
        ("value", pa.binary()),
        ("bounds", crowded.ARROW_TYPE),
    ]
)

TAKES = ("partition", "offset", "at_ms", "kind", "identity", "given", "headers")

Rows = npt.NDArray[np.intp]


def dispose(records: DataFrame) -> DataFrame:
    """Give every record its fate and R.

    Leaves: partition, offset, kind, fate, received_ms, seen, tenant, source, reason (of what is
    quarantined here), bounds (of full panes, the same on every record), value (null but of
    events; of a foreign event what ingest would have written).
    """
    return records.select(*_told()).select(*_disposed())


@cache
def _told() -> tuple[Column, ...]:
    kept = (F.col(name) for name in ("partition", "offset", "kind", "value"))
    return (*kept, _fates(*TAKES).alias("told"))


@cache
def _disposed() -> tuple[Column, ...]:
    told = ("fate", "received_ms", "seen", "tenant", "source", "reason", "bounds")
    kept = (F.col(name) for name in ("partition", "offset", "kind", *(f"told.{n}" for n in told)))
    is_event = F.col("told.fate") <= int(Fate.DUPLICATE)
    return (*kept, F.when(is_event, F.coalesce("told.value", "value")).alias("value"))


def _fates(*columns: str) -> Column:
    """Return the UDF's column; "not deterministic" keeps the optimizer from running it twice."""
    make_udf: Any = arrow_udf  # its stubs know type hints only by a third argument
    udf = make_udf(dispose_rows, RESULT).asNondeterministic()
    column: Column = udf(*columns)
    return column


@watched
def dispose_rows(slices: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    """Give each record its fate; runs in a Python worker, one call a task.

    Takes partition, offset, at_ms, kind, identity, given, headers; see `RESULT` for what
    comes back. `seen` is set on the last record of a partition's range: how many
    records of it the task saw.
    """
    task = DisposeTask(current_batch())
    for columns in awaited(slices):
        yield task.answer(*columns)
    task.finish()


class DisposeTask:
    """One task: the states of the partitions that it reads."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._states: dict[int, PartitionState] = {}
        self._reading = Reading(batch.start, batch.end)
        self._unknown: list[Hole] = []
        self._last = {p: last_record(p, end, batch.lost) for p, end in batch.end.items()}
        self._copies = 0

    def answer(self, *columns: pa.Array) -> pa.Array:
        """Return the fates of the next records, once the copies of the unusable are stored."""
        rows = _Slice(*columns)
        edges = np.flatnonzero(np.diff(rows.partition)) + 1
        for part in np.split(np.arange(len(rows.partition)), edges):
            if len(part):
                self._decide(rows, part)
        if self._copies:
            quarantine_writer(self._batch.kafka).flush()
            note_step()
            self._copies = 0
            failpoint("C5")
        return rows.result(self._batch.bounds)

    def finish(self, *, all_partitions: bool = False) -> None:
        """Write the run of each partition, and keep the number of files small.

        Args:
            all_partitions: Whether all partitions of the batch were this task's.

        Raises:
            HoleError: If records were missing that nobody knows to be lost, in the range or
                where a state was read back.
        """
        batch = self._batch
        if batch.dry:
            return
        holes = [*self._unknown, *self._reading.holes(all_partitions=all_partitions)]
        check_read(holes, batch.lost, partial(first_offsets, batch.kafka, batch.topic))
        shared = False
        for partition, state in self._states.items():
            folder = dedup_folder(batch, partition)
            write_run(folder, state.run(batch.end[partition]), batch.horizon_ms)
            chain = tidy(folder, state.start, batch.horizon_ms, MAPPED)
            # It takes a while: of several partitions that come to it at once the others wait.
            shared = shared or share(folder, chain, batch.horizon_ms, MAPPED)
            note_step()

    def _decide(self, rows: _Slice, part: Rows) -> None:
        partition = int(rows.partition[part[0]])
        state = self._state(partition, int(rows.at_ms[part[0]]))
        self._reading.take(partition, rows.offset[part])
        received = state.advance(rows.at_ms[part])
        rows.received_ms[part] = received
        self._look_into(rows, part)
        events = part[rows.usable[part]]
        if len(events):
            again = state.repeats(
                rows.high[events],
                rows.low[events],
                rows.received_ms[events],
                _horizons_ms(self._batch.horizons, partition, rows.offset[events]),
            )
            rows.fate[events[again]] = Fate.DUPLICATE
        if rows.offset[part[-1]] >= self._last[partition]:
            rows.seen[part[-1]] = state.rows
        note_step()

    def _state(self, partition: int, first_at_ms: int) -> PartitionState:
        state = self._states.get(partition)
        if state is None:
            state, holes = state_before(self._batch, partition, first_at_ms)
            self._states[partition] = state
            self._unknown += holes
        return state

    def _look_into(self, rows: _Slice, part: Rows) -> None:
        """Read what only Python can: what ingest refused, and records of other producers."""
        for at in map(int, part[rows.kind[part] == Kind.REFUSED]):
            rows.refuse(at, self._copy_refused(rows, at))
            note_step()
        for at in map(int, part[rows.kind[part] == Kind.FOREIGN]):
            origin = rows.origin(at, self._batch)
            found = admit_foreign(
                rows.bytes_at(at),
                received_ms=int(rows.received_ms[at]),
                recheck=True,
                origin=origin.place,
            )
            if isinstance(found, Refused):
                rows.refuse(at, self._copy_foreign(rows, at, found.reason))
            else:
                rows.admit(at, found.value, found.digest)
            note_step()

    def _copy_refused(self, rows: _Slice, at: int) -> Copy:
        headers = rows.headers_at(at)
        tenant, source = owner(
            header_text(headers, names.HEADER_TENANT, DEFAULT_TENANT),
            header_text(headers, names.HEADER_SOURCE, FOREIGN_SOURCE),
        )
        copy = Copy(
            rows.origin(at, self._batch),
            rows.bytes_at(at),
            reason_of(headers),
            tenant,
            source,
            extra=kept_headers(headers),
        )
        self._send(copy)
        return copy

    def _copy_foreign(self, rows: _Slice, at: int, reason: Reason) -> Copy:
        origin = rows.origin(at, self._batch)
        copy = Copy(origin, rows.bytes_at(at), reason, DEFAULT_TENANT, FOREIGN_SOURCE)
        self._send(copy)
        return copy

    def _send(self, copy: Copy) -> None:
        if self._batch.copies != "all":
            return
        quarantine_writer(self._batch.kafka).send(copy)
        self._copies += 1


class _Slice:
    """The records of one Arrow batch, column by column, and what is found out about them."""

    def __init__(
        self,
        partition: pa.Array,
        offset: pa.Array,
        at_ms: pa.Array,
        kind: pa.Array,
        identity: pa.Array,
        given: pa.Array,
        headers: pa.Array,
    ) -> None:
        self.partition: npt.NDArray[np.int32] = _numbers(partition)
        self.offset: npt.NDArray[np.int64] = _numbers(offset)
        self.at_ms: npt.NDArray[np.int64] = _numbers(at_ms)
        self.kind: npt.NDArray[np.int8] = _numbers(kind)
        self._given, self._headers = given, headers
        size = len(self.partition)
        self.usable = self.kind <= Kind.SAMPLED
        self.high, self.low = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        self.high[self.usable], self.low[self.usable] = _digests(identity, self.usable)
        self.fate = np.zeros(size, np.int8)
        self.fate[self.kind == Kind.TICK] = Fate.TICK
        self.received_ms = np.zeros(size, np.int64)
        self.seen = np.full(size, -1, np.int64)
        self._tenants: dict[int, str] = {}
        self._sources: dict[int, str] = {}
        self._reasons: dict[int, str] = {}
        self._values: dict[int, bytes] = {}

    def bytes_at(self, at: int) -> bytes | None:
        """Return the value of a refused or foreign record."""
        value: bytes | None = self._given[at].as_py()
        return value

    def headers_at(self, at: int) -> dict[str, Any]:
        """Return the headers of a refused or foreign record; the last of a name wins."""
        return dict(map(_header, (self._headers[at].as_py() or "").split(",")))

    def origin(self, at: int, batch: Batch) -> Origin:
        """Return where a record stands."""
        place = int(self.partition[at]), int(self.offset[at]), int(self.at_ms[at])
        return Origin(batch.topic, batch.topic_id, *place)

    def refuse(self, at: int, copy: Copy) -> None:
        """Note that a record is quarantined whole: it is no earlier record for dedup."""
        self.fate[at] = Fate.QUARANTINED
        self._tenants[at], self._sources[at] = copy.tenant, copy.source
        self._reasons[at] = listed(copy.reason)

    def admit(self, at: int, value: bytes, digest: bytes) -> None:
        """Note that a foreign record is an event, with the value that ingest would write."""
        self._values[at] = value
        self.high[at], self.low[at] = np.frombuffer(digest, ">u8")
        self.usable[at] = True

    def result(self, bounds: Sequence[Bound]) -> pa.Array:
        """Return the answer in the shape of `RESULT`."""
        size = len(self.partition)
        return pa.StructArray.from_arrays(
            [
                pa.array(self.fate),
                pa.array(self.received_ms),
                pa.array(self.seen, mask=self.seen < 0),
                _sparse(self._tenants, size, pa.string()),
                _sparse(self._sources, size, pa.string()),
                _sparse(self._reasons, size, pa.string()),
                _sparse(self._values, size, pa.binary()),
                crowded.bounds_column(bounds, size),
            ],
            fields=list(TOLD),
        )


def _horizons_ms(
    horizons: Sequence[Horizons], partition: int, offset: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the dedup horizon of each record, as `weir.horizons.horizons_at` does of one."""
    found = np.full(len(offset), horizons[0].horizon_ms, np.int64)
    for one in horizons[1:]:
        found[offset >= one.begin.get(partition, 0)] = one.horizon_ms
    return found


def _header(text: str) -> tuple[str, bytes | None]:
    key, present, value = text.partition("=")
    return bytes.fromhex(key).decode(), bytes.fromhex(value) if present else None


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    numbers: npt.NDArray[Any] = column.to_numpy(zero_copy_only=True)
    return numbers


def _digests(identity: pa.Array, usable: npt.NDArray[np.bool_]) -> tuple[Any, Any]:
    """Return both halves of the identities present; each is 16 bytes, one after the other."""
    present = identity.filter(pa.array(usable))
    if not len(present):
        return np.empty(0, np.uint64), np.empty(0, np.uint64)
    pairs = np.frombuffer(present.buffers()[2], ">u8", 2 * len(present)).astype(np.uint64)
    return pairs[0::2], pairs[1::2]


def _sparse(values: dict[int, Any], size: int, kind: pa.DataType) -> pa.Array:
    if not values:
        return pa.nulls(size, kind)
    column: list[Any] = [None] * size
    for at, value in values.items():
        column[at] = value
    return pa.array(column, kind)
