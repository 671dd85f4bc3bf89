"""Episodes of a soak's alarm: what was sent says when it fires, and what was told."""

from __future__ import annotations

from typing import Any

import pytest
from disruption.alarm import WINDOW_MS
from disruption.scene import RULE
from disruption.soak_alerts import (
    ABOVE,
    OFF_MS,
    RECOVER,
    STEP_S,
    WINDOW_S,
    Episode,
    expected,
    told,
    unlike,
)

START_MS = 1_800_000_000_000


def sent(*spans: tuple[float, float], batch: int = 50) -> list[tuple[int, int]]:
    """Return ten batches a second from one second of the test to another, several times."""
    return [
        (START_MS + tenth * 100, batch)
        for begin, end in spans
        for tenth in range(round(begin * 10), round(end * 10))
    ]


def episode(begin: float, end: float | None) -> Episode:
    """Return an episode between two seconds of the test."""
    ends = None if end is None else round(START_MS + end * 1000)
    return Episode(round(START_MS + begin * 1000), ends)


def body(kind: str, alert: str, since: float, at: float, identity: str = "") -> dict[str, Any]:
    """Return a message about one alert, as a receiver gets it."""
    return {
        "id": identity or f"{alert}-{kind}",
        "kind": kind,
        "dedup_key": alert,
        "since_ms": round(START_MS + since * 1000),
        "at_ms": round(START_MS + at * 1000),
    }


def test_it_is_the_rule_of_the_scene() -> None:
    """Another limit there is another one here."""
    assert f"window: {{length: {WINDOW_S}s, step: {STEP_S}s}}" in RULE
    assert f"above: {ABOVE}\nrecover: {RECOVER}\n" in RULE
    assert WINDOW_MS == WINDOW_S * 1000


def test_when_it_fires() -> None:
    """From the first window with events on, until one has none of them any more."""
    assert expected([]) == []
    assert expected(sent((0, 10))) == [episode(1, 15)]
    assert expected(sent((0, 10), (20.5, 30))) == [episode(1, 15), episode(21, 35)]
    # A gap in which each window still has an event, and one that is just long enough.
    assert expected(sent((0, 10), (14.9, 20))) == [episode(1, 25)]
    assert expected(sent((0, 10), (15, 20))) == [episode(1, 15), episode(16, 25)]


def test_a_few_events_neither_raise_nor_end_it() -> None:
    """Between the limit and where it recovers it stays as it is."""
    few, fewer = [(START_MS, 3)], [(START_MS + 10_000, 2)]
    assert expected(few) == []
    assert expected([*sent((0, 10)), *fewer]) == [episode(1, 16)]


def test_what_was_told() -> None:
    """The last word on each alert counts, and a message that comes again says nothing more."""
    found = told(
        [
            body("firing", "a", 1, 1),
            body("confirmed", "a", 1, 4),
            body("resolved", "a", 1, 15),
            body("firing", "a", 1, 1),
            body("firing", "b", 21, 21),
            body("withdrawn", "b", 21, 25),
            body("firing", "c", 30, 30),
            body("amended", "c", 29, 33),
            body("firing", "d", 50, 50),
            body("resolved", "d", 50, 60),
            body("amended", "d", 50, 51),
            body("firing", "e", 70, 70),
            body("resolved", "e", 70, 80),
            body("firing", "e", 70, 81, "e-again"),
        ]
    )
    assert found == [episode(1, 15), episode(29, None), episode(50, 60), episode(70, None)]


WANTED = [episode(1, 15), episode(21, 35)]


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (WANTED, []),
        # The rule came after the load.
        ([episode(8, 15), episode(21, 35)], []),
        ([episode(1, 16), episode(20, 37)], []),
        ([episode(1, 15)], ["not told"]),
        ([], ["not told", "not told"]),
        ([*WANTED, episode(40, 50)], ["never was"]),
        ([episode(1, 15), episode(21, None)], ["not told", "never was"]),
        ([episode(1, 35)], ["not told", "not told", "never was"]),
        ([episode(1, 15), episode(21, 35 + OFF_MS / 1000 + 1)], ["not told", "never was"]),
        ([episode(-9, 15), episode(21, 35)], ["not told", "never was"]),
    ],
)
def test_what_is_unlike(found: list[Episode], wrong: list[str]) -> None:
    """Each episode that nobody was told of, and each that was told and never was."""
    assert [text.partition(":")[0] for text in unlike(WANTED, found)] == wrong
