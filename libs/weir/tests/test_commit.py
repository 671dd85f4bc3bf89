"""The verdict on a commit, row by row of the protocol's table and on both sides of each edge."""

from __future__ import annotations

from dataclasses import replace

import pytest
from weir.commit import (
    Attempt,
    Fence,
    Mark,
    ShardState,
    Verdict,
    decide,
    decide_fence,
    decide_opening,
    decide_record,
    furthest,
    nearest,
    not_after,
    same_offsets,
)

FENCE = Fence(7, "definitions")
MARK = Mark(epoch=7, batch=3, topic_id="events", end={0: 10, 1: 4}, shards=2)
STANDING = ShardState(FENCE, MARK, MARK, "token")
MINE = Attempt(FENCE, "events", {0: 10, 1: 4}, {0: 20, 1: 4}, "token")


def standing_at(end: dict[int, int]) -> ShardState:
    """Return a shard whose live mark stands somewhere."""
    mark = Mark(epoch=7, batch=3, topic_id="events", end=end, shards=2)
    return replace(STANDING, live=mark, mark=mark)


class TestDecide:
    def test_a_link_that_fits_is_applied(self) -> None:
        """The shard stands at `from`, nothing moved, the fence is ours."""
        assert decide(STANDING, MINE) is Verdict.OK

    @pytest.mark.parametrize(
        ("fence", "verdict"),
        [
            (None, Verdict.LOST),
            (Fence(6, "definitions"), Verdict.LOST),
            (Fence(7, "definitions"), Verdict.OK),
            (Fence(8, "definitions"), Verdict.FENCED),
            (Fence(7, "others"), Verdict.FOREIGN),
            (Fence(6, "others"), Verdict.FOREIGN),
        ],
    )
    def test_the_fence(self, fence: Fence | None, verdict: Verdict) -> None:
        """Missing or lower: lost. Higher: fenced. Of another log: foreign."""
        assert decide(replace(STANDING, fence=fence), MINE) is verdict

    def test_another_topic_is_foreign(self) -> None:
        """Offsets of a topic that was created anew are never compared."""
        assert decide(STANDING, replace(MINE, topic_id="events anew")) is Verdict.FOREIGN

    def test_a_missing_live_mark_is_lost(self) -> None:
        """A missing mark is never taken for a start."""
        assert decide(replace(STANDING, live=None, mark=None), MINE) is Verdict.LOST

    @pytest.mark.parametrize(
        ("end", "verdict"),
        [
            ({0: 20, 1: 4}, Verdict.DONE),
            ({0: 10, 1: 4}, Verdict.OK),
            ({0: 9, 1: 4}, Verdict.BEHIND),
            ({0: 10}, Verdict.BEHIND),
            ({}, Verdict.BEHIND),
            ({0: 11, 1: 4}, Verdict.REWIND),
            ({0: 9, 1: 5}, Verdict.REWIND),
            ({0: 10, 1: 4, 2: 1}, Verdict.REWIND),
            ({0: 10, 1: 4, 2: 0}, Verdict.OK),
        ],
    )
    def test_the_chain(self, end: dict[int, int], verdict: Verdict) -> None:
        """Only the place where the shard stands decides; a missing partition is at 0."""
        assert decide(standing_at(end), MINE) is verdict

    def test_a_new_partition_begins_at_zero(self) -> None:
        """A range that names a partition unknown to the mark fits if it begins at 0."""
        begin, to = {0: 10, 1: 4, 2: 0}, {0: 10, 1: 4, 2: 3}
        assert decide(STANDING, replace(MINE, from_offsets=begin, to_offsets=to)) is Verdict.OK

    def test_the_batch_number_decides_nothing(self) -> None:
        """A new checkpoint starts again at 0; the chain goes on."""
        mark = Mark(epoch=7, batch=900, topic_id="events", end=MARK.end, shards=2)
        assert decide(replace(STANDING, live=mark, mark=mark), MINE) is Verdict.OK

    @pytest.mark.parametrize("token", [None, "another"])
    def test_a_moved_token_is_read_again(self, token: str | None) -> None:
        """Whoever committed since may have changed the panes that were read."""
        assert decide(replace(STANDING, token=token), MINE) is Verdict.RETRY

    def test_an_applied_link_is_done_whatever_the_token(self) -> None:
        """A replay need not read again what it does not have to write."""
        assert decide(replace(standing_at({0: 20, 1: 4}), token=None), MINE) is Verdict.DONE


class TestLanes:
    LANE = replace(MINE, lane="12", from_offsets={0: 3}, to_offsets={0: 5}, lane_start={0: 3})

    def test_without_a_mark_it_stands_at_its_start(self) -> None:
        """Its first link fits, its second does not."""
        shard = replace(STANDING, mark=None)
        second = replace(self.LANE, from_offsets={0: 5}, to_offsets={0: 7})

        assert decide(shard, self.LANE) is Verdict.OK
        assert decide(shard, second) is Verdict.BEHIND

    def test_without_a_live_mark_it_is_lost(self) -> None:
        """The lane's own mark says nothing where the shard's panes are gone."""
        assert decide(replace(STANDING, live=None), self.LANE) is Verdict.LOST


class TestFences:
    @pytest.mark.parametrize(
        ("found", "verdict"),
        [
            (None, Verdict.OK),
            (Fence(6, "definitions"), Verdict.OK),
            (Fence(7, "definitions"), Verdict.DONE),
            (Fence(8, "definitions"), Verdict.FENCED),
            (Fence(9, "definitions"), Verdict.FOREIGN),
            (Fence(1, "others"), Verdict.FOREIGN),
        ],
    )
    def test_only_upwards(self, found: Fence | None, verdict: Verdict) -> None:
        """A fence beyond the definitions' end, here 9, was not given by this log."""
        assert decide_fence(found, FENCE, 9) is verdict


class TestRecords:
    @pytest.mark.parametrize(
        ("last", "verdict"),
        [
            ((7, 5), Verdict.DONE),
            ((7, 4), Verdict.OK),
            ((7, 0), Verdict.OK),
            ((7, 3), Verdict.LOST),
            ((7, 6), Verdict.LOST),
            ((6, 4), Verdict.LOST),
            ((8, 0), Verdict.LOST),
            (None, Verdict.LOST),
        ],
    )
    def test_only_after_the_one_before_or_the_opening(
        self, last: tuple[int, int] | None, verdict: Verdict
    ) -> None:
        """Anything else would make readers believe that they missed nothing."""
        assert decide_record(last, 7, 5) is verdict

    @pytest.mark.parametrize(
        ("last", "verdict"),
        [
            (None, Verdict.OK),
            ((6, 9), Verdict.OK),
            ((7, 0), Verdict.DONE),
            ((7, 1), Verdict.FENCED),
            ((8, 0), Verdict.FENCED),
        ],
    )
    def test_an_epoch_opens_once(self, last: tuple[int, int] | None, verdict: Verdict) -> None:
        """An opening stands before all else of its epoch, or not at all."""
        assert decide_opening(last, 7) is verdict


def test_offsets_compare_by_partition() -> None:
    """A partition that is not named stands at 0."""
    assert same_offsets({0: 1, 1: 0}, {0: 1})
    assert not same_offsets({0: 1}, {0: 1, 1: 1})
    assert not_after({0: 1}, {0: 1, 1: 1})
    assert not not_after({0: 1, 1: 1}, {0: 1})
    assert furthest([{0: 1, 1: 5}, {0: 2}, {2: 0}]) == {0: 2, 1: 5, 2: 0}
    assert furthest([]) == {}


def test_the_nearest_place_names_each_partition_that_any_does() -> None:
    """One that a place leaves out is not at 0 there, as it is for the furthest."""
    assert nearest([{0: 5, 1: 9}, {0: 7}, {2: 3, 0: 6}]) == {0: 5, 1: 9, 2: 3}
    assert nearest([]) == {}
