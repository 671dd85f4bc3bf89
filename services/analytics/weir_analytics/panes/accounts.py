"""The account of every record: rows that are counted in the same pass as the metrics.

Each record of the log leaves one account row, so that received = counted +
duplicate + quarantined + beyond-horizon + erased holds by construction. After the
groups are made, the account is spread into the panes of the system metrics
(docs/interfaces.md, section 5): ledger, types, use of a version, lateness of each source and of
each of its types. What only
the driver or the writer wants to know (how far a partition came, what became of a
sampled event, which record to quarantine and why others were, who sent late events) travels as
rows of reserved ids, too: one pass over the log, one action a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE, OWNER_PATTERN
from weir.lateness import BEYOND, EDGES_MS

from weir_analytics.panes.compile import series_of
from weir_analytics.panes.kinds import Fate, Kind, Use
from weir_analytics.panes.measures import output_type

LEDGER, TYPES, USE, LATENESS, TYPE_LATENESS = -1, -2, -3, -4, -5
# Not panes: read by the writer and handed on or acted on, never committed.
PROGRESS, FATE, UNREADABLE, LATE, REASONS, LATE_ROWS = -10, -11, -12, -13, -14, -15
SYSTEM_RES_S = 60

# The key of a group. A version's use of an event is part of it, and so is the received
# minute: by it the use is accounted, and by it a pane is kept or not.
KEYS = ("vid", "series", "start_s", "minute_s", "use")

GAP = "\x01"

# A row as an event leaves it; what is the same for all metrics is decided afterwards.
ROW: Mapping[str, str] = {
    "vid": "bigint",
    "text": "string",
    "start_s": "bigint",
    "minute_s": "bigint",
    "value": "double",
    "absent": "boolean",
    "marked": "string",
    "sketch": "int",
    "forgotten": "boolean",
}


def row_of(also: Mapping[str, str], **fields: Column) -> Column:
    """Return one row, null where nothing is given.

    Args:
        also: Members besides those of `ROW`, that some metric of the plan asks for.
        **fields: What is given.
    """
    kinds = {**ROW, **also}
    return F.struct(
        *(fields.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in kinds.items())
    )


def no_row(also: Mapping[str, str]) -> Column:
    """Return null, of the type of a row."""
    kinds = ", ".join(f"{name}: {kind}" for name, kind in {**ROW, **also}.items())
    return F.lit(None).cast(f"struct<{kinds}>")


def account_rows(also: Mapping[str, str], late_start: Column | None = None) -> list[Column]:
    """Return the rows that each record leaves besides those of the metrics.

    Reads: partition, offset, kind, fate, reason, forged, received_ms, seen, tenant, source,
    type, time_ms, minute_s.

    Args:
        also: See `row_of`.
        late_start: What `late_start` returned; None while there are no metrics.
    """
    row = partial(row_of, also)
    fate = F.col("fate")
    sampled = F.col("kind") == int(Kind.SAMPLED)
    disposition = F.lit(Fate.COUNTED.disposition)
    for other in (Fate.DUPLICATE, Fate.QUARANTINED, Fate.BEYOND_HORIZON, Fate.ERASED):
        disposition = F.when(fate == int(other), other.disposition).otherwise(disposition)
    counted = fate == int(Fate.COUNTED)
    # Of a record that is quarantined its reason stands where others have their type.
    reason = F.coalesce("forged", "reason")
    kept_type = F.when(counted, F.col("type")).otherwise(F.coalesce(reason, F.lit("")))
    bucket = F.when(counted, _lateness_bucket()).otherwise("")
    nowhere = F.lit(None).cast("bigint")
    account = row(
        vid=F.lit(LEDGER),
        # Ours first: what a record says of itself may hold the sign that divides them.
        text=F.concat_ws(GAP, disposition, bucket, "tenant", "source", kept_type),
        start_s=nowhere if late_start is None else F.when(counted, late_start),
        minute_s=F.col("minute_s"),
    )
    progress = row(
        vid=F.lit(PROGRESS),
        text=F.col("partition"),
        start_s=F.col("received_ms"),
        minute_s=F.col("seen"),
    )
    fate_of_sampled = row(
        vid=F.lit(FATE),
        text=F.concat_ws(GAP, "partition", disposition, F.coalesce(reason, F.lit(""))),
        start_s=F.col("offset"),
    )
    unreadable = row(
        vid=F.lit(UNREADABLE),
        text=F.concat_ws(GAP, "forged", "partition", sampled.cast("string")),
        start_s=F.col("offset"),
    )
    return [
        F.when(fate != int(Fate.TICK), account),
        F.when(F.col("seen").isNotNull(), progress),
        F.when(sampled, fate_of_sampled),
        F.when(F.col("forged").isNotNull(), unreadable),
    ]


def late_start(finest_s: int, lateness_ms: int) -> Column:
    """Return where the finest pane of an event starts, if the event may be late; else null.

    Every event that changes a pane which was final has one: a batch is told that a pane
    is final by processed-through of the batch before, and no R of its own is below that.
    What was not final is left out by the writer (`versions.late_panes`): columns are made
    once for many batches.

    Args:
        finest_s: Length of the shortest panes of all metrics, whose starts are a column.
        lateness_ms: The least lateness that a metric allows.
    """
    start = F.col(f"start_{finest_s}")
    final_ms = (start + finest_s) * 1000 + lateness_ms
    return F.when(F.col("received_ms") >= final_ms, start)


def _lateness_bucket() -> Column:
    """Return the upper edge of each event's lateness; most events end at the first edges."""
    late_ms, first = F.col("received_ms") - F.col("time_ms"), EDGES_MS[0]
    bucket = F.when(late_ms <= first, str(first))
    for edge in EDGES_MS[1:]:
        bucket = bucket.when(late_ms <= edge, str(edge))
    return bucket.otherwise(BEYOND)


def received_minute() -> Column:
    """Return the received minute of a record, in epoch seconds."""
    received_ms = F.col("received_ms")
    start_ms = received_ms - F.pmod(received_ms, F.lit(SYSTEM_RES_S * 1000))
    return (start_ms / 1000).cast("bigint").alias("minute_s")


def spread(groups: DataFrame, outputs: Sequence[str]) -> DataFrame:
    """Turn groups into rows of panes: system metrics get theirs from the account.

    A row may come out several times under one key (one for each type in the ledger,
    one for each series in the use of a version); the writer merges them.
    """
    rows = groups.select(_derived(tuple(outputs))).where(F.col("row").isNotNull())
    return rows.select("row.*")


@lru_cache(8)
def _derived(outputs: tuple[str, ...]) -> Column:
    kept = [F.col(name) for name in ("n", *outputs)]
    bare = [F.col("n"), *(F.lit(None).cast(output_type(o)).alias(o) for o in outputs)]
    parts = F.split("series", GAP, 5)
    ledger = F.col("vid") == LEDGER
    disposition, bucket, (tenant, source) = parts[0], parts[1], _owner(parts[2], parts[3])
    counted = ledger & (disposition == Fate.COUNTED.disposition)
    quarantined = ledger & (disposition == Fate.QUARANTINED.disposition)
    of_type = series_text(tenant, source, bucket, parts[4])
    late = counted & F.col("start_s").isNotNull()
    own = (F.col("vid") < USE) | ((F.col("vid") >= 0) & (F.col("use") != int(Use.PANE_NOT_KEPT)))
    derived = F.array(
        F.when(own, _pane("vid", "series", F.col("start_s"), kept)),
        F.when(ledger, _pane(LEDGER, series_text(tenant, source, disposition), None, bare)),
        F.when(counted, _pane(TYPES, series_text(tenant, source, parts[4]), None, bare)),
        F.when(counted, _pane(LATENESS, series_text(tenant, source, bucket), None, bare)),
        F.when(counted, _pane(TYPE_LATENESS, of_type, None, bare)),
        F.when(quarantined, _pane(REASONS, parts[4], None, bare)),
        F.when(late, _pane(LATE, _joined(tenant, source, parts[4]), F.col("start_s"), bare)),
        F.when(F.col("vid") >= 0, _pane(USE, series_text(F.col("vid"), _use()), None, bare)),
    )
    return F.explode_outer(derived).alias("row")


def _joined(*values: Column) -> Column:
    return F.concat_ws(GAP, *values)


def series_text(*values: Column) -> Column:
    """Return the series text of values that are never null, as `weir.series` writes it."""
    escaped = (F.replace(v.cast("string"), F.lit("\\"), F.lit("\\\\")) for v in values)
    text = F.concat_ws(
        "|", *(F.concat(F.lit("="), F.replace(v, F.lit("|"), F.lit("\\|"))) for v in escaped)
    )
    return series_of(text)


def _pane(
    vid: str | int, series: str | Column, start_s: Column | None, rest: list[Column]
) -> Column:
    return F.struct(
        (F.col(vid) if isinstance(vid, str) else F.lit(vid).cast("bigint")).alias("vid"),
        (F.col(series) if isinstance(series, str) else series).alias("series"),
        (F.col("minute_s") if start_s is None else start_s).alias("start_s"),
        "minute_s",
        "use",
        *rest,
    )


def _owner(tenant: Column, source: Column) -> tuple[Column, Column]:
    """Return what `weir.event.owner` does, so that no series of the ledger is ever cut."""
    allowed = F.lit(f"^{OWNER_PATTERN}\\z")
    return (
        F.when(F.rlike(tenant, allowed), tenant).otherwise(DEFAULT_TENANT),
        F.when(F.rlike(source, allowed), source).otherwise(FOREIGN_SOURCE),
    )


def _use() -> Column:
    name = F.lit(Use.USED.label)
    for use in (Use.VALUE_QUARANTINED, Use.PANE_NOT_KEPT):
        name = F.when(F.col("use") == int(use), use.label).otherwise(name)
    return name
