"""Freshness: which part is to blame, from when on, and when numbers are live."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from weir_dashboard.freshness import Observed, judge

NOW = 1_000_000
LIVE = Observed(now_ms=NOW, processed_through_ms=NOW - 400, panes_age_ms=300, ingest_age_ms=300)


class TestJudge:
    def test_live(self) -> None:
        """Everything moves and counting is close behind."""
        assert (judge(LIVE).status, judge(LIVE).part) == ("live", None)

    @pytest.mark.parametrize(
        ("seen", "part", "since_ms"),
        [
            ({"unmoved_ms": 6_000}, "panes", NOW - 6_000),
            ({"redis_away_ms": 7_000, "unmoved_ms": 7_000}, "redis", NOW - 7_000),
            ({"kafka_away_ms": 6_500, "unmoved_ms": 6_800}, "kafka", NOW - 6_800),
            ({"unmoved_ms": 9_000, "panes_held": True}, "kafka", NOW - 9_000),
            ({"ingest_age_ms": 6_000}, "ingest", NOW - 6_000),
            ({"ingest_age_ms": None}, "ingest", NOW - 6_000),
            ({"ingest_stalled": True}, "ingest", NOW - 300),
            ({"hub_idle_ms": 8_000}, "hub", NOW - 8_000),
        ],
    )
    def test_the_root_is_named(self, seen: dict[str, Any], part: str, since_ms: int) -> None:
        """The part that stands still is named with since when; the root before its symptoms."""
        told = judge(replace(LIVE, **seen))
        assert (told.status, told.part, told.since_ms) == ("stale", part, since_ms)

    @pytest.mark.parametrize(
        "seen",
        [
            {"unmoved_ms": 5_999},
            {"redis_away_ms": 5_999},
            {"kafka_away_ms": 5_999},
            {"ingest_age_ms": 5_999},
            {"hub_idle_ms": 5_999},
        ],
    )
    def test_just_below_the_limit_is_live(self, seen: dict[str, Any]) -> None:
        """A part is stale from 6 s on, not a moment before."""
        assert judge(replace(LIVE, **seen)).status == "live"

    def test_old_but_moving_is_behind(self) -> None:
        """Counting that catches up is behind, not stale."""
        told = judge(replace(LIVE, processed_through_ms=NOW - 40_000))
        assert (told.status, told.since_ms) == ("behind", NOW - 40_000)
        assert judge(replace(LIVE, processed_through_ms=NOW - 5_000)).status == "live"

    def test_rebuilding_shows_progress(self) -> None:
        """A shard that is recounted says how far it is."""
        told = judge(replace(LIVE, rebuilding=0.62))
        assert (told.status, told.progress) == ("rebuilding", 0.62)

    def test_nothing_counted_yet_is_stale(self) -> None:
        """Before the first batch nothing is known."""
        told = judge(replace(LIVE, processed_through_ms=None))
        assert (told.status, told.part) == ("stale", "panes")
