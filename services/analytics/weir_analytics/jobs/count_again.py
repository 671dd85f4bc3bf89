"""A metric is counted again: its text once more, as a new version that the log fills."""

from __future__ import annotations

import structlog
from weir.definitions.history import Definition
from weir.definitions.records import Edit, put_record

from weir_analytics.panes.cycle import Cycle

LOG = structlog.get_logger()


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
    by, at_ms = f"job:{job.name}", cycle.clock.now_ms()
    edit = Edit(metric.tenant, "metric", metric.name, metric.version, by, at_ms)
    cycle.stores.definitions.append(put_record(edit, metric.text))
    LOG.info("metric_counted_again", tenant=metric.tenant, name=metric.name)
