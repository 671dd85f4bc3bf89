"""Backtests say what the live machine said, where nothing was corrected in between."""

from __future__ import annotations

from typing import Any

import pytest
from timelines import START_MS, Timeline, play, timelines
from weir.alerts.backtest import Backtest, Outcome, Span
from weir.alerts.step import Kind
from weir.query import Facts

from .test_alerts import rule_of
from .test_alerts_watch import MINUTE, Regions, Watcher

# What was known later, or in another way, than it was told.
OTHERWISE = {"correct", "rebuilding", "incomplete", "stall", "back"}
STEADY = [
    timeline
    for timeline in timelines()
    if not OTHERWISE & {m.what for m in timeline.moments} and timeline.rule.decide == "fast"
]


def outcome_of(watcher: Watcher, timeline: Timeline, through_ms: int) -> Outcome:
    """Return what a backtest says over all that a watcher was shown."""
    facts = Facts(epoch=1, rev=1, processed_through_ms=through_ms, now_ms=through_ms)
    test = Backtest(timeline.rule, START_MS - 1, through_ms)
    while not test.done:
        wanted = test.ask(watcher.metrics, facts)
        test.run({key: watcher.held.get(key) for key in wanted})
    return test.outcome()


@pytest.mark.parametrize("timeline", STEADY, ids=lambda timeline: timeline.name)
def test_it_fires_when_the_live_one_fired(timeline: Timeline) -> None:
    """As often, from the same window to the same window."""
    watcher = Watcher(timeline)
    for world, _ in play(timeline):
        watcher.observe(world, world.through_ms)
    outcome = outcome_of(watcher, timeline, world.through_ms)

    begun = [one.at_ms for one in watcher.told if one.kind is Kind.FIRING]
    ended = [one.at_ms for one in watcher.told if one.kind in (Kind.RESOLVED, Kind.ENDED)]
    spans = [span for _, spans in outcome.groups for span in spans if span.is_firing]
    assert [span.from_ms for span in spans] == begun
    assert [span.to_ms for span in spans][: len(ended)] == ended
    assert outcome.fired == len(begun)


def test_what_it_says() -> None:
    """How often, how long, of how many groups, and how much of the time anything was known."""
    regions = Regions(rule_of(aggregate="count", window="1m", above=10, by=["region"]))
    for eu in (3, 12, 12, 3, 12, 3):
        regions.minute(eu=eu, us=3)
    outcome = run(regions, aggregate="count", above=10)

    assert (outcome.fired, outcome.matched, outcome.coverage) == (2, 2, 1.0)
    assert (outcome.firing_ms, outcome.longest_ms) == (3 * MINUTE, 2 * MINUTE)
    groups = dict(outcome.groups)
    assert groups["us",] == []
    assert groups["eu",] == [
        Span(START_MS + 2 * MINUTE, START_MS + 4 * MINUTE, "firing"),
        Span(START_MS + 5 * MINUTE, START_MS + 6 * MINUTE, "firing"),
    ]


def test_pending_is_told_apart() -> None:
    """What would nearly have fired is seen too; it is not counted."""
    regions = Regions(rule_of(aggregate="count", window="1m", above=10, by=["region"]))
    for eu in (3, 12, 12, 3, 12, 12, 12, 3):
        regions.minute(eu=eu)
    outcome = run(regions, aggregate="count", above=10, **{"for": "2m"})

    assert outcome.fired == 1
    assert [span.state for span in dict(outcome.groups)["eu",]] == ["pending", "pending", "firing"]


def test_what_is_not_known_is_not_covered() -> None:
    """Windows of too few events say nothing."""
    regions = Regions(rule_of(aggregate="count", window="1m", above=10, by=["region"]))
    for eu in (9, 2, 2, 9):
        regions.minute(eu=eu)
    outcome = run(regions, aggregate="count", above=10, min_events=5)

    assert outcome.coverage == 0.5
    assert [span.state for span in dict(outcome.groups)["eu",]] == ["no_data"]


def run(regions: Regions, **members: Any) -> Outcome:
    """Test a rule over all minutes."""
    rule = rule_of(window="1m", by=["region"], **members)
    facts = regions.facts(START_MS + MINUTE * regions.at)
    test = Backtest(rule, START_MS - 1, START_MS + MINUTE * regions.at)
    while not test.done:
        test.run({key: regions.panes.get(key) for key in test.ask(regions.metrics, facts)})
    return test.outcome()
