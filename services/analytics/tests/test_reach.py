"""How far back an audit reaches, and which panes lack what is gone."""

from __future__ import annotations

import random

import pytest
from weir_analytics.jobs.log_records import Gap
from weir_analytics.jobs.reach import Bound, Reach, begin_within, margins, overtaken, reach_of
from weir_analytics.jobs.sample import PaneAt

HOUR_MS = 3_600_000
NOW_MS = 500_000 * HOUR_MS
PANE = PaneAt(5, 60, 6_000_000)


class TestBeginWithin:
    def test_drawn_logs(self, seed: int) -> None:
        """No more than may be read, and to the minute as much as that."""
        chance = random.Random(seed)  # noqa: S311  not for secrets
        for _ in range(50):
            back_ms = chance.choice((HOUR_MS // 4, 20 * HOUR_MS, 9_000 * HOUR_MS))
            came_ms = sorted(NOW_MS - chance.randrange(back_ms) for _ in range(200))
            most = chance.randrange(1, 200)

            def since(at_ms: int, came_ms: list[int] = came_ms) -> int:
                return sum(one >= at_ms for one in came_ms)

            begin_ms = begin_within(most, since, len(came_ms), NOW_MS)
            assert since(begin_ms) <= most
            assert since(begin_ms - 60_000) > most

    @pytest.mark.parametrize(("in_all", "is_all"), [(200, True), (201, False)])
    def test_a_log_of_no_more_is_read_whole(self, in_all: int, is_all: bool) -> None:
        """Nobody has to be asked then."""
        asked: list[int] = []

        def since(at_ms: int) -> int:
            asked.append(at_ms)
            return in_all if at_ms < NOW_MS - 5 * HOUR_MS else 3

        begin_ms = begin_within(200, since, in_all, NOW_MS)
        assert (begin_ms == 0, asked == []) == (is_all, is_all)
        assert len(asked) < 20


class TestReach:
    @pytest.mark.parametrize(
        ("asked_h", "whole_h", "begin_h", "reach"),
        [
            (10, 0, 0, (10, Bound.LAST)),
            (10, 11, 0, (11, Bound.RETENTION)),
            (10, 11, 5, (15, Bound.RECORDS)),
            (10, 11, 0.5, (11, Bound.RETENTION)),
            (10, 11, 95, (100, Bound.RECORDS)),
            (10, 200, 0, (100, Bound.RETENTION)),
        ],
    )
    def test_what_bounds_it_is_told(
        self, asked_h: int, whole_h: int, begin_h: float, reach: tuple[int, Bound]
    ) -> None:
        """The latest of them decides; a pane needs a margin of the log before it."""
        begin_ms = int(begin_h * HOUR_MS)
        hours = (asked_h * HOUR_MS, whole_h * HOUR_MS, begin_ms, 10 * HOUR_MS, 100 * HOUR_MS)
        assert reach_of(*hours) == Reach(reach[0] * HOUR_MS, reach[1], begin_ms)


class TestOvertaken:
    @pytest.mark.parametrize(
        ("gap", "lacks"),
        [
            (Gap(0, 9, None), True),
            (Gap(0, 10, None), False),
            (Gap(1, 0, None), False),
            (Gap(0, 0, PANE.start_s * 1000 - 500), True),
            (Gap(0, 0, PANE.start_s * 1000 - 501), False),
        ],
    )
    def test_which_panes_lack_what_is_gone(self, gap: Gap, lacks: bool) -> None:
        """It stood before the place of the look, and not all of it before what the pane needs."""
        assert list(overtaken([gap], {PANE: {0: 10}}, 500)) == ([PANE] if lacks else [])

    def test_an_older_pane_lacks_it_too(self) -> None:
        """Late events stand anywhere behind it; what is younger by a margin is whole."""
        at = {PaneAt(5, 60, start_s): {0: 10} for start_s in range(0, 6_000, 60)}
        found = list(overtaken([Gap(0, 3, 3_000_000)], at, margins(0).minute_ms))
        assert [pane.start_s for pane in found] == list(range(0, 3_001, 60))
