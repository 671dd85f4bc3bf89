"""Which plan a batch runs: made when the definitions change, not when a batch comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog
from pyspark.sql import DataFrame, SparkSession
from weir.definitions.fold import Definitions

from weir_analytics.panes.activation import counted
from weir_analytics.panes.batch import PROPERTY, Batch, Offsets
from weir_analytics.panes.dataflow import dataflow, small_dataflow
from weir_analytics.panes.plan import KEPT, Counted, Plan, make_plan
from weir_analytics.panes.versions import PROPERTY as VERSIONS_PROPERTY
from weir_analytics.panes.versions import versions_to_json

LOG = structlog.get_logger()


@dataclass
class Plans:
    """The plans of the definitions as folded so far.

    Attributes:
        beyond_ms: Events older than this when received are beyond the horizon.
        warm: Called with a new plan before the first batch that uses it.
        made: Plans by what they count; outlives a driver's lives.
    """

    definitions: Definitions
    beyond_ms: int
    warm: Callable[[Plan], None]
    made: dict[tuple[object, ...], Plan] = field(default_factory=dict)

    def for_range(self, start: Offsets, end: Offsets, through_s: int) -> Plan:
        """Return the plan for a range of the log."""
        versions: list[Counted] = []
        guarded = False
        for one in counted(self.definitions, through_s):
            covered = one.version.covers(start, end)
            if covered is not False:
                versions.append(one)
                guarded = guarded or covered is None
        return self._plan(versions, guarded=guarded)

    def _plan(self, versions: list[Counted], *, guarded: bool) -> Plan:
        key = (guarded, *(repr(one.version) for one in versions))
        found = self.made.get(key)
        if found is None:
            found = make_plan(versions, self.beyond_ms, guarded=guarded)
            LOG.info("plan_made", versions=[one.version.vid for one in versions], guarded=guarded)
            self.warm(found)
            while len(self.made) >= KEPT:
                self.made.pop(next(iter(self.made)))
            self.made[key] = found
        return found


def run(spark: SparkSession, log: DataFrame | None, plan: Plan, batch: Batch) -> list[str]:
    """Run one batch; return the report of each task.

    Args:
        spark: The session.
        log: The batch's range as Spark's source reads it; a small one has no need of it.
        plan: What is counted.
        batch: The range, and where it is committed.

    Raises:
        ValueError: If a large batch comes without its frame.
    """
    context = spark.sparkContext
    context.setLocalProperty(PROPERTY, batch.to_json())
    context.setLocalProperty(VERSIONS_PROPERTY, versions_to_json(plan.versions))
    if batch.single:
        frame = small_dataflow(spark, plan)
    elif log is not None:
        frame = dataflow(log, plan, batch)
    else:
        msg = f"a batch of {batch.records} records must come with its frame, got none"
        raise ValueError(msg)
    return [row.report for row in frame.collect()]
