"""A reader of a log whose segments are deleted: warned of before it loses anything, or not at all.

Second by second, by what every quarter of a minute shows of the log: see `log_world.py`.
"""

from __future__ import annotations

import pytest
from weir.retention import Retention

from .log_world import BOTH, BY_AGE, BY_SIZE, HELD, PER_S, SEGMENT, World

QUARTER_S = HELD // PER_S // 4
BY = pytest.mark.parametrize(
    "retention", [BY_SIZE, BY_AGE, BOTH], ids=["by size", "by age", "by both"]
)
# A broker looks for what to delete every five minutes, and a lane counts slice by slice.
PAUSES = pytest.mark.parametrize(("checked_s", "slice_s"), [(1, 1), (300, 7)])


@BY
@PAUSES
@pytest.mark.parametrize(
    ("per_s", "lost_s", "ahead_s"),
    [(0, 400, 340), (100, 400, 325), (500, 700, 400), (900, 3_100, 385)],
)
def test_a_lane_that_is_slower_than_deletion_is_warned_of(
    retention: Retention, checked_s: int, slice_s: int, per_s: int, lost_s: int, ahead_s: int
) -> None:
    """From then on at every look: with a quarter of the time left, or a minute after it began."""
    world = World(retention, checked_s)
    life = world.lives(lambda s: per_s * slice_s if s % slice_s == 0 else 0)
    assert life.lost_s == -(-lost_s // checked_s) * checked_s
    assert life.ahead_s is not None
    assert life.ahead_s >= ahead_s
    # Nobody is told long before: for what deletion comes too late, and as paces are not known.
    assert life.lost_s - life.warned_s[0] <= 1.5 * QUARTER_S + checked_s


@BY
@PAUSES
@pytest.mark.parametrize("per_s", [1_100, 1_000, 20_000])
def test_nobody_is_told_of_a_lane_that_gets_away(
    retention: Retention, checked_s: int, slice_s: int, per_s: int
) -> None:
    """Though it begins with less than a quarter of the time left."""
    world = World(retention, checked_s)
    life = world.lives(lambda s: per_s * slice_s if s % slice_s == 0 else 0, lasts_s=2_000)
    assert (life.lost_s, life.warned_s) == (None, [])


@BY
@pytest.mark.parametrize(("rest", "is_lost"), [(250_000, False), (400_000, True)])
def test_a_lane_that_ends_before_it_is_overtaken_is_not_told(
    retention: Retention, rest: int, is_lost: bool
) -> None:
    """At 500 a second it counts 350,000 before a segment goes that it has not counted."""
    life = World(retention, rest=rest).lives(lambda _s: 500, lasts_s=rest // 500)
    assert (life.lost_s is not None, bool(life.warned_s)) == (is_lost, is_lost)


@pytest.mark.parametrize("slower", [0, 500])
def test_a_lane_that_becomes_slow_is_told(slower: int) -> None:
    """What it has gained is soon used up: within five minutes its pace is another."""
    life = World().lives(lambda s: 1_200 if s < 600 else slower)
    assert life.warned_s[0] > 600
    assert life.ahead_s is not None
    assert life.ahead_s >= 250


def test_what_is_deleted_of_late_is_what_counts() -> None:
    """At the rate of the last day a lane of 500 a second is slower; but 300 come, as by night."""
    life = World(comes=lambda _s: 300).lives(lambda _s: 500)
    assert life.lost_s is None
    # All there is to go by until three segments were seen to go.
    assert max(life.warned_s, default=0) <= 1_000


@BY
@pytest.mark.parametrize(("per_s", "lost_s"), [(0, 400), (100, 400), (500, 700), (900, 3_100)])
def test_live_counting_that_is_slower_than_what_comes_is_warned_of(
    retention: Retention, per_s: int, lost_s: int
) -> None:
    """By what it loses if it stands still: a quarter of the time ahead at least, to the end."""
    life = World(retention, is_live=True).lives(lambda _s: per_s)
    assert life.lost_s == lost_s
    assert life.ahead_s is not None
    assert life.ahead_s >= QUARTER_S


@BY
def test_live_counting_that_gains_is_told_while_it_would_lose_much_if_it_stopped(
    retention: Retention,
) -> None:
    """With less than a quarter of the time left, and no more after that: not segment by segment."""
    life = World(retention, is_live=True).lives(lambda _s: 1_100, lasts_s=2_000)
    assert life.lost_s is None
    # By size nobody knows how much of a segment is due before one has gone.
    seen = [s for s in life.told if s > SEGMENT // PER_S]
    last_s = life.warned_s[-1]
    assert [s for s in seen if s in life.warned_s] == [s for s in seen if s <= last_s]
    assert last_s <= 300
