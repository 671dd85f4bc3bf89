"""How long the log still holds what is not counted: by age and by size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir import log_place
from weir.log_left import (
    FirstLost,
    LogLeft,
    PartitionLog,
    first_lost,
    left_after,
    log_left,
    log_told,
    read_log_told,
    used_share,
    with_lane,
)
from weir.log_place import LogPlace
from weir.retention import Retention

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY = Retention(24 * HOUR_MS, None)


def log(**changes: Any) -> PartitionLog:
    """Return a partition of 100,000 records, of which 40,000 of the last four hours wait."""
    members: dict[str, Any] = {
        "partition": 3,
        "oldest": 1_000_000,
        "oldest_ms": NOW_MS - 10 * HOUR_MS,
        "end": 1_100_000,
        "position": 1_060_000,
        "position_ms": NOW_MS - 4 * HOUR_MS,
        "per_s": 10_000 / 3_600,
    }
    return PartitionLog(**members | changes)


class TestLogLeft:
    def test_by_age_a_record_lives_as_long_as_it_is_kept(self) -> None:
        """What has waited four hours of a day is there for twenty more."""
        found = log_left([log()], DAY, NOW_MS)
        oldest_ms, waiting = NOW_MS - 10 * HOUR_MS, 40_000
        left_ms = 20 * HOUR_MS
        assert found == LogLeft(3, left_ms, 24 * HOUR_MS, oldest_ms, waiting, needed_ms=left_ms)

    def test_by_size_it_lives_until_so_many_have_come(self) -> None:
        """60,000 older ones go first, at 10,000 an hour, if the partition is full."""
        size = Retention(24 * HOUR_MS, 10**9)
        assert log_left([log()], size, NOW_MS).ms == pytest.approx(6 * HOUR_MS, abs=1)
        assert log_left([log()], size, NOW_MS).kept_ms == pytest.approx(10 * HOUR_MS, abs=1)
        # Nothing has been deleted yet, so how much fits is not known.
        assert log_left([log(oldest=0)], size, NOW_MS).ms == 20 * HOUR_MS

    def test_by_size_nothing_goes_of_fewer_than_could_fill_it(self) -> None:
        """A record takes no more than a batch may: whoever looks first knows that much."""
        few, fill = (Retention(None, 10**9, batch_bytes=n) for n in (9_999, 10_000))
        first = log(position=1_000_000)
        assert (log_left([first], few, NOW_MS).ms, log_left([first], few, NOW_MS).kept_ms) == (
            None,
            None,
        )
        assert log_left([first], fill, NOW_MS).ms == 0

    @pytest.mark.parametrize(("age_ms", "kept_ms"), [(None, None), (HOUR_MS, HOUR_MS)])
    def test_by_size_nothing_of_an_empty_partition_is_deleted(
        self, age_ms: int | None, kept_ms: int | None
    ) -> None:
        """It was emptied by hand, or by age: what comes next stays as long as elsewhere."""
        empty = log(oldest=1_100_000, oldest_ms=None, position=1_100_000)
        found = log_left([empty], Retention(age_ms, 10**9), NOW_MS)
        assert (found.ms, found.kept_ms, used_share(found)) == (kept_ms, kept_ms, 0.0)

    @pytest.mark.parametrize(
        ("position", "waiting"),
        [(1_100_000, 0), (1_099_999, 1), (999_000, 100_000), (1_100_001, 100_000)],
    )
    def test_how_many_wait(self, position: int, waiting: int) -> None:
        """None at the end; of what is gone nothing; of a log that was made anew all."""
        both = [log(position=position), log(partition=4)]
        assert log_left(both, DAY, NOW_MS).waiting == waiting + 40_000

    @pytest.mark.parametrize(
        ("changes", "left"),
        [
            ({"position": 1_100_000}, 24 * HOUR_MS),
            ({"position": 999_999}, 0),
            ({"position_ms": NOW_MS - 25 * HOUR_MS}, 0),
            ({"position": 1_000_000, "position_ms": None}, 14 * HOUR_MS),
            ({"position": 1_100_001}, 14 * HOUR_MS),
            ({"position_ms": NOW_MS + 5_000}, 24 * HOUR_MS),
        ],
    )
    def test_edges(self, changes: dict[str, Any], left: int) -> None:
        """At the end; overtaken; about to be; nothing counted; another log; a clock behind."""
        assert log_left([log(**changes)], DAY, NOW_MS).ms == left

    def test_what_is_there_by_chance_may_go_at_any_time(self) -> None:
        """Kafka deletes whole segments: a record of theirs outlives its time by up to another."""
        logs = [log(position_ms=NOW_MS - 31 * HOUR_MS), log()]
        assert first_lost(logs, DAY, NOW_MS) == FirstLost(3, -7 * HOUR_MS)
        found = log_left(logs, DAY, NOW_MS)
        assert (found.ms, found.needed_ms, found.is_gone) == (0, 0, False)

    def test_what_is_gone_comes_before_what_is_there_by_chance(self) -> None:
        """Segments of partitions go at different times, and lanes stand at the start of all."""
        overdue = log(partition=0, position_ms=NOW_MS - 31 * HOUR_MS)
        assert first_lost([overdue, log(position=0)], DAY, NOW_MS) == FirstLost(3, 0, is_gone=True)
        found = log_left([overdue, log(position=0)], DAY, NOW_MS)
        assert (found.partition, found.ms, found.is_gone) == (3, 0, True)
        assert not log_left([log(position=1_100_001)], DAY, NOW_MS).is_gone

    def test_what_is_kept_for_ever_is_never_lost(self) -> None:
        """Without a retention there is nothing to be told, but for what is gone already."""
        assert log_left([log()], Retention(None, None), NOW_MS).ms is None
        assert log_left([log(position=0)], Retention(None, None), NOW_MS).ms == 0
        assert log_left([], DAY, NOW_MS) == LogLeft(waiting=0)

    @pytest.mark.parametrize("retention", [Retention(None, None), Retention(None, 10**9)])
    def test_what_is_gone_is_short_where_nothing_says_how_long_the_log_keeps(
        self, retention: Retention
    ) -> None:
        """Somebody has deleted records; or by size alone, after a day in which nothing came."""
        found = log_left([log(position=999_999, per_s=0.0)], retention, NOW_MS)
        assert (found.ms, found.kept_ms, found.is_gone, found.is_short) == (0, None, True, True)
        assert not log_left([log(per_s=0.0)], retention, NOW_MS).is_short

    @given(st.lists(st.integers(0, 24 * HOUR_MS), min_size=1, max_size=6))
    def test_the_partition_that_is_nearest_to_a_loss_is_told(self, waits: list[int]) -> None:
        """However many there are."""
        logs = [log(partition=p, position_ms=NOW_MS - ms) for p, ms in enumerate(waits)]
        found = log_left(logs, DAY, NOW_MS)

        assert found.ms == 24 * HOUR_MS - max(waits)
        assert found.partition is not None
        assert waits[found.partition] == max(waits)


class TestWithLane:
    """Live counting has two hours left in partition 0."""

    LIVE = LogLeft(0, 2 * HOUR_MS, 24 * HOUR_MS, needed_ms=2 * HOUR_MS)

    def test_whichever_is_sooner_is_told(self) -> None:
        """What a lane has lost, or may lose, in the words of its own partition."""
        lane = FirstLost(3, HOUR_MS)
        needed = with_lane(self.LIVE, lane, is_needed=True)
        assert (needed.partition, needed.ms, needed.needed_ms) == (3, HOUR_MS, HOUR_MS)
        assert needed.is_lane
        new = with_lane(self.LIVE, lane, is_needed=False)
        assert (new.ms, new.needed_ms) == (HOUR_MS, 2 * HOUR_MS)
        both = replace(self.LIVE, are_both_short=True)
        assert with_lane(self.LIVE, FirstLost(3, 2 * HOUR_MS), is_needed=True) == both
        assert with_lane(self.LIVE, FirstLost(3, 6 * HOUR_MS), is_needed=True) == self.LIVE
        assert with_lane(LogLeft(), lane, is_needed=False).ms == HOUR_MS

    @pytest.mark.parametrize(
        ("live_h", "lane", "are_both"),
        [
            (2, FirstLost(3, HOUR_MS), True),
            (2, FirstLost(3, 3 * HOUR_MS), True),
            (2, FirstLost(3, 0, is_gone=True), True),
            (6, FirstLost(3, HOUR_MS), False),
            (6, FirstLost(3, 0, is_gone=True), False),
            (2, FirstLost(3, 6 * HOUR_MS), False),
            (7, FirstLost(3, 6 * HOUR_MS), False),
        ],
    )
    def test_whether_both_are_short_is_told(
        self, live_h: int, lane: FirstLost, are_both: bool
    ) -> None:
        """Whichever of them is told; six hours of a day are not short."""
        live = replace(self.LIVE, ms=live_h * HOUR_MS)
        assert with_lane(live, lane, is_needed=True).are_both_short == are_both

    def test_that_records_are_gone_is_said_of_whoever_has_lost_them(self) -> None:
        """Not of live counting for a lane's sake, and the other way round."""
        gone = FirstLost(3, 0, is_gone=True)
        found = with_lane(replace(self.LIVE, ms=6 * HOUR_MS), gone, is_needed=True)
        assert (found.partition, found.ms, found.is_gone) == (3, 0, True)
        lost = LogLeft(0, 0, 24 * HOUR_MS, needed_ms=0, is_gone=True, are_both_short=True)
        alone = replace(lost, are_both_short=False)
        assert with_lane(alone, FirstLost(3, 0), is_needed=True) == lost

    @pytest.mark.parametrize("is_gone", [True, False])
    @pytest.mark.parametrize("live_ms", [2 * HOUR_MS, 0])
    def test_a_lane_without_time_hides_no_live_counting_that_runs_short(
        self, live_ms: int, is_gone: bool
    ) -> None:
        """One that was set aside may stand there for days; what it lacks is told all the same.

        Also where live counting may lose what is next at any time: it still is there.
        """
        lane = FirstLost(3, 0, is_gone=is_gone)
        live = replace(self.LIVE, ms=live_ms, needed_ms=live_ms)
        both = replace(live, are_both_short=True)
        assert with_lane(live, lane, is_needed=True) == replace(both, needed_ms=0)
        assert with_lane(live, lane, is_needed=False) == both
        lasts = replace(self.LIVE, ms=6 * HOUR_MS)
        assert with_lane(lasts, lane, is_needed=True).partition == 3


def test_what_is_left_grows_less_while_nobody_counts() -> None:
    """Down to nothing, which is not yet that it is gone; what is kept for ever stays."""
    left = LogLeft(0, 5_000, 9_000, NOW_MS, 3, needed_ms=7_000)
    assert left_after(left, 4_000) == LogLeft(0, 1_000, 9_000, NOW_MS, 3, needed_ms=3_000)
    assert left_after(left, 6_000) == LogLeft(0, 0, 9_000, NOW_MS, 3, needed_ms=1_000)
    assert left_after(LogLeft(waiting=0), 6_000) == LogLeft(waiting=0)


class TestPlace:
    @pytest.mark.parametrize(
        "place",
        [
            LogPlace(7),
            LogPlace(7, NOW_MS),
            LogPlace(7, NOW_MS, 3, NOW_MS - 9),
            LogPlace(7, NOW_MS, 3, None, again=False),
            LogPlace(7, NOW_MS, 3, None, rest=900),
            LogPlace(7, NOW_MS, 3, None, left_out=True),
        ],
    )
    def test_what_is_left_is_read_back(self, place: LogPlace) -> None:
        """Beside the offset, which Kafka keeps itself."""
        assert log_place.read(7, log_place.write(place)) == place

    @pytest.mark.parametrize("text", [None, "", "lag", "[]", '{"v":2}', '{"v":"1"}', "{}"])
    def test_what_this_release_did_not_write_is_not_known(self, text: str | None) -> None:
        """Of an older one nothing is there; a newer one may mean something else."""
        assert log_place.read(7, text) is None

    def test_an_earlier_release_left_less(self) -> None:
        """It did not tell what its lanes were for: what is not said is needed."""
        text = '{"v":1,"received_ms":null,"lane":3,"lane_ms":9}'
        assert log_place.read(7, text) == LogPlace(7, None, 3, 9, again=True, rest=None)


class TestTold:
    def test_what_a_heartbeat_says_is_read_back(self) -> None:
        """With what is needed, and gone, and whose; an earlier release told one figure of all."""
        left = LogLeft(3, 5_000, 9_000, NOW_MS, needed_ms=7_000)
        lane = replace(left, is_lane=True)
        for one in (left, replace(left, is_gone=True), lane, replace(lane, are_both_short=True)):
            assert read_log_told(log_told(one)) == one
        earlier = {"log_left_ms": 5_000, "log_kept_ms": 9_000}
        assert read_log_told(earlier) == LogLeft(None, 5_000, 9_000, needed_ms=5_000)
        assert read_log_told({}) is None

    @pytest.mark.parametrize(
        ("needed_ms", "kept_ms", "used"),
        [(None, 1_000, 0.0), (250, 1_000, 0.75), (0, 1_000, 1.0), (0, 0, 1.0), (1_500, 1_000, 0.0)],
    )
    def test_what_has_passed_is_of_what_is_needed(
        self, needed_ms: int | None, kept_ms: int, used: float
    ) -> None:
        """A backfill that is about to be overtaken costs no number what it had."""
        assert used_share(LogLeft(0, 1, kept_ms, needed_ms=needed_ms)) == used
