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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from weir.definitions.history import Horizons
from weir.definitions.metric import Metric

from weir_analytics.panes.accounts import GAP, KEYS, account_rows, late_start, no_row, row_of
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.compile import (
    ENVELOPE,
    EventSchema,
    MetricInputs,
    error_of,
    read_metric,
    series_of,
)
from weir_analytics.panes.compile_views import View
from weir_analytics.panes.crowded import counted_as
from weir_analytics.panes.erased import SUBJECT, Erased
from weir_analytics.panes.kinds import Fate, Kind, Use
from weir_analytics.panes.measures import Measured, aggregates
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
UNSEEN = "unseen"
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
        marked: Names of the marked texts of a row.
        ordered: Whether events carry their identity, for whoever asks which is the last.
        erased: Whether an event is about somebody who was erased; None while nobody is.
        unseen: Whether one is about somebody who was erased later, so that no version sees it.
        beyond_ms: How old an event is when received that is beyond the horizon, if older.
        shards: How many shards there are.
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
    marked: tuple[str, ...]
    ordered: bool
    erased: Column | None
    unseen: Column | None
    beyond_ms: Column
    shards: int
    keys: tuple[str, ...] = KEYS


def column_plan(
    counted: Sequence[Counted],
    horizons: Sequence[Horizons],
    *,
    guarded: bool = False,
    erased: Erased | None = None,
    shards: int = 1,
) -> Plan:
    """Return the columns for some versions.

    Args:
        counted: The versions, each with its metric.
        horizons: By what the range is counted; see `weir.horizons`.
        guarded: Test each event's offset against each version's span of the log. Only
            a range that straddles the start or end of a version needs it: such a
            batch is run again after a crash, levelled or recounted.
        erased: Whose events count no more; None: nobody's.
        shards: How many shards there are.
    """
    schema = EventSchema.of(one.metric for one in counted)
    if erased is not None:
        schema = EventSchema.reading((*schema.reads, SUBJECT))
    views = ReadViews()
    keeps = {keeps: f"forgotten_{i}" for i, keeps in enumerate(_keeps(counted))}
    measured = Measured(one.metric for one in counted)
    rows = F.array(*account_rows(measured.fields, _late_start(counted)))
    if counted:
        read = _Read(counted, schema, views, measured)
        hidden = F.col("fate") != int(Fate.COUNTED)
        if erased is not None and erased.later:
            hidden = hidden | F.col(UNSEEN)
        rows = F.concat(rows, _by_type(counted, read, keeps, hidden, guarded=guarded))
    inputs = measured.inputs()
    found = aggregates(inputs)
    about, unseen = _gone(erased, schema, views)
    return Plan(
        versions=tuple(one.version for one in counted),
        schema=schema,
        views=tuple(sorted(views.names)),
        panes=tuple(_pane_start(res_s) for res_s in sorted({k[0][0] for k in keeps})),
        forgotten=tuple(_forgotten(found).alias(name) for found, name in keeps.items()),
        rows=rows,
        inputs=tuple(column.alias(name) for name, column in inputs.items()),
        aggregates=(F.count(F.lit(1)).alias("n"), *found.values()),
        outputs=tuple(found),
        marked=measured.marked,
        ordered=measured.ordered,
        erased=about,
        unseen=unseen,
        beyond_ms=_beyond_ms(horizons),
        shards=shards,
    )


def _gone(
    erased: Erased | None, schema: EventSchema, views: ReadViews
) -> tuple[Column | None, Column | None]:
    """Return whether an event is about somebody who was erased, and whether later."""
    if erased is None:
        return None, None
    subject = schema.view(views, *SUBJECT)
    return (
        erased.about(subject) if erased.subjects else None,
        erased.about_later(subject) if erased.later else None,
    )


def _keeps(counted: Sequence[Counted]) -> list[Keeps]:
    """Return the different resolutions and keeps, which most metrics share."""
    return sorted({one.version.keeps for one in counted})


def _late_start(counted: Sequence[Counted]) -> Column | None:
    versions = [one.version for one in counted]
    if not versions:
        return None
    return late_start(min(v.finest_s for v in versions), min(v.lateness_ms for v in versions))


class _Read:
    """What every metric of a plan reads of an event."""

    def __init__(
        self,
        counted: Sequence[Counted],
        schema: EventSchema,
        views: ReadViews,
        measured: Measured,
    ) -> None:
        self.measured = measured
        self.inputs = {c.version.vid: read_metric(c.metric, schema, views) for c in counted}
        self.members = {
            c.version.vid: [schema.view(views, path, View.MARKED) for path in c.metric.members]
            for c in counted
        }


def _by_type(
    counted: Sequence[Counted],
    read: _Read,
    keeps: Mapping[Keeps, str],
    hidden: Column,
    *,
    guarded: bool,
) -> Column:
    """Return one array of rows for each type: a CASE, with the prefixes in its last branch.

    What is `hidden` leaves none.
    """
    inputs, nothing = read.inputs, no_row(read.measured.fields)
    rows = {
        c.version.vid: F.when(
            _matches(c, inputs[c.version.vid], guarded=guarded),
            _metric_row(c, read, keeps[c.version.keeps]),
        )
        for c in counted
    }
    branches = F.when(hidden, F.array(nothing))
    for name in sorted({name for c in counted for name in c.metric.events.exact_types}):
        matching = [rows[c.version.vid] for c in counted if c.metric.events.matches_type(name)]
        branches = branches.when(F.col("type") == name, F.array(*matching))
    rest = [
        F.when(inputs[c.version.vid].selected, rows[c.version.vid])
        for c in counted
        if c.metric.events.type_prefixes
    ]
    return branches.otherwise(F.array(*rest or [nothing]))


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


def _metric_row(counted: Counted, read: _Read, forgotten: str) -> Column:
    """Return the row of one metric; the less it holds, the more metrics fit a method."""
    metric, vid = counted.metric, counted.version.vid
    inputs = read.inputs[vid]
    fields = {
        "vid": F.lit(vid),
        "text": inputs.text,
        "start_s": F.col(f"start_{counted.version.finest_s}"),
        "minute_s": F.col("minute_s"),
        "forgotten": F.col(forgotten),
        **read.measured.of(metric, read.members[vid]),
    }
    if metric.value is not None:
        fields |= {"value": inputs.value, "absent": inputs.absent}
    return row_of(read.measured.fields, **fields)


def settle(rows: DataFrame, plan: Plan) -> DataFrame:
    """Judge the rows of all metrics in one way, and give them their keys.

    What a metric cannot use leaves under its reason and its place in the log, to be
    copied to quarantine; what no resolution keeps leaves to be accounted for.
    """
    return rows.select(*_erred(plan.marked)).select(*_used()).select(*_settled(plan))


@cache
def _erred(marked: tuple[str, ...]) -> tuple[Column, ...]:
    first, *others = map(F.col, marked)
    # A text that cannot be told is null: one such is enough.
    all_marked = F.concat(first, *others) if others else first
    error = error_of(F.col("value"), F.col("absent"), F.col("text"), all_marked)
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
        .otherwise(counted_as(series_of(F.col("text")), F.col("bounds"), plan.shards))
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


def beyond_from(horizons: Sequence[Horizons]) -> list[tuple[Offsets, int]]:
    """Return from where on which age is beyond: what a plan has to know of horizons."""
    found: list[tuple[Offsets, int]] = []
    for one in horizons:
        if not found or found[-1][1] != one.beyond_ms:
            found.append((one.begin if found else {}, one.beyond_ms))
    return found


def _beyond_ms(horizons: Sequence[Horizons]) -> Column:
    """Return from which age on a record is beyond, as `weir.horizons.horizons_at` does of one."""
    (_begin, first_ms), *later = beyond_from(horizons)
    column = F.lit(first_ms)
    for begin, beyond_ms in later:
        is_later = F.col("offset") >= _offset_of(begin, 0)
        column = F.when(is_later, beyond_ms).otherwise(column)
    return column


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
