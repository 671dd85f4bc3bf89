"""Lanes, and retention behind them: who is overtaken, when, and who gets away."""

from __future__ import annotations

from typing import Any

import pytest
from weir.log_left import FirstLost
from weir.log_place import LogPlace
from weir.log_race import Pursuit, Race

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


class TestRace:
    """A look each quarter of a minute."""

    @staticmethod
    def run(
        *left_ms: int | None, firsts: object = None, rests: object = None, left_out: bool = False
    ) -> int | None:
        """Return what the last of some looks tells."""
        race, told = Race(), None
        places: Any = firsts or range(len(left_ms))
        waiting: Any = rests or [None] * len(left_ms)
        for n, (left, first, rest) in enumerate(zip(left_ms, places, waiting, strict=True)):
            near = [] if left is None else [Pursuit(0, left)]
            lanes = {0: LogPlace(99, lane=first, rest=rest, left_out=left_out), 1: LogPlace(99)}
            told = race.overtaken(near, lanes, NOW_MS + n * 15_000)
        return None if told is None else told.ms

    @pytest.mark.parametrize(
        ("left_ms", "told"),
        [
            # Standing still: so much as is left. At half the speed of deletion: twice that.
            ([600_000, 585_000, 570_000, 555_000, 540_000], 540_000),
            ([600_000, 592_500, 585_000, 577_500, 570_000], 1_140_000),
            # By the last five minutes, whatever was before.
            ([600_000, *range(900_000, 599_999, -15_000)], 600_000),
            ([600_000, *range(900_000, 614_999, -15_000)], None),
            ([600_000, 585_000, 570_000, 555_000, 570_000, 600_000], None),
            # Not long enough to tell; overtaken; nobody there, and another one after that.
            ([600_000, 585_000, 570_000, 555_000], None),
            ([0], None),
            ([600_000, 585_000, 570_000, 555_000, 540_000, None], None),
            ([600_000, 585_000, 570_000, 555_000, None, 540_000], None),
            ([9_000_000, 9_015_000, 9_030_000, 9_045_000, 600_000], None),
            # There by chance: whoever stands still there may be overtaken at any time.
            ([-60_000, -75_000, -90_000, -105_000, -120_000], 0),
            ([0, 0, 0, 0, 0], 0),
            ([60_000, 60_000, 60_000, 60_000, 60_000], None),
            ([0, 0, 0, 0, 5_000], None),
            ([-7_200_000, -5_000_000, -3_000_000, -1_000_000, 1_000_000], None),
        ],
    )
    def test_who_is_faster(self, left_ms: list[int | None], told: int | None) -> None:
        """A backfill begins ten minutes above what is deleted: that alone is no danger."""
        assert self.run(*left_ms) == told

    @pytest.mark.parametrize(
        ("firsts", "told"),
        [
            # Six thousand are deleted in a minute, and it is sixty thousand ahead.
            ([7_000] * 5, 600_000),
            ([7_000] * 4, None),
            ([7_000, 7_000, 7_000, 7_000, 10_000], 1_200_000),
            ([7_000, 8_500, 10_000, 11_500, 13_000], None),
            # What it does for a minute is not how fast it is.
            ([*range(7_000, 40_000, 3_000), *[40_000] * 5], None),
            ([*range(7_000, 40_000, 3_000), *[40_000] * 21], 600_000),
            # One that went back is looked at anew.
            ([8_000, 7_000, 7_000, 7_000, 7_000], None),
            ([8_000, 7_000, 7_000, 7_000, 7_000, 7_000], 600_000),
        ],
    )
    def test_by_size_offsets_are_compared(self, firsts: list[int], told: int | None) -> None:
        """Between deletions no time runs out, and then that of a whole segment does."""
        race, found = Race(), None
        for n, first in enumerate(firsts):
            near = Pursuit(0, None, 60_000.0, 100.0)
            found = race.overtaken([near], {0: LogPlace(99_000, lane=first)}, n * 15_000)
        assert (None if found is None else found.ms) == told

    def test_what_could_be_deleted_by_size_may_go_at_any_time(self) -> None:
        """A segment goes as a whole; from a lane that is faster it goes no more."""
        for moved, told in ((0, 0), (1_000, 0), (1_600, None)):
            race, found = Race(), None
            for n in range(5):
                near, lane = Pursuit(0, None, -5_000.0, 100.0), 7_000 + n * moved
                found = race.overtaken([near], {0: LogPlace(99_000, lane=lane)}, n * 15_000)
            assert (None if found is None else found.ms) == told

    @pytest.mark.parametrize(
        ("rest", "told"), [(60_000, None), (30_000, None), (75_000, 1_200_000)]
    )
    @pytest.mark.parametrize("by_age", [True, False])
    def test_a_lane_that_ends_before_is_not_overtaken(
        self, rest: int, told: int | None, by_age: bool
    ) -> None:
        """At half the speed of deletion, twenty minutes before that: it counts 3,000 a minute."""
        race, found = Race(), None
        for n in range(5):
            near = Pursuit(0, None, 60_000.0, 100.0)
            if by_age:
                near = Pursuit(0, 600_000 + (4 - n) * 7_500)
            place = LogPlace(99, lane=750 * n, rest=rest - 60 + 750 * (4 - n))
            found = race.overtaken([near], {0: place}, n * 15_000)
        assert (None if found is None else found.ms) == told

    @pytest.mark.parametrize(
        ("firsts", "rests", "told"),
        [
            # Others of its lanes are counted before it, if only at some of the looks.
            ([7, 7, 7, 7, 7], [900, 800, 700, 600, 500], None),
            ([7, 7, 7, 7, 7], [900, 900, 900, 900, 899], None),
            ([7, 7, 7, 7, 7], [900, 800, 1_700, 1_700, 1_700], None),
            # None is; that is not known; what is counted is the lane itself, which is slower.
            ([7, 7, 7, 7, 7], [900, 900, 900, 900, 900], 0),
            ([7, 7, 7, 7, 7], None, 0),
            ([7, 8, 9, 10, 11], [900, 899, 898, 897, 896], 0),
            # Until a minute ago.
            ([7, 7, 7, 7, 7, 7], [901, 900, 900, 900, 900, 900], 0),
        ],
    )
    def test_a_lane_that_waits_its_turn_is_not_lost(
        self, firsts: list[int], rests: list[int] | None, told: int | None
    ) -> None:
        """A rebuild counts the newest hours first: what is there by chance stands still."""
        left_ms = [-60_000 - n * 15_000 for n in range(len(firsts))]
        assert self.run(*left_ms, firsts=firsts, rests=rests) == told

    @pytest.mark.parametrize(
        ("left_h", "rests", "is_told"),
        [
            (2, [54_100, 54_075, 54_050, 54_025, 54_000], True),
            (2, [12_100, 12_075, 12_050, 12_025, 12_000], True),
            (2, [12_099, 12_074, 12_049, 12_024, 11_999], False),
            # What comes up meanwhile is to be counted, too, as fast as what was there.
            (10, [50_100, 50_050, 54_050, 54_025, 54_000], False),
            (8, [50_100, 50_075, 54_050, 54_025, 54_000], True),
        ],
    )
    def test_a_turn_that_comes_too_late_is_none(
        self, left_h: int, rests: list[int], is_told: bool
    ) -> None:
        """Others that are counted at 100 a minute need nine hours, two hours, or less than that."""
        left_ms = left_h * HOUR_MS
        looks = [left_ms + 60_000 - n * 15_000 for n in range(5)]
        assert self.run(*looks, firsts=[7] * 5, rests=rests) == (left_ms if is_told else None)

    @pytest.mark.parametrize(("per_look", "told"), [(3_000, None), (750, 1_200_000)])
    def test_that_it_waited_its_turn_is_not_its_pace(self, per_look: int, told: int | None) -> None:
        """Once that has come it is looked at for a minute; 1,500 are deleted from look to look."""
        race, found = Race(), list[int | None]()
        for n in range(27):
            moved = max(0, n - 20) * per_look
            # Others are counted until then, and more comes up behind it.
            rest = 150_000 - 4_000 * n if n <= 20 else 1_000_000 - moved
            near, place = Pursuit(0, None, 60_000.0, 100.0), LogPlace(99, lane=moved, rest=rest)
            lost = race.overtaken([near], {0: place}, n * 15_000)
            found.append(None if lost is None else lost.ms)
        assert found[:25] == [None] * 25
        assert found[25:] == [told] * 2

    def test_a_lane_that_is_left_out_has_no_turn(self) -> None:
        """However fast others are counted; one that moves all the same gets away."""
        still, rests = [600_000, 585_000, 570_000, 555_000, 540_000], [900, 800, 700, 600, 500]
        assert self.run(*still, firsts=[7] * 5, rests=rests) is None
        assert self.run(*still, firsts=[7] * 5, rests=rests, left_out=True) == 540_000
        moves = [600_000, 610_000, 620_000, 630_000, 640_000]
        assert self.run(*moves, firsts=[7, 8, 9, 10, 11], rests=rests, left_out=True) is None

    @pytest.mark.parametrize(
        ("left_out", "told"),
        [
            # A first try fails; it is tried again, and fails again; it was left out all the while.
            ([0, 0, 0, 0, 1], None),
            ([0, 1, 1, 1, 1], None),
            ([0, 1, 1, 1, 1, 1], 0),
            ([1, 1, 1, 1, 0], None),
        ],
    )
    def test_a_failure_ends_no_turn_that_was_waited_for(
        self, left_out: list[int], told: int | None
    ) -> None:
        """What is there by chance is lost once it has had no turn for a minute."""
        race, found = Race(), None
        for n, is_out in enumerate(left_out):
            places = {0: LogPlace(99, lane=7, rest=900 - n, left_out=bool(is_out))}
            found = race.overtaken([Pursuit(0, -60_000)], places, n * 15_000)
        assert (None if found is None else found.ms) == told

    def test_a_lane_that_waits_its_turn_hides_no_other(self) -> None:
        """What is there by chance in a partition says nothing of one where a lane is left out."""
        race, told = Race(), None
        for n in range(5):
            near = [Pursuit(0, -60_000 - n * 15_000), Pursuit(1, HOUR_MS - n * 15_000)]
            places = {
                0: LogPlace(99, lane=7, rest=900 - n),
                1: LogPlace(99, lane=8, rest=50, left_out=True),
            }
            told = race.overtaken(near, places, NOW_MS + n * 15_000)
        assert told == FirstLost(1, HOUR_MS - 60_000)

    def test_what_is_counted_beside_one_that_is_left_out_ends_nothing_for_it(self) -> None:
        """In the same partition, and all of it before it is overtaken."""
        race, told = Race(), None
        for n in range(5):
            near = Pursuit(0, HOUR_MS - n * 15_000)
            place = LogPlace(99, lane=7, rest=50 - n, left_out=True)
            told = race.overtaken([near], {0: place}, NOW_MS + n * 15_000)
        assert told == FirstLost(0, HOUR_MS - 60_000)

    def test_what_is_gone_is_lost_at_once(self) -> None:
        """Whoever is counted before it."""
        race, gone = Race(), Pursuit(0, 0, is_gone=True)
        for n in range(5):
            places = {0: LogPlace(99, lane=7, rest=900 - n)}
            assert race.overtaken([gone], places, NOW_MS + n * 15_000) == FirstLost(
                0, 0, is_gone=True
            )
