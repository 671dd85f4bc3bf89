"""Steps in the middle of a batch: parsing once, and the fates that need the content."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE
from weir.problems import Reason

from weir_analytics.panes.accounts import received_minute
from weir_analytics.panes.decode import event_time_ms
from weir_analytics.panes.kinds import Fate
from weir_analytics.panes.plan import EVENT, Plan


def parse(disposed: DataFrame, plan: Plan) -> DataFrame:
    """Parse the values once, and read each field that some metric reads once.

    Leaves besides: e (the fields; null where there is no value), time_ms.
    """
    value = F.col("value")
    parsed = disposed.select(
        "*", event_time_ms(value).alias("time_ms"), plan.schema.parse(value).alias("parsed")
    )
    return parsed.select("*", plan.schema.views(F.col("parsed")).alias(EVENT))


def judge(events: DataFrame, plan: Plan) -> DataFrame:
    """Decide the fates that need what an event says.

    A value that begins like an event but is none was forged by another producer: it
    is quarantined like any other junk. An event is beyond the horizon by R minus
    its time, never by the present.

    Leaves besides: reason (of a record quarantined here), type, a tenant and source
    for each record, minute_s (received), start_<length> of its panes.
    """
    fate, e = F.col("fate"), F.col(EVENT)
    is_event = fate <= int(Fate.DUPLICATE)
    forged = is_event & (e["weirtenant"].isNull() | e["type"].isNull())
    old = F.col("received_ms") - F.col("time_ms") > F.lit(plan.beyond_ms)
    judged = (
        F.when(forged, int(Fate.QUARANTINED))
        .when((fate == int(Fate.COUNTED)) & old, int(Fate.BEYOND_HORIZON))
        .otherwise(fate)
    )
    return events.select(
        *("partition", "offset", "kind", "received_ms", "seen", "time_ms", EVENT),
        judged.cast("tinyint").alias("fate"),
        F.when(forged, Reason.NOT_AN_EVENT.value).alias("reason"),
        _named(e["weirtenant"], "tenant", DEFAULT_TENANT),
        _named(e["weirsource"], "source", FOREIGN_SOURCE),
        e["type"].alias("type"),
        received_minute(),
        *plan.panes,
    )


def _named(said: Column, column: str, default: str) -> Column:
    return F.coalesce(said, F.col(column), F.lit(default)).alias(column)
