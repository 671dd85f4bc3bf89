"""How far back an audit reaches, and which panes lack what is gone."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from weir.audited import Bound
from weir_analytics.jobs.log_records import Gap
from weir_analytics.jobs.reach import Reach, Search, margins, overtaken, reach_of
from weir_analytics.jobs.sample import PaneAt

HOUR_MS = 3_600_000
NOW_MS = 500_000 * HOUR_MS
PANE = PaneAt(5, 60, 6_000_000)


def found(most: int, came_ms: Sequence[int], silent_before_ms: int = 0) -> tuple[int, list[int]]:
    """Return what a search finds in a log, and what it asked about.

    Args:
        most: How many records may be read.
        came_ms: When those of the log were received.
        silent_before_ms: Of older ones the log does not say anything.
    """
    search, asked = Search(most, NOW_MS), list[int]()
    while (at_ms := search.next_ms) is not None:
        asked.append(at_ms)
        is_known = at_ms >= silent_before_ms
        search.told(at_ms, sum(one >= at_ms for one in came_ms) if is_known else None)
    return search.near_ms, asked


class TestSearch:
    def test_drawn_logs(self, seed: int) -> None:
        """No more than may be read, and all but a twentieth of that, or as much to the minute."""
        chance = random.Random(seed)  # noqa: S311  not for secrets
        for _ in range(50):
            back_ms = chance.choice((HOUR_MS // 4, 20 * HOUR_MS, 9_000 * HOUR_MS))
            came_ms = sorted(NOW_MS - chance.randrange(back_ms) for _ in range(200))
            most = chance.randrange(1, 200)
            begin_ms, _asked = found(most, came_ms)
            received = sum(one >= begin_ms for one in came_ms)
            assert received <= most
            sooner = sum(one >= begin_ms - 60_000 for one in came_ms)
            assert received >= 0.95 * most or sooner > most

    @pytest.mark.parametrize("most", [20_000, 61_000, 99_000])
    def test_few_questions_find_it(self, most: int) -> None:
        """Each is about an older part of the log, and may take long."""
        came_ms = range(NOW_MS, NOW_MS - 400 * HOUR_MS, -400 * HOUR_MS // 100_000)
        _begin_ms, asked = found(most, came_ms)
        assert len(asked) <= 14

    def test_where_the_log_is_silent_is_too_far(self) -> None:
        """What it has told of bounds what is read, and it is asked about nothing older again."""
        came_ms = range(NOW_MS, NOW_MS - 400 * HOUR_MS, -60_000)
        begin_ms, asked = found(20_000, came_ms, NOW_MS - 50 * HOUR_MS)
        assert 0 <= begin_ms - (NOW_MS - 50 * HOUR_MS) <= 60_000
        silent = [at_ms for at_ms in asked if at_ms < NOW_MS - 50 * HOUR_MS]
        assert silent == sorted(set(silent))


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
