"""The language: what can be said, what is refused and how, and what it means."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from weir.expressions import (
    ExpressionError,
    Kind,
    evaluate,
    parse_number,
    parse_path,
    parse_where,
)
from weir.expressions.functions import ALIASES, FUNCTIONS, HAS, NAMES, SAID_OTHERWISE
from weir.expressions.numbers import as_double, number_text, scalar_text
from weir.expressions.paths import Path
from weir.problems import Reason, echo

EVENT: dict[str, Any] = {
    "id": "1",
    "type": "order",
    "subject": "ann",
    "partitionkey": 12,
    "datacontenttype": True,
    "traceparent": "00-4bf9-01",
    "sequence": 7,
    "sampled": True,
    "weirms": "+001700000000123",
    "data": {
        "total": 12.5,
        "items": 3,
        "code": "AbC-1",
        "paid": True,
        "none": None,
        "seven": "7",
        "list": [1],
        "mixed": [None, "eu", True, ["x"]],
        "cart": {"size": 2},
        "user-agent": "curl",
        "big": 2**53 + 1,
        "lines": [{"sku": "a-1"}, {"sku": "b-2", "prices": [1, 2.5]}],
        "padded": "  x y ",
        "born": "2023-11-14T21:13:20Z",
        "url": "https://ann@Shop.Example.com:443/a/b?p=1&q=x%20y#r=2",
    },
}


WORDS = (
    *("data", ".", "a", "'x'", "1", "(", ")", "and", "or", "not", "in", "like", "is", "null"),
    *("+", "-", "*", "/", "%", "=", "<", ",", "select", "case", "when", "lower", "coalesce"),
    *('"q"', "between", "::", "[", "]", ";", "--", "true", "interval", "cast", "as"),
)


def where(text: str) -> Any:
    """Return what a condition yields for the event above."""
    return evaluate(parse_where(text), EVENT)


def refusal(text: str) -> ExpressionError:
    """Return the error of a condition that is refused."""
    with pytest.raises(ExpressionError) as caught:
        parse_where(text)
    return caught.value


class TestMeaning:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("data.total > 12", True),
            ("data.total >= 12.5 and data.items = 3", True),
            ("data.seven = 7", None),
            ("data.seven = '7'", True),
            ("data.items = '3'", None),
            ("data.paid = 1", None),
            ("data.paid", True),
            ("not data.paid", False),
            ("data.missing = 1", None),
            ("not (data.missing = 1)", None),
            ("data.missing = 1 or data.items = 3", True),
            ("data.missing = 1 and data.items = 4", False),
            ("data.missing = 1 and data.items = 3", None),
            ("data.missing is null", True),
            ("data.none is null", True),
            ("data.list is not null", True),
            ("data.list = 1", None),
            ("data.cart.size = 2", True),
            ("data.code.size = 2", None),
            ("data.\"user-agent\" = 'curl'", True),
            ("data.Total > 1", None),
            ("data.items in (1, 2, 3)", True),
            ("data.code not in ('x', 'y')", True),
            ("data.items between 3 and 4", True),
            ("data.items not between 3 and 4", False),
            ("data.code like 'A%1'", True),
            ("data.code like 'a%'", False),
            ("data.code not like '%z%'", True),
            ("data.seven like '%'", True),
            ("data.items like '%'", None),
            ("data.total / 0 > 1", None),
            ("(data.total / 0) is null", True),
            ("data.items % 2 = 1", True),
            ("-data.items % 2 = -1", True),
            ("data.total * 1e308 * 10 > 0", None),
            ("lower(data.code) = 'abc-1'", True),
            ("upper(subject) = 'ANN'", True),
            ("length(data.code) = 5", True),
            ("substr(data.code, 1, 3) = 'AbC'", True),
            ("substr(data.code, 4) = '-1'", True),
            ("starts_with(data.code, 'Ab')", True),
            ("ends_with(data.code, '-2')", False),
            ("contains(data.code, 'C-')", True),
            ("coalesce(data.none, data.items) = 3", True),
            ("coalesce(data.none, 'x') = 'x'", True),
            ("round(data.total) = 12", True),
            ("floor(-data.total) = -13 and ceil(data.total) = 13", True),
            ("abs(-data.total) = 12.5", True),
            ("time = 1700000000123", True),
            ("type = 'order' and subject = 'ann'", True),
            ("data.big = 9007199254740992", True),
            ("case when data.total > 12 then 'big' else 'small' end = 'big'", True),
            ("case when data.missing = 1 then 'a' when data.paid then 'b' end = 'b'", True),
            ("case when data.total > 99 then 1 end is null", True),
            ("case data.items when 2 then 'two' when 3 then 'three' end = 'three'", True),
            ("case data.missing when 2 then 'two' else 'none' end = 'none'", True),
            ("case when data.paid then data.items end = 3", True),
            ("if(data.paid, data.total, 0) = 12.5", True),
            ("(if(data.missing = 1, data.total, null) + 0) is null", True),
            ("nullif(data.items, 3) is null", True),
            ("nullif(data.items, data.missing) = 3", True),
            ("least(data.items, data.total, data.none) = 3", True),
            ("greatest(data.code, 'AbB') = 'AbC-1'", True),
            ("data.list[0] = 1", True),
            ("data.list[1] is null", True),
            ("data.list[0].x is null", True),
            ("data.cart[0] is null", True),
            ("data.lines[1].sku = 'b-2'", True),
            ("data.lines[1].prices[1] = 2.5", True),
            ("array_length(data.lines) = 2", True),
            ("array_length(data.cart) is null", True),
            ("has(data.list, 1) and not has(data.list, '1') and not has(data.list, 2)", True),
            ("has(data.lines[1].prices, 2.5)", True),
            ("has(data.code, 'AbC-1') is null and has(data.missing, 1) is null", True),
            ("has(data.mixed, 'eu') and has(data.mixed, true) and not has(data.mixed, 1)", True),
            ("extension.traceparent like '00-%' and extension.sampled", True),
            ("extension.sequence = 7 and extension.sequence != 8", True),
            ("extension.sequence = '7'", None),
            ("extension.sampled = 1", None),
            ("extension.tracestate is null and extension.traceparent is not null", True),
            ("partitionkey = '12' and datacontenttype = 'true'", True),
            ("trim(data.padded) = 'x y' and ltrim(data.padded) = 'x y '", True),
            ("rtrim(data.padded) = '  x y' and trim(both 'x ' from data.padded) = 'y'", True),
            ("lpad(data.seven, 3, '0') = '007' and rpad(data.code, 2) = 'Ab'", True),
            ("left(data.code, 3) = 'AbC' and right(data.code, 2) = '-1'", True),
            ("data.code || '/' || subject = 'AbC-1/ann'", True),
            ("concat(data.code, data.none) is null", True),
            ("replace(data.code, '-', '') = 'AbC1'", True),
            ("split_part(data.code, '-', 1) = 'AbC'", True),
            ("split_part(data.code, '-', -1) = '1' and split_part(data.code, '-', 3) = ''", True),
            ("position('C' in data.code) = 3 and strpos(data.code, 'x') = 0", True),
            ("data.code ilike 'ABC%'", True),
            ("to_number(data.seven) * 2 = 14 and to_number(data.code) is null", True),
            ("round(2.675, 2) = 2.68 and round(data.total, 0) = 12", True),
            ("sign(-data.total) = -1 and mod(data.items, 2) = 1", True),
            ("sqrt(data.total * 2) = 5 and sqrt(-data.total) is null", True),
            ("power(data.items, 3) = 27 and power(0, -1) is null", True),
            ("round(exp(1), 9) = 2.718281828 and ln(0) is null and log10(1000) = 3", True),
            ("year(time) = 2023 and month(time) = 11 and day(time) = 14", True),
            ("hour(time) = 22 and minute(time) = 13 and day_of_week(time) = 2", True),
            ("extract(hour from time) = 22", True),
            ("date_trunc('day', time) = to_time('2023-11-14')", True),
            ("age(to_time(data.born)) = 3600123", True),
            ("url_host(data.url) = 'shop.example.com' and url_path(data.url) = '/a/b'", True),
            ("url_query(data.url, 'q') = 'x%20y' and url_query(data.url, 'r') is null", True),
            ("to_text(data.total) = '12.5' and to_text(data.items) = '3'", True),
            ("to_text(data.items / 8) = '0.375' and to_text(data.items * -1e20) = '-3e20'", True),
            ("to_text(data.items > 2) = 'true' and to_text(not data.paid) = 'false'", True),
            ("to_text(data.seven) is null and to_text(data.total / 0) is null", True),
            ("to_text(data.missing > 1) is null", True),
            ("to_text(data.big) = '9007199254740992'", True),
            ("lpad(to_text(hour(time)), 3, '0') || '!' = '022!'", True),
        ],
    )
    def test_conditions(self, text: str, expected: bool | None) -> None:
        """Conditions have SQL's three values, and read a path as the literal's type only."""
        assert where(text) is expected

    @given(st.text(alphabet="ab", max_size=12), st.text(alphabet="ab%", max_size=6))
    @example("ba", "%b")
    @example("aab", "a%a%a")
    def test_like_equals_the_slow_way(self, text: str, pattern: str) -> None:
        """`like` finds what trying every split of the text finds."""
        node = parse_where(f"data.x like '{pattern}'")
        assert evaluate(node, {"data": {"x": text}}) is slow_like(text, pattern)

    @given(st.floats(), st.floats())
    def test_arithmetic_is_finite_or_null(self, left: float, right: float) -> None:
        """No operator yields NaN or infinity, whatever the operands are."""
        for op in "+-*/%":
            node = parse_number(f"data.a {op} data.b")
            result = evaluate(node, {"data": {"a": left, "b": right}})
            assert result is None or as_double(result) is not None

    @pytest.mark.parametrize(
        ("once", "now"),
        [
            ("lcase(data.a) = 'x'", "lower(data.a) = 'x'"),
            ("UCASE(data.a) = 'X'", "upper(data.a) = 'X'"),
            ("len(data.a) = 1", "length(data.a) = 1"),
            ("char_length(data.a) = 1", "length(data.a) = 1"),
            ("CHARACTER_LENGTH(data.a) = 1", "length(data.a) = 1"),
            ("substring(data.a, 2) = 'x'", "substr(data.a, 2) = 'x'"),
            ("substring(data.a from 2 for 3) = 'x'", "substr(data.a, 2, 3) = 'x'"),
            ("startswith(data.a, 'x')", "starts_with(data.a, 'x')"),
            ("endswith(data.a, 'x')", "ends_with(data.a, 'x')"),
            ("ceiling(data.a) = 1", "ceil(data.a) = 1"),
            ("nvl(data.a, 1) = 1", "coalesce(data.a, 1) = 1"),
            ("ifnull(data.a, 1) = 1", "coalesce(data.a, 1) = 1"),
            ("mod(data.a + 1, 2) = 1", "(data.a + 1) % 2 = 1"),
            ("\"lower\"(data.a) = 'x'", "lower(data.a) = 'x'"),
            ("(data.a).b == 1", "data.a.b = 1"),
            ("data.a <> 1 and data.b notnull", "data.a != 1 and data.b is not null"),
        ],
    )
    def test_spellings_that_were_once_stored_stay(self, once: str, now: str) -> None:
        """Definitions are kept for ever: what a first version took is read, and means the same."""
        assert parse_where(once) == parse_where(now)

    def test_every_function_has_an_example_that_parses(self) -> None:
        """The examples in error texts are right themselves."""
        for name, function in FUNCTIONS.items():
            parse = parse_number if function.gives is Kind.NUMBER else parse_where
            text = function.example
            parse(f"{text} = 'x'" if function.gives is Kind.TEXT else text)
            assert text.startswith(f"{name}(")
        for name, text in SAID_OTHERWISE.items():
            (parse_where if name == HAS else parse_number)(text)
        assert set(ALIASES.values()) <= set(NAMES)


def slow_like(text: str, pattern: str) -> bool:
    """Match a pattern by trying every way to spend its first `%`."""
    head, wildcard, rest = pattern.partition("%")
    if not wildcard:
        return text == pattern
    if not text.startswith(head):
        return False
    tail = text[len(head) :]
    return any(slow_like(tail[at:], rest) for at in range(len(tail) + 1))


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "mend"),
        [
            ('data.a = "prod"', "'prod'; a member of that name is data.prod"),
            ("coalesce(data.a, '') = \"eu\"", "'eu'; a member of that name is data.eu"),
            ('data.a in ("eu", "us")', "'eu'; a member"),
            ('data.a like "eu%"', "'eu%'; a member of that name is data.\"eu%\""),
            ("split_part(data.a, \"-\", 1) = 'x'", "'-'; a member"),
            ('data.a = "it\'s"', "'it''s'"),
            ('data.kind = "source"', "'source'; the attribute is source, without quotes"),
            ('"time" > 5', "'time'; the attribute is time"),
        ],
    )
    def test_text_in_double_quotes(self, text: str, mend: str) -> None:
        """The usual slip is refused where it stands, with the text as it must be written."""
        with pytest.raises(ExpressionError) as caught:
            parse_where(text, written=True)
        assert caught.value.mend.startswith(f"text stands in single quotes: {mend}")
        assert caught.value.at == text.index('"')

    def test_what_was_stored_is_read(self) -> None:
        """An attribute in double quotes was once taken: it goes on meaning the attribute."""
        assert parse_where('data.kind = "source"') == parse_where("data.kind = source")
        with pytest.raises(ExpressionError, match="single quotes: 'prod'"):
            parse_where('data.a = "prod"')

    def test_error_names_the_place(self) -> None:
        """The character at which the fault stands is told."""
        error = refusal("data.a = 1 and status = 2")
        assert error.at == 15
        assert 'got "status" at character 16' in str(error)

    @pytest.mark.parametrize(
        ("text", "excerpt"),
        [
            ("data.a = 1 and status = 2", "data.a = 1 and status = 2\n               ^"),
            ("data.a = 1\n  and lowr(data.b) = 'x'", "  and lowr(data.b) = 'x'\n      ^"),
            ("data.a = 'x' or data.b = 1e999", "data.a = 'x' or data.b = 1e999\n" + " " * 25 + "^"),
            ("data.a like 'x_'", "data.a like 'x_'\n            ^"),
            ("data.a in (1, 'x')", "data.a in (1, 'x')\n              ^"),
            ("data.a[-1] = 1", "data.a[-1] = 1\n       ^"),
            ("case when data.a then 1 else 'x' end = 1", f"{' ' * 29}^"),
            ("not (data.a = 'x", "not (data.a = 'x\n              ^"),
            ("data.a = 1 and (data.b = 2", f"{' ' * 26}^"),
        ],
    )
    def test_error_points_at_the_place(self, text: str, excerpt: str) -> None:
        """The line of the fault is told, and below it a caret under the place."""
        assert str(refusal(text).excerpt).endswith(excerpt)

    @pytest.mark.parametrize("before", [10, 40, 400])
    def test_of_a_long_line_the_part_around_the_place_is_told(self, before: int) -> None:
        """However long the line, the caret stands under the fault, and 64 characters are shown."""
        error = refusal("data.a = 1 or " * (before // 14) + "oops = 1" + " or data.b = 2" * 20)
        line, caret = str(error.excerpt).splitlines()
        assert line[caret.index("^") :].startswith("oops")
        assert len(line.strip("…")) == 64

    def test_every_refusal_of_a_part_has_a_place(self) -> None:
        """Only what is wrong with the whole text has no place: its size, or that it is empty."""
        for text in ("status < 5", "data.a > true", "data.a = 1e999", "data.a like 'x_'", "rand()"):
            assert refusal(f"data.x = 1 and ({text})").at is not None

    @pytest.mark.parametrize(
        "text",
        [
            "data.a = '" + "x" * 4090 + "'",
            "(" * 21 + "data.a" + ")" * 21,
            "(" * 2000 + "data.a" + ")" * 2000,
            "not " * 1000 + "data.a",
            "+".join(["data.a"] * 21) + " = 1",
            "- " * 2000 + "data.a = 1",
            "data.a in (" + ",".join(["1"] * 200) + ")",
            " and ".join(["data.a = 1"] * 67),
            "lower(" * 300 + "data.a" + ")" * 300,
            "data.a = " + "- " * 500 + "1",
            # What names an operand twice would double the work at each level.
            "nullif(" * 19 + "data.a" + ", 0)" * 19 + " = 1",
            "case when data.a = 1 then " * 300 + "1 " + "end " * 300 + "= 1",
            "||".join(["data.a"] * 9) + " = 'x'",
            "concat(case when data.b = 1 then data.a || data.a || data.a else 'x' end, "
            + ", ".join(["data.a"] * 6)
            + ") = 'x'",
        ],
    )
    def test_large_ones_are_refused_at_once(self, text: str) -> None:
        """Beyond 4 KB, 20 levels or 200 nodes the answer is a refusal, within half a second."""
        start = time.process_time()
        error = refusal(text)
        assert error.reason is Reason.EXPRESSION_TOO_LARGE
        assert time.process_time() - start < 0.5

    def test_largest_that_are_allowed(self) -> None:
        """Just inside each limit an expression is taken."""
        parse_where(" and ".join(["data.a = 1"] * 66))
        parse_where("(" * 20 + "data.a" + ")" * 20)
        parse_where("+".join(["data.a"] * 19) + " = 1")
        parse_where("||".join(["data.a"] * 8) + " = 'x'")
        parse_where("case when data.a then lpad(data.b || 'x', 256) end || data.c = 'x'")

    @given(st.text(max_size=60))
    def test_any_text_is_parsed_or_refused(self, text: str) -> None:
        """No text makes the parser raise anything but its own error."""
        with contextlib.suppress(ExpressionError):
            parse_where(text)

    @given(st.lists(st.sampled_from(WORDS), max_size=14))
    def test_any_words_of_sql_are_parsed_or_refused(self, words: list[str]) -> None:
        """No sequence of SQL's words makes the parser raise anything but its own error."""
        try:
            tree = parse_where(" ".join(words))
        except ExpressionError:
            return
        assert evaluate(tree, EVENT) in (True, False, None)


class TestPaths:
    def test_text_reads_back(self) -> None:
        """A path written out is the same path when read."""
        for text in ("data.a", 'data."a b".c', "subject", 'data."1x"'):
            path = parse_path(text)
            assert parse_path(str(path)) == path
        assert parse_path('data."a b"') == Path(("data", "a b"))

    @pytest.mark.parametrize("name", ["user", "date", "time", "values", "order", "group", "end"])
    def test_common_names_need_no_quotes(self, name: str) -> None:
        """Names that are words of SQL in some places are read as names below data."""
        assert parse_path(f"data.{name}") == Path(("data", name))

    def test_time_of_a_record_without_one_is_null(self) -> None:
        """A record that lacks the time, or has nonsense there, has no time."""
        assert Path(("time",)).read({}) is None
        assert Path(("time",)).read({"weirms": "x"}) is None

    def test_only_paths_are_paths(self) -> None:
        """`by` and `distinct` take a path, no expression."""
        with pytest.raises(ExpressionError, match="must be a path"):
            parse_path("lower(data.a)")

    @pytest.mark.parametrize(
        ("text", "at"),
        [
            ("data" + ".a" * 9, 0),
            ("data" + ".a" * 2_000, 0),
            (" data" + ".a" * 2_000, 1),
            ("data" + ".a" * 2_000 + ".*", 0),
            ("data" + ".a" * 2_000 + "[-1]", 0),
            ("data" + ".a" * 2_000 + '."[0]"', 0),
            ("data.a" + "[0]" * 300, 0),
            ("data.a" + "[0]" * 1_300, 6),
            ("data[0]" + ".a" * 2_000, 0),
            ("status" + ".a" * 8, 0),
            ("status" + ".a" * 2_000, 0),
            ("subject" + ".a" * 2_000, 0),
            ("lower(data" + ".a" * 2_000 + ")", 6),
        ],
    )
    def test_too_many_names(self, text: str, at: int) -> None:
        """However many they are, and whatever else is wrong, their number is what is told."""
        with pytest.raises(ExpressionError) as caught:
            parse_path(text)
        error = caught.value
        assert error.reason is Reason.EXPRESSION_INVALID
        assert error.required == "at most 8 names below data"
        assert (error.mend, error.at, error.text) == ("read a value less deep", at, text)
        assert error.got == echo(text[at:].removesuffix(")"))

    def test_most_names(self) -> None:
        """Eight below data are read, and a mend never says a path that has more."""
        assert len(parse_path("data" + ".a" * 8).parts) == 9
        with pytest.raises(ExpressionError, match=r"write data\.status(\.a){7}$"):
            parse_path("status" + ".a" * 7)

    @pytest.mark.parametrize("end", [" > true", " like 5", " = 1 and oops = 2", ".x(1) = 1"])
    def test_too_many_names_in_an_expression(self, end: str) -> None:
        """Their number is told before what else is wrong, which would say them all back."""
        error = refusal("data.b = 1 and data" + ".a" * 2_000 + end)
        assert (error.required, error.at) == ("at most 8 names below data", 15)


class TestNumbers:
    @pytest.mark.parametrize(
        ("json_text", "text"),
        [
            ("1", "1"),
            ("1.0", "1"),
            ("1e2", "100"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1.10", "1.1"),
            ("0.1", "0.1"),
            ("1E-7", "1e-7"),
            ("0.0001", "0.0001"),
            ("123456789.125", "123456789.125"),
            ("9007199254740993", "9007199254740993"),
            ("18446744073709551615", "18446744073709551615"),
            ("1e16", "10000000000000000"),
            ("1e19", "1e19"),
            ("1.5e300", "1.5e300"),
            ("5e-324", "0"),
            ("1e400", None),
            ("NaN", None),
        ],
    )
    def test_number_text(self, json_text: str, text: str | None) -> None:
        """Equal numbers have one text; these are the vectors of docs/interfaces.md 3."""
        assert number_text(json.loads(json_text)) == text

    @given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) > 1e-300))
    def test_number_text_reads_back(self, number: float) -> None:
        """The text of a double is that double again."""
        assert float(str(number_text(number))) == number

    def test_huge_integers_are_no_doubles(self) -> None:
        """An integer beyond every double is null, as Spark reads it."""
        assert as_double(10**400) is None
        assert as_double(True) is None

    def test_scalars(self) -> None:
        """Strings are themselves, booleans their JSON, and an object is no text."""
        assert [scalar_text(v) for v in ("x", True, False, None, 2)] == [
            "x",
            "true",
            "false",
            None,
            "2",
        ]
        with pytest.raises(TypeError, match="got list"):
            scalar_text([])
