"""What alerts, rules and backtests are answered with."""

from __future__ import annotations

from typing import Any, Literal

from weir_dashboard.api.models import Told


class Happened(Told):
    """One thing that happened to an alert: a transition, a message, or what people did.

    `value` lies between `low` and `high`.
    """

    kind: str
    at_ms: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    channel: str | None = None
    status: int | None = None
    tries: int | None = None
    why: str | None = None
    by: str | None = None
    note: str | None = None


class Acknowledged(Told):
    """Who has taken an alert on, and until when it is not told again."""

    by: str
    note: str
    until_ms: int


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
    ack: Acknowledged | None
    silenced_by: list[str]


class AlertDetail(Alert):
    """One alert with what happened to it, oldest first.

    Of more than 1,000 things that is the first one and the newest: `left_out` says how many
    are missing between them.
    """

    metric: str
    happened: list[Happened]
    left_out: int


class RuleGroup(Told):
    """Where one series of a rule stands, as far as anything was told of it.

    `value` is what was told last, and lies between `low` and `high`; of a rule on Weir itself,
    the newest reading. `silent_ms` is the end of the first window of a silence that lasts.
    """

    by: dict[str, str | None]
    state: Literal["ok", "pending", "firing", "recovering"]
    health: Literal["ok", "no_data"]
    since_ms: int | None
    silent_ms: int | None
    value: float | None
    low: float | None
    high: float | None


class Rule(Told):
    """One rule: its definition in short, and the worst state of its series.

    `health` stands beside `state`: `stale` while nothing is counted or evaluated, `error` if
    this rule cannot be evaluated; `why` says so in words. A `metric` that begins with `weir.`
    is a signal of Weir itself.
    """

    name: str
    version: int
    metric: str
    aggregate: str
    unit: str
    by: list[str]
    where: list[list[Any]]
    window_ms: int
    side: Literal["above", "below", "outside"]
    limit: float | list[float]
    severity: str
    mode: Literal["active", "shadow", "stopped"]
    channels: list[str]
    state: Literal["ok", "pending", "firing", "recovering", "stopped"]
    health: Literal["ok", "no_data", "stale", "error"]
    why: str | None
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


class BacktestLimit(Told):
    """How often a rule would have fired at another limit, and how long; two of `outside`."""

    limit: float | list[float]
    fired: int
    firing_ms: int


class Backtest(Told):
    """When a rule would have fired, by what is stored now.

    `sweep` is empty unless it was asked for; lowest limit first, the rule's own among them.
    """

    fired: int
    firing_ms: int
    longest_ms: int
    coverage: float | None
    matched_series: int
    from_ms: int
    to_ms: int
    groups: list[BacktestGroup]
    sweep: list[BacktestLimit]
    capped: bool
    not_simulated: list[str]


class Silence(Told):
    """A silence: what it hides, until when, who said so and why.

    `firing` is how many alerts it hides now, `day` how many it hid that began within a day.
    """

    name: str
    rule: str | None
    where: list[list[Any]]
    reason: str
    by: str
    at_ms: int
    until_ms: int
    active: bool
    firing: int
    day: int


class SilencePreview(Told):
    """What a silence would hide: at most 100 alerts that fire now, and counts.

    `day` is how many alerts that began within a day it would have hidden.
    """

    now: list[Alert]
    firing: int
    day: int


class Channel(Told):
    """A channel, and what came of its newest message or test.

    `host` is that of a webhook whose address is no secret; `failing_ms` since when nothing
    has been delivered although it was tried; `waiting` how many messages are sent again.
    """

    name: str
    version: int
    way: Literal["webhook", "apprise"]
    host: str | None
    follow: Literal["firing", "all"]
    rules: list[str]
    outcome: str | None
    at_ms: int | None
    status: int | None
    why: str | None
    took_ms: int | None
    failing_ms: int | None
    waiting: int


class ChannelTest(Told):
    """What came of a test: `delivered`, `refused` for good, or `failed` for now."""

    outcome: str
    status: int | None
    why: str | None
    took_ms: int
    at_ms: int
