"""Trials: whether a plan can be made, and whether it counts some records of the log, for nothing.

A definition may be one of which a plan can be made, and that ends its task all the same as soon as
certain records come: by an error, for want of memory, or since one step of it takes for ever. All
versions are counted by one task, so that would hold up everybody.

A trial is a run of one task that writes nothing. What it fails with is its answer, so it is no
failed job of Spark, which would be run four times, with a minute for each if it hangs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weir_analytics.panes.arrow_plan import AnyPlan
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.passing import TrialError, first_line
from weir_analytics.panes.plans import Counting, Plans, run
from weir_analytics.panes.writer import Report


@dataclass(frozen=True)
class Trial:
    """What is tried.

    Attributes:
        plans: Makes the plans.
        run: Counts some records by a plan, and raises what it fails with; None: to make it is all.
    """

    plans: Plans
    run: Callable[[AnyPlan], None] | None = None

    def of(self, counting: Counting) -> None:
        """Try to count some versions.

        Raises:
            Exception: Whatever that fails with.
        """
        plan = self.plans.plan_of(counting)
        if self.run is None:
            return
        try:
            self.run(plan)
        except Exception:
            self.plans.drop(counting)
            raise

    def prove(self, base: Counting) -> None:
        """Try to count those versions that are not in doubt, or none.

        Raises:
            Exception: Whatever that fails with; no definition in doubt does.
        """
        self.plans.prove()
        if base.versions or self.run is not None:
            self.of(base)


def try_out(spark: SparkSession, plan: AnyPlan, batch: Batch) -> None:
    """Count a range for nothing.

    What the batch's shards hold is read and merged, too: a row that is there may be the cause.

    Args:
        spark: The session.
        plan: What is counted.
        batch: The range.

    Raises:
        TrialError: If its task failed; says with what.
    """
    batch = replace(batch, dry=True, single=True, copies="none")
    try:
        texts = run(spark, None, plan, batch)
    except (PySparkException, Py4JError) as error:
        raise TrialError(first_line(error)) from error
    for failed in filter(None, (Report.from_json(text).failed for text in texts)):
        raise TrialError(failed)
