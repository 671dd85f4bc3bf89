"""What queries, metrics and boards are answered with."""

from __future__ import annotations

from typing import Any

from weir.audited import Bound, Lack
from weir.definitions.jobs import Withdrawal

from weir_dashboard.api.definition_models import Change
from weir_dashboard.api.models import Fresh, Told


class Compared(Told):
    """The same windows at an earlier time."""

    offset: str
    value: list[float | None]
    low: list[float | None]
    high: list[float | None]
    count: list[int | None]
    state: str


class Series(Told):
    """One series of an answer, a cell for each `t_ms`."""

    k: int
    by: dict[str, str | None]
    slot: int
    other: bool | None = None
    value: list[float | None] | None = None
    low: list[float | None] | None = None
    high: list[float | None] | None = None
    count: list[int | None] | None = None
    items: list[list[Any] | None] | None = None
    state: str
    compare: list[Compared] | None = None


class AnsweredMetric(Told):
    """Which version of which metric was read; of an expression there is none."""

    name: str
    version: int | None
    unit: str | None
    resolution_ms: int
    lateness_ms: int


class Note(Told):
    """Something to know about an answer."""

    code: str
    message: str


class Answer(Told):
    """The answer to a query (docs/api.md, "Query and answer")."""

    metric: AnsweredMetric
    epoch: int
    rev: int
    final_to_ms: int | None
    fresh: Fresh
    t_ms: list[int]
    of: int
    corrections: list[dict[str, Any]]
    notes: list[Note]
    series: list[Series]


class Metric(Told):
    """A metric as lists show it."""

    name: str
    version: int
    unit: str | None
    by: list[str]
    aggregates: list[str]
    resolution_ms: int
    series: int | None
    capped: bool
    active: bool


class Verified(Told):
    """The newest audit that compared a metric: a sample of its panes, counted again.

    `ok` is whether everything was as the log says; `at_ms` is when it ended, `from_ms` and
    `to_ms` the span of the sample, `bounded_by` why it reaches no further back, `panes` how many
    were compared, `left_out` for how many more there was no room, `overtaken` how many more
    retention took before they were read, `events` how many the log has in those that were
    compared, `rev` the revision of these. It says nothing of what is served now if
    `withdrawn_by` is told: `version` where another version serves since, `epoch` where the
    numbers were counted anew since.
    """

    job: str
    ok: bool
    at_ms: int
    from_ms: int
    to_ms: int
    bounded_by: Bound | None
    version: int
    panes: int
    left_out: int
    overtaken: int
    series: int
    events: int
    rev: int
    withdrawn_by: Withdrawal | None


class NotCompared(Told):
    """Audits that compared nothing of a metric: all of them since the one in `verified`.

    `job` is the newest, which ended at `at_ms`; `since_ms` is when the first of them ended,
    `audits` how many they are. `why`: there was no room for its panes, retention took them
    before they were read, none was drawn, or the audit failed; `bounded_by`: why its sample
    reaches no further back.
    """

    job: str
    at_ms: int
    why: Lack
    bounded_by: Bound | None
    since_ms: int
    audits: int


class Filling(Told):
    """A version that is being counted from the log.

    `at` of `of` records are done; `instead` is the version that serves until then, null if
    there is none.
    """

    version: int
    instead: int | None
    at: int
    of: int


class Waiting(Told):
    """The newest version where something keeps it from serving.

    `why` says what is required, what came, and what to do; `instead` is the version that serves
    until then, null if there is none.
    """

    version: int
    instead: int | None
    why: str


class MetricDetail(Metric):
    """A metric as it is served, with its versions and what it keeps.

    `verified` is null without an audit, `not_compared` while the newest one compared something or
    found that nothing happened, `filling` once the newest version serves, `waiting` while
    nothing keeps it from that.
    """

    lateness_ms: int
    keep_ms: dict[str, int]
    versions: list[Change]
    verified: Verified | None = None
    not_compared: NotCompared | None = None
    filling: Filling | None = None
    waiting: Waiting | None = None


class NamedSeries(Told):
    """A set of dimension values that has been seen."""

    by: dict[str, str | None]
    other: bool = False


class Board(Told):
    """A board, ready to be drawn."""

    name: str
    title: str
    version: int
    tiles: list[dict[str, Any]]


class Estimate(Told):
    """What a sketch said, and between what the exact answer lay."""

    value: float
    low: float
    high: float


class RowFigures(Told):
    """The exact figures of one pane of one series; sum, min and max only with a value.

    `stddev` and `last` only where the metric asks for them.
    """

    count: int
    sum: float | None
    min: float | None
    max: float | None
    stddev: float | None
    last: float | None
    estimates: dict[str, Estimate]


class TextChange(Told):
    """How often a text of late events came before them, and how often with them."""

    text: str
    was: Estimate
    now: Estimate


class CorrectionSource(Told):
    """A source of late events, and how many of them it sent into a span of time."""

    source: str
    events: int


class Correction(Told):
    """What late events of one batch changed in a pane that was final.

    `t_ms` is the end of the pane. `was` is null where there was no row, `now` where it was
    merged into the series of all beyond `max_series`, which is told with `other`.
    `received_ms`: when the last of these events had come, to the minute where the batch was
    longer than that; `late_ms`: how long that was after the pane's end; `final_ms`: when the
    pane was final. `sources`: who sent how many of these events, if `sources_exact`. Else possible
    sources: who sent how many late events of the metric's types into the pane's time in that
    batch, whatever its `where` and this series, so each number is an upper bound.
    `sources_known`: none is missing, so a single one is the one. `texts`: of a metric
    with `top`, at most five texts of these events, the one that came most often among them first;
    none of `other`, nor once a batch has told a megabyte of them, nor of who was erased.
    """

    seq: int
    metric: str
    version: int
    t_ms: int
    resolution_ms: int
    by: dict[str, str | None]
    other: bool
    was: RowFigures | None
    now: RowFigures | None
    events: int
    late_ms: int
    received_ms: int
    final_ms: int
    sources: list[CorrectionSource]
    sources_known: bool
    sources_exact: bool
    texts: list[TextChange]


class LateShare(Told):
    """How many events came more than `than_ms` after they happened, and of all what share."""

    than_ms: int
    events: int
    share: float


class SourceLateness(Told):
    """How late the events of one source were; of all sources where `source` is null.

    `suggested_ms`: the shortest length of those in `late`, `longest_ms` at most, that less than
    0.1 % of the events came later than; null: none.
    """

    source: str | None
    events: int
    late: list[LateShare]
    p50_ms: int | None
    p99_ms: int | None
    max_ms: int | None
    suggested_ms: int | None


class LatenessTold(Told):
    """How late counted events of some hours of received time were.

    `allowed_ms` is the `allowed_lateness` of the metric whose events they are; null: they are
    all of the tenant's. `longest_ms`: the longest length that may be suggested, a day at most,
    and of a metric no longer than it keeps panes of each resolution. `untyped` events of its
    sources are in no figure, since their type is not known.
    """

    from_ms: int
    to_ms: int
    allowed_ms: int | None
    longest_ms: int
    untyped: int
    all: SourceLateness
    sources: list[SourceLateness]


class MetricMinute(Told):
    """What a version did with the events counted in one received minute.

    `counted` is of the tenant; `not_matched` is what of it is in none of the others, null in
    minutes that the version has not counted whole. `open`: still in flight.
    """

    minute_ms: int
    counted: int
    used: int
    not_matched: int | None
    value_quarantined: int
    pane_not_kept: int
    open: bool


class MetricLedger(Told):
    """The account of a metric's version: counted = used + not matched + refused + too old."""

    name: str
    version: int
    items: list[MetricMinute]
