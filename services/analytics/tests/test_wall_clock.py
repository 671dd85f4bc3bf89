"""A clock that is set back while a stream runs."""

from __future__ import annotations

from weir.clock import ManualClock
from weir_analytics.panes.wall_clock import WallClock

NOON_MS = 1_795_348_800_000


class TestWallClock:
    """Told once, by how far; whatever else the time does is no step back."""

    def test_a_step_back_is_told_once(self) -> None:
        """By its length, whatever time has passed beside it."""
        clock = ManualClock(NOON_MS)
        wall = WallClock(clock)
        clock.advance(500)
        clock.step(-3_600_000)

        assert wall.back_s() == 3_600.0
        clock.advance(500)
        assert wall.back_s() == 0.0

    def test_time_that_passes_and_a_step_ahead_are_none(self) -> None:
        """Spark waits for less then, not for more."""
        clock = ManualClock(NOON_MS)
        wall = WallClock(clock)
        for ms in (500, 90_000):
            clock.advance(ms)
            assert wall.back_s() == 0.0
        clock.step(3_600_000)
        assert wall.back_s() == 0.0

    def test_a_step_back_to_where_it_was_is_one(self) -> None:
        """What was planned while it was ahead is waited for."""
        clock = ManualClock(NOON_MS)
        wall = WallClock(clock)
        clock.step(3_600_000)
        assert wall.back_s() == 0.0
        clock.step(-3_600_000)

        assert wall.back_s() == 3_600.0

    def test_what_a_time_server_does_little_by_little_is_none(self) -> None:
        """Half a millisecond a second, for an hour."""
        clock = ManualClock(NOON_MS)
        wall = WallClock(clock)
        found = []
        for _ in range(3_600):
            clock.advance(1_000)
            clock.step(-1)
            found.append(wall.back_s())

        assert max(found) < 0.01
