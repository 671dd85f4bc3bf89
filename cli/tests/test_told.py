"""How answers are told: lists as tables or JSON, refusals with the place in an expression."""

from __future__ import annotations

import pytest
from weir.definitions.check import check
from weir.problems import ProblemError
from weir_cli import exits
from weir_cli.api import Answer
from weir_cli.telling import instant, say_list


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


@pytest.mark.parametrize(
    ("at_ms", "told"),
    [
        (0, "1970-01-01 00:00:00Z"),
        (253_402_300_799_999, "9999-12-31 23:59:59Z"),
        (253_402_300_800_000, "253402300800000 ms"),
        (-62_135_596_800_000, "1-01-01 00:00:00Z"),
        (-62_135_596_800_001, "-62135596800001 ms"),
        (2**63, "9223372036854775808 ms"),
    ],
)
def test_an_instant_beyond_the_calendar(at_ms: int, told: str) -> None:
    """A window may end where the year 9999 does, and a query may reach 285,000 years."""
    assert instant(at_ms) == told


COLUMNS = ("name", "state")


def row(one: dict[str, str]) -> list[str]:
    """Return an item's row."""
    return [one["name"], one["state"]]


class TestList:
    @pytest.mark.parametrize(
        ("items", "as_json", "written"),
        [
            ([{"name": "orders", "state": "on"}], False, "name    state\norders  on\n"),
            ([{"name": "a", "state": "on"}], True, '{"name": "a", "state": "on"}\n'),
            ([], False, ""),
            ([], True, ""),
        ],
    )
    def test_a_table_or_an_object_a_line(
        self,
        items: list[dict[str, str]],
        as_json: bool,
        written: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """Nothing at all of no items: a program that reads lines finds none."""
        answer = Answer(200, {"items": items})

        assert say_list(answer, COLUMNS, row, as_json=as_json) == exits.DONE
        assert capsys.readouterr() == (written, "")

    @pytest.mark.parametrize("as_json", [True, False])
    def test_a_refusal_is_told(self, *, as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
        """In the dashboard's words, to standard error, and as an object for programs."""
        answer = Answer(403, {"code": "scope_missing", "message": "the key must have read"})

        assert say_list(answer, COLUMNS, row, as_json=as_json) == exits.REFUSED
        told = '{"error": {"code": "scope_missing", "message": "the key must have read", '
        written = told + '"errors": []}}\n' if as_json else ""
        assert capsys.readouterr() == (written, "weir: the key must have read\n")
