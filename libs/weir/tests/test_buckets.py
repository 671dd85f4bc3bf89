"""Token buckets: taken, given back, paid back by time, and told as header fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.buckets import Buckets, rate_limit_fields

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


def test_a_quota_is_told() -> None:
    """In whole numbers, a debt as nothing left."""
    told = rate_limit_fields("tenant", quota=100.0, window_s=10, left=65.9, wait_s=0)
    assert told == {"ratelimit-policy": '"tenant";q=100;w=10', "ratelimit": '"tenant";r=65;t=0'}
    told = rate_limit_fields("tenant", quota=100, window_s=10, left=-3.5, wait_s=4)
    assert told["ratelimit"] == '"tenant";r=0;t=4'
