"""The plan: what is counted, as Spark columns. Made once a change of the definitions.

The metrics are grouped by event type: one CASE over the type, each branch an array
of the rows of only that type's metrics. So an event costs what its matching metrics
cost, not what all cost (measured with 100 metrics: 83 k events a second, against 34 k
with a test for each metric).

Columns are unresolved expressions and serve every later batch. Making them takes
0.1 s at 10 metrics and up to 2 s at 100, one call to the JVM for each node. The other
steps keep theirs for each plan, too: made anew they cost 7,000 calls a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from weir.definitions.metric import Metric
from weir.sketches import HLL_LG_K

from weir_analytics.panes.accounts import GAP, KEYS, account_rows, no_row, row
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.compile import (
    ENVELOPE,
    EventSchema,
    MetricInputs,
    error_of,
    member_of,
    read_metric,
    series_of,
)
from weir_analytics.panes.kinds import Fate, Kind, Use
from weir_analytics.panes.versions import Version


class ReadViews:
    """The views as columns of their own, noting which of them some metric reads.

    One struct of them would be taken apart by the optimizer and each view written out in every
    place that reads it, hundreds of times with 20 metrics (measured: 1,200 events a
    CPU-second). Columns of their own are computed once.
    """

    def __init__(self) -> None:
        self.names: set[str] = set(ENVELOPE)

    def __getitem__(self, name: str) -> Column:
        self.names.add(name)
        return F.col(VIEW + name)


VIEW = "view_"
# How many plans are kept, and the columns of the steps for each.
KEPT = 8

Keeps = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Counted:
    """One version with its metric: what the tasks and what the columns need."""

    version: Version
    metric: Metric


@dataclass(frozen=True, eq=False)  # columns do not compare: two plans are the same if they are one
class Plan:
    """The columns of every step that depend on the definitions.

    Attributes:
        versions: What is counted.
        schema: Which fields are parsed.
        views: Which members of the views some metric reads.
        panes: Starts of the finest panes of an event, one column a resolution.
        forgotten: Whether an event is too old for all resolutions of some metrics.
        rows: Array of the rows that one event leaves.
        inputs: What the aggregates take of a row.
        aggregates: What is computed of each group.
        outputs: Names of the aggregates after `n`.
        beyond_ms: Events older than this when received are beyond the horizon.
    """

    versions: tuple[Version, ...]
    schema: EventSchema
    views: tuple[str, ...]
    panes: tuple[Column, ...]
    forgotten: tuple[Column, ...]
    rows: Column
    inputs: tuple[Column, ...]
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
    views = ReadViews()
    keeps = {keeps: f"forgotten_{i}" for i, keeps in enumerate(_keeps(counted))}
    rows = F.array(*account_rows())
    if counted:
        by_type = _by_type(counted, schema, views, keeps, guarded=guarded)
        rows = F.concat(rows, by_type)
    inputs = _inputs(counted)
    aggregates = _aggregates(inputs)
    return Plan(
        versions=tuple(one.version for one in counted),
        schema=schema,
        views=tuple(sorted(views.names)),
        panes=tuple(_pane_start(res_s) for res_s in sorted({k[0][0] for k in keeps})),
        forgotten=tuple(_forgotten(found).alias(name) for found, name in keeps.items()),
        rows=rows,
        inputs=tuple(column.alias(name) for name, column in inputs.items()),
        aggregates=(F.count(F.lit(1)).alias("n"), *aggregates.values()),
        outputs=tuple(aggregates),
        beyond_ms=beyond_ms,
    )


def _keeps(counted: Sequence[Counted]) -> list[Keeps]:
    """Return the different resolutions and keeps, which most metrics share."""
    return sorted({one.version.keeps for one in counted})


def _inputs(counted: Iterable[Counted]) -> dict[str, Column]:
    """Return the inputs of the aggregates that somebody asks for, of a row that is used."""
    metrics = [one.metric for one in counted]
    used = F.col("use") == int(Use.USED)
    inputs: dict[str, Column] = {}
    if any(metric.value is not None for metric in metrics):
        inputs["value"] = F.when(used, F.col("value"))
    if any(metric.needs_hll for metric in metrics):
        inputs["member"] = F.when(used, member_of(F.col("marked")))
    for k in sorted({metric.kll_k for metric in metrics if metric.needs_kll}):
        inputs[f"sample_{k}"] = F.when(used & (F.col("sketch") == k), F.col("value"))
    return inputs


def _aggregates(inputs: Iterable[str]) -> dict[str, Column]:
    """Return the aggregates by name. A new aggregate is one more entry here."""
    found: dict[str, Column] = {}
    inputs = set(inputs)
    if "value" in inputs:
        found |= {"sum": F.sum("value"), "min": F.min("value"), "max": F.max("value")}
    if "member" in inputs:
        found["hll"] = F.hll_sketch_agg("member", F.lit(HLL_LG_K))
    for name in sorted(inputs):
        if name.startswith("sample_"):
            k = name.removeprefix("sample_")
            found[f"kll_{k}"] = F.kll_sketch_agg_double(name, F.lit(int(k)))
    return {name: column.alias(name) for name, column in found.items()}


def _by_type(
    counted: Sequence[Counted],
    schema: EventSchema,
    views: ReadViews,
    keeps: Mapping[Keeps, str],
    *,
    guarded: bool,
) -> Column:
    """Return one array of rows for each type: a CASE, with the prefixes in its last branch."""
    inputs = {c.version.vid: read_metric(c.metric, schema, views) for c in counted}
    rows = {
        c.version.vid: F.when(
            _matches(c, inputs[c.version.vid], guarded=guarded),
            _metric_row(c, inputs[c.version.vid], keeps[c.version.keeps]),
        )
        for c in counted
    }
    branches = F.when(F.col("fate") != int(Fate.COUNTED), F.array(no_row()))
    for name in sorted({name for c in counted for name in c.metric.events.exact_types}):
        matching = [rows[c.version.vid] for c in counted if c.metric.events.matches_type(name)]
        branches = branches.when(F.col("type") == name, F.array(*matching))
    rest = [
        F.when(inputs[c.version.vid].selected, rows[c.version.vid])
        for c in counted
        if c.metric.events.type_prefixes
    ]
    return branches.otherwise(F.array(*rest or [no_row()]))


def _matches(counted: Counted, inputs: MetricInputs, *, guarded: bool) -> Column:
    """Tell whether an event of the right type is one of the metric's."""
    version, metric = counted.version, counted.metric
    tests = [F.col("tenant") == version.tenant]
    if metric.where is not None:
        tests.append(inputs.where)
    if metric.events.source:
        tests.append(F.col("source").isin(*metric.events.source))
    tests += _side_of_cuts(version)
    if guarded:
        tests.append(_in_span(version))
    return reduce(Column.__and__, tests)


def _metric_row(counted: Counted, inputs: MetricInputs, forgotten: str) -> Column:
    """Return the row of one metric; the less it holds, the more metrics fit a method."""
    metric = counted.metric
    fields = {
        "vid": F.lit(counted.version.vid),
        "text": inputs.text,
        "start_s": F.col(f"start_{counted.version.finest_s}"),
        "minute_s": F.col("minute_s"),
        "marked": inputs.marked,
        "forgotten": F.col(forgotten),
    }
    if metric.value is not None:
        fields |= {"value": inputs.value, "absent": inputs.absent}
    if metric.needs_kll:
        fields["sketch"] = F.lit(metric.kll_k)
    return row(**fields)


def settle(rows: DataFrame, plan: Plan) -> DataFrame:
    """Judge the rows of all metrics in one way, and give them their keys.

    What a metric cannot use leaves under its reason and its place in the log, to be
    copied to quarantine; what no resolution keeps leaves to be accounted for.
    """
    return rows.select(*_erred()).select(*_used()).select(*_settled(plan))


@cache
def _erred() -> tuple[Column, ...]:
    error = error_of(*(F.col(name) for name in ("value", "absent", "text", "marked")))
    return F.col("*"), F.when(F.col("vid") >= 0, error).alias("error")


def _is_wrong() -> Column:
    return F.col("error").isNotNull()


def _is_forgotten() -> Column:
    return F.coalesce("forgotten", F.lit(False))


@cache
def _used() -> tuple[Column, ...]:
    wrong, forgotten = _is_wrong(), _is_forgotten()
    use = (
        F.when(wrong, int(Use.VALUE_QUARANTINED))
        .when(forgotten, int(Use.PANE_NOT_KEPT))
        .otherwise(int(Use.USED))
    )
    return F.col("*"), use.cast("tinyint").alias("use")


@lru_cache(KEPT)
def _settled(plan: Plan) -> tuple[Column, ...]:
    is_metric, wrong, forgotten = F.col("vid") >= 0, _is_wrong(), _is_forgotten()
    sampled = (F.col("kind") == int(Kind.SAMPLED)).cast("string")
    place = F.concat_ws(GAP, "error", "partition", sampled)
    series = (
        F.when(~is_metric, F.col("text"))
        .when(wrong, place)
        .when(forgotten, F.lit(""))
        .otherwise(series_of(F.col("text")))
    )
    start = F.when(wrong, F.col("offset")).when(forgotten, 0).otherwise(F.col("start_s"))
    return (
        F.col("vid"),
        series.alias("series"),
        start.alias("start_s"),
        F.col("minute_s"),
        F.col("use"),
        *plan.inputs,
    )


def _pane_start(res_s: int) -> Column:
    time_ms, length_ms = F.col("time_ms"), res_s * 1000
    start_ms = time_ms - F.pmod(time_ms, F.lit(length_ms))
    return (start_ms / 1000).cast("bigint").alias(f"start_{res_s}")


def _forgotten(keeps: Keeps) -> Column:
    """Tell whether no resolution keeps the pane any more; the same test as `Version.panes`."""
    start, minute = F.col(f"start_{keeps[0][0]}"), F.col("minute_s")
    return reduce(
        Column.__and__,
        [
            minute > start - F.pmod(start, F.lit(res_s)) + (res_s + keep_s)
            for res_s, keep_s in keeps
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
