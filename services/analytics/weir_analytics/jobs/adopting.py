"""Adopt: somebody has decided to go on with a log to which the state does not belong.

A driver that finds the state of another log, or a log that was cut short, ends (FOREIGN)
and waits to be started again. The next start takes the decision once: it records what is
given up by it before it gives anything up, and goes on. Counting then ends the job.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, Final

import structlog
from weir.clock import Clock
from weir.commit import Verdict
from weir.commit_found import Found, Recovery
from weir.commit_recovery import reconcile
from weir.definitions.fold import Definitions
from weir.definitions.job import Adopt
from weir.definitions.jobs import JobAsked, JobReport, JobState, job_record
from weir.event import DEFAULT_TENANT

from weir_analytics.jobs.open_jobs import open_jobs
from weir_analytics.panes.definitions_log import DefinitionsLog

LOG = structlog.get_logger()

TOLD_GAPS: Final = 100


def decided(fold: Definitions) -> JobAsked | None:
    """Return the oldest decision that was not used up yet; None without one.

    The log is everybody's, so only the installation's own tenant decides.
    """
    found = (
        one
        for one in open_jobs(fold)
        if isinstance(one.model.do, Adopt)
        and one.definition.tenant == DEFAULT_TENANT
        and not one.cancelled
    )
    return next(found, None)


def adopted(
    found: Found, refused: Recovery, definitions: DefinitionsLog, *, fence: int, clock: Clock
) -> Recovery:
    """Return how a driver goes on that must not without a decision, if there is one.

    What is given up is recorded first. A crash from there on finds the decision again.

    Args:
        found: What the driver found.
        refused: What it has to do without a decision: nothing, FOREIGN.
        definitions: Where decisions stand; read to its end.
        fence: The driver's fence.
        clock: For the instant of the record.
    """
    asked = decided(definitions.fold)
    if refused.verdict is not Verdict.FOREIGN or asked is None:
        return refused
    recovery = reconcile(replace(found, adopt=True))
    outcome = given_up(refused, recovery)
    report = JobReport(
        asked.definition.vid, JobState.RUNNING, clock.now_ms(), facts={"given_up": outcome}
    )
    definitions.append(job_record(report, fence=fence))
    LOG.error("log_adopted", by=asked.definition.by, **outcome)
    return recovery


def given_up(refused: Recovery, recovery: Recovery) -> dict[str, Any]:
    """Return what going on gives up: why it needed a decision, what is done, what is gone."""
    return {
        "because": refused.reason,
        "then": recovery.reason,
        "cleared_shards": list(recovery.clear),
        "gone": [asdict(gap) | {"count": gap.count} for gap in recovery.gaps[:TOLD_GAPS]],
    }
