"""How a refusal is told: in the dashboard's words, with the place in an expression."""

from __future__ import annotations

import pytest
from weir.definitions.check import check
from weir.problems import ProblemError
from weir_cli.api import Answer


def test_each_place_in_an_expression_is_pointed_at() -> None:
    """Below each sentence stand the line of the expression and a caret under the place."""
    members = {"events": {"type": "t"}, "where": "data.a = 1 and status = 2", "by": ["region"]}
    with pytest.raises(ProblemError) as refusal:
        check("metric", "m", members)

    told = Answer(422, refusal.value.body()).told()

    assert [line.partition(",")[0] for line in told] == [
        "/where must be an attribute or a path below data",
        "data.a = 1 and status = 2",
        "               ^",
        "/by/0 must be an attribute or a path below data",
        "region",
        "^",
    ]


def test_what_has_no_place_is_one_line() -> None:
    """A refusal without expression is its sentence alone."""
    assert Answer(409, {"message": "it changed", "errors": [{"pointer": "/x"}]}).told() == [
        "it changed"
    ]
