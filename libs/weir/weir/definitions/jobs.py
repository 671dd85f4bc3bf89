"""What the driver says of jobs: one record when it begins one, one when it ends.

And one whenever another process begins it again, since the one before has ended on the way. A
record says everything anew, so the last one of a job is its state. What a job must know again
after a crash stands in `facts` of the record that begins it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from weir.audited import Lack, lack_of
from weir.definitions.history import Definition
from weir.definitions.job import Audit, Erase, Job
from weir.definitions.records import DRIVER_PREFIX, FORMAT, NewRecord

RECORD: Final = "job"
KIND: Final = "job"

Withdrawal = Literal["version", "epoch"]
"""What an audit's word no longer holds for: another version serves, or all was counted anew."""


class JobState(StrEnum):
    """Where a job stands."""

    WAITING = "waiting"
    """Nobody has begun it."""
    RUNNING = "running"
    """The driver works on it; after a crash it begins it again."""
    DONE = "done"
    """It ended; its outcome says with what."""
    FAILED = "failed"
    """It ended without what was asked for; its outcome says why."""
    CANCELLED = "cancelled"
    """It was deleted before it had ended; what it had done stays. Never an erasure that holds."""

    @property
    def final(self) -> bool:
        """Whether nothing follows."""
        return self not in (JobState.WAITING, JobState.RUNNING)


@dataclass(frozen=True)
class JobReport:
    """What the driver said last of a job.

    Attributes:
        vid: The job: the offset of its definition's record.
        state: Where it stands.
        at_ms: When this was said, by the driver's clock.
        facts: What it goes on with after a crash.
        outcome: With what it ended; empty while it runs.
        attempts: How many processes have begun it, without those that were told to stop; an
            earlier release does not say it.
    """

    vid: int
    state: JobState
    at_ms: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)
    attempts: int = 1


def job_record(report: JobReport, *, fence: int, by: str = "panes") -> NewRecord:
    """Return the record by which a driver says where a job stands.

    Args:
        report: What it says.
        fence: The driver's fence: readers ignore the record if another has started.
        by: Which driver's.
    """
    value = {
        "v": FORMAT,
        "record": RECORD,
        "job": by,
        "fence": fence,
        "at_ms": report.at_ms,
        "vid": report.vid,
        "state": report.state.value,
        "facts": dict(report.facts),
        "outcome": dict(report.outcome),
        "attempts": report.attempts,
    }
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return NewRecord(f"{DRIVER_PREFIX}{RECORD}".encode(), text.encode())


def read_report(record: Mapping[str, Any]) -> JobReport:
    """Return what a record says.

    Raises:
        ValueError: If it names a state that this release does not know.
        KeyError: If a member is missing.
    """
    return JobReport(
        vid=int(record["vid"]),
        state=JobState(record["state"]),
        at_ms=int(record["at_ms"]),
        facts=dict(record.get("facts") or {}),
        outcome=dict(record.get("outcome") or {}),
        attempts=int(record.get("attempts", 1)),
    )


class Folded(Protocol):
    """The part of the fold that tells of jobs."""

    @property
    def jobs(self) -> Mapping[int, JobReport]:
        """Return the last report of each job, by its vid."""
        ...

    def current(self, tenant: str | None = None, kind: str | None = None) -> list[Definition]:
        """Return the current versions."""
        ...

    def deleted(self, tenant: str, kind: str) -> list[Definition]:
        """Return the deletions of what is no longer there."""
        ...

    def history(self, tenant: str, kind: str, name: str) -> list[Definition]:
        """Return all versions, the newest first."""
        ...


@dataclass(frozen=True)
class JobAsked:
    """A job with where it stands.

    Attributes:
        definition: What was asked for, by whom and when.
        model: The same, typed.
        report: What the driver said last; None: nothing yet.
        cancelled: Whether it has been deleted.
    """

    definition: Definition
    model: Job
    report: JobReport | None
    cancelled: bool

    @property
    def state(self) -> JobState:
        """Where it stands: what the driver said last, unless somebody cancelled it since."""
        said = self.report.state if self.report is not None else JobState.WAITING
        return JobState.CANCELLED if self.stopping and not said.final else said

    @property
    def stopping(self) -> bool:
        """Whether it is to end at once: it was deleted, and is no erasure that holds.

        From where that holds stands in its facts; a deletion may have met them on the way.
        """
        holds = self.report is not None and "offsets" in self.report.facts
        return self.cancelled and not (holds and isinstance(self.model.do, Erase))

    @property
    def open(self) -> bool:
        """Whether the driver still has to do something: work on it, or end it."""
        begun = self.report is not None and not self.report.state.final
        return begun or (self.report is None and not self.cancelled)


def jobs_of(fold: Folded, tenant: str) -> Iterator[JobAsked]:
    """Yield a tenant's jobs, cancelled ones included, in no order.

    One that this release cannot read is left out.
    """
    for definition in fold.current(tenant, KIND):
        if (found := _asked(fold, definition, cancelled=False)) is not None:
            yield found
    for deletion in fold.deleted(tenant, KIND):
        versions = fold.history(tenant, KIND, deletion.name)
        put = next((one for one in versions if not one.deleted), None)
        if put is not None and (found := _asked(fold, put, cancelled=True)) is not None:
            yield found


def job_named(fold: Folded, tenant: str, name: str) -> JobAsked | None:
    """Return one job of a tenant; None if there is none of that name."""
    versions = fold.history(tenant, KIND, name)
    put = next((one for one in versions if not one.deleted), None)
    return None if put is None else _asked(fold, put, cancelled=versions[0].deleted)


@dataclass(frozen=True)
class Compared:
    """What an audit says of a metric.

    Attributes:
        job: The audit.
        report: How it ended.
        told: What its outcome says of the metric.
    """

    job: JobAsked
    report: JobReport
    told: Mapping[str, Any]


@dataclass(frozen=True)
class ComparedNothing:
    """An audit that was to compare a metric, and has ended without.

    Attributes:
        job: The audit.
        report: How it ended.
        why: What kept it from that.
    """

    job: JobAsked
    report: JobReport
    why: Lack


def audits_of(
    fold: Folded, tenant: str, metric: str
) -> tuple[Compared | None, list[ComparedNothing]]:
    """Return the newest audit that compared a metric, and those since that compared nothing of it.

    The newest first. One that counted panes again in which nothing happened, and nothing is
    served, is neither.
    """
    since: list[ComparedNothing] = []
    audits = (one for one in jobs_of(fold, tenant) if isinstance(one.model.do, Audit))
    for one in sorted(audits, key=lambda one: -one.definition.vid):
        report = one.report
        if report is None or one.state not in (JobState.DONE, JobState.FAILED):
            continue
        found = _said_of(metric, report)
        if found is not None and found["verified"] is not None:
            return Compared(one, report, found), since
        if found is not None and not found["panes"]:
            why = lack_of(found) or Lack.NOT_DRAWN
            since.append(ComparedNothing(one, report, why))
        elif one.state is JobState.FAILED and metric in _audited(one, report):
            since.append(ComparedNothing(one, report, Lack.FAILED))
    return None, since


def _said_of(metric: str, report: JobReport) -> Mapping[str, Any] | None:
    told = report.outcome.get("metrics", ())
    return next((one for one in told if one["metric"] == metric), None)


def _audited(job: JobAsked, report: JobReport) -> Collection[str]:
    """Return the metrics that an audit was to compare: before it began only what was named."""
    named = job.model.do.metrics if isinstance(job.model.do, Audit) else ()
    audited: Collection[str] = report.facts.get("metrics", named)
    return audited


def withdrawn_by(told: Mapping[str, Any], vid: int, epoch: int) -> Withdrawal | None:
    """Return what has changed since an audit, so that it says nothing of what is served now.

    Args:
        told: What it says of the metric.
        vid: The version that serves the metric now: an edit, or a mend, makes another one.
        epoch: The epoch now: what was lost, or led back, was counted anew since that began.
    """
    if told.get("vid") != vid:
        return "version"
    return "epoch" if told.get("epoch") != epoch else None


def _asked(fold: Folded, definition: Definition, *, cancelled: bool) -> JobAsked | None:
    model = definition.readable
    if not isinstance(model, Job):
        return None
    return JobAsked(definition, model, fold.jobs.get(definition.vid), cancelled)
