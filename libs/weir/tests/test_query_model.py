"""Queries: what is accepted, what is refused and how, and the one canonical form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weir.problems import ProblemError, Reason
from weir.query import canonical, canonical_key, parse_query

PLAIN: dict[str, Any] = {"metric": "latency", "aggregate": "p95"}
SIDE = {"metric": "latency", "aggregate": "count"}


def refused(asked: Any) -> ProblemError:
    """Return the refusal of a query."""
    with pytest.raises(ProblemError) as caught:
        parse_query(asked)
    return caught.value


class TestParseQuery:
    def test_the_query_of_the_contract(self) -> None:
        """The example of the API's page is a query."""
        query = parse_query(
            {
                "metric": "checkout_latency",
                "version": None,
                "aggregate": "p95",
                "window": {"kind": "sliding", "length": "5m"},
                "by": ["region"],
                "where": [["route", "in", ["/pay", "/cart"]]],
                "range": {"last": "1h"},
                "step": "30s",
                "compare": ["1w"],
                "fill": "auto",
                "limit": {"top": 20, "other": True},
                "after": None,
            }
        )
        assert query.compare == ["1w"]
        assert query.where == [("route", "in", ["/pay", "/cart"])]

    def test_instants_in_both_spellings(self) -> None:
        """ISO 8601 with a zone and epoch milliseconds mean the same."""
        iso = {"from": "2026-11-21T10:00:00+01:00", "to": "2026-11-21T09:30:00Z"}
        query = parse_query({**PLAIN, "range": iso})
        assert (query.range.from_ms, query.range.to_ms) == (1795251600000, 1795253400000)

    @pytest.mark.parametrize(
        ("change", "pointer"),
        [
            ({"range": {"last": "5 minutes"}}, "/range/last"),
            ({"range": {"last": "0s"}}, "/range/last"),
            ({"range": {"from": 5, "to": 5}}, "/range"),
            ({"range": {"last": "1h", "from": 1, "to": 2}}, "/range"),
            ({"range": {"from": "2026-11-21T10:00:00", "to": 1}}, "/range/from"),
            ({"window": {"kind": "session"}}, "/window/kind"),
            ({"limit": {"top": 0}}, "/limit/top"),
            ({"by": ["a"] * 11}, "/by"),
            ({"fill": "zero"}, "/fill"),
            ({"aggregate": None}, "/"),
            ({"expr": {"op": "ratio", "left": SIDE, "right": SIDE}}, "/"),
        ],
    )
    def test_refusals_name_the_place(self, change: dict[str, Any], pointer: str) -> None:
        """A wrong member is refused with a pointer to it."""
        problem = refused({**PLAIN, **change})
        assert (problem.status, problem.reason) == (422, Reason.QUERY_INVALID)
        assert problem.errors[0]["pointer"] == pointer

    @pytest.mark.parametrize(
        ("condition", "says"),
        [
            (["route", "~", "x"], 'operator must be =, !=, in or like, got "~"'),
            (["route", ["in"], "x"], "operator must be"),
            (["status", "=", 500], 'write "500" with its quotes'),
            (["status", "in", ["500", 503.5]], 'write "503.5" with its quotes'),
            (["is_new", "!=", True], 'write "true" with its quotes'),
            (["status", "=", {"a": 1}], "must be texts, got {"),
            (["status", "like", None], "must be texts, got null"),
            (["status", "in", "500"], "list of 1 to 500 texts"),
            (["status", "in", []], "list of 1 to 500 texts"),
            (["status", "in", ["a"] * 501], "list of 1 to 500 texts"),
            (["status", "=", "a" * 257], "at most 256 characters, got 257"),
            (["a" * 257, "=", "a"], "at most 256 characters, got 257"),
            (
                ["status", "="],
                'must be a dimension, an operator and a value: ["status", "=", "500"]',
            ),
            ({"status": "500"}, "must be a dimension, an operator and a value"),
            ([5, "=", "500"], "must be a dimension, an operator and a value"),
        ],
    )
    def test_what_is_no_condition(self, condition: Any, says: str) -> None:
        """It is refused once, at its place, with what is wrong of it."""
        problem = refused({**PLAIN, "where": [["region", "=", None], condition]})
        assert [error["pointer"] for error in problem.errors] == ["/where/1"]
        assert says in problem.errors[0]["required"]

    @pytest.mark.parametrize(
        ("change", "required"),
        [
            ({"window": "5m"}, "an object"),
            ({"limit": 5}, "an object"),
            ({"range": "1h"}, "an object"),
            ({"by": "region"}, "a list"),
            ({"where": "region = eu"}, "a list"),
            ({"compare": "1w"}, "a list"),
        ],
    )
    def test_what_to_write_instead(self, change: dict[str, Any], required: str) -> None:
        """A member of another kind is told by what would be understood."""
        (error,) = refused({**PLAIN, **change}).errors
        assert error["required"] == required
        (name,) = change
        assert parse_query({**PLAIN, name: json.loads(error["mend"].removeprefix("write "))})

    def test_an_unknown_member(self) -> None:
        """A member that no query has is refused by a code of its own."""
        assert refused({**PLAIN, "windw": {}}).reason == Reason.UNKNOWN_FIELD

    @pytest.mark.parametrize("asked", [None, 5, [], "query"])
    def test_what_is_no_object(self, asked: Any) -> None:
        """Anything but an object is refused, not an error of ours."""
        assert refused(asked).reason == Reason.QUERY_INVALID


class TestCanonical:
    def test_spelling_does_not_matter(self) -> None:
        """Defaults, order and units written differently are the same query."""
        one = {
            **PLAIN,
            "step": "60s",
            "by": ["route", "region"],
            "where": [["region", "=", "eu"], ["route", "in", ["b", None, "a", "b"]]],
            "range": {"last": "60m"},
        }
        other = {
            **PLAIN,
            "step": "1m",
            "by": ["route", "region", "route"],
            "where": [["route", "in", ["a", "b", None]], ["region", "=", "eu"]],
            "fill": "auto",
            "compare": [],
        }
        assert canonical_key(parse_query(one)) == canonical_key(parse_query(other))

    @pytest.mark.parametrize(
        "change",
        [
            {"step": "2m"},
            {"by": ["route"]},
            {"by": ["region", "route"]},
            {"compare": ["1d", "1w"]},
            {"aggregate": "p99"},
            {"where": [["a", "=", None]]},
        ],
    )
    def test_meaning_does(self, change: dict[str, Any]) -> None:
        """Queries that ask for something else, or for values in another order, have another."""
        plain = {**PLAIN, "by": ["route", "region"], "compare": ["1w", "1d"]}
        assert canonical_key(parse_query({**plain, **change})) != canonical_key(parse_query(plain))

    def test_when_to_answer_is_no_part_of_it(self) -> None:
        """`after` says when to answer; what is answered is shared all the same."""
        waiting = parse_query({**PLAIN, "after": {"0": 17}})
        assert canonical(waiting) == canonical(parse_query(PLAIN))

    def test_is_a_query_itself(self) -> None:
        """Asking the canonical form gives the same canonical form."""
        expr = {"op": "ratio", "left": SIDE, "right": {**SIDE, "where": [["a", "like", "x%"]]}}
        for asked in ({**PLAIN, "range": {"from": 1, "to": 9}}, {"expr": expr}):
            form = canonical(parse_query(asked))
            assert canonical(parse_query(form)) == form
