"""A sweep says of each limit what a backtest of that limit says, and reads panes once."""

from __future__ import annotations

from typing import Any

import pytest
from timelines import START_MS
from weir.alerts.backtest import Backtest
from weir.alerts.sweep import step_of, trials
from weir.definitions.rule import Rule

from .test_alerts import rule_of as rule_with
from .test_alerts_watch import MINUTE, Regions

# Silence lasts while something fires, and while nothing does.
EU = (3, 12, 12, 3, 14, 9, 30, 11, 0, 13, 3, 9, 0, 0, 0, 0, 12, 1, 1, 1, 1, 12, 9)
US = (8, 8, 10, 9, 11, 8, 8, 12, 12, 12, 3, 9, 9, 6, 0, 0, 0, 0, 0, 12, 9, 12, 9)


def rule_of(**members: Any) -> Rule:
    """Return a rule on the counts of regions."""
    return rule_with(aggregate="count", window="1m", by=["region"], **members)


def swept(rule: Rule, *, sweep: int) -> tuple[list[tuple[Any, int, int]], int]:
    """Return limits with how often and how long each fired, and how many panes were asked for."""
    regions = Regions(rule_of(above=10))
    for eu, us in zip(EU, US, strict=True):
        regions.minute(eu=eu, us=us)
    to_ms = START_MS + MINUTE * regions.at
    test, asked = Backtest(rule, START_MS - 1, to_ms, sweep=sweep), 0
    while not test.done:
        wanted = test.ask(regions.metrics, regions.facts(to_ms))
        asked += len(wanted)
        test.run({key: regions.panes.get(key) for key in wanted})
    outcome = test.outcome()
    found = [(one.rule.limit, one.fired, one.firing_ms) for one in outcome.sweep]
    return found or [(rule.limit, outcome.fired, outcome.firing_ms)], asked


@pytest.mark.parametrize(
    "members",
    [
        {"above": 10},
        {"above": 10, "for": "2m", "recover": 5, "recover_for": "1m"},
        {"below": 9, "min_events": 1},
        {"outside": [4, 12], "recover": [5, 11]},
        {"above": 10, "no_data": {"then": "fire", "tell_after": "1m"}, "min_events": 4},
        {"above": 7, "no_data": {"tell_after": "1m", "end_after": "2m"}, "min_events": 8},
        {"above": 7, "for": "2m", "recover": 6, "min_events": 9},
    ],
)
def test_each_limit_fires_as_often_as_alone(members: dict[str, Any]) -> None:
    """The same machine over the same windows, whatever else is tried beside it."""
    rule = rule_of(**members)
    found, asked = swept(rule, sweep=9)
    alone = [swept(one.rule, sweep=0) for one in trials(rule, 9)]

    assert len(found) > 3
    assert found == [fired for (fired,), _ in alone]
    assert len({fired for _, fired, _ in found}) > 1
    assert len({firing_ms for _, _, firing_ms in found}) > 2
    assert [limit for limit, _, _ in found].count(rule.limit) == 1
    assert asked == alone[0][1]


@pytest.mark.parametrize(
    ("limit", "step"),
    [(400, 50), (10, 1), (3, 1), (0, 1), (0.5, 0.05), (99.9, 10), (-20, 2), (1e9, 1e8)],
)
def test_limits_lie_a_round_step_apart(limit: float, step: float) -> None:
    """People compare round numbers; of whole ones a part is none."""
    assert step_of(rule_of(above=limit)) == pytest.approx(step)


@pytest.mark.parametrize(
    ("members", "limits"),
    [
        ({"above": 400}, [200, 250, 300, 350, 400, 450, 500, 550, 600]),
        ({"above": 0.3}, [0.22, 0.24, 0.26, 0.28, 0.3, 0.32, 0.34, 0.36, 0.38]),
        ({"below": 2}, [0, 1, 2, 3, 4, 5, 6]),
        ({"outside": [10, 14]}, [(11, 13), (10, 14), (9, 15), (8, 16), (7, 17), (6, 18)]),
    ],
)
def test_limits_are_around_the_own(members: dict[str, Any], limits: list[Any]) -> None:
    """The own is among them; a limit on the other side of zero is another rule."""
    assert [one.rule.limit for one in trials(rule_of(**members), 9)] == limits


def test_a_recovery_keeps_its_distance() -> None:
    """Else a lower limit would recover above itself."""
    moved = trials(rule_of(above=400, recover=350), 3)
    assert [(one.rule.above, one.rule.recover) for one in moved] == [
        (350, 300),
        (400, 350),
        (450, 400),
    ]


def test_every_pair_of_limits_has_a_step() -> None:
    """Also where a share of their distance lies just below a power of ten."""
    for low in range(0, 100, 5):
        for width in (1.6, 0.16, 0.016, 16.0, 160.0):
            rule = rule_of(outside=[low / 100, round(low / 100 + width, 4)])
            limits = [one.rule.limit for one in trials(rule, 9)]
            assert rule.limit in limits
            assert len(set(limits)) == len(limits)
