"""Where deletion by size is, and how fast it goes on, by what some looks have seen of a log."""

from __future__ import annotations

import pytest
from weir.log_left import LogLeft, PartitionLog, log_left, used_share
from weir.log_start import LogStart, LogStarts
from weir.retention import Retention

SEGMENT = 1_000
BY_SIZE = Retention(None, 10**6)


def seen(*oldest: int, every_ms: int = 10_000, per_s: int = 100, late: int = 0) -> LogStart:
    """Return what is known after some looks at a log that held 5,000 when it was full."""
    starts, told = LogStarts(), LogStart(0)
    for n, one in enumerate(oldest):
        told = starts.see(
            0, one, 6_000 + late + n * per_s * every_ms // 1000, n * every_ms, BY_SIZE
        )
    return told


def test_what_was_not_seen_to_move_is_where_it_is() -> None:
    """Nobody knows how much of a segment is due, or how fast that will be."""
    assert seen(1_000) == LogStart(1_000)
    assert seen(1_000, 1_000, 1_000) == LogStart(1_000)


def test_between_two_segments_it_moves_as_records_come() -> None:
    """From where it was when the last one went, up to the end of the next and no further."""
    assert seen(1_000, 2_000, every_ms=10_000).offset == 2_000
    assert seen(1_000, 2_000, 2_000, every_ms=5_000).offset == 2_500
    assert seen(1_000, 2_000, *[2_000] * 4, every_ms=5_000).offset == 3_000


def test_who_looks_late_knows_by_the_looks_that_came_in_time() -> None:
    """A broker deletes some minutes after it may: the fewest records that were left are due."""
    starts = LogStarts()
    starts.see(0, 1_000, 6_000, 0, BY_SIZE)
    assert starts.see(0, 2_000, 7_000, 10_000, BY_SIZE).offset == 2_000
    assert starts.see(0, 3_000, 8_600, 26_000, BY_SIZE).offset == 3_600


def test_a_pace_is_that_of_some_segments() -> None:
    """Two of them, and up to seven; slower once none goes any more."""
    moves = list(range(1_000, 20_000, SEGMENT))
    assert seen(*moves[:3]).per_s is None
    assert seen(*moves[:4]).per_s == pytest.approx(100)
    assert seen(*moves[:15], every_ms=20_000).per_s == pytest.approx(50)
    assert seen(*moves[:4], moves[3], moves[3]).per_s == pytest.approx(75)


def test_of_a_log_that_was_made_anew_nothing_is_known() -> None:
    """It begins somewhere before."""
    assert seen(1_000, 2_000, 3_000, 4_000, 10) == LogStart(10)
    assert seen(1_000, 2_000, 3_000, 4_000, 10, 20).per_s is None


@pytest.mark.parametrize("kept", [0, 1, 499])
def test_what_was_emptied_tells_nothing_of_deletion_by_size(kept: int) -> None:
    """By hand, or since all was too old: neither how much fits nor how fast it goes."""
    starts = LogStarts()
    for n in range(4):
        starts.see(0, 1_000 + n * SEGMENT, 6_000 + n * SEGMENT, n * 10_000, BY_SIZE)
    emptied = LogStart(10_000 - kept, is_emptied=True)
    assert starts.see(0, 10_000 - kept, 10_000, 40_000, BY_SIZE) == emptied
    assert starts.see(0, 10_000 - kept, 11_000, 50_000, BY_SIZE) == emptied
    # As much as fits, from then on.
    assert starts.see(0, 11_000 - kept, 16_000, 100_000, BY_SIZE) == LogStart(11_000 - kept)
    assert starts.see(0, 11_000 - kept, 16_500, 105_000, BY_SIZE).offset == 11_500 - kept


@pytest.mark.parametrize(("taken", "left"), [(5_000, 5_000), (5_001, 4_999)])
def test_deletion_by_size_leaves_at_least_what_it_takes(taken: int, left: int) -> None:
    """A look may come after several segments have gone; where more has, it was something else."""
    starts = LogStarts()
    starts.see(0, 1_000, 11_000, 0, BY_SIZE)
    starts.see(0, 1_000 + taken, 1_000 + taken + left, 10_000, BY_SIZE)
    grown = starts.see(0, 1_000 + taken, 1_000 + taken + left + 100, 11_000, BY_SIZE)
    assert grown.offset == 1_000 + taken + (100 if left == taken else 0)


def test_nobody_is_warned_of_what_was_emptied() -> None:
    """Whoever is a second behind in it, or has counted all, loses nothing in the looks after it."""
    starts = LogStarts()

    def told(oldest: int, end: int, at_s: int, *, waits: int = 100) -> LogLeft:
        start = starts.see(0, oldest, end, at_s * 1000, BY_SIZE)
        return log_left(
            [PartitionLog(0, oldest, 0, end, end - waits, at_s * 1000, 100.0, start)],
            BY_SIZE,
            at_s * 1000,
        )

    for n in range(4):
        before = told(1_000 + n * SEGMENT, 6_000 + n * SEGMENT, n * 10)
    assert not before.is_short
    looks = [told(10_000, 10_000, 40, waits=0)]
    looks += [told(10_000, 10_000 + n * SEGMENT, 40 + 10 * n) for n in range(1, 6)]
    looks += [told(10_000 + n * SEGMENT, 15_000 + n * SEGMENT, 90 + 10 * n) for n in range(1, 9)]
    assert [left for left in looks if left.is_short or used_share(left) > 0.25] == []


@pytest.mark.parametrize("is_known", [True, False], ids=["seen before", "not seen"])
def test_who_waits_for_the_first_record_that_comes_after_that_has_time(is_known: bool) -> None:
    """Until as much is there as was left before; where nobody saw that, until some is deleted."""
    starts = LogStarts()
    for n in range(4 if is_known else 1):
        starts.see(0, 1_000 + n * SEGMENT, 6_000 + n * SEGMENT, n * 10_000, BY_SIZE)

    def is_short(oldest: int, end: int, at_ms: int) -> bool:
        start = starts.see(0, oldest, end, at_ms, BY_SIZE)
        waits = PartitionLog(0, oldest, 0, end, max(oldest, 10_000), 0, 100.0, start)
        return log_left([waits], BY_SIZE, at_ms).is_short

    looks = [is_short(10_000, 10_000 + held, 40_000 + 10 * held) for held in (0, 1, 4_999, 5_000)]
    assert looks == [False, False, False, is_known]
    assert is_short(11_000, 16_000, 101_000)


def test_a_segment_may_be_larger_than_what_is_kept() -> None:
    """It goes as a whole, and leaves less than it took: who is in it is warned before."""
    large = Retention(None, 500_000, 1_000_000)
    starts, told = LogStarts(), dict[int, LogLeft]()
    for s in range(60):
        end = 2_500 + 100 * s
        oldest = (end - 500) // SEGMENT * SEGMENT
        start = starts.see(0, oldest, end, s * 1000, large)
        reader = PartitionLog(0, oldest, 0, end, min(end, 5_900), s * 1000, 100.0, start)
        told[s] = log_left([reader], large, s * 1000)
    lost_s = min(s for s, left in told.items() if left.is_gone)
    assert lost_s == 40
    assert [told[lost_s - s].is_short for s in (1, 5)] == [True, False]


@pytest.mark.parametrize(
    ("taken", "left", "is_by_size"),
    [(3_000, 1_000, True), (3_001, 1_000, False), (100, 9, False), (10, 10, True)],
)
def test_what_deletion_by_size_may_have_taken(taken: int, left: int, is_by_size: bool) -> None:
    """As much as is left and a segment beside it; and it leaves what is kept, at least."""
    kept = Retention(None, 1_000, segment_bytes=2_000, batch_bytes=100)
    starts = LogStarts()
    starts.see(0, 1_000, 11_000, 0, kept)
    start = starts.see(0, 1_000 + taken, 1_000 + taken + left, 10_000, kept)
    assert start.is_emptied is not is_by_size
