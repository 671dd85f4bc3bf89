"""Audits that nobody has to ask for: every so many hours, one of each tenant with metrics."""

from __future__ import annotations

import json
from typing import Any, Final

import structlog
from weir.clock import Clock
from weir.definitions.fold import Definitions
from weir.definitions.jobs import KIND
from weir.definitions.records import Edit, put_record

from weir_analytics.panes.cycle import Cycle
from weir_analytics.settings import Settings

LOG = structlog.get_logger()

BY: Final = "schedule"
HOUR_MS: Final = 3_600_000
RECENT: Final = "24h"
# A driver that has just come up has other things to do.
FIRST_AFTER_S: Final = 600.0
LOOK_EVERY_S: Final = 30.0


class Schedule:
    """Asks for audits by the clock."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._every_ms = settings.audit_hours * HOUR_MS
        self._do = asked_for(settings)
        self._clock = clock
        self._look_at_s = clock.monotonic_s() + FIRST_AFTER_S

    def step(self, cycle: Cycle) -> bool:
        """Ask for the audit of one tenant, if one is due; return whether one was.

        Raises:
            KafkaException: If the log did not confirm it; it may be there all the same, and
                then it is not asked for again.
        """
        now_s = self._clock.monotonic_s()
        if not self._every_ms or now_s < self._look_at_s:
            return False
        self._look_at_s = now_s + LOOK_EVERY_S
        definitions, now_ms = cycle.stores.definitions, self._clock.now_ms()
        due = due_tenants(definitions.fold, now_ms, self._every_ms)
        for tenant in due[:1]:
            name = f"audit_{now_ms}"
            edit = Edit(tenant, KIND, name, None, BY, now_ms)
            definitions.append(
                put_record(edit, json.dumps({"kind": KIND, "name": name, "do": self._do}))
            )
            LOG.info("audit_due", tenant=tenant)
        return bool(due)


def asked_for(settings: Settings) -> dict[str, Any]:
    """Return what is asked for: half of the last day, half of all that the log holds whole.

    So what is new is looked at often, and whatever is old, or came late, or was counted again
    has its turn. But no more of the log than can be read twice in a small part of a day: an audit
    that does not end verifies nothing.
    """
    span = {"last": f"{settings.audit_days}d", "recent": RECENT, "sample": settings.audit_sample}
    most = {"most_records": settings.audit_records}
    return {"job": "audit", **span, **most, "ledger": True, "mend": True}


def due_tenants(fold: Definitions, now_ms: int, every_ms: int) -> list[str]:
    """Return the tenants with metrics whose last audit by schedule is too long ago.

    The longest ago first, so that each has its turn where all of them take longer than `every_ms`.
    None of which one is still under way: reading a long log may take longer than `every_ms`,
    and audits that pile up would verify nothing sooner.

    Args:
        fold: What is known.
        now_ms: The present. What is said to be later was said by a clock that was wrong.
        every_ms: The time between two audits, from one's being asked for to the next.
    """
    asked: dict[str, int] = {}
    under_way: set[str] = set()
    for job in fold.current(kind=KIND):
        if job.by != BY:
            continue
        if job.at_ms <= now_ms:
            asked[job.tenant] = max(job.at_ms, asked.get(job.tenant, 0))
        report = fold.jobs.get(job.vid)
        if report is None or not report.state.final:
            under_way.add(job.tenant)
    tenants = {metric.tenant for metric in fold.current(kind="metric")} - under_way
    due = (t for t in tenants if now_ms - asked.get(t, 0) >= every_ms)
    return sorted(due, key=lambda tenant: (asked.get(tenant, 0), tenant))
