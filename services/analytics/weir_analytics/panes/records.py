"""Steps in the middle of a batch: parsing once, and the fates that need the content."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE
from weir.problems import Reason

from weir_analytics.panes.accounts import received_minute
from weir_analytics.panes.decode import event_time_ms
from weir_analytics.panes.kinds import Fate
from weir_analytics.panes.plan import VIEW, Plan


def parse(disposed: DataFrame, plan: Plan) -> DataFrame:
    """Parse the values once, and read each field that some metric reads once.

    Leaves besides: view_<name> (null where there is no value), time_ms.
    """
    value = F.col("value")
    kept = [F.col(name) for name in disposed.columns if name != "value"]
    parsed = disposed.select(
        *kept, event_time_ms(value).alias("time_ms"), plan.schema.parse(value).alias("parsed")
    )
    kept.append(F.col("time_ms"))
    viewed = parsed.select(*kept, plan.schema.views(F.col("parsed")).alias("views"))
    views = [F.col("views")[name].alias(VIEW + name) for name in plan.views]
    return viewed.select(*kept, *views)


def judge(events: DataFrame, plan: Plan) -> DataFrame:
    """Decide the fates that need what an event says.

    A value that begins like an event but is none was forged by another producer: it
    is quarantined like any other junk. An event is beyond the horizon by R minus
    its time, never by the present.

    Leaves besides: reason (of a record quarantined here), type, a tenant and source
    for each record, minute_s (received), start_<length> of its panes.
    """
    fate, event_type = F.col("fate"), F.col(VIEW + "type")
    tenant, source = F.col(VIEW + "weirtenant"), F.col(VIEW + "weirsource")
    is_event = fate <= int(Fate.DUPLICATE)
    forged = is_event & (tenant.isNull() | event_type.isNull())
    old = F.col("received_ms") - F.col("time_ms") > F.lit(plan.beyond_ms)
    judged = (
        F.when(forged, int(Fate.QUARANTINED))
        .when((fate == int(Fate.COUNTED)) & old, int(Fate.BEYOND_HORIZON))
        .otherwise(fate)
    )
    judged_events = events.select(
        *("partition", "offset", "kind", "received_ms", "seen", "time_ms"),
        *(VIEW + name for name in plan.views),
        judged.cast("tinyint").alias("fate"),
        F.when(forged, Reason.NOT_AN_EVENT.value).alias("reason"),
        _named(tenant, "tenant", DEFAULT_TENANT),
        _named(source, "source", FOREIGN_SOURCE),
        event_type.alias("type"),
        received_minute(),
        *plan.panes,
    )
    return judged_events.select("*", *plan.forgotten) if plan.forgotten else judged_events


def _named(said: Column, column: str, default: str) -> Column:
    return F.coalesce(said, F.col(column), F.lit(default)).alias(column)
