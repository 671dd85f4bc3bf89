"""The plan: what is counted, as Spark columns. Made once a change of the definitions.

The metrics are grouped by event type: one CASE over the type, each branch an array
of the rows of only that type's metrics. So an event costs what its matching metrics
cost, not what all cost (SPARK 4: with 100 metrics 83 k events a second, against 34 k
with a test for each metric).

Columns are unresolved expressions and serve every later batch. Making them takes
0.1 s at 10 metrics and up to 2 s at 100, one call to the JVM for each node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from weir.definitions.metric import Metric
from weir.sketches import HLL_LG_K

from weir_analytics.panes.accounts import GAP, KEYS, Shape, account_rows
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.compile import EventSchema, MetricColumns, compile_metric
from weir_analytics.panes.kinds import Fate, Kind, Use
from weir_analytics.panes.versions import Version

EVENT = "e"


@dataclass(frozen=True)
class Counted:
    """One version with its metric: what the tasks and what the columns need."""

    version: Version
    metric: Metric


@dataclass(frozen=True)
class Plan:
    """The columns of every step that depend on the definitions.

    Attributes:
        versions: What is counted.
        schema: Which fields are parsed.
        panes: Starts of the finest panes of an event, one column a resolution.
        rows: Array of the rows that one event leaves.
        aggregates: What is computed of each group.
        outputs: Names of the aggregates after `n`.
        beyond_ms: Events older than this when received are beyond the horizon.
    """

    versions: tuple[Version, ...]
    schema: EventSchema
    panes: tuple[Column, ...]
    rows: Column
    aggregates: tuple[Column, ...]
    outputs: tuple[str, ...]
    beyond_ms: int
    keys: tuple[str, ...] = KEYS


def make_plan(counted: Sequence[Counted], beyond_ms: int, *, guarded: bool = False) -> Plan:
    """Return the columns for some versions.

    Args:
        counted: The versions, each with its metric.
        beyond_ms: See `Plan`.
        guarded: Test each event's offset against each version's span of the log. Only
            a range that straddles the start or end of a version needs it: such a
            batch is run again after a crash, levelled or recounted.
    """
    schema = EventSchema.of(one.metric for one in counted)
    shape = Shape(_inputs(counted))
    by_type = _by_type(counted, schema, shape, guarded=guarded)
    account = F.array(*account_rows(shape))
    rows = account
    if by_type is not None:
        matched = F.when(F.col("fate") == int(Fate.COUNTED), by_type)
        rows = F.when(matched.isNull(), account).otherwise(F.concat(account, matched))
    aggregates = _aggregates(shape.inputs)
    return Plan(
        versions=tuple(one.version for one in counted),
        schema=schema,
        panes=tuple(_pane_start(res_s) for res_s in sorted({c.version.finest_s for c in counted})),
        rows=rows,
        aggregates=(F.count(F.lit(1)).alias("n"), *aggregates.values()),
        outputs=tuple(aggregates),
        beyond_ms=beyond_ms,
    )


def _inputs(counted: Iterable[Counted]) -> dict[str, str]:
    """Return the inputs of the aggregates that somebody asks for, with their types."""
    metrics = [one.metric for one in counted]
    inputs: dict[str, str] = {}
    if any(metric.value is not None for metric in metrics):
        inputs["value"] = "double"
    if any(metric.needs_hll for metric in metrics):
        inputs["member"] = "string"
    for k in sorted({metric.kll_k for metric in metrics if metric.needs_kll}):
        inputs[f"sample_{k}"] = "double"
    return inputs


def _aggregates(inputs: Mapping[str, str]) -> dict[str, Column]:
    """Return the aggregates by name. A new aggregate is one more entry here."""
    found: dict[str, Column] = {}
    if "value" in inputs:
        found |= {"sum": F.sum("value"), "min": F.min("value"), "max": F.max("value")}
    if "member" in inputs:
        found["hll"] = F.hll_sketch_agg("member", F.lit(HLL_LG_K))
    for name in inputs:
        if name.startswith("sample_"):
            k = name.removeprefix("sample_")
            found[f"kll_{k}"] = F.kll_sketch_agg_double(name, F.lit(int(k)))
    return {name: column.alias(name) for name, column in found.items()}


def _by_type(
    counted: Sequence[Counted], schema: EventSchema, shape: Shape, *, guarded: bool
) -> Column | None:
    """Return one array of rows for each type: a CASE, with the prefixes in its last branch."""
    if not counted:
        return None
    views = F.col(EVENT)
    columns = {c.version.vid: compile_metric(c.metric, schema, views) for c in counted}
    rows = {
        c.version.vid: _metric_row(c, columns[c.version.vid], shape, guarded=guarded)
        for c in counted
    }
    types = sorted({name for c in counted for name in c.metric.events.exact_types})
    branches: Column | None = None
    for name in types:
        matching = [rows[c.version.vid] for c in counted if c.metric.events.matches_type(name)]
        test = F.col("type") == name
        array = F.array(*matching)
        branches = F.when(test, array) if branches is None else branches.when(test, array)
    rest = [
        F.when(columns[c.version.vid].selected, rows[c.version.vid])
        for c in counted
        if c.metric.events.type_prefixes
    ]
    if not rest:
        return branches
    return F.array(*rest) if branches is None else branches.otherwise(F.array(*rest))


def _metric_row(counted: Counted, columns: MetricColumns, shape: Shape, *, guarded: bool) -> Column:
    """Return the row of one metric, null where the event does not match it."""
    version, metric = counted.version, counted.metric
    tests = [F.col("tenant") == version.tenant, columns.where]
    if metric.events.source:
        tests.append(F.col("source").isin(*metric.events.source))
    tests += _side_of_cuts(version)
    if guarded:
        tests.append(_in_span(version))
    matched = reduce(Column.__and__, tests)
    place = F.concat_ws(
        GAP, columns.error, "partition", (F.col("kind") == int(Kind.SAMPLED)).cast("string")
    )
    vid, minute = F.lit(version.vid), F.col("minute_s")
    unusable = shape.row(
        vid=vid,
        series=place,
        start_s=F.col("offset"),
        minute_s=minute,
        use=F.lit(int(Use.VALUE_QUARANTINED)),
    )
    forgotten = shape.row(
        vid=vid,
        series=F.lit(""),
        start_s=F.lit(0),
        minute_s=minute,
        use=F.lit(int(Use.PANE_NOT_KEPT)),
    )
    used = shape.row(
        vid=vid,
        series=columns.series,
        start_s=F.col(f"start_{version.finest_s}"),
        minute_s=minute,
        use=F.lit(int(Use.USED)),
        **_values(metric, columns),
    )
    return (
        F.when(~matched, F.lit(None))
        .when(columns.error.isNotNull(), unusable)
        .when(_is_forgotten(version), forgotten)
        .otherwise(used)
    )


def _values(metric: Metric, columns: MetricColumns) -> dict[str, Column]:
    values: dict[str, Column] = {}
    if metric.value is not None:
        values["value"] = columns.value
    if metric.needs_hll:
        values["member"] = columns.distinct
    if metric.needs_kll:
        values[f"sample_{metric.kll_k}"] = columns.value
    return values


def _pane_start(res_s: int) -> Column:
    time_ms, length_ms = F.col("time_ms"), res_s * 1000
    start_ms = time_ms - F.pmod(time_ms, F.lit(length_ms))
    return (start_ms / 1000).cast("bigint").alias(f"start_{res_s}")


def _is_forgotten(version: Version) -> Column:
    """Tell whether no resolution keeps the pane any more; the same test as `Version.panes`."""
    start, minute = F.col(f"start_{version.finest_s}"), F.col("minute_s")
    return reduce(
        Column.__and__,
        [
            minute > start - F.pmod(start, F.lit(res_s)) + (res_s + keep_s)
            for res_s, keep_s in version.keeps
        ],
    )


def _side_of_cuts(version: Version) -> list[Column]:
    """Return a test whether any resolution's pane of an event is this version's."""
    if not version.cut_from and not version.cut_until:
        return []
    start = F.col(f"start_{version.finest_s}")
    sides: list[Column] = []
    for res_s, _keep_s in version.keeps:
        pane = start - F.pmod(start, F.lit(res_s))
        side = F.lit(True)
        if res_s in version.cut_from:
            side = side & (pane >= version.cut_from[res_s])
        if res_s in version.cut_until:
            side = side & (pane < version.cut_until[res_s])
        sides.append(side)
    return [reduce(Column.__or__, sides)]


def _in_span(version: Version) -> Column:
    """Tell whether an event's offset lies between a version's start and end."""
    inside = F.col("offset") >= _offset_of(version.begin, 0)
    if version.finish is not None:
        inside = inside & (F.col("offset") < _offset_of(version.finish, 0))
    return inside


def _offset_of(offsets: Offsets, default: int) -> Column:
    column = F.lit(default).cast("bigint")
    for partition, offset in offsets.items():
        column = F.when(F.col("partition") == partition, offset).otherwise(column)
    return column
