"""Token buckets: taken, given back, paid back by time, and told as header fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.buckets import Buckets, Standing, rate_limit_fields

NOW_S = 1_000.0


class TestBuckets:
    def test_full_at_first_and_never_fuller(self) -> None:
        """Neither by time nor by what is given back."""
        buckets = Buckets(per_s=2, full=10)
        assert buckets.level("a", NOW_S) == 10
        buckets.take("a", 4, NOW_S)
        assert (buckets.level("a", NOW_S), buckets.level("a", NOW_S + 1)) == (6, 8)
        assert buckets.level("a", NOW_S + 60) == 10
        buckets.give_back("a", 9, NOW_S)
        assert buckets.level("a", NOW_S) == 10

    def test_a_debt_is_paid_back_by_time(self) -> None:
        """More may be taken than is there; another's bucket is another one."""
        buckets = Buckets(per_s=2, full=10)
        buckets.take("a", 16, NOW_S)
        assert (buckets.level("a", NOW_S), buckets.level("a", NOW_S + 4)) == (-6, 2)
        assert buckets.level("b", NOW_S) == 10

    @pytest.mark.parametrize(("level", "wait_s"), [(6, 0), (7, 1), (8, 1), (9, 2), (10, 2)])
    def test_how_long_to_wait(self, level: int, wait_s: int) -> None:
        """In whole seconds, not one before the level is reached."""
        buckets = Buckets(per_s=2, full=10)
        buckets.take("a", 4, NOW_S)
        assert buckets.wait_s("a", level, NOW_S) == wait_s

    @given(
        taken=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=30),
        later_s=st.integers(0, 100),
    )
    def test_what_is_taken_is_bounded_by_time(
        self, taken: list[tuple[int, int]], later_s: int
    ) -> None:
        """Who takes only what is there gets a full bucket and what comes back, never more."""
        buckets, now_s, got = Buckets(per_s=3, full=20), NOW_S, 0
        for amount, pause_s in taken:
            now_s += pause_s
            if buckets.level("a", now_s) >= amount:
                buckets.take("a", amount, now_s)
                got += amount
        assert got <= 20 + 3 * (now_s - NOW_S)
        assert buckets.level("a", now_s + later_s) >= min(20, 3 * later_s)

    @given(
        taken=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50), st.integers(0, 9))),
        later_s=st.integers(0, 30),
    )
    def test_who_is_forgotten_has_what_they_had(
        self, taken: list[tuple[str, int, int]], later_s: int
    ) -> None:
        """To forget whose bucket is full changes no level, and leaves who is not full yet."""
        kept, forgetful, now_s = Buckets(per_s=3, full=20), Buckets(per_s=3, full=20), NOW_S
        for holder, amount, pause_s in taken:
            now_s += pause_s
            for buckets in (kept, forgetful):
                buckets.take(holder, amount, now_s)
            forgetful.drop_full(now_s)
        is_any_left = forgetful.drop_full(now_s)

        levels = [kept.level(holder, now_s) for holder in "abc"]
        assert is_any_left == (min(levels) < 20)
        assert [forgetful.level(holder, now_s) for holder in "abc"] == levels
        later = [one.level("a", now_s + later_s) for one in (kept, forgetful)]
        assert later[0] == later[1]
        assert not forgetful.drop_full(now_s + 50 * len(taken))


def test_a_quota_is_told() -> None:
    """In whole numbers, a debt as nothing left; nothing is told of none."""
    told = rate_limit_fields(Standing("tenant", quota=100.0, window_s=10, left=65.9, wait_s=0))
    assert told == {"ratelimit-policy": '"tenant";q=100;w=10', "ratelimit": '"tenant";r=65;t=0'}
    told = rate_limit_fields(Standing("tenant", quota=100, window_s=10, left=-3.5, wait_s=4))
    assert told["ratelimit"] == '"tenant";r=0;t=4'
    assert rate_limit_fields() == {}


def test_several_are_told_in_one_list() -> None:
    """In the same order in both fields, each with its unit."""
    told = rate_limit_fields(
        Standing("tenant", quota=100, window_s=10, left=65, wait_s=0),
        Standing("key-bytes", quota=10**13, window_s=10, left=-1, wait_s=1, unit="content-bytes"),
    )
    assert told == {
        "ratelimit-policy": '"tenant";q=100;w=10, '
        '"key-bytes";q=10000000000000;qu="content-bytes";w=10',
        "ratelimit": '"tenant";r=65;t=0, "key-bytes";r=0;t=1',
    }
