"""Which lanes wait, for how long, and of which the next slice is tried first. Pure."""

from __future__ import annotations

from weir_analytics.panes.lane_waits import LONGEST_PAUSE_S, OTHERS, LaneWaits


def test_each_failure_makes_the_wait_longer() -> None:
    """Up to five minutes; a slice that goes well ends it."""
    waits, now_s = LaneWaits(), 0.0
    pauses = list[float]()
    for _ in range(12):
        pauses.append(waits.fail([3], "why", now_s))
        assert set(waits.left_out(now_s)) == {3}
        now_s += pauses[-1]
        assert set(waits.left_out(now_s)) == set()
    assert pauses[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert set(pauses[9:]) == {LONGEST_PAUSE_S}
    assert (waits.whys, waits.times(3)) == ({3: "why"}, 12)
    waits.done(3)
    assert (waits.whys, waits.times(3)) == ({}, 0)
    assert waits.fail([3], "again", now_s) == 1


def test_after_a_failure_each_lane_has_a_trial_once() -> None:
    """Also one that is opened later: what one cannot read another may not be able to either."""
    waits = LaneWaits()
    assert not waits.is_wary_of(3)
    waits.done(5)
    waits.fail([3], "why", 0.0)
    assert waits.is_wary_of(3)
    assert waits.is_wary_of(5)
    assert waits.is_wary_of(7)
    waits.done(5)
    assert not waits.is_wary_of(5)
    waits.fail_trial(3, "why", 0.0, 15.0)
    assert not waits.is_wary_of(5), "nobody waited for that"
    assert waits.is_wary_of(3)
    waits.go_on(3)
    assert set(waits.left_out(0.0)) == set()
    assert waits.is_wary_of(3)
    waits.fail([5], "why", 0.0)
    assert waits.is_wary_of(5)


def test_trials_that_take_long_leave_the_time_to_others() -> None:
    """However many lanes wait; those that do not are none of them."""
    waits = LaneWaits()
    waits.fail([3, 5], "why", 0.0)
    for lane in (3, 5):
        assert waits.fail_trial(lane, "longer", 20.0, 15.0) == 2
    for now_s in (20.0, 20.0 + 15.0 * OTHERS - 0.1):
        assert set(waits.left_out(now_s)) == {3, 5}
    assert set(waits.left_out(20.0 + 15.0 * OTHERS)) == {5}
    assert waits.whys == {3: "longer", 5: "longer"}


def test_what_fails_after_its_trial_waits_longer_each_time() -> None:
    """It went well where nothing was written; other lanes are trusted as before."""
    waits, now_s, pauses = LaneWaits(), 0.0, list[float]()
    waits.fail([3], "why", now_s)
    waits.done(5)
    for _ in range(8):
        pauses.append(waits.fail([3], "it cannot be written", now_s, 15.0))
        assert waits.is_wary_of(3)
        assert not waits.is_wary_of(5)
        now_s += 15.0 * OTHERS - 0.1
        assert set(waits.left_out(now_s)) == {3}, "it has held the turn"
        now_s += pauses[-1] + 0.2
        assert set(waits.left_out(now_s)) == set()
    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256]
    waits.fail([5], "why", now_s)
    waits.done(7)
    waits.fail([3, 7], "why", now_s)
    assert waits.is_wary_of(7), "nobody knows which of both it was"


def test_a_search_counts_like_the_trial_before_it() -> None:
    """What took less meanwhile does not shorten that."""
    waits = LaneWaits()
    waits.fail([3], "why", 0.0)
    waits.fail_trial(3, "why", 15.0, 15.0)
    waits.leave_time(60.0, 60.0)
    waits.leave_time(61.0, 1.0)
    assert set(waits.left_out(60.0 + 60.0 * OTHERS - 0.1)) == {3}
    assert set(waits.left_out(60.0 + 60.0 * OTHERS)) == set()


def test_of_those_that_wait_one_is_tried_at_a_time() -> None:
    """The one that has failed the least, then the one that has waited longest."""
    waits = LaneWaits()
    waits.fail([3, 5, 7], "why", 0.0)
    assert set(waits.left_out(1.0)) == {5, 7}
    waits.fail_trial(3, "why", 16.0, 15.0)
    assert set(waits.left_out(16.0)) == {3, 7}, "it was never tried by itself"
    waits.done(5)
    waits.fail_trial(7, "why", 31.0, 15.0)
    now_s = 31.0 + 15.0 * OTHERS
    assert set(waits.left_out(now_s)) == {7}
    waits.fail_trial(3, "why", now_s, 0.0)
    assert set(waits.left_out(now_s + 4)) == {3}


def test_lanes_that_are_no_more_are_forgotten() -> None:
    """A lane that is done, or of a version that was stopped."""
    waits = LaneWaits()
    waits.fail([3, 5], "why", 0.0)
    waits.keep({5, 7})
    assert waits.whys == {5: "why"}


def test_what_the_log_fails_is_counted_by_itself() -> None:
    """Else a log that fails now and then may do so each time that somebody would be looked for."""
    waits = LaneWaits()
    waits.fail([3], "why", 0.0)
    assert (waits.times(3), waits.suspect(3)) == (1, 0)
    for n in range(1, 5):
        waits.fail_trial(3, "the log is away", 0.0, 1.0, is_outside=True)
        waits.fail_trial(3, "no 666", 0.0, 1.0)
        assert (waits.times(3), waits.suspect(3)) == (1 + 2 * n, n)
    waits.fail([3], "after its trial", 0.0)
    assert (waits.times(3), waits.suspect(3)) == (10, 4)
    waits.done(3)
    assert (waits.times(3), waits.suspect(3)) == (0, 0)


def test_once_nobody_waits_any_more_nobody_is_tried_first() -> None:
    """Else a Redis that was away for a second would slow each rebuild of a process down."""
    for over in ("read again", "wanted by nobody"):
        waits = LaneWaits()
        waits.fail([3, 5], "redis is away", 0.0)
        waits.done(3)
        assert waits.is_wary_of(7), "another one waits still"
        if over == "read again":
            waits.done(5)
        else:
            waits.keep({3})
        assert not any(map(waits.is_wary_of, (3, 5, 7)))
        waits.fail([3], "again", 1.0)
        assert waits.is_wary_of(5)


def test_versions_that_are_left_out_end_no_wariness() -> None:
    """What is left of their lane is tried first all the same."""
    waits = LaneWaits()
    waits.fail([3], "why", 0.0)
    waits.go_on(3)
    waits.keep({3, 5})
    assert waits.is_wary_of(3)
    waits.done(5)
    assert waits.is_wary_of(3), "that was another's slice"
    waits.done(3)
    assert not waits.is_wary_of(7)
