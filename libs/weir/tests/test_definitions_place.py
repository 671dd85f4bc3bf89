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
        assert f"(character {at + 1})" in error["got"]

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
