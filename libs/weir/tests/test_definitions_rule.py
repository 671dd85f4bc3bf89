"""Rules: what may be said, what is filled in, and what a refusal says."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from weir.definitions.check import check
from weir.definitions.conditions import conditions_of
from weir.definitions.rule import Rule
from weir.expressions import ExpressionError
from weir.problems import ProblemError

INFINITY = float("inf")
RULE = {"name": "r", "metric": "m", "aggregate": "count", "window": "1m"}


def rule(**members: Any) -> Rule:
    """Return a rule with these members."""
    return Rule.model_validate(RULE | members)


def required(**members: Any) -> str:
    """Return what the refusal of a rule says it must be."""
    with pytest.raises(ValidationError) as caught:
        rule(**members)
    return caught.value.errors()[0]["msg"]


class TestLimit:
    @pytest.mark.parametrize(
        ("members", "limits", "back", "text"),
        [
            ({"above": 0}, (-INFINITY, 0), (-INFINITY, 0), "0"),
            ({"above": 400, "recover": 350}, (-INFINITY, 400), (-INFINITY, 350), "400"),
            ({"above": 1_500_000}, (-INFINITY, 1_500_000), (-INFINITY, 1_500_000), "1,500,000"),
            ({"below": 0, "recover": 2.5}, (0, INFINITY), (2.5, INFINITY), "0"),
            ({"outside": [1, 5]}, (1, 5), (1, 5), "1 to 5"),
            ({"outside": [1, 5], "recover": [2, 4]}, (1, 5), (2, 4), "1 to 5"),
        ],
    )
    def test_within_and_back(
        self, members: dict[str, Any], limits: object, back: object, text: str
    ) -> None:
        """A limit is the span that is allowed, and the one that is a recovery."""
        found = rule(**members)

        assert (found.limits, found.back, found.limit_text) == (limits, back, text)

    @pytest.mark.parametrize(
        ("members", "said"),
        [
            ({}, "one of above, below and outside"),
            ({"above": 1, "below": 2}, "one of above, below and outside"),
            ({"above": 400, "recover": 401}, "a recover at most the limit, 400"),
            ({"below": 5, "recover": 4}, "a recover at least the limit, 5"),
            ({"outside": [1, 5], "recover": [0, 4]}, "a recover within the limit, 1 to 5"),
            ({"outside": [5, 1]}, "a recover within the limit, 5 to 1"),
            ({"above": "4"}, "valid number"),
            ({"above": INFINITY}, "finite number"),
        ],
    )
    def test_refusals(self, members: dict[str, Any], said: str) -> None:
        """A rule has one limit, and a recovery lies inside it."""
        assert said in required(**members)


class TestRest:
    def test_text_in_double_quotes_is_told_as_such(self) -> None:
        """The usual slip in `where` is mended, and not taken for a number."""
        with pytest.raises(ValidationError) as caught:
            rule(above=1, where='region = "eu"')
        (error,) = caught.value.errors()
        assert error["ctx"]["mend"] == "text stands in single quotes: 'eu'"

    def test_few_events_say_nothing_of_a_percentile(self) -> None:
        """Left out, the least number of events is 20 for percentiles and 0 for all else."""
        assert rule(above=1, aggregate="p95").min_events == 20
        assert rule(above=1, aggregate="p95", min_events=3).min_events == 3
        assert rule(above=1, aggregate="distinct").min_events == 0

    def test_windows(self) -> None:
        """A step lies within the length, so that each event is in some window."""
        assert rule(above=1, window={"length": "5m", "step": "30s"}).window.step == 30_000
        assert "not longer than it" in required(above=1, window={"length": "1m", "step": "2m"})
        assert "with a length" in required(above=1, window="0s")

    @pytest.mark.parametrize(
        ("members", "said"),
        [
            ({"no_data": {"tell_after": "2h", "end_after": "1h"}}, "not shorter than tell_after"),
            ({"labels": {"Team": "x"}}, "labels with names"),
            ({"runbook": "javascript:alert(1)"}, "an http or https link"),
            ({"severity": "urgent"}, "'info', 'low', 'high' or 'critical'"),
            ({"aggregate": "p200"}, "a percentile from p0.1 to p99.9"),
            ({"secret": "x"}, "Extra inputs"),
        ],
    )
    def test_refusals(self, members: dict[str, Any], said: str) -> None:
        """What a rule cannot mean is refused with what it must be."""
        assert said in required(above=1, **members)


class TestConditions:
    def test_text_and_list_are_the_same(self) -> None:
        """A filter may be written as SQL does, or as queries do."""
        text = "route like '/pay%' and (data.region in ('eu', 'us')) and data.\"a-b\" is null"
        listed = [
            ["route", "like", "/pay%"],
            ["data.region", "in", ["eu", "us"]],
            ['data."a-b"', "=", None],
        ]

        assert rule(above=1, where=text).where == rule(above=1, where=listed).where

    @pytest.mark.parametrize(
        "text",
        ["a = 1", "a = 'x' or b = 'y'", "lower(a) = 'x'", "'x' = a", "a not in ('x')", "a", ""],
    )
    def test_refusals(self, text: str) -> None:
        """Only comparisons of a dimension with texts, joined by and."""
        with pytest.raises(ExpressionError, match="must be") as caught:
            conditions_of(text)
        assert caught.value.text == text

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("data" + ".a" * 9 + " > '5'", "at most 8 names below data"),
            ("data" + ".a" * 2_000 + " > '5'", "at most 8 names below data"),
            ("data" + ".a" * 2_000 + " = '5'", "at most 8 names below data"),
            ("a = 'x' and b = data" + ".a" * 2_000, "at most 8 names below data"),
            ("lower(data" + ".a" * 2_000 + ") = 'x'", "at most 8 names below data"),
            ("a" + "::text" * 600 + " = 'x'", "a declared dimension"),
        ],
    )
    def test_deep_ones_are_refused(self, text: str, said: str) -> None:
        """Also those of hundreds of levels; the place is told where it is known."""
        with pytest.raises(ExpressionError) as caught:
            conditions_of(text, written=True)
        assert (caught.value.required, caught.value.text) == (said, text)
        with pytest.raises(ProblemError, match=said) as refused:
            check("rule", "r", RULE | {"above": 1, "where": text})
        assert refused.value.errors[0]["pointer"] == "/where"

    def test_a_stored_one_is_read(self) -> None:
        """Names that no dimension can have were once taken, and say nothing."""
        path = "data" + ".a" * 9
        text = f"{path} = 'x'"
        assert conditions_of(text) == ([path, "=", "x"],)
        found = check("rule", "r", RULE | {"above": 1, "where": text}, stored=True).model
        assert isinstance(found, Rule)
        assert found.where[0].dimension == path

    @pytest.mark.parametrize("times", [9, 2_000])
    def test_a_stored_one_too_deep_to_be_said_is_refused(self, times: int) -> None:
        """With words, as whatever is refused."""
        with pytest.raises(ExpressionError, match="must be"):
            conditions_of("data" + ".a" * times + " > '5'")


class TestSignals:
    def test_a_signal_says_what_is_asked_of_it(self) -> None:
        """A rule on Weir itself is a name and a limit."""
        found = Rule.model_validate({"name": "r", "metric": "weir.channel", "above": 60})
        assert (found.aggregate, found.window.length, found.by) == ("last", 10_000, ("channel",))
        assert Rule.model_validate(found.canonical()) == found

    @pytest.mark.parametrize(
        ("members", "said"),
        [
            ({"metric": "weir.engine"}, "a metric, or one of weir.stalled, weir.lag"),
            ({"metric": "weir.lag", "by": ["region"]}, "without aggregate, window, by and where"),
            ({"metric": "weir.lag", "by": []}, "without aggregate, window, by and where"),
            ({"metric": "weir.lag", "where": "region = 'eu'"}, "without aggregate, window"),
            (
                {"metric": "weir.lag", "window": {"length": "10s", "step": "5s"}},
                "without aggregate",
            ),
            ({"metric": "weir.lag", "aggregate": "last"}, "without aggregate, window"),
            ({"metric": "Weir.lag"}, "a name: a-z first"),
        ],
    )
    def test_refusals(self, members: dict[str, Any], said: str) -> None:
        """It has one window and no dimensions of the team's events."""
        assert said in required(above=1, **members)
