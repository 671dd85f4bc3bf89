"""Panes: edges, refusals, and which of them windows are made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.panes import (
    Windows,
    ceil_to,
    floor_to,
    kept_since,
    last_windows,
    nearest_multiples,
    resolution_for,
    windows_between,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


class TestFloorTo:
    def test_an_edge_is_its_own(self) -> None:
        """An event exactly on an edge belongs to the pane that begins there."""
        assert floor_to(9_999, 10_000) == 0
        assert floor_to(10_000, 10_000) == 10_000

    def test_before_the_epoch(self) -> None:
        """A time before 1970 rounds down, not towards zero."""
        assert floor_to(-1, 10_000) == -10_000

    @pytest.mark.parametrize("pane_ms", [0, -1])
    def test_refuses_a_pane_without_length(self, pane_ms: int) -> None:
        """A pane length that is not positive is refused by its value."""
        with pytest.raises(ValueError, match=f"must be positive, got {pane_ms} ms"):
            floor_to(0, pane_ms)


class TestLastWindows:
    def test_the_newest_window_is_the_open_one(self) -> None:
        """The last window holds the instant itself, also on an edge."""
        for now_ms in (120_000, 150_000, 179_999):
            windows = last_windows(now_ms, range_ms=2 * MINUTE, step_ms=MINUTE, length_ms=MINUTE)
            assert list(windows.ends_ms) == [120_000, 180_000]
        windows = last_windows(180_000, range_ms=MINUTE, step_ms=MINUTE, length_ms=MINUTE)
        assert windows.last_end_ms == 240_000

    def test_a_range_shorter_than_a_step_is_one_window(self) -> None:
        """There is always one window at least."""
        assert last_windows(5, range_ms=1, step_ms=10, length_ms=10).count == 1


class TestWindowsBetween:
    def test_align_to_the_start(self) -> None:
        """Windows follow each other from the start of the span, whatever the epoch says."""
        windows = windows_between(70_000, 250_000, step_ms=MINUTE, length_ms=MINUTE)
        assert list(windows.ends_ms) == [130_000, 190_000, 250_000]

    def test_none_ends_after_the_span(self) -> None:
        """A rest shorter than a step is left out, so no window counts events after `to`."""
        windows = windows_between(0, 119_999, step_ms=MINUTE, length_ms=MINUTE)
        assert list(windows.ends_ms) == [60_000]


class TestWindows:
    @given(
        first=st.integers(-20, 20),
        step=st.integers(1, 12),
        length=st.integers(1, 12),
        count=st.integers(1, 8),
    )
    def test_pane_starts_are_those_of_the_windows(
        self, first: int, step: int, length: int, count: int
    ) -> None:
        """Every pane of every window comes once, in order, and no other."""
        windows = Windows(first, step, length, count)
        expected = {s for end in windows.ends_ms for s in range(end - length, end)}
        assert windows.pane_starts(1) == sorted(expected)

    @given(
        first=st.integers(-20, 20),
        step=st.integers(1, 12),
        length=st.integers(1, 12),
        count=st.integers(1, 8),
        since=st.integers(-60, 120),
        pane=st.integers(1, 3),
    )
    def test_panes_are_counted_without_being_listed(
        self, first: int, step: int, length: int, count: int, since: int, pane: int
    ) -> None:
        """The count is that of the list, and what is older than `since` is in neither."""
        windows = Windows(first * pane, step * pane, length * pane, count)
        every = windows.pane_starts(pane)
        assert windows.pane_count(pane) == len(every)
        kept = [start for start in every if start >= since]
        assert windows.pane_starts(pane, since) == kept
        assert windows.pane_count(pane, since) == len(kept)

    def test_a_count_beyond_any_memory(self) -> None:
        """Windows of a hundred years are counted at once."""
        windows = Windows(0, DAY, 36_500 * DAY, 11_000)
        assert windows.pane_count(1) == (36_500 + 10_999) * DAY

    def test_earlier_moves_all(self) -> None:
        """Moving windows back keeps their number, step and length."""
        assert list(Windows(100, 10, 20, 3).earlier(60).ends_ms) == [40, 50, 60]


class TestKeptSince:
    def test_a_pane_is_kept_for_its_time_after_its_end(self) -> None:
        """The pane that ended exactly `keep` ago has just gone; the one after it stays."""
        assert kept_since(100_000, pane_ms=10_000, keep_ms=50_000) == 50_000
        assert kept_since(99_999, pane_ms=10_000, keep_ms=50_000) == 40_000


class TestResolutionFor:
    def since(self, now_ms: int) -> dict[int, int]:
        """Return from when on panes are kept, by length."""
        return {
            10_000: now_ms - DAY,
            MINUTE: now_ms - 7 * DAY,
            HOUR: now_ms - 90 * DAY,
        }

    @pytest.mark.parametrize(
        ("step_ms", "length_ms", "count", "pane_ms"),
        [
            (30_000, 30_000, 120, 10_000),
            (MINUTE, 5 * MINUTE, 60, MINUTE),
            (HOUR, HOUR, 24, HOUR),
            (30_000, HOUR, 10, 10_000),
            (12 * MINUTE, 12 * MINUTE, 120, MINUTE),
        ],
    )
    def test_the_longest_that_divides(
        self, step_ms: int, length_ms: int, count: int, pane_ms: int
    ) -> None:
        """Of the panes that are kept and divide the windows the longest are read."""
        now_ms = 400 * DAY
        windows = Windows(now_ms - (count - 1) * step_ms, step_ms, length_ms, count)
        assert resolution_for(windows, self.since(now_ms)) == pane_ms

    def test_alignment_counts(self) -> None:
        """Windows from 14:00:10 on cannot be read from panes of minutes."""
        now_ms = 400 * DAY
        windows = Windows(now_ms - HOUR + 10_000, MINUTE, MINUTE, 5)
        assert resolution_for(windows, self.since(now_ms)) == 10_000

    def test_a_shorter_pane_that_is_not_kept_is_passed_over(self) -> None:
        """Three days back only panes of minutes and hours are left."""
        now_ms = 400 * DAY
        windows = Windows(now_ms - 3 * DAY, 10 * MINUTE, 10 * MINUTE, 5)
        assert resolution_for(windows, self.since(now_ms)) == MINUTE

    def test_none_reaches_back(self) -> None:
        """If no fitting panes are kept so long, those that reach farthest are read."""
        now_ms = 400 * DAY
        windows = Windows(now_ms - 3 * DAY, 10_000, 10_000, 5)
        assert resolution_for(windows, self.since(now_ms)) == 10_000

    def test_none_divides(self) -> None:
        """Windows that are not whole panes have no resolution."""
        assert resolution_for(Windows(5, 5, 5, 1), self.since(DAY)) is None


class TestNearestMultiples:
    @pytest.mark.parametrize(
        ("length_ms", "nearest"), [(15, (10, 20)), (3, (10, 10)), (20, (20, 20)), (29, (20, 30))]
    )
    def test_both_neighbours(self, length_ms: int, nearest: tuple[int, int]) -> None:
        """The neighbours lie on both sides, and nothing is never one of them."""
        assert nearest_multiples(length_ms, 10) == nearest

    def test_ceil(self) -> None:
        """An edge is its own ceiling, before the epoch too."""
        assert [ceil_to(t, 10) for t in (-11, -10, -1, 0, 1, 10)] == [-10, -10, 0, 0, 10, 10]
