"""Whether a rule is watched over at all: the second axis, beside where its series stand.

    stale    nothing is counted, or nobody evaluates: what is shown is from before
    error    this rule cannot be evaluated
    no_data  it is, and some series says nothing

The worst is told, the root first: while nobody evaluates, what a rule's error was says
nothing. Health never changes a verdict on data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from weir.alerts.machine import Point
from weir.definitions.durations import format_duration
from weir.definitions.rule import Rule
from weir.definitions.signals import EVERY_MS
from weir.query.grouping import Group
from weir.query.states import FINAL
from weir_reading.parts import OF_TENANTS, Part

from weir_dashboard.freshness import Fresh

Health = Literal["ok", "no_data", "stale", "error"]
Values = tuple[str | None, ...]
"""The values of a rule's dimensions, in its order."""

AWAY_MS: Final = 10_000
"""The alerts job tells every second that it runs."""
UNREAD_MS: Final = 3 * EVERY_MS
BEHIND_MS: Final = 60_000
"""A look at all rules may take a while."""


@dataclass(frozen=True)
class Evaluation:
    """What the alerts job says of itself.

    Attributes:
        age_ms: How old that is; None if there is no such job.
        evaluated_ms: Up to which processed-through rules are evaluated; None before any.
        errors: Why rules cannot be evaluated, by vid.
        readings: The newest readings of rules on Weir itself: by vid, by group.
        looked_ms: When they were read, by the clock; None before.
    """

    age_ms: int | None = None
    evaluated_ms: int | None = None
    errors: Mapping[int, str] = field(default_factory=dict)
    readings: Mapping[int, Mapping[Values, float | None]] = field(default_factory=dict)
    looked_ms: int | None = None

    def points(self, vid: int) -> dict[Group, Point]:
        """Return the newest readings of one rule on Weir itself as windows: exact and final."""
        readings = self.readings.get(vid, {})
        return {group: Point(0, FINAL, 1, value, value, value) for group, value in readings.items()}


def read_evaluation(jobs: Sequence[Part], now_ms: int) -> Evaluation:
    """Return what the newest heartbeat of the alerts job says; all else than it may be old.

    Args:
        jobs: The heartbeats, the newest first.
        now_ms: The present.
    """
    if not jobs:
        return Evaluation()
    detail: dict[str, Any] = jobs[0].detail
    told = detail.get(OF_TENANTS, {})
    readings = {
        int(vid): {tuple(group): value for group, value in of_groups}
        for vid, of_groups in told.get("readings", {}).items()
    }
    return Evaluation(
        age_ms=max(0, now_ms - jobs[0].at_ms),
        evaluated_ms=detail.get("evaluated_ms"),
        errors={int(vid): why for vid, why in told.get("errors", {}).items()},
        readings=readings,
        looked_ms=detail.get("looked_ms"),
    )


def judge(
    rule: Rule, vid: int, evaluation: Evaluation, fresh: Fresh, now_ms: int, *, silent: bool
) -> tuple[Health, str | None]:
    """Return a rule's health, and in words why it is not well.

    Args:
        rule: The rule.
        vid: Its version.
        evaluation: What the alerts job says.
        fresh: How old the numbers are.
        now_ms: The present.
        silent: Whether some series of it says nothing.
    """
    if rule.mode == "stopped":
        return "ok", None
    why = _store_away(fresh, now_ms) or _not_evaluated(evaluation)
    if why is None:
        of_rule = _not_counted if rule.signal is None else _not_read
        why = of_rule(evaluation, fresh, now_ms)
    if why is not None:
        return "stale", why
    error = evaluation.errors.get(vid)
    if error is not None:
        return "error", error
    return ("no_data" if silent else "ok"), None


def _store_away(fresh: Fresh, now_ms: int) -> str | None:
    """Say that Redis is away: heartbeats stand there, too, so nothing is known of the job."""
    if fresh.status != "stale" or fresh.part != "redis":
        return None
    since = "" if fresh.since_ms is None else f" for {_length(now_ms - fresh.since_ms)}"
    return f"redis has not answered{since}, so nothing is known of evaluation; see its status"


def _not_evaluated(evaluation: Evaluation) -> str | None:
    if evaluation.age_ms is not None and evaluation.age_ms < AWAY_MS:
        return None
    since = "" if evaluation.age_ms is None else f" for {_length(evaluation.age_ms)}"
    return f"the alerts job has not told that it runs{since}, so nobody evaluates; start it again"


def _not_counted(evaluation: Evaluation, fresh: Fresh, now_ms: int) -> str | None:
    if fresh.status == "stale":
        since = "" if fresh.since_ms is None else f" for {_length(now_ms - fresh.since_ms)}"
        return f"nothing has been counted{since}: {fresh.part} does not go on; see its status"
    if fresh.status == "rebuilding":
        share = "" if fresh.progress is None else f", {fresh.progress:.0%} done"
        return f"the log is counted again after a loss{share}; no rule changes before it is"
    through_ms, evaluated_ms = fresh.processed_through_ms, evaluation.evaluated_ms
    if through_ms is None or (evaluated_ms or 0) > through_ms - BEHIND_MS:
        return None
    if evaluated_ms is None:
        return "it has not been evaluated yet since the alerts job started"
    behind = _length(through_ms - evaluated_ms)
    return f"evaluation is {behind} behind counting; the log of the alerts job says why"


def _not_read(evaluation: Evaluation, _: Fresh, now_ms: int) -> str | None:
    looked_ms = evaluation.looked_ms
    if looked_ms is not None and now_ms - looked_ms < UNREAD_MS:
        return None
    since = "yet" if looked_ms is None else f"for {_length(now_ms - looked_ms)}"
    return f"Weir's signals have not been read {since}; the log of the alerts job says why"


def _length(length_ms: int) -> str:
    return format_duration(max(1, length_ms // 1000) * 1000)
