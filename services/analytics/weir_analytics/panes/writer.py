"""The last step of a batch: one task for each shard merges its parts into Redis.

Delivery: the copies of what a metric could not use are stored in `weir.quarantine`
before the shard is committed; the commit is one transaction, applied at most once
however often the task runs (RELIABILITY 2.3, S3 and S4). A task that comes too
late, or twice, finds that out from the shard's mark and changes nothing. What a
verdict means for the job is decided by the driver alone.

The store's connection belongs to the worker process and lives as long as it does;
so this must stay an importable function.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from weir import names
from weir.commit import Fence
from weir_service.settings import read_secret

from weir_analytics.failpoints import failpoint
from weir_analytics.panes.accounts import LEDGER, USE
from weir_analytics.panes.batch import Batch, current_batch
from weir_analytics.panes.commit_job import CommitJob, Committed, Limits, Part
from weir_analytics.panes.crowded import placed
from weir_analytics.panes.history import read_records
from weir_analytics.panes.inbox import Inbox, LateRow, Unusable
from weir_analytics.panes.passing import is_outside
from weir_analytics.panes.quarantine import Copy, Origin, event_owner, quarantine_writer
from weir_analytics.panes.store import ShardStore
from weir_analytics.panes.task_watch import awaited, note_step, watched
from weir_analytics.panes.versions import Version, current_versions

REPORT = "report string"
ENDED: Final = (
    "its worker ended without a word, for want of memory or since no step was taken for a minute"
)
"""What is told of a trial whose task was not the first one."""


@dataclass
class Report:
    """What one writer task tells the driver.

    Attributes:
        verdicts: By shard, how its commit ended.
        short: Shards of which a commit was applied in part.
        ledger: (series text of the ledger, minute in epoch seconds, events).
        progress: (partition, R at the range's end, records seen).
        fates: [partition, offset, disposition, reason] of sampled events.
        codes: [partition, offset, version, code]: sampled events that a version could
            not use.
        late: (tenant, source, type, start of the finest pane, received minute in epoch
            seconds, events) of late events.
        late_cut: Tenants of whose groups some are left out.
        late_rows: (tenant, version, source, series, start of its finest pane, received minute,
            events) of those that a version counted.
        late_rows_cut: Tenants of whose groups of these none is told: there are too many.
        bounds: (shard, version, start of the finest pane, digest) of panes that are full.
        reasons: By reason, how many records nobody could use.
        unused: By reason, how often a version could not use an event.
        work: Sums over the shards: rows written, times in ms, copies and groups of late
            events left out.
        why: What else is to be said of the verdicts: what a newer release wrote into a shard, or
            what Redis did not apply; empty if nothing.
        failed: What a trial failed with; empty if with nothing.
        outside: Whether that was of the log, the store or a disk.
    """

    verdicts: dict[int, str] = field(default_factory=dict)
    ledger: list[tuple[str, int, int]] = field(default_factory=list)
    progress: list[tuple[int, int, int]] = field(default_factory=list)
    fates: list[tuple[int, int, str, str | None]] = field(default_factory=list)
    codes: list[tuple[int, int, int, str]] = field(default_factory=list)
    late: list[tuple[str, str, str, int, int, int]] = field(default_factory=list)
    late_cut: list[str] = field(default_factory=list)
    late_rows: list[LateRow] = field(default_factory=list)
    late_rows_cut: list[str] = field(default_factory=list)
    bounds: list[tuple[int, int, int, str]] = field(default_factory=list)
    reasons: dict[str, int] = field(default_factory=dict)
    unused: dict[str, int] = field(default_factory=dict)
    work: dict[str, float] = field(default_factory=dict)
    why: str = ""
    failed: str = ""
    outside: bool = False
    short: list[int] = field(default_factory=list)

    def to_json(self) -> str:
        """Return the report as one line of text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Report:
        """Read what `to_json` wrote."""
        fields: dict[str, Any] = json.loads(text)
        fields["verdicts"] = {int(s): v for s, v in fields["verdicts"].items()}
        for name in ("ledger", "progress", "fates", "codes", "late", "late_rows", "bounds"):
            fields[name] = [tuple(row) for row in fields[name]]
        return cls(**fields)

    def note(self, shard: int, done: Committed) -> None:
        """Add how one shard's commit ended."""
        self.verdicts[shard] = done.verdict.value
        if done.is_short:
            self.short.append(shard)
        self.bounds += ((shard, *bound) for bound in done.bounds)
        self.why = self.why or done.why
        for name, amount in asdict(done.work).items():
            self.work[name] = self.work.get(name, 0) + amount


@watched
def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Commit the shards of this task; runs in a Python worker, one call a task."""
    batch, versions = current_batch(), current_versions()
    inbox = Inbox(versions, batch.final_through_ms)
    for rows in awaited(batches):
        inbox.take(rows)
    quarantine(inbox.copies.chosen(), batch, versions)
    parts = inbox.parts()
    note_step()
    report = Report(
        ledger=[(p.series, p.start_s, p.row.n) for p in parts if p.vid == LEDGER],
        progress=[(p, at, seen) for p, (at, seen) in inbox.progress.items()],
        fates=inbox.fates,
        codes=inbox.codes,
        late=inbox.late.kept(),
        late_cut=sorted(inbox.late.left_out),
        late_rows=inbox.late_rows.whole(),
        late_rows_cut=sorted(inbox.late_rows.left_out),
        reasons=dict(inbox.reasons),
        unused=dict(inbox.unused),
    )
    if left_out := sum(inbox.late.left_out.values()):
        report.work["late_left_out"] = left_out
    if left_out := inbox.copies.left_out():
        report.work["copies_left_out"] = left_out
    if not batch.accounts:
        parts = [part for part in parts if part.vid == USE or part.vid >= 0]
    for shard, own in by_shard(parts, batch).items():
        report.note(shard, commit(shard, own, batch, versions))
        failpoint("C6")
        if report.short:
            break  # what another shard may raise would take this report along
    yield pa.RecordBatch.from_pydict({"report": [report.to_json()]})


def answer_of(
    rows: Iterator[pa.RecordBatch], counted: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield what a task leaves, or a report of what it failed with; runs in a Python worker.

    Args:
        rows: What the task is handed.
        counted: What it leaves.
    """
    context = TaskContext.get()
    if context is not None and context.attemptNumber():
        for _row in awaited(rows):
            pass  # Spark ends a worker that leaves some of its input
        yield _failed(ENDED)
        return
    try:
        yield from counted
    except Exception as error:  # noqa: BLE001  whatever a definition and a record bring about
        why = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        yield _failed(why, outside=is_outside(error))


def _failed(why: str, *, outside: bool = False) -> pa.RecordBatch:
    report = Report(failed=why, outside=outside)
    return pa.RecordBatch.from_pydict({"report": [report.to_json()]})


def commit(
    shard: int, parts: Sequence[Part], batch: Batch, versions: Mapping[int, Version]
) -> Committed:
    """Commit the parts of a batch to one shard; also called by the driver with none."""
    fence = Fence(batch.fence, batch.definitions_id)
    job = CommitJob(
        shard=shard,
        shards=batch.shards,
        fence=fence,
        epoch=batch.epoch,
        batch=batch.number,
        topic_id=batch.topic_id,
        from_offsets=batch.start,
        to_offsets=batch.end,
        limits={vid: limits_of(version) for vid, version in versions.items()},
        trim_outbox=batch.trim_outbox.get(shard, 0),
        final_through_ms=batch.final_through_ms,
        untold=tuple(one for one in batch.untold if one.shard in (None, shard)),
        lane=batch.lane,
        lane_start=batch.lane_start,
        dry=batch.dry,
    )
    return store(batch.redis_url, shard, batch.secrets_dir).commit(job, parts)


def limits_of(version: Version) -> Limits:
    """Return what bounds the panes of a version in the store."""
    return Limits(
        keep_s=dict(version.keeps),
        max_series=version.max_series,
        lateness_ms=version.lateness_ms,
        by_owner=version.by_owner,
        listed=version.listed,
        sketched=version.sketched,
        gapped=version.gapped,
    )


def by_shard(parts: Iterable[Part], batch: Batch) -> dict[int, list[Part]]:
    """Return the parts by shard, with every shard that this task has to commit."""
    mine = batch.committed_shards()
    if not batch.single:
        context = TaskContext.get()
        own = context.partitionId() if context is not None else 0
        mine = tuple(shard for shard in mine if shard == own)
    found: dict[int, list[Part]] = {shard: [] for shard in mine}
    for part in parts:
        shard, series = placed(part.series, batch.shards)
        if shard in found:
            found[shard].append(part if series == part.series else part._replace(series=series))
    return found


def quarantine(unusable: Sequence[Unusable], batch: Batch, versions: Mapping[int, Version]) -> None:
    """Copy events that a version could not use, with their original bytes, and wait for it."""
    if batch.copies == "none":
        return
    wanted: dict[tuple[int, int], list[Unusable]] = defaultdict(list)
    for one in unusable:
        if one.vid is not None or batch.copies == "all":
            wanted[one.partition, one.offset].append(one)
    if not wanted:
        return
    writer = quarantine_writer(batch.kafka)
    for message in read_records(batch.kafka, batch.topic, wanted):
        place = (message.partition() or 0, message.offset() or 0)
        origin = Origin(batch.topic, batch.topic_id, *place, message.timestamp()[1])
        for one in wanted[place]:
            writer.send(_copy(one, origin, message.value(), versions))
        note_step()
    writer.flush()
    note_step()
    failpoint("C5")


def _copy(one: Unusable, origin: Origin, value: Any, versions: Mapping[int, Version]) -> Copy:
    tenant, source = event_owner(value)
    if one.vid is not None:
        tenant = versions[one.vid].tenant
    missing = {names.HEADER_LEFT_OUT: str(one.left_out).encode()} if one.left_out else None
    return Copy(origin, value, one.code, tenant, source, vid=one.vid, extra=missing)


@cache
def store(url: str, shard: int, secrets_dir: str | None = None) -> ShardStore:
    """Return this process's connection to a shard."""
    password = read_secret(Path(secrets_dir), "redis_password") if secrets_dir else None
    return ShardStore(url, shard, password=password)
