"""What messages say, letter by letter."""

from __future__ import annotations

from typing import Any

import pytest
from weir.alerts.machine import Point
from weir.alerts.step import Kind, Transition
from weir.alerts.words import Subject, filled, short, text, title, with_unit
from weir.definitions.rule import Rule

from .test_alerts import rule_of

POINT = Point(0, "p", 11_402, 617.2, 592.0, 648.1)


def subject(**members: Any) -> Subject:
    """Return a slow checkout in eu."""
    given = {"name": "slow_checkout", "aggregate": "p95", "window": "5m", "above": 400, **members}
    return Subject(rule_of(**given), {"region": "eu"}, "ms")


def told(kind: Kind, **members: Any) -> Transition:
    """Return a transition at the point."""
    return Transition(**{"kind": kind, "at_ms": 0, "through_ms": 0, "point": POINT, **members})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (617.2, "617"),
        (0, "0"),
        (-0.03125, "-0.0312"),
        (9_994, "9,990"),
        (18_230, "18.2 k"),
        (999_999, "1 M"),
        (2.5e9, "2.5 G"),
        (1e-7, "0.0000001"),
        (None, "-"),
        (float("nan"), "-"),
    ],
)
def test_three_digits(value: float | None, said: str) -> None:
    """As the dashboard writes them, but for the hyphen."""
    assert short(value) == said


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (617.2, "ms", "617 ms"),
        (172_000, "B", "172 kB"),
        (5, "bytes/s", "5 B/s"),
        (2.7, "/s", "2.7/s"),
        (3, "", "3"),
        (None, "ms", "-"),
    ],
)
def test_units(value: float | None, unit: str, said: str) -> None:
    """Thousands of bytes belong to their unit."""
    assert with_unit(value, unit) == said


@pytest.mark.parametrize(
    ("transition", "said"),
    [
        (told(Kind.FIRING), "p95 617 ms > 400 ms in eu"),
        (told(Kind.FIRING, point=None), "no data for 10m in eu"),
        (told(Kind.CONFIRMED), "confirmed, p95 617 ms > 400 ms in eu"),
        (told(Kind.AMENDED, before=520.0), "p95 was 617 ms, not 520 ms in eu"),
        (told(Kind.WITHDRAWN, before=701.0), "withdrawn, p95 was 617 ms, not 701 ms in eu"),
        (told(Kind.RESOLVED), "resolved, p95 617 ms in eu"),
        (told(Kind.ENDED, reason="rule deleted"), "ended, rule deleted in eu"),
        (told(Kind.NO_DATA, point=None), "no data for 10m in eu"),
    ],
)
def test_titles(transition: Transition, said: str) -> None:
    """One line says what, how much against which limit, and where."""
    assert title(subject(), transition) == f"Slow checkout: {said}"


def test_other_limits() -> None:
    """Each side of a limit has its own words."""
    below, outside = subject(above=None, below=700), subject(above=None, outside=[1, 500])

    assert title(below, told(Kind.FIRING)).endswith("p95 617 ms < 700 ms in eu")
    assert title(outside, told(Kind.FIRING)).endswith("p95 617 ms outside 1 to 500 ms in eu")


def test_text() -> None:
    """The rule's message, how many events, how exact, and whether late ones may change it."""
    rule = subject(message="p95 {value} {unit} > {limit} in {region}, see {wiki}")

    assert text(rule, told(Kind.FIRING)).splitlines() == [
        "p95 617 ms > 400 in eu, see {wiki}",
        "11,402 events; error band 592 to 648 ms.",
        "Provisional: late events may still change it.",
    ]
    exact = Point(0, "f", 1, 12.0, 12.0, 12.0)
    certain = told(Kind.FIRING, point=exact, confirmed=True)
    assert text(subject(), certain).splitlines() == ["1 event, exact.", "Every event of it is in."]


@pytest.mark.parametrize("kind", [Kind.AMENDED, Kind.WITHDRAWN])
def test_what_was_told_before_has_its_error_band(kind: Kind) -> None:
    """Whether a correction is more than the sketch's error can be seen; exact numbers have none."""
    estimated = told(kind, before=520.0, before_low=498.0, before_high=545.0)
    exact = told(kind, before=520.0, before_low=520.0, before_high=520.0)

    assert text(subject(), estimated).splitlines()[:2] == [
        "11,402 events; error band 592 to 648 ms.",
        "Before: error band 498 to 545 ms.",
    ]
    assert "Before" not in text(subject(), exact)
    assert "Before" not in text(subject(), told(kind, before=520.0))


def test_what_events_say_is_only_text() -> None:
    """A value of an event that looks like a placeholder is not filled in."""
    hostile = Subject(rule_of(message="in {region}", above=1, **PLAIN), {"region": "{value}"})

    assert filled(hostile, POINT) == "in {value}"


PLAIN = {"aggregate": "count", "window": "1m"}


@pytest.mark.parametrize(
    ("metric", "limit", "value", "said"),
    [
        ("weir.stalled", 60, 75.2, "counting has stood still for 1m15s > 1m"),
        ("weir.lag", 60, 7200, "numbers are behind by 2h > 1m"),
        ("weir.ledger", 0, 3, "not accounted for: 3 events > 0 events"),
        ("weir.memory", 85, 91.25, "memory of Redis in use: 91.2 % > 85 %"),
    ],
)
def test_a_signal_says_what_it_is(metric: str, limit: float, value: float, said: str) -> None:
    """Not "last 75 s", and no events nor late ones: there are none."""
    rule = Rule.model_validate({"name": "own", "metric": metric, "above": limit})
    signal = rule.signal
    assert signal is not None
    reading = Point(0, "f", 1, value)
    fired = Transition(Kind.FIRING, 0, 0, point=reading, confirmed=True)
    about = Subject(rule, {}, signal.unit)
    assert (title(about, fired), text(about, fired)) == (f"Own: {said}", "")
