"""The lists of aggregates: what is declared can be asked, and the form offers no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from weir.definitions import aggregates as declared
from weir.expressions.errors import ExpressionError
from weir.query import named as asked

from .expression_mends import can_be_written, codes_of

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


MEASURED = "what is measured says the metric: value: "
WHICH = "which events are counted says the metric: "
REFUSED = [
    # What is told as the fault stands between the marks, and the mend behind them.
    ("count⟦(*)⟧", "write count; it is events that are counted"),
    ("count⟦(1)⟧", "write count; it is events that are counted"),
    ("count⟦()⟧", "write count; it is events that are counted"),
    ("rate⟦(*)⟧", "write rate; it is events that are counted"),
    ("⟦COUNT(*)⟧", "write count; it is events that are counted"),
    ("count⟦(data.user)⟧", f"write count; {WHICH}where: data.user is not null"),
    ("⟦count(distinct data.user)⟧", "write distinct(data.user)"),
    ("⟦COUNT(DISTINCT (data.user))⟧", "write distinct(data.user)"),
    ("⟦count(distinct lower(data.a))⟧", "name one path: distinct(subject)"),
    ("avg⟦(data.a)⟧", f"write avg; {MEASURED}data.a"),
    ("avg ⟦(data.a⟧", f"write avg; {MEASURED}data.a"),
    ("avg⟦(coalesce(data.a, 0))⟧", f"write avg; {MEASURED}coalesce(data.a, 0)"),
    ("avg⟦(coalesce(data.a, 0)⟧", f"write avg; {MEASURED}coalesce(data.a, 0)"),
    ("avg⟦((data.a + 1) * 2)⟧", f"write avg; {MEASURED}(data.a + 1) * 2"),
    (
        "⟦sum(distinct data.order_total)⟧",
        "there is no sum of distinct values: write sum for that of all, or"
        " distinct(data.order_total) for how many there are",
    ),
    (
        "⟦AVG(DISTINCT data.a + 1)⟧",
        "there is no avg of distinct values: write avg for that of all",
    ),
    (
        "⟦p95(distinct data.a)⟧",
        "there is no p95 of distinct values: write p95 for that of all, or distinct(data.a) for"
        " how many there are",
    ),
    (
        "⟦rate(distinct data.a)⟧",
        "there is no rate of distinct values: write rate for that of all, or distinct(data.a) for"
        " how many there are",
    ),
    ("max⟦(distinct data.a)⟧", f"write max; {MEASURED}data.a"),
    ("count⟦(data.status >= 500)⟧", f"write count; {WHICH}where: data.status >= 500"),
    (
        "rate⟦((data.a = 'x' or data.b) and not data.c)⟧",
        f"write rate; {WHICH}where: (data.a = 'x' or data.b) and not data.c",
    ),
    ("count⟦(lower(data.a))⟧", f"write count; {WHICH}where: (lower(data.a)) is not null"),
    ("count⟦(data.a + 1)⟧", f"write count; {WHICH}where: (data.a + 1) is not null"),
    (
        "count⟦(foo(data.a))⟧",
        f"write count; {WHICH}by where, such as where: data.status >= 500",
    ),
    ("p95⟦(data.a)⟧", f"write p95; {MEASURED}data.a"),
    ("avg⟦()⟧", f"write avg; {MEASURED}data.amount"),
    ("avg⟦(*)⟧", f"write avg; {MEASURED}data.amount"),
    ("avg⟦(lower(data.a))⟧", f"write avg; {MEASURED}data.amount"),
    ("⟦p0⟧(data.a)", "write min, which is exact"),
]


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


class TestRefusals:
    @pytest.mark.parametrize(("marked", "mend"), REFUSED)
    def test_what_sql_says_is_said_otherwise(self, marked: str, mend: str) -> None:
        """What stands in brackets is told where the metric says it, if the language takes it."""
        before, got, after = re.split("[⟦⟧]", marked)
        with pytest.raises(ExpressionError) as caught:
            declared.parse_aggregate(before + got + after)
        assert (caught.value.mend, caught.value.at) == (mend, len(before))
        assert caught.value.got == got
        assert [code for code in codes_of(mend) if not can_be_written(code)] == []
