"""The way of a batch, from records of the log to panes in Redis. Read this file first.

There is one pass and one action: the account of every record, the metrics and what must
be quarantined travel as rows of one frame. There is no Spark state and no watermark, so a
batch is a pure function of its range of the log, and may be run again at any time.

The tasks of a plan in Arrow read the log themselves and take all steps up to the shuffle in
one function: `arrow_count.py` is the file to read next. The steps of a plan of columns are
functions from DataFrame to DataFrame, each in a module of its own; the comment under a step
is what leaves it. Both leave the same rows.

A small batch is one task's, so that Spark plans its frame once a plan and not once a batch
(`small.py`).

What leaves on the side, before the last row of the step does:
  dispose   copies of unusable records -> weir.quarantine; dedup runs -> local disk
  write     copies of what one metric could not use -> weir.quarantine; parts -> Redis
"""

from __future__ import annotations

from functools import lru_cache, partial

from pyspark import RDD
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from weir_analytics.panes.accounts import spread
from weir_analytics.panes.arrow_count import count_and_write, count_log, count_range
from weir_analytics.panes.arrow_plan import AnyPlan, ArrowPlan
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.crowded import shard_column
from weir_analytics.panes.decode import classify
from weir_analytics.panes.dispose import dispose
from weir_analytics.panes.plan import KEPT, Plan, settle
from weir_analytics.panes.records import judge, parse
from weir_analytics.panes.small import disposed_range
from weir_analytics.panes.writer import REPORT, write


def dataflow(log: DataFrame, plan: AnyPlan, batch: Batch) -> DataFrame:
    """Connect the steps of a large batch.

    Args:
        log: What the Kafka source read; a partition's records in one task, in order.
        plan: The versions that are counted. Made once a change.
        batch: The range of the log, and where its parts are committed.
    """
    records = classify(log)
    # partition, offset, at_ms, kind, identity, given, headers, value
    if isinstance(plan, ArrowPlan):
        counted = records.mapInArrow(partial(count_log, plan.told, plan.outputs), plan.schema)
        # what `panes_of` leaves; each task's own groups
        return route(counted, batch.shards).mapInArrow(write, REPORT)
    disposed = dispose(records)
    # partition, offset, kind, fate, received_ms, seen, tenant, source, bounds, value
    return route(panes_of(disposed, plan), batch.shards).mapInArrow(write, REPORT)
    # report: one row a task


def read_dataflow(spark: SparkSession, plan: ArrowPlan, batch: Batch) -> DataFrame:
    """Connect the steps of a large batch whose tasks read the log themselves.

    Each has a part of the partitions. To take a record from the broker costs a worker less
    than to be handed it by the JVM (docs/decisions/0032).
    """
    tasks = max(1, min(spark.sparkContext.defaultParallelism, len(batch.end)))
    run = partial(count_range, plan.told, plan.outputs, tasks)
    counted = spark.range(0, tasks, 1, tasks).mapInArrow(run, plan.schema)
    return route(counted, batch.shards).mapInArrow(write, REPORT)


def small_dataflow(spark: SparkSession, plan: AnyPlan, tasks: int = 1) -> DataFrame:
    """Connect the steps of all small batches of a plan, in one task and without a shuffle.

    In Arrow several tasks may have a batch each, of lanes that are counted side by side.
    """
    if isinstance(plan, ArrowPlan):
        run = partial(count_and_write, plan.told, plan.outputs)
        return spark.range(0, tasks, 1, tasks).mapInArrow(run, REPORT)
    return panes_of(disposed_range(spark), plan).mapInArrow(write, REPORT)


@lru_cache(KEPT)
def small_rows(spark: SparkSession, plan: AnyPlan, tasks: int = 1) -> RDD[Row]:
    """Return the reports of whichever small batches are running, to be collected once a batch.

    Under the batch's local property. As rows and not as a frame: collecting a frame writes
    its Java code anew each time, though it was compiled long ago.
    """
    return small_dataflow(spark, plan, tasks).rdd


def panes_of(disposed: DataFrame, plan: Plan) -> DataFrame:
    """Make rows of panes of the records whose fate is known."""
    events = judge(parse(disposed, plan), plan)
    # … view_<name> (the fields that metrics read), time_ms, reason, forged, type, minute_s,
    # start_<s>
    rows = settle(explode(events, plan), plan)
    # vid, series, start_s, minute_s, use, and the inputs that some metric asks for (`measures.py`)
    groups = aggregate(rows, plan)
    # vid, series, start_s, minute_s, use, n, sum, min, max, hll_<lgk>, kll_<k>, …
    return spread(groups, plan.outputs)
    # the same, system metrics in their own series


def explode(events: DataFrame, plan: Plan) -> DataFrame:
    """Leave a row for the account of each record, and one for each metric it matches."""
    # The array is made in a projection of its own: a generator that makes it itself is
    # evaluated without generated code as soon as that grows beyond one stage.
    place = ("partition", "offset", "kind", "bounds")
    rows = events.select(*place, plan.rows.alias("rows"))
    # `outer`, although no array is empty: before a plain `explode` the optimizer puts a
    # filter "is not empty", which makes the array, and parses the event, once more.
    rows = rows.select(*place, F.explode_outer("rows").alias("row"))
    return rows.where(F.col("row").isNotNull()).select(*place, "row.*")


def aggregate(rows: DataFrame, plan: Plan) -> DataFrame:
    """Add up the rows of one pane of one series."""
    return rows.groupBy(*plan.keys).agg(*plan.aggregates)


def route(panes: DataFrame, shards: int) -> DataFrame:
    """Bring the rows of shard i to task i."""
    return panes.repartitionById(shards, shard_column(F.col("series"), shards).cast("int"))
