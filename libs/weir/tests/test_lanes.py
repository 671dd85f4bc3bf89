"""What lanes count next: the slices of one, and how far it has come."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.batches import LaneProgress
from weir.borders import Borders
from weir.commit import Offsets
from weir.definitions.history import Lane
from weir.lanes import MOST_ENTRIES, next_slice, progress_of

LANE = Lane(7, 1, "rebuild", "events", (), (0,), {0: 0, 1: 0}, {0: 900, 1: 300}, 0, 0)


def test_what_the_log_has_lost_is_passed_in_one_step() -> None:
    """The slice reads from where the log begins, partition by partition."""
    found = next_slice(LANE, {0: {}}, 100, first={0: 700, 1: 20})

    assert found is not None
    assert (found.start, found.there) == ({0: 0, 1: 0}, {0: 700, 1: 20})
    assert (found.end, found.records) == ({0: 750, 1: 70}, 100)


def test_a_lane_that_lies_below_the_log_is_done_with_one_slice() -> None:
    """Nothing of it can be read, and nobody walks over it."""
    found = next_slice(LANE, {0: {0: 10}}, 100, Borders([{0: 500}]), first={0: 10**6, 1: 300})

    assert found is not None
    assert (found.start, found.end, found.records) == ({0: 10, 1: 0}, LANE.end, 0)


@given(
    st.integers(1, 60),
    st.lists(st.integers(0, 120), max_size=3),
    st.lists(st.integers(0, 120), min_size=1, max_size=4),
)
def test_slices_are_the_lane_whole_and_once(most: int, at: list[int], first: list[int]) -> None:
    """However the log's start goes on meanwhile; none reads both sides of a border."""
    lane = Lane(7, 1, "rebuild", "events", (), (0,), {0: 0}, {0: 100}, 0, 0)
    stands: dict[int, dict[int, int]] = {0: {0: 0}}
    starts = sorted(first)
    while True:
        left = starts.pop(0) if len(starts) > 1 else starts[0]
        found = next_slice(lane, stands, most, Borders({0: n} for n in at), {0: left})
        if found is None:
            break
        assert found.start == stands[0]
        assert found.there[0] == min(100, max(found.start[0], left))
        assert found.start[0] < found.end[0]
        assert found.records <= most
        assert not any(found.there[0] < n < found.end[0] for n in at)
        stands[0] = dict(found.end)

    assert stands == {0: {0: 100}}


BACKFILL = Lane(7, 1, "backfill", "events", (3, 5), (), {0: 100}, {0: 1_000, 1: 300}, 60, 0)


class TestProgress:
    @pytest.mark.parametrize(
        ("at", "done"),
        [
            ({0: {0: 100}}, 0),
            ({0: {0: 101}}, 1),
            ({0: {0: 600, 1: 100}}, 600),
            ({0: {0: 1_000, 1: 299}}, 1_199),
            # Nobody sees what one shard alone holds: it is as far as the last of them.
            ({0: {0: 1_000, 1: 300}, 1: {0: 200}}, 100),
        ],
    )
    def test_it_is_records_of_the_lane_that_every_shard_has(
        self, at: dict[int, Offsets], done: int
    ) -> None:
        """From where the lane begins, and not from where the log does; of each version the same."""
        assert progress_of(BACKFILL, at) == [
            LaneProgress(
                lane=7, kind="backfill", vid=vid, shard=None, at=done, of=1_200, until_ms=60
            )
            for vid in (3, 5)
        ]

    @pytest.mark.parametrize("beyond", [0, 1, 500])
    def test_many_versions_are_told_by_one_entry(self, beyond: int) -> None:
        """Each of them, and why nothing of them is counted: a record has a bounded length."""
        vids = tuple(range(100, 100 + MOST_ENTRIES + beyond))
        lane = replace(BACKFILL, vids=vids)
        found = progress_of(lane, {0: {0: 600, 1: 100}}, "the log does not answer")

        assert len(found) == (1 if beyond else MOST_ENTRIES)
        assert sorted(vid for one in found for vid in one.filled()) == list(vids)
        told = {(one.lane, one.at, one.of, one.waits_for) for one in found}
        assert told == {(7, 600, 1_200, "the log does not answer")}
        assert len(msgspec.json.encode(found)) < 6_000

    @pytest.mark.parametrize("at", [{0: {0: 1_000, 1: 300}, 1: {0: 1_000, 1: 300}}, {}])
    def test_of_a_lane_at_its_end_it_is_all(self, at: dict[int, Offsets]) -> None:
        """Whoever asks knows whether that is sure; also where no shard has a part in it."""
        assert {(one.at, one.of) for one in progress_of(BACKFILL, at)} == {(1_200, 1_200)}

    @pytest.mark.parametrize(("shards", "shard"), [([2], 2), ([0, 1], None)])
    def test_of_a_rebuild_the_shard_is_told(self, shards: list[int], shard: int | None) -> None:
        """If it is of one, and no version."""
        (found,) = progress_of(LANE, {one: {0: 300, 1: 100} for one in shards})

        assert (found.kind, found.vid, found.shard) == ("rebuild", None, shard)
        assert (found.at, found.of) == (400, 1_200)

    @given(st.integers(1, 500))
    def test_it_moves_with_each_slice_from_nothing_to_all(self, most: int) -> None:
        """By as many records as the slice has."""
        at: dict[int, Offsets] = {0: BACKFILL.start}
        done = 0
        while (found := next_slice(BACKFILL, at, most)) is not None:
            assert {(one.at, one.of) for one in progress_of(BACKFILL, at)} == {(done, 1_200)}
            at[0], done = found.end, done + found.records

        assert done == 1_200
