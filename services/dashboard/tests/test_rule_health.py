"""Health of rules: what is told when nobody counts, nobody evaluates, or a rule cannot be."""

from __future__ import annotations

from typing import Any

import pytest
from weir.definitions.rule import Rule
from weir_dashboard.freshness import Fresh
from weir_dashboard.rule_health import Evaluation, Values, judge, read_evaluation
from weir_reading.parts import OF_TENANTS, Part

NOW_MS = 1_800_000_000_000
LIVE = Fresh("live", NOW_MS - 500, None, None)
STALE = Fresh("stale", NOW_MS - 90_000, None, None, since_ms=NOW_MS - 90_000, part="kafka")
WELL = Evaluation(age_ms=900, evaluated_ms=NOW_MS - 700, looked_ms=NOW_MS - 9_000)
UNREAD = Evaluation(age_ms=900, evaluated_ms=NOW_MS - 700, looked_ms=NOW_MS - 31_000)
REDIS = Fresh("stale", NOW_MS - 90_000, None, None, since_ms=NOW_MS - 60_000, part="redis")
AGAIN = Fresh("rebuilding", NOW_MS - 90_000, None, None, progress=0.25)


def rule(**members: Any) -> Rule:
    """Return a rule on a metric."""
    given = {"name": "r", "metric": "m", "aggregate": "count", "window": "1m", "above": 1}
    return Rule.model_validate(given | members)


def itself() -> Rule:
    """Return a rule on Weir itself."""
    return Rule.model_validate({"name": "r", "metric": "weir.lag", "above": 1})


@pytest.mark.parametrize(
    ("of", "evaluation", "fresh", "silent", "health", "why"),
    [
        (rule(), WELL, LIVE, False, "ok", None),
        (rule(), WELL, LIVE, True, "no_data", None),
        (rule(), WELL, STALE, True, "stale", "nothing has been counted for 1m30s: kafka does"),
        (itself(), WELL, STALE, False, "ok", None),
        (itself(), UNREAD, LIVE, False, "stale", "have not been read for 31s"),
        (itself(), Evaluation(900), LIVE, False, "stale", "have not been read yet"),
        (rule(), Evaluation(60_000), REDIS, False, "stale", "redis has not answered for 1m,"),
        (itself(), Evaluation(60_000), REDIS, False, "stale", "redis has not answered for 1m,"),
        (rule(), WELL, AGAIN, False, "stale", "counted again after a loss, 25% done"),
        (itself(), WELL, AGAIN, False, "ok", None),
        (rule(), Evaluation(), LIVE, False, "stale", "has not told that it runs, so nobody"),
        (itself(), Evaluation(age_ms=12_000), LIVE, False, "stale", "it runs for 12s, so nobody"),
        (rule(mode="stopped"), Evaluation(), STALE, True, "ok", None),
        (rule(), Evaluation(900, NOW_MS - 60_500), LIVE, False, "stale", "is 1m behind counting"),
        (rule(), Evaluation(900), LIVE, False, "stale", "has not been evaluated yet"),
        (rule(), Evaluation(900, NOW_MS, {7: "no m"}), LIVE, True, "error", "no m"),
        (rule(), Evaluation(900, NOW_MS, {7: "no m"}), STALE, False, "stale", "kafka"),
    ],
)
def test_the_root_is_told(
    of: Rule, evaluation: Evaluation, fresh: Fresh, silent: bool, health: str, why: str | None
) -> None:
    """Who does not evaluate, before what could not be evaluated, before what is silent."""
    found, said = judge(of, 7, evaluation, fresh, NOW_MS, silent=silent)
    assert found == health
    assert said is None if why is None else said is not None and why in said


def test_what_the_newest_heartbeat_says() -> None:
    """By vid; an earlier release says less."""
    told = {"errors": {"7": "no m"}, "readings": {"9": [[["hook"], 61.0]], "10": [[[], None]]}}
    newest = part({"evaluated_ms": 5, "looked_ms": 6, OF_TENANTS: told}, NOW_MS - 40)
    found = read_evaluation([newest, part({}, 0)], NOW_MS)
    readings: dict[int, dict[Values, float | None]] = {9: {("hook",): 61.0}, 10: {(): None}}
    assert found == Evaluation(40, 5, {7: "no m"}, readings, 6)
    assert read_evaluation([part({}, NOW_MS)], NOW_MS) == Evaluation(0)
    assert read_evaluation([], NOW_MS) == Evaluation()


def part(detail: dict[str, Any], at_ms: int) -> Part:
    """Return a heartbeat of the alerts job."""
    return Part(
        "alerts", "a", at_ms, "ok", busy=None, flow=None, lag_ms=None, version="", detail=detail
    )
