"""Trials: whether a plan can be made, and whether it counts some records of the log, for nothing.

A definition may be one of which a plan can be made, and that ends its task all the same as soon as
certain records come: by an error, for want of memory, or since one step of it takes for ever. All
versions are counted by one task, so that would hold up everybody.

A trial is a run of one task that commits nothing. What it fails with is its answer, so it is no
failed job of Spark, which would be run four times, with a minute for each if it hangs.

It reads the log and the store as any other run does, and these may fail now and then. So what it
raises tells whether it is known to be theirs: that says nothing of a version.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weir_analytics.panes.arrow_plan import AnyPlan
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.passing import TrialError, first_line, is_outside
from weir_analytics.panes.plans import Counting, Plans, run
from weir_analytics.panes.turns import GivenUpError
from weir_analytics.panes.writer import Report

# By it the jobs of trials are known that are to be ended.
TAG: Final = "weir-trial"


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


def try_out(
    spark: SparkSession, plan: AnyPlan, batch: Batch, ending: threading.Event | None = None
) -> None:
    """Count a range for nothing.

    What the batch's shards hold is read and merged, too: a row that is there may be the cause.

    Args:
        spark: The session.
        plan: What is counted.
        batch: The range.
        ending: Set when nobody waits for it any more; then see `end_trials`.

    Raises:
        TrialError: If its task failed; says with what.
        GivenUpError: If nobody waits for it any more.
    """
    batch = replace(batch, dry=True, single=True, copies="none")
    try:
        with _to_be_ended(spark, ending):
            texts = run(spark, None, plan, batch)
    except (PySparkException, Py4JError) as error:
        if ending is not None and ending.is_set():
            raise GivenUpError from error
        raise TrialError(first_line(error), is_outside=is_outside(error)) from error
    for report in map(Report.from_json, texts):
        if report.failed:
            raise TrialError(report.failed, is_outside=report.outside)


@contextmanager
def _to_be_ended(spark: SparkSession, ending: threading.Event | None) -> Iterator[None]:
    """Let `end_trials` know what is run."""
    if ending is None:
        yield
        return
    if ending.is_set():
        raise GivenUpError
    spark.sparkContext.addJobTag(TAG)
    try:
        yield
    finally:
        spark.sparkContext.removeJobTag(TAG)


def end_trials(spark: SparkSession) -> None:
    """End the trials that nobody waits for: one that hangs would hold up who ends its thread."""
    with suppress(Py4JError, OSError, AttributeError):  # the JVM is gone, and they with it
        spark.sparkContext.cancelJobsWithTag(TAG)
