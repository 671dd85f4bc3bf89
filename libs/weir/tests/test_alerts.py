"""Alerts by their timelines, through the pure machine alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timelines import (
    ALWAYS_TOLD,
    START_MS,
    TOLD_TO_FOLLOWERS,
    Timeline,
    Wanted,
    World,
    play,
    timelines,
)
from weir.alerts.machine import Phase, Point
from weir.alerts.step import Kind, Observation, Series, Transition, step
from weir.definitions.rule import Rule

ALL = timelines()


class Evaluator:
    """Shows one series the windows of a world, as the job does."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.series = Series()
        self.told: list[Transition] = []
        self._seen: dict[int, Any] = {}

    def observe(self, world: World, through_ms: int) -> None:
        """Show every window that ended or changed since it was last shown."""
        step_ms = self.timeline.step_ms
        points = [
            point
            for end_ms in range(START_MS, through_ms + 1, step_ms)
            if (point := world.window(end_ms))[1:] != self._seen.get(end_ms)
        ]
        self._seen |= {point.end_ms: point[1:] for point in points}
        seen = Observation(through_ms, world.final_to_ms, tuple(points))
        self.series, told = step(self.timeline.rule, self.series, seen)
        self.told += told

    def restart(self) -> None:
        """Lose all but what a record of `weir.alerts` holds."""
        stored = msgspec.json.encode(self.series)
        self.series = replace(msgspec.json.decode(stored, type=Series), tail=())
        self._seen.clear()


def run(timeline: Timeline, *, always_restart: bool = False) -> list[Transition]:
    """Return everything that an evaluator says about a timeline."""
    evaluator = Evaluator(timeline)
    for world, happened in play(timeline):
        for moment in happened:
            if moment.what == "restart":
                evaluator.restart()
            if moment.what == "back":
                empty = replace(world, panes={})
                evaluator.observe(empty, world.through_ms - (moment.args[0] - START_MS))
        evaluator.observe(world, world.through_ms)
        if always_restart:
            evaluator.restart()
    return evaluator.told


def judged(timeline: Timeline, told: list[Transition]) -> None:
    """Hold what was told against what was wanted: no less, no more, each in its span."""
    kinds = (*ALWAYS_TOLD, *(TOLD_TO_FOLLOWERS if timeline.follow else ()))
    heard = [one for one in told if one.kind in kinds]
    assert [one.kind for one in heard] == [wanted.kind for wanted in timeline.changes]
    for one, wanted in zip(heard, timeline.changes, strict=True):
        assert wanted.from_ms <= one.through_ms <= wanted.to_ms, (one, wanted)
        assert {name: said(one, name) for name in wanted.besides} == wanted.besides
    open_key = None
    for one in heard:
        if one.kind is Kind.FIRING:
            open_key = one.key_ms
        elif one.kind in (Kind.RESOLVED, Kind.ENDED):
            assert one.key_ms == open_key


def said(one: Transition, name: str) -> Any:
    """Return what a transition says about something that a timeline may ask."""
    if name == "state":
        return "confirmed" if one.confirmed else "provisional"
    return one.before if name == "before" else one.point and one.point.value


@pytest.mark.parametrize("always_restart", [False, True], ids=["", "restarts"])
@pytest.mark.parametrize("timeline", ALL, ids=lambda timeline: timeline.name)
def test_timeline(timeline: Timeline, always_restart: bool) -> None:
    """What is told, and when; also by an evaluator that is ended after each observation."""
    judged(timeline, run(timeline, always_restart=always_restart))


def test_wanted_is_read() -> None:
    """The judge fails on what is missing, on what is too much, and on what comes late."""
    timeline = ALL[0]
    told = run(timeline)
    with pytest.raises(AssertionError):
        judged(timeline, told[:-1])
    late = Timeline(**{**vars(timeline), "wanted": (Wanted("firing", 0, 1, {}),)})
    with pytest.raises(AssertionError):
        judged(late, told)


def test_what_is_counted_again_stands_as_it_was() -> None:
    """A restart in the middle of a recount clears nothing that is pending, and says nothing."""
    rule = rule_of(aggregate="max", window="1m", above=10, **{"for": "5m"})
    before, _ = step(rule, Series(), Observation(0, -STEP_MS, (point_of(0, 12.0),)))
    held = Point(0, "r", None)
    after, told = step(rule, replace(before, tail=()), Observation(STEP_MS, 0, (held,)))

    assert told == []
    assert after.core.phase is Phase.PENDING


def test_data_after_silence() -> None:
    """Whoever was told that there is no data can be told that there is, once."""
    rule = rule_of(aggregate="max", window="1m", above=10, no_data={"tell_after": "2m"})
    series, kinds = Series(), []
    for at, value in enumerate((3.0, None, None, None, None, 3.0, 3.0)):
        seen = Observation(at * STEP_MS, (at - 1) * STEP_MS, (point_of(at, value),))
        series, told = step(rule, series, seen)
        kinds.append([one.kind for one in told])

    assert kinds == [[], [], [], [Kind.NO_DATA], [], [Kind.DATA], []]


def test_what_was_told_before_keeps_its_bounds() -> None:
    """Of an amendment and of a withdrawal, while its windows may change and once they are final."""
    rule = rule_of(aggregate="max", window="1m", above=10)
    for final_to_ms in (-STEP_MS, 0):
        seen = Observation(0, final_to_ms, (Point(0, "p", 1, 20.0, 18.0, 22.0),))
        series, _ = step(rule, Series(), seen)
        found = []
        for at, value in enumerate((15.0, 5.0), start=1):
            news = (Point(0, "p", 2, value, value - 2, value + 2),)
            series, told = step(rule, series, Observation(at * STEP_MS, final_to_ms, news))
            found += [one for one in told if one.kind in (Kind.AMENDED, Kind.WITHDRAWN)]
        assert [(one.kind, one.before, one.before_low, one.before_high) for one in found] == [
            (Kind.AMENDED, 20.0, 18.0, 22.0),
            (Kind.WITHDRAWN, 15.0, 13.0, 17.0),
        ]


# ── any order of values and corrections ─────────────────────────────────────

STEP_MS = 60_000
LATE = 3
VALUES = st.sampled_from([2.0, 7.0, 12.0, None])


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[int, float | None]]]:
    """Return observations: each the next window, and corrections of the few before it."""
    first = draw(st.lists(VALUES, min_size=1, max_size=30))
    observations = []
    for at, value in enumerate(first):
        late = st.tuples(st.integers(max(0, at - LATE + 1), at), VALUES)
        corrections = dict(draw(st.lists(late, max_size=2)))
        observations.append(sorted({at: value, **corrections}.items()))
    return observations


def plainly(rule: Rule, values: list[float | None]) -> list[tuple[int, int | None]]:
    """Return the episodes of final values as (fired, ended), counted in windows."""
    hold, back_for = rule.hold // STEP_MS, rule.recover_for // STEP_MS
    above, back = rule.limits[1], rule.back[1]
    found: list[tuple[int, int | None]] = []
    beyond = recovered = 0
    for at, value in enumerate(values):
        if value is None:
            continue
        firing = bool(found) and found[-1][1] is None
        if not firing:
            beyond = beyond + 1 if value > above else 0
            if beyond > hold:
                found.append((at, None))
                beyond = recovered = 0
            continue
        recovered = recovered + 1 if value <= back else 0
        if recovered > back_for:
            found[-1] = (found[-1][0], at)
            recovered = 0
    return found


@given(
    observations=histories(),
    hold=st.integers(0, 3),
    recover_for=st.integers(0, 3),
    restarts=st.sets(st.integers(0, 30)),
)
@settings(max_examples=300)
def test_it_ends_as_a_plain_count_of_the_final_values(
    observations: list[list[tuple[int, float | None]]],
    hold: int,
    recover_for: int,
    restarts: set[int],
) -> None:
    """Whatever was told meanwhile: what stands in the end is what the final values say.

    And each alert that fired ends once, by a resolve or a withdrawal, before it fires again.
    """
    members = {"for": f"{hold}m", "recover_for": f"{recover_for}m", "recover": 5}
    rule = rule_of(aggregate="max", window="1m", above=10, **members)
    values: list[float | None] = [None] * len(observations)
    series, told = Series(), list[Transition]()
    for at, changes in enumerate([*observations, []]):
        for window, value in changes:
            values[window] = value
        last = at == len(observations)
        shown = range(len(values)) if at in restarts else [window for window, _ in changes]
        points = [point_of(window, values[window]) for window in shown if window <= at]
        through_ms = at * STEP_MS
        final_ms = through_ms if last else through_ms - LATE * STEP_MS
        if at in restarts:
            series = replace(msgspec.json.decode(msgspec.json.encode(series), type=Series), tail=())
        series, new = step(rule, series, Observation(through_ms, final_ms, tuple(points)))
        told += new

    standing = sorted((t.episode.fired_ms, t.episode.ended_ms) for t in series.told)
    expected = [(at * STEP_MS, end and end * STEP_MS) for at, end in plainly(rule, values)]
    assert standing == expected
    is_open: dict[int | None, bool] = {}
    for one in told:
        if one.kind is Kind.FIRING:
            assert not is_open.get(one.key_ms)
            is_open[one.key_ms] = True
        elif one.kind in (Kind.RESOLVED, Kind.ENDED):
            assert is_open[one.key_ms]
            is_open[one.key_ms] = False
        elif one.kind is Kind.WITHDRAWN:
            assert one.key_ms in is_open
            is_open[one.key_ms] = False
    assert sum(is_open.values()) == sum(end is None for _, end in expected)


def rule_of(**members: Any) -> Rule:
    """Return a rule."""
    return Rule.model_validate({"kind": "rule", "name": "r", "metric": "m", **members})


def point_of(window: int, value: float | None) -> Point:
    """Return a window with a value."""
    return Point(window * STEP_MS, "p", 0 if value is None else 5, value, value, value)
