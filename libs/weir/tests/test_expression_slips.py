"""Slips of the pen in quotes and comments, and the laws of every refusal, whatever was typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from weir.definitions.aggregates import parse_aggregate
from weir.definitions.conditions import conditions_of
from weir.expressions import ExpressionError, Kind, parse_path, parse_where
from weir.expressions.dimension import parse_dimension
from weir.expressions.functions import FUNCTIONS, SAID_OTHERWISE
from weir.expressions.parse import parse_kind
from weir.expressions.quotes import without_comments
from weir.problems import MAX_ECHO, Reason, echo

from .expression_mends import can_be_written, codes_of

PAGE: Final = (Path(__file__).parents[3] / "docs" / "definitions.md").read_text(encoding="utf-8")

RIGHT: Final = "\N{RIGHT SINGLE QUOTATION MARK}"
QUOTES: Final = [
    # What is told as the fault stands between the marks, and the mend behind them.
    ("data.name = '{user}⟦'s cart'⟧", "double a quote within a text: '{user}''s'"),
    ("data.name = '{}⟦'s cart'⟧", "double a quote within a text: '{}''s'"),
    ("{\"k\": 'it⟦'s'}⟧", "double a quote within a text: 'it''s'"),
    ("data.a = 'x' and data.b = 'don⟦'t'⟧", "double a quote within a text: 'don''t'"),
    ("data.a = 'it''s Ann⟦'s'⟧", "double a quote within a text: 'it''s Ann''s'"),
    ("data.a = 'it⟦'s' and data.b = 'that's'⟧", "double a quote within a text: 'it''s'"),
    ("data.a = '5⟦'11' or data.b = 1⟧", "double a quote within a text: '5''11'"),
    (f"data.a = '{'x' * 70}⟦'s'⟧", "double a quote within a text: 'it''s'"),
    ("data.status = 'paid' and data.env = ⟦'prod⟧", "close the text with '"),
    ("data.a = 'x'and data.b = ⟦'y⟧", "close the text with '"),
    ("data.a = ⟦'x and data.b = 'y'⟧", "close the text with '"),
    ("data.a in (⟦'a, 'b')⟧", "close the text with '"),
    ("data.a = ⟦'it''s⟧", "close the text with '"),
    (f"data.a = ⟦'it{RIGHT}s⟧", "close the text with '"),
    (f"data.a = 'x⟦{RIGHT} and data.b = 1⟧", f"write ' in place of {RIGHT}"),
    ("data.a = 'x' and data.b = ⟦“y' and data.c = 'z⟧", "write ' in place of “"),
]
COMMENTS: Final = [
    ("data.a = 1 -- it's", "data.a = 1"),
    ("data.a = 1 -- “x”; select `y`", "data.a = 1"),
    ("data.a = 1 -- x\rand data.b = 'y'", "data.a = 1 and data.b = 'y'"),
    ("data.a = /* it's \"x ( */ 1", "data.a = 1"),
    ("data.a = 1 /* /* ' */ ; */ or data.b = 2", "data.a = 1 or data.b = 2"),
    ("data.a = '-- /* x' and data.\"--\" = 1", "(data.a = '-- /* x') and (data.\"--\" = 1)"),
]
BEHIND_COMMENTS: Final = [
    ("data.a = 1 /* it's \"x */ and data.b =⟦⟧ ", "write a value there, or leave = out"),
    ("data.a = 1 -- it's\n and data.b = ⟦'x⟧", "close the text with '"),
    ("data.a /* it's */ ⟦===⟧ 1 -- “x”", "write ="),
    ("data.a = 1 /* x */ ⟦data⟧.b = 2", "put what joins or compares them between"),
    ("(data.a = 1⟦⟧ -- )", "close the ( at character 1 with )"),
    ("data.a = 1 ⟦/* it's⟧", "close the comment with */"),
    ("data.a = 1 ⟦/* /* x */⟧", "close the comment with */"),
]

# Every expression of the page, and of each function the example that its refusals tell.
TAKEN: Final = sorted(
    {
        *re.findall(r"^\| `(.+?)` \| `?(?:true|false|null)`? \|$", PAGE.replace("\\|", "|"), re.M),
        *re.findall(r"^(?:where|value): \"?(.+?)\"?(?: +#.*)?$", PAGE, re.M),
        *(function.example for function in FUNCTIONS.values()),
        *SAID_OTHERWISE.values(),
        *(written for written, _plain in COMMENTS),
        "case when data.a is not null then 'it''s' || data.\"a b\".c[0] else null end like '%'",
        "not (data.a not between -1 and 2) and trim(both 'x' from data.b) in ('a', 'b')",
        "extract(hour from time) = 1e3 or substring(data.a from 2 for 3) ilike '%'",
        "lower(data.region) as region",
        "count",
        "p99.9",
        "distinct(data.user)",
        "top(data.user, 10)",
    }
)
READERS: Final[tuple[Callable[[str], object], ...]] = (
    *(partial(parse_kind, kind=kind, written=True) for kind in Kind),
    partial(parse_dimension, written=True),
    partial(conditions_of, written=True),
    parse_path,
    parse_aggregate,
)
SIGNS: Final = "'\"`{}()[]<>=!|&,.;:-+*/%#$@\\?~^_ \n0aé“\0" + RIGHT


def refusals(text: str) -> Iterator[ExpressionError]:
    """Yield how those refuse a text who do not take it."""
    for read in READERS:
        try:
            read(text)
        except ExpressionError as error:
            yield error


def check(error: ExpressionError, text: str) -> None:
    """Check that a refusal has a mend, and a place at which stands what it says back."""
    assert error.mend.strip()
    if error.at is None:
        is_empty = not without_comments(text).strip()
        assert is_empty or error.reason is Reason.EXPRESSION_TOO_LARGE
        return
    assert 0 <= error.at <= len(text)
    typed = echo(text[error.at : error.at + MAX_ECHO])
    assert typed.startswith(error.got.rstrip("…"))
    assert str(error.excerpt).endswith("^")


@st.composite
def slips(draw: st.DrawFn) -> str:
    """Draw a valid expression of which one character is deleted, doubled or another."""
    text: str = draw(st.sampled_from(TAKEN))
    at: int = draw(st.integers(0, len(text) - 1))
    typed: str = draw(st.sampled_from(["", text[at] * 2, *SIGNS]) | st.characters(codec="utf-8"))
    return text[:at] + typed + text[at + 1 :]


def refused(marked: str) -> tuple[ExpressionError, str, str]:
    """Return the refusal of a text, and what stands before and between its marks."""
    before, got, after = re.split("[⟦⟧]", marked)
    with pytest.raises(ExpressionError) as caught:
        parse_where(before + got + after)
    return caught.value, before, got


class TestQuotes:
    @pytest.mark.parametrize(("marked", "mend"), QUOTES)
    def test_the_quote_that_is_wrong_is_found(self, marked: str, mend: str) -> None:
        """It is told by what stands on its sides, wherever quotes before it pair or not."""
        error, before, got = refused(marked)
        assert (error.mend, error.at, error.got) == (mend, len(before), echo(got))

    @pytest.mark.parametrize(("marked", "mend"), [case for case in QUOTES if "double" in case[1]])
    def test_a_doubled_quote_is_a_part_of_the_text(self, marked: str, mend: str) -> None:
        """What the mend shows is a text of the language."""
        parse_where(f"data.a = {mend.partition(': ')[2]}")
        assert "⟦'" in marked


class TestComments:
    @pytest.mark.parametrize(("written", "plain"), COMMENTS)
    def test_what_stands_in_one_is_nothing(self, written: str, plain: str) -> None:
        """Whatever it is; and what looks like one in quotes is text."""
        assert parse_where(written) == parse_where(plain)

    @pytest.mark.parametrize(("marked", "mend"), BEHIND_COMMENTS)
    def test_what_stands_in_one_is_not_blamed(self, marked: str, mend: str) -> None:
        """The slip is found behind it, at its place in the whole text."""
        error, before, got = refused(marked)
        assert error.mend.startswith(mend)
        assert (error.at, error.got) == (len(before), got)

    @pytest.mark.parametrize("text", ["-- x", "/* it's */", " -- '\n "])
    def test_a_comment_alone_is_no_expression(self, text: str) -> None:
        """It is as if nothing were written."""
        with pytest.raises(ExpressionError, match="must be an expression"):
            parse_where(text)

    @pytest.mark.parametrize("text", ["data.r -- it's\n", "lower(data.r) /* it's\n */"])
    def test_a_dimension_keeps_its_text(self, text: str) -> None:
        """An expression's text names its series: comments stay in it, as they were stored."""
        found = parse_dimension(f"{text} as r").text
        assert found == ("data.r as r" if found.startswith("data") else f"{text} as r")

    @settings(deadline=None)
    @example(["/*+", " /*+", " */", " a ", "*/"])
    @example(["/*", "/*", "*/", "*/", "a"])
    @given(st.lists(st.sampled_from(["/*", "*/", "--", "/*+", "{#", "#}", *"'\"\n*/+ a;#("])))
    def test_they_are_where_sqlglot_has_them(self, parts: list[str]) -> None:
        """Without them a text has the same words and signs at the same places."""
        text = "".join(parts)
        tokenize = Dialect.get_or_raise(None).tokenize
        try:
            wanted = tokenize(text)
        except TokenError:
            return
        found = tokenize(without_comments(text))
        assert [(t.token_type, t.text, t.start, t.end) for t in found] == [
            (t.token_type, t.text, t.start, t.end) for t in wanted
        ]


class TestLaws:
    def test_what_slips_are_made_of_is_taken(self) -> None:
        """Each is valid to somebody, so one character makes the slip."""
        assert len(TAKEN) > 100
        assert [text for text in TAKEN if len(list(refusals(text))) == len(READERS)] == []

    @settings(deadline=None)
    @given(st.text(max_size=60) | st.text(alphabet=SIGNS, max_size=30))
    @example("'{}'s")
    @example("data.name = '{user}'s cart'")
    def test_any_text_is_taken_or_refused_with_place_and_mend(self, text: str) -> None:
        """No text makes a reader raise anything but its own error."""
        for error in refusals(text):
            check(error, text)

    @settings(max_examples=200, deadline=None)
    @given(slips())
    def test_any_slip_is_taken_or_refused_with_place_and_mend(self, text: str) -> None:
        """Whatever one character does to a valid expression."""
        for error in refusals(text):
            check(error, text)

    @settings(max_examples=200, deadline=None)
    @given(slips())
    @example("data.a is distinct from data.b")
    @example("data.paid is not data.b")
    @example("data.a in (data.b)")
    @example("trim(data.code")
    @example("p999")
    def test_what_is_to_be_written_is_taken(self, text: str) -> None:
        """Code behind `write` is an expression, or one part of it: the parser never refuses it."""
        assume(text == without_comments(text))  # in a comment anything may look like an end of code
        for error in refusals(text):
            for code in codes_of(error.mend):
                assert can_be_written(code), error.mend
