"""The lists of aggregates: what is declared can be asked, and the form offers no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from weir.definitions import aggregates as declared
from weir.expressions.errors import ExpressionError
from weir.query import named as asked

FORM = Path(__file__).parents[3] / "services" / "dashboard" / "web" / "src" / "lib" / "draft.ts"
OF_TEXTS = tuple(f"{word}(subject)" for word in declared.OF_TEXTS)
PERCENTILES = ("p1", "p50", "p99", "p99.9")


def offered() -> list[str]:
    """Return the aggregates that the form for a new metric offers."""
    lists = re.findall(
        r"const (?:OF_VALUE|COUNTING) = \[(.*?)\]", FORM.read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(lists) == 2, "the form must have two lists"
    return [name for text in lists for name in re.findall(r'"([^"]+)"', text)]


class TestLists:
    def test_both_sides_know_the_same(self) -> None:
        """Each plain aggregate can be declared and asked; those of texts have a parameter."""
        assert {*asked.PLAIN, "top"} == {*declared.PLAIN, *declared.OF_TEXTS}

    @pytest.mark.parametrize(
        "name", [*declared.PLAIN, *PERCENTILES, *OF_TEXTS, "top(data.a, 3)", 'top(data."a,1")']
    )
    def test_what_can_be_declared_can_be_asked(self, name: str) -> None:
        """A definition's word is a query's word."""
        assert asked.aggregate_named(declared.parse_aggregate(name).name) is not None

    @pytest.mark.parametrize("name", ["p0", "p100", "median", "variance", "distinct_users"])
    def test_what_is_unknown_is_unknown_to_both(self, name: str) -> None:
        """Neither side takes a word that the other refuses."""
        assert asked.aggregate_named(name) is None
        with pytest.raises(ExpressionError):
            declared.parse_aggregate(name)

    def test_the_form_offers_only_what_can_be_declared(self) -> None:
        """Each choice of the form is an aggregate, and those that need a value are apart."""
        names = offered()
        assert {"count", "avg", "p95"} <= set(names)
        for name in names:
            assert declared.parse_aggregate(name).name == name
