"""What queries, metrics and boards are answered with."""

from __future__ import annotations

from typing import Any

from weir_dashboard.api.models import Change, Fresh, Told


class Compared(Told):
    """The same windows at an earlier time."""

    offset: str
    value: list[float | None]
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


class MetricDetail(Metric):
    """A metric with its versions and what it keeps."""

    lateness_ms: int
    keep_ms: dict[str, int]
    versions: list[Change]


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
