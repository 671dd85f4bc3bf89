"""A metric is counted again: its text once more, as a new version that the log fills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.job import Audit
from weir.definitions.jobs import job_named
from weir.definitions.records import Edit, put_record

from weir_analytics.jobs.schedule import BY as SCHEDULE
from weir_analytics.panes.cycle import Cycle

LOG = structlog.get_logger()

BY: Final = "job:"
"""What the author of such a version begins with; the job's name follows."""


def count_again(cycle: Cycle, metric: Definition, job: Definition) -> None:
    """Append the same text as the metric's next version; who edited it since wins.

    Args:
        cycle: Where it is counted.
        metric: Its version in force.
        job: On whose behalf.

    Raises:
        KafkaException: If it was not stored in time; it may be there all the same.
        TimeoutError: The same, or it could not be read.
    """
    by, at_ms = f"{BY}{job.name}", cycle.clock.now_ms()
    edit = Edit(metric.tenant, "metric", metric.name, metric.version, by, at_ms)
    cycle.stores.definitions.append(put_record(edit, metric.text))
    LOG.info("metric_counted_again", tenant=metric.tenant, name=metric.name)


@dataclass(frozen=True)
class Mending:
    """What becomes of metrics that differ.

    Attributes:
        again: The versions to count again.
        still: Those that an audit has made to mend the one before: names.
    """

    again: tuple[Definition, ...]
    still: tuple[str, ...]


def mending(fold: Definitions, job: Definition, differ: Mapping[str, int]) -> Mending:
    """Return what an audit does about metrics that differ; pure.

    Nobody unasked mends what a mend has made: counted once more it would differ once more,
    night by night. One that was edited since it was looked at is left alone.

    Args:
        fold: The definitions.
        job: The audit.
        differ: Metric -> the version that was looked at.
    """
    newest = {name: fold.history(job.tenant, "metric", name)[0] for name in sorted(differ)}
    known = [one for name, one in newest.items() if one.vid == differ[name]]
    still = tuple(one.name for one in known if _is_of_a_mend(fold, one))
    again = [one for one in known if job.by != SCHEDULE or one.name not in still]
    return Mending(tuple(again), still)


def _is_of_a_mend(fold: Definitions, metric: Definition) -> bool:
    job = job_named(fold, metric.tenant, metric.by.removeprefix(BY))
    return metric.by.startswith(BY) and job is not None and isinstance(job.model.do, Audit)
