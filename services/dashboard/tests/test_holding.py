"""What holds the numbers back, in words; and what the log is about to lose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from weir.log_left import LogLeft, quarantine_told, read_log_told, read_quarantine_told
from weir_dashboard.freshness import Observed, judge
from weir_dashboard.holding import QuarantineHeld, Said, holding, log_held, quarantine_held

NOW = 10_000_000
COUNTING = {"doing": "counting", "trouble": None, "held_by": None, "lag_records": 1_200}
LIVE = Observed(now_ms=NOW, processed_through_ms=NOW - 400, panes_age_ms=300, ingest_away_ms=300)
SAID = Said(NOW, COUNTING, busy=0.4, in_per_s=350.0)
STOOD = {"unmoved_ms": 8_000}
BEHIND = {"processed_through_ms": NOW - 40_000}


@pytest.mark.parametrize(
    ("seen", "known", "code", "words"),
    [
        ({"redis_away_ms": 7_000, **STOOD}, {}, "redis_away", "Redis does not answer"),
        (STOOD, {"refused": True, "panes": None}, "redis_refuses", "give it more room"),
        ({"kafka_away_ms": 7_000, **STOOD}, {}, "kafka_away", "Kafka does not answer"),
        (
            {"panes_held": True, **STOOD},
            {"panes": COUNTING | {"held_by": 3}},
            "partition_without_leader",
            "partition 3 of the log has no leader",
        ),
        (STOOD, {"panes": None}, "driver_away", "no panes driver has been heard"),
        (
            STOOD,
            {"panes": COUNTING | {"doing": "waiting for Kafka and Redis", "trouble": "OOM"}},
            "driver_waiting",
            "the panes driver is waiting for Kafka and Redis: OOM",
        ),
        (STOOD, {}, "batch_stuck", "no batch has ended for 8 s"),
        (BEHIND, {}, "catching_up", "counting 350 a second; 1,200 wait"),
        (BEHIND, {"busy": 0.97}, "load", "at work all the time, counting 350 a second"),
        (BEHIND, {"lanes": ("backfill",)}, "lanes_busy", "a backfill from the log takes turns"),
        ({"ingest_away_ms": 9_000}, {}, "ingest_away", "ingest is not running"),
        ({"hub_idle_ms": 9_000}, {}, "hub_away", "this dashboard has not answered"),
        ({"rebuilding": 0.62}, {}, "rebuilding", "62% done"),
        (
            {"rebuilding": 0.62},
            {"waits": "no"},
            "rebuilding",
            "done; a part of it waits: no; it is",
        ),
        ({"received_ms": NOW - 300_000}, {}, "quiet", "nothing has been sent for 5 min"),
        ({}, {"newer": "mark must be older"}, "newer_release", "mark must be older"),
        (STOOD, {"newer": "mark must be older", "panes": None}, "newer_release", "mark must be"),
    ],
)
def test_the_reason_is_told(
    seen: dict[str, Any], known: dict[str, Any], code: str, words: str
) -> None:
    """Each stall, and each way of being behind, has a code and a sentence of its own."""
    told = holding(judge(replace(LIVE, **seen)), replace(SAID, **known))

    assert told is not None
    assert told.code == code
    assert words in told.message


@pytest.mark.parametrize("received_ms", [None, NOW - 59_999])
def test_nothing_holds_back_what_is_live(received_ms: int | None) -> None:
    """A source that was quiet for less than a minute is no news."""
    assert holding(judge(replace(LIVE, received_ms=received_ms)), SAID) is None


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("left_ms", "warning"),
    [
        (6 * HOUR, None),
        (6 * HOUR - 1, "events of partition 2 that are not counted yet are deleted in 5 h"),
        (0, "events of partition 2 that are not counted yet may be deleted at any time: let"),
        (None, None),
    ],
)
def test_the_log_warns_while_there_is_time(left_ms: int | None, warning: str | None) -> None:
    """With less than a quarter of what it keeps; not before, and not if it keeps all."""
    detail = {"log_left_ms": left_ms, "log_kept_ms": 24 * HOUR, "log_left_partition": 2}
    told = log_held(read_log_told(detail))

    assert told.left_ms == left_ms
    assert (told.warning is None) == (warning is None)
    assert (warning or "") in (told.warning or "")


def test_that_events_are_gone_is_not_said_of_those_that_may_go() -> None:
    """By a driver, or by whoever has seen it."""
    detail = {"log_left_ms": 0, "log_kept_ms": 24 * HOUR, "log_left_partition": 2}
    told = log_held(read_log_told(detail | {"log_left_gone": True}))

    assert "partition 2 that are not counted yet have been deleted, and more" in (
        told.warning or ""
    )
    told = log_held(read_log_told(detail | {"log_left_lane": True}))
    assert "that a backfill or rebuild has not counted yet may be deleted" in (told.warning or "")


@pytest.mark.parametrize(
    ("left_ms", "warning"),
    [
        (6 * HOUR, None),
        (
            6 * HOUR - 1,
            "events in quarantine that no replay has looked into are deleted in 5 h: weir",
        ),
        (0, "events in quarantine that no replay has looked into may be deleted at any time: weir"),
        (None, None),
    ],
)
def test_quarantine_warns_while_there_is_time(left_ms: int | None, warning: str | None) -> None:
    """As the log does; of what the driver's heartbeat says."""
    detail = quarantine_told(LogLeft(0, left_ms, 24 * HOUR))
    told = quarantine_held(read_quarantine_told(detail))
    assert (told.left_ms, told.kept_ms) == (left_ms, 24 * HOUR)
    assert (told.warning is None) == (warning is None)
    assert (warning or "") in (told.warning or "")


def test_nobody_says_anything_of_quarantine_that_is_not_known() -> None:
    """Before all of it was read, of an older release, and without a driver."""
    for detail in (None, {}, quarantine_told(None)):
        assert quarantine_held(read_quarantine_told(detail)) == QuarantineHeld(None, None, None)


def test_a_driver_of_an_older_release_says_nothing_of_the_log() -> None:
    """Nor does one that is away."""
    nothing: list[dict[str, Any] | None] = [None, {}]
    for detail in nothing:
        assert read_log_told(detail) is None
        told = log_held(None)
        assert (told.left_ms, told.kept_ms, told.warning) == (None, None, None)
