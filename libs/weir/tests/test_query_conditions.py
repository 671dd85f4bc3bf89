"""Conditions on dimensions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.query.conditions import test_of as condition


class TestCondition:
    @pytest.mark.parametrize(
        ("op", "wanted", "passing", "failing"),
        [
            ("=", "eu", ["eu"], ["us", "", None]),
            ("=", None, [None], ["eu", ""]),
            ("!=", "eu", ["us", ""], ["eu", None]),
            ("!=", None, ["eu", ""], [None]),
            ("in", ["eu", None], ["eu", None], ["us"]),
            ("like", "/pay%", ["/pay", "/pay/1"], ["/pa", "x/pay", None]),
            ("like", "_a", ["ba"], ["a", "bba"]),
            ("like", r"100\%", ["100%"], ["100x"]),
            ("like", "", [""], ["a"]),
        ],
    )
    def test_both_sides(
        self, op: str, wanted: Any, passing: list[str | None], failing: list[str | None]
    ) -> None:
        """Each operator holds for what it should, and not for its neighbours."""
        test = condition(op, wanted)
        assert [test(value) for value in passing] == [True] * len(passing)
        assert [test(value) for value in failing] == [False] * len(failing)

    @given(st.text("ab%_", max_size=8), st.text("ab", max_size=8))
    def test_like_is_what_it_stands_for(self, pattern: str, text: str) -> None:
        """`like` agrees with the regular expression that it is an abbreviation of."""
        expression = pattern.replace("%", ".*").replace("_", ".")
        assert condition("like", pattern)(text) == bool(re.fullmatch(expression, text))

    def test_a_hostile_pattern_takes_no_time(self) -> None:
        """A pattern that makes a regular expression run for years is done at once."""
        assert not condition("like", "%a" * 100 + "b")("a" * 250)
