"""What the conditions of a request say of the version that it builds on."""

from __future__ import annotations

import asyncio

import pytest
from weir.problems import ProblemError
from weir_dashboard.api.conditions import condition, if_match_only
from weir_dashboard.definitions.writer import Expected


@pytest.mark.parametrize(
    ("if_match", "if_none_match", "expected"),
    [
        (None, None, Expected()),
        ('"3"', None, Expected(version=3)),
        (' W/"3" ', None, Expected(version=3)),
        (None, "*", Expected(absent=True)),
        ('"3"', "*", Expected(absent=True)),
        (None, '"3"', Expected(version=3)),
        ('"3"', '"4"', Expected(version=3)),
    ],
)
def test_a_version_none_or_whatever_there_is(
    if_match: str | None, if_none_match: str | None, expected: Expected
) -> None:
    """A version is written in quotes; `*` asks that there be none."""
    assert asyncio.run(condition(if_match, if_none_match)) == expected


def test_what_is_deleted_is_there() -> None:
    """Only `If-Match` is asked."""
    assert asyncio.run(if_match_only('"3"')) == Expected(version=3)
    assert asyncio.run(if_match_only()) == Expected()


@pytest.mark.parametrize("text", ["3", '"x"', '"3", "4"', "", '"1234567890123456789"', "*"])
def test_what_is_no_version_of_ours_is_refused(text: str) -> None:
    """With what was required and what came."""
    with pytest.raises(ProblemError, match="a condition must be a version in quotes") as caught:
        asyncio.run(condition(text))
    assert caught.value.status == 422
