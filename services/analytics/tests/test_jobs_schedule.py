"""When an audit that nobody asked for is due."""

from __future__ import annotations

from weir.definitions.fold import Definitions
from weir.definitions.records import Edit, NewRecord, put_record
from weir_analytics.jobs.schedule import due_tenants

DAY_MS = 86_400_000
METRIC = "kind: metric\nname: amount\nevents: {type: t}\nkeep: {10s: 1h}\n"
AUDIT = '{"do": {"job": "audit"}}'


def metric(tenant: str) -> NewRecord:
    """Return a tenant's metric."""
    return put_record(Edit(tenant, "metric", "amount", None, "test", 0), METRIC)


def audit(tenant: str, name: str, by: str, at_ms: int) -> NewRecord:
    """Return an audit that was asked for."""
    return put_record(Edit(tenant, "job", name, None, by, at_ms), AUDIT)


def folded(*records: NewRecord) -> Definitions:
    """Return the fold of some records."""
    fold = Definitions()
    for offset, record in enumerate(records):
        change = fold.apply(offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
    return fold


def test_each_tenant_is_audited_once_a_day() -> None:
    """Due with metrics and without a younger audit by schedule; others' do not count."""
    fold = folded(
        metric("a"),
        metric("b"),
        audit("a", "j1", "schedule", DAY_MS),
        audit("b", "j2", "somebody", DAY_MS),
    )
    assert due_tenants(fold, 2 * DAY_MS - 1, DAY_MS) == ["b"]
    assert due_tenants(fold, 2 * DAY_MS, DAY_MS) == ["a", "b"]


def test_a_clock_that_was_ahead_puts_no_audit_off() -> None:
    """One that was asked for in a year's time counts from then on; the next one at once."""
    now_ms = 10 * DAY_MS
    ahead = audit("a", "j1", "schedule", now_ms + 365 * DAY_MS)
    assert due_tenants(folded(metric("a"), ahead), now_ms, DAY_MS) == ["a"]
    fold = folded(metric("a"), ahead, audit("a", "j2", "schedule", now_ms))
    assert due_tenants(fold, now_ms + DAY_MS - 1, DAY_MS) == []
    assert due_tenants(fold, now_ms + DAY_MS, DAY_MS) == ["a"]
