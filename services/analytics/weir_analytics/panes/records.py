"""Steps in the middle of a batch: parsing once, and the fates that need the content."""

from __future__ import annotations

from functools import lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE
from weir.problems import Reason

from weir_analytics.panes.accounts import received_minute
from weir_analytics.panes.decode import event_identity, event_time_ms
from weir_analytics.panes.kinds import Fate
from weir_analytics.panes.measures import IDENTITY
from weir_analytics.panes.plan import KEPT, UNSEEN, VIEW, Plan


def parse(disposed: DataFrame, plan: Plan) -> DataFrame:
    """Parse the values once, and read each field that some metric reads once.

    Leaves besides: view_<name> (null where there is no value), time_ms.
    """
    return disposed.select(*_parsed(plan)).select(*_viewed(plan))


_DISPOSED = (
    *("partition", "offset", "kind", "fate", "received_ms", "seen", "tenant", "source", "reason"),
    "bounds",
)


@lru_cache(KEPT)
def _parsed(plan: Plan) -> tuple[Column, ...]:
    value = F.col("value")
    found = [event_time_ms(value).alias("time_ms"), plan.schema.parse(value).alias("parsed")]
    if plan.ordered:
        found.append(event_identity(value).alias(IDENTITY))
    return (*map(F.col, _DISPOSED), *found)


def _carried(plan: Plan) -> tuple[str, ...]:
    """Return what is carried along for those metrics that ask which event is the last."""
    return (IDENTITY,) if plan.ordered else ()


@lru_cache(KEPT)
def _viewed(plan: Plan) -> tuple[Column, ...]:
    views = plan.schema.views(F.col("parsed"))
    named = (views[name].alias(VIEW + name) for name in plan.views)
    return (*map(F.col, (*_DISPOSED, "time_ms", *_carried(plan))), *named)


def judge(events: DataFrame, plan: Plan) -> DataFrame:
    """Decide the fates that need what an event says.

    A value that begins like an event but is none was forged by another producer: it
    is quarantined like any other junk. An event is beyond the horizon by R minus
    its time, never by the present.

    Leaves besides: forged (the reason of a record quarantined here), type, a tenant and source
    for each record, minute_s (received), start_<length> of its panes.
    """
    judged = events.select(*_judged(plan))
    return judged.select("*", *plan.forgotten) if plan.forgotten else judged


@lru_cache(KEPT)
def _judged(plan: Plan) -> tuple[Column, ...]:
    fate, event_type = F.col("fate"), F.col(VIEW + "type")
    tenant, source = F.col(VIEW + "weirtenant"), F.col(VIEW + "weirsource")
    is_event = fate <= int(Fate.DUPLICATE)
    forged = is_event & (tenant.isNull() | event_type.isNull())
    old = F.col("received_ms") - F.col("time_ms") > plan.beyond_ms
    judged = (
        F.when(forged, int(Fate.QUARANTINED))
        .when((fate == int(Fate.COUNTED)) & old, int(Fate.BEYOND_HORIZON))
        .otherwise(fate)
    )
    if plan.erased is not None:
        # The first event of an identity: its repetitions are duplicates, as ever.
        judged = F.when(
            is_event & (fate == int(Fate.COUNTED)) & plan.erased, int(Fate.ERASED)
        ).otherwise(judged)
    kept = ("partition", "offset", "kind", "bounds", "received_ms", "seen", "time_ms", "reason")
    unseen = () if plan.unseen is None else (plan.unseen.alias(UNSEEN),)
    return (
        *map(F.col, (*kept, *_carried(plan))),
        *(F.col(VIEW + name) for name in plan.views),
        judged.cast("tinyint").alias("fate"),
        F.when(forged, Reason.NOT_AN_EVENT.value).alias("forged"),
        _named(tenant, "tenant", DEFAULT_TENANT),
        _named(source, "source", FOREIGN_SOURCE),
        event_type.alias("type"),
        received_minute(),
        *unseen,
        *plan.panes,
    )


def _named(said: Column, column: str, default: str) -> Column:
    return F.coalesce(said, F.col(column), F.lit(default)).alias(column)
