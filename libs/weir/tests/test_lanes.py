"""What lanes count next: the slices of one, and which of them first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from weir.definitions.history import Lane
from weir.lanes import next_slice

LANE = Lane(7, 1, "rebuild", "events", (), (0,), {0: 0, 1: 0}, {0: 900, 1: 300}, 0, 0)


def test_what_the_log_has_lost_is_passed_in_one_step() -> None:
    """The slice reads from where the log begins, partition by partition."""
    found = next_slice(LANE, {0: {}}, 100, first={0: 700, 1: 20})

    assert found is not None
    assert (found.start, found.there) == ({0: 0, 1: 0}, {0: 700, 1: 20})
    assert (found.end, found.records) == ({0: 750, 1: 70}, 100)


def test_a_lane_that_lies_below_the_log_is_done_with_one_slice() -> None:
    """Nothing of it can be read, and nobody walks over it."""
    found = next_slice(LANE, {0: {0: 10}}, 100, [{0: 500}], first={0: 10**6, 1: 300})

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
        found = next_slice(lane, stands, most, [{0: n} for n in at], {0: left})
        if found is None:
            break
        assert found.start == stands[0]
        assert found.there[0] == min(100, max(found.start[0], left))
        assert found.start[0] < found.end[0]
        assert found.records <= most
        assert not any(found.there[0] < n < found.end[0] for n in at)
        stands[0] = dict(found.end)

    assert stands == {0: {0: 100}}
