"""Freshness: which part is to blame, from when on, and when numbers are live."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from weir.clock import ManualClock
from weir_dashboard.freshness import Fresh, Observed, judge
from weir_dashboard.observer import Observer
from weir_reading.batches import Batches
from weir_reading.parts import Part, Parts

NOW = 1_000_000
LIVE = Observed(now_ms=NOW, processed_through_ms=NOW - 400, panes_age_ms=300, ingest_away_ms=300)


class TestJudge:
    def test_live(self) -> None:
        """Everything moves and counting is close behind."""
        assert (judge(LIVE).status, judge(LIVE).part) == ("live", None)

    @pytest.mark.parametrize(
        ("seen", "part", "since_ms"),
        [
            ({"unmoved_ms": 6_000}, "panes", NOW - 6_000),
            ({"redis_away_ms": 7_000, "unmoved_ms": 7_000}, "redis", NOW - 7_000),
            ({"redis_away_ms": 5_000, "unmoved_ms": 6_000}, "redis", NOW - 5_000),
            ({"redis_away_ms": 6_000, "ingest_away_ms": 6_900}, "redis", NOW - 6_000),
            ({"kafka_away_ms": 6_500, "unmoved_ms": 6_800}, "kafka", NOW - 6_800),
            ({"kafka_away_ms": 4_000, "unmoved_ms": 6_100}, "kafka", NOW - 6_100),
            ({"unmoved_ms": 9_000, "panes_held": True}, "kafka", NOW - 9_000),
            ({"ingest_away_ms": 6_000}, "ingest", NOW - 6_000),
            ({"ingest_away_ms": 60_000}, "ingest", NOW - 60_000),
            ({"ingest_away_ms": 4_000, "ingest_stalled": True}, "ingest", NOW - 4_000),
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
            {"ingest_away_ms": 5_999},
            {"ingest_away_ms": 6_500, "redis_away_ms": 5_900},
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


class Kafka:
    """A log that answers."""

    def away_s(self) -> float | None:
        """Return that it is not away."""
        return None

    def silent_s(self) -> float:
        """Return that it answered a moment ago."""
        return 0.4


class World:
    """An observer, and everything that it looks at, at one second after another."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.parts = Parts(None, self.clock, "dashboard", instance="test", version="1")  # type: ignore[arg-type]
        self.batches = Batches(None, self.clock)  # type: ignore[arg-type]
        self.batches.reachable = True
        self.observer = Observer(self.batches, self.parts, cast("Any", Kafka()), self.clock)

    def beat(self, status: str | None, at_ms: int | None = None, **detail: Any) -> Fresh:
        """Let a second pass; `ingest` says how it is, or nothing is left of its heartbeat."""
        self.clock.advance(1_000)
        self.batches._move(self.clock.now_ms())
        self.batches.heard_ms = self.clock.now_ms()
        self.parts.known.clear()
        if status is not None:
            at_ms = self.clock.now_ms() if at_ms is None else at_ms
            part = Part("ingest", "1", at_ms, status, None, None, None, "1", detail)
            self.parts.known[b"ingest"] = part
        return self.observer.fresh()


class TestObserver:
    def test_since_when_ingest_is_gone_stays(self) -> None:
        """The heartbeat ages, then expires; the instant at which it was last well is told."""
        world = World()
        assert world.beat("ok").status == "live"
        well_ms = world.clock.now_ms()
        told = [world.beat("ok", at_ms=well_ms) for _ in range(14)]
        told += [world.beat(None) for _ in range(30)]
        assert [fresh.status for fresh in told[:6]] == ["live"] * 5 + ["stale"]
        assert {(f.part, f.since_ms) for f in told[5:]} == {("ingest", well_ms)}
        assert world.beat("ok").status == "live"

    def test_since_when_ingest_cannot_store_stays(self) -> None:
        """Each beat that says so is new; what it says began with the first."""
        world = World()
        world.beat("ok")
        well_ms = world.clock.now_ms()
        told = {(f.status, f.part, f.since_ms) for f in (world.beat("stalled") for _ in range(20))}
        assert told == {("stale", "ingest", well_ms)}

    def test_an_ingest_never_seen_is_stale_from_the_start(self) -> None:
        """Without any heartbeat the dashboard's own start is all that is known."""
        world = World()
        begun_ms = world.clock.now_ms()
        told = [world.beat(None) for _ in range(8)]
        assert [fresh.status for fresh in told] == ["live"] * 5 + ["stale"] * 3
        assert told[-1].since_ms == begun_ms

    def test_received_is_what_ingest_says(self) -> None:
        """The newest received time is ingest's own, not what has been counted."""
        world = World()
        assert world.beat("ok", received_ms=7).received_ms == 7
        assert world.beat("ok").received_ms == world.clock.now_ms()

    def test_kafka_and_redis_are_told_by_their_last_answer(self) -> None:
        """They write no heartbeat; a silence ages, and nothing else of them is known."""
        world = World()
        heard_ms = world.clock.now_ms()
        world.clock.advance(9_000)
        kafka, redis = world.observer.servers()
        assert (kafka.name, kafka.at_ms) == ("kafka", world.clock.now_ms() - 400)
        assert (redis.name, redis.at_ms, redis.detail) == ("redis", heard_ms, {})

    def test_a_redis_that_hangs_is_told_before_its_reads_end(self) -> None:
        """A read that waits says nothing; how long it has waited does, and no heartbeat is old."""
        world = World()
        world.beat("ok")
        heard_ms = world.batches.heard_ms
        told = []
        for _ in range(8):
            world.clock.advance(1_000)
            told.append(world.observer.fresh())
        assert [fresh.status for fresh in told] == ["live"] * 5 + ["stale"] * 3
        assert {(f.part, f.since_ms) for f in told[5:]} == {("redis", heard_ms)}
