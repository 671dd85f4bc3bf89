"""What alerts, rules and backtests are answered with."""

from __future__ import annotations

from typing import Literal

from weir_dashboard.api.models import Told


class Happened(Told):
    """One thing that happened to an alert: a transition, or a delivery."""

    kind: str
    at_ms: int
    value: float | None = None
    channel: str | None = None
    status: int | None = None
    tries: int | None = None


class Alert(Told):
    """One alert. `at_ms` and `since_ms` are ends of windows."""

    id: str
    seq: int
    rule: str
    rule_version: int
    labels: dict[str, str | None]
    severity: str
    state: Literal["firing", "recovering", "resolved", "ended", "withdrawn"]
    verdict: Literal["provisional", "confirmed"]
    aggregate: str
    value: float | None
    low: float | None
    high: float | None
    limit: float | list[float] | None
    unit: str
    count: int | None
    since_ms: int
    at_ms: int
    reason: str | None
    runbook: str | None


class AlertDetail(Alert):
    """One alert with all that happened to it, oldest first."""

    metric: str
    happened: list[Happened]


class RuleGroup(Told):
    """Where one series of a rule stands, as far as anything was told of it."""

    by: dict[str, str | None]
    state: Literal["ok", "pending", "firing", "recovering"]
    health: Literal["ok", "no_data"]
    since_ms: int | None
    value: float | None


class Rule(Told):
    """One rule: its definition in short, and the worst state of its series."""

    name: str
    version: int
    metric: str
    aggregate: str
    unit: str
    by: list[str]
    window_ms: int
    side: Literal["above", "below", "outside"]
    limit: float | list[float]
    severity: str
    mode: Literal["active", "shadow", "stopped"]
    channels: list[str]
    state: Literal["ok", "pending", "firing", "recovering", "stopped"]
    health: Literal["ok", "no_data"]
    firing: int
    last_fired_ms: int | None
    groups: list[RuleGroup]


class BacktestSpan(Told):
    """A time in which a series was not ok."""

    from_ms: int
    to_ms: int
    state: Literal["pending", "firing", "no_data"]


class BacktestGroup(Told):
    """The spans of one series."""

    by: dict[str, str | None]
    spans: list[BacktestSpan]


class Backtest(Told):
    """When a rule would have fired, by what is stored now."""

    fired: int
    firing_ms: int
    longest_ms: int
    coverage: float | None
    matched_series: int
    from_ms: int
    to_ms: int
    groups: list[BacktestGroup]
    capped: bool
    not_simulated: list[str]
