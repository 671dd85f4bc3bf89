"""When an audit that nobody asked for is due."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from weir.definitions.check import check
from weir.definitions.fold import Definitions
from weir.definitions.job import Audit, Job
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import DriverStart, Edit, NewRecord, put_record, start_record
from weir_analytics.jobs.schedule import asked_for, due_tenants

from .conftest import settings_for

DAY_MS = 86_400_000
METRIC = "kind: metric\nname: amount\nevents: {type: t}\nkeep: {10s: 1h}\n"
AUDIT = '{"do": {"job": "audit"}}'


def metric(tenant: str) -> NewRecord:
    """Return a tenant's metric."""
    return put_record(Edit(tenant, "metric", "amount", None, "test", 0), METRIC)


def audit(tenant: str, name: str, by: str, at_ms: int) -> NewRecord:
    """Return an audit that was asked for."""
    return put_record(Edit(tenant, "job", name, None, by, at_ms), AUDIT)


def folded(*records: NewRecord, state: JobState | None = JobState.DONE) -> Definitions:
    """Return the fold of some records, in which each job is in some state; None: not begun."""
    fold = Definitions()
    start = start_record(DriverStart("a", 1, "start"), at_ms=0)
    for record in (start, *records):
        put(fold, record)
    if state is not None:
        for job in fold.current(kind="job"):
            put(fold, job_record(JobReport(job.vid, state), fence=0))
    return fold


def put(fold: Definitions, record: NewRecord) -> None:
    """Append a record that must apply."""
    change = fold.apply(fold.next_offset, record.key, record.value)
    assert change is not None
    assert change.applied, change.note


def test_each_tenant_is_audited_once_a_day() -> None:
    """Due with metrics and without a younger audit by schedule; others' do not count."""
    fold = folded(
        metric("a"),
        metric("b"),
        audit("a", "j1", "schedule", DAY_MS),
        audit("b", "j2", "somebody", DAY_MS),
    )
    assert due_tenants(fold, 2 * DAY_MS - 1, DAY_MS) == ["b"]
    assert due_tenants(fold, 2 * DAY_MS, DAY_MS) == ["b", "a"]


def test_who_was_audited_the_longest_ago_is_next() -> None:
    """Also where all of them together take longer than a day; who never was comes first."""
    jobs = [audit(name, f"j{at}", "schedule", at) for at, name in enumerate("cab", 1)]
    fold = folded(*(metric(tenant) for tenant in "abcd"), *jobs)
    assert due_tenants(fold, 9 * DAY_MS, DAY_MS) == ["d", "c", "a", "b"]


def test_a_clock_that_was_ahead_puts_no_audit_off() -> None:
    """One that was asked for in a year's time counts from then on; the next one at once."""
    now_ms = 10 * DAY_MS
    ahead = audit("a", "j1", "schedule", now_ms + 365 * DAY_MS)
    assert due_tenants(folded(metric("a"), ahead), now_ms, DAY_MS) == ["a"]
    fold = folded(metric("a"), ahead, audit("a", "j2", "schedule", now_ms))
    assert due_tenants(fold, now_ms + DAY_MS - 1, DAY_MS) == []
    assert due_tenants(fold, now_ms + DAY_MS, DAY_MS) == ["a"]


@pytest.mark.parametrize("state", [None, JobState.RUNNING, JobState.FAILED])
def test_no_second_one_is_asked_for_while_one_is_under_way(state: JobState | None) -> None:
    """However long it takes; what somebody asked for by hand puts nothing off."""
    jobs = (audit("a", "j1", "schedule", 0), audit("b", "j2", "somebody", 0))
    fold = folded(metric("a"), metric("b"), *jobs, state=state)
    assert due_tenants(fold, 9 * DAY_MS, DAY_MS) == (["a", "b"] if state and state.final else ["b"])


def test_it_looks_at_all_that_the_log_holds(tmp_path: Path) -> None:
    """Half of it of the last day, with the ledger; how far back, and how much, are settings."""
    settings = settings_for(tmp_path)
    for days, sample, most in ((400, 40, 200_000_000), (7, 100, 5_000)):
        changed = {"audit_days": days, "audit_sample": sample, "audit_records": most}
        one = settings.model_copy(update=changed)
        model = check("job", "j1", json.dumps({"do": asked_for(one)})).model
        assert isinstance(model, Job)
        assert isinstance(model.do, Audit)
        assert (model.do.last, model.do.recent) == (days * DAY_MS, DAY_MS)
        assert (model.do.sample, model.do.ledger, model.do.mend) == (sample, True, True)
        assert model.do.most_records == most
    assert (settings.audit_days, settings.audit_sample) == (400, 40)
    assert settings.audit_records == 200_000_000
