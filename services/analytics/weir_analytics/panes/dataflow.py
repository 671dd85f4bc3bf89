"""The way of a batch, from records of the log to panes in Redis. Read this file first.

Each step is a function from DataFrame to DataFrame in a module of its own; the
comment under a step is what leaves it. There is one pass and one action: the
account of every record, the metrics and what must be quarantined travel as rows of
one frame. There is no Spark state and no watermark, so a batch is a pure function
of its range of the log, and may be run again at any time.

A small batch goes the same way, but its first task reads the range itself, so that
Spark plans the frame once a plan and not once a batch (`small.py`).

What leaves on the side, before the last row of the step does:
  dispose   copies of unusable records -> weir.quarantine; dedup runs -> local disk
  write     copies of what one metric could not use -> weir.quarantine; parts -> Redis
"""

from __future__ import annotations

from functools import lru_cache

from pyspark import RDD
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from weir_analytics.panes.accounts import spread
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.crowded import shard_column
from weir_analytics.panes.decode import classify
from weir_analytics.panes.dispose import dispose
from weir_analytics.panes.plan import KEPT, Plan, settle
from weir_analytics.panes.records import judge, parse
from weir_analytics.panes.small import disposed_range
from weir_analytics.panes.writer import REPORT, write


def dataflow(log: DataFrame, plan: Plan, batch: Batch) -> DataFrame:
    """Connect the steps of a large batch.

    Args:
        log: What the Kafka source read; a partition's records in one task, in order.
        plan: The versions that are counted, as columns. Made once a change.
        batch: The range of the log, and where its parts are committed.
    """
    records = classify(log)
    # partition, offset, at_ms, kind, identity, given, headers, value
    disposed = dispose(records)
    # partition, offset, kind, fate, received_ms, seen, tenant, source, bounds, value
    return route(panes_of(disposed, plan), batch.shards).mapInArrow(write, REPORT)
    # report: one row a task


def small_dataflow(spark: SparkSession, plan: Plan) -> DataFrame:
    """Connect the steps of all small batches of a plan, in one task and without a shuffle."""
    return panes_of(disposed_range(spark), plan).mapInArrow(write, REPORT)


@lru_cache(KEPT)
def small_rows(spark: SparkSession, plan: Plan) -> RDD[Row]:
    """Return the reports of whichever small batch is running, to be collected once a batch.

    Under the batch's local property. As rows and not as a frame: collecting a frame writes
    its Java code anew each time, though it was compiled long ago.
    """
    return small_dataflow(spark, plan).rdd


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
