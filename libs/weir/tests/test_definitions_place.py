"""Where in a definition an expression is wrong: told by character, and shown by a caret."""

from __future__ import annotations

from typing import Any

import pytest
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.definitions.rule import Rule
from weir.problems import ProblemError

METRIC = {"kind": "metric", "name": "m", "events": {"type": "t"}}


def errors_of(members: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the places of a definition that is refused."""
    with pytest.raises(ProblemError) as caught:
        check(None, None, members)
    return caught.value.errors


class TestPlace:
    @pytest.mark.parametrize(
        ("members", "at", "excerpt"),
        [
            ({"where": "data.a = 1 and status = 2"}, 15, "data.a = 1 and status = 2"),
            ({"where": "data.a = 1\n  and status = 2\n"}, 17, "  and status = 2"),
            ({"value": "data.a + lowr(data.b)"}, 9, "data.a + lowr(data.b)"),
            ({"by": ["data.a", "region"]}, 0, "region"),
            ({"aggregates": ["count", "distinct(user)"]}, 9, "distinct(user)"),
            ({"aggregates": ["distinct(distinct)"]}, 9, "distinct(distinct)"),
            ({"aggregates": ["top(user, 5)"]}, 4, "top(user, 5)"),
            ({"aggregates": ["top(data.x, 500)"]}, 12, "top(data.x, 500)"),
            ({"aggregates": ["top(data.x,0)"]}, 11, "top(data.x,0)"),
            ({"aggregates": ["theta(data.a +)"]}, 14, "theta(data.a +)"),
            ({"aggregates": ["avg(data.x)"]}, 3, "avg(data.x)"),
            ({"aggregates": ["avgs"]}, 0, "avgs"),
            ({"value": "data.a", "aggregates": ["p99.95"]}, 0, "p99.95"),
            ({"value": "data.a", "aggregates": ["p101"]}, 0, "p101"),
            ({"where": "data.a > 1 and"}, 14, "data.a > 1 and"),
        ],
    )
    def test_each_member_with_an_expression_is_pointed_at(
        self, members: dict[str, Any], at: int, excerpt: str
    ) -> None:
        """The place counts from the start of the member's text, and the caret is below it."""
        (error,) = errors_of(METRIC | members)
        line, caret = error["excerpt"].splitlines()
        assert (error["at"], line) == (at, excerpt)
        assert caret == " " * (at - (members.get("where", "").rfind("\n", 0, at) + 1)) + "^"
        told = error["got"] or error["required"]
        assert f" (character {at + 1})" in told

    def test_where_something_is_missing_nothing_came(self) -> None:
        """The text around it is not told as what came."""
        with pytest.raises(ProblemError) as caught:
            check(None, None, METRIC | {"where": "data.a > 1 and"})
        (error,) = caught.value.errors
        required = "a value behind and (character 15)"
        assert (error["required"], error["got"], error["at"]) == (required, "", 14)
        assert f"/where must be {required}, got nothing; write a value" in caught.value.message

    def test_filter_of_a_rule(self) -> None:
        """The filter of a rule, which has a grammar of its own, is pointed into as well."""
        rule = {"kind": "rule", "name": "r", "metric": "m", "aggregate": "count", "window": "1m"}
        (error,) = errors_of(rule | {"above": 1, "where": "region = 'eu' and route = 404"})
        assert error["excerpt"] == "region = 'eu' and route = 404\n" + " " * 26 + "^"

    def test_what_is_no_expression_has_no_place(self) -> None:
        """A fault that is in no text has neither."""
        (error,) = errors_of(METRIC | {"resolution": "5s"})
        assert not {"at", "excerpt"} & set(error)


class TestElements:
    def test_an_element_is_a_dimension_called_by_its_array(self) -> None:
        """`data.tags[0]` is the dimension `tags[0]`, and a rule filters by that name."""
        metric = check(None, None, METRIC | {"by": ["data.tags[0]", "data.lines[1].sku"]}).model
        rule = {"kind": "rule", "name": "r", "metric": "m", "aggregate": "count", "window": "1m"}
        filtered = check(None, None, rule | {"above": 1, "where": "tags[0] = 'a'"}).model

        assert isinstance(metric, Metric)
        assert metric.dimension_names == ("tags[0]", "sku")
        assert isinstance(filtered, Rule)
        assert [condition.dimension for condition in filtered.where] == ["tags[0]"]
