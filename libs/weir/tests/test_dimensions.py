"""Dimensions: a path, or an expression, whose result is split by its text, and has a name."""

from __future__ import annotations

from typing import Any

import pytest
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.expressions import ExpressionError, Path, Quarantined, Used, use
from weir.expressions.dimension import parse_dimension
from weir.problems import ProblemError, Reason
from weir.series import cut_text, encode_series


def metric_by(*by: str) -> Metric:
    """Return a metric that counts by some dimensions, as a user has written it."""
    found = check("metric", "m", {"events": {"type": "t"}, "by": list(by)}).model
    assert isinstance(found, Metric)
    return found


def series_of(metric: Metric, **data: Any) -> str | None:
    """Return the series of an event with some data; None if the metric cannot use it."""
    found = use(metric, {"type": "t", "weirsource": "s", "subject": "u1", "data": data})
    if isinstance(found, Quarantined):
        assert found.reason is Reason.VALUE_INVALID
        return None
    assert isinstance(found, Used)
    return found.series


class TestParse:
    @pytest.mark.parametrize(
        ("text", "same", "given"),
        [
            ("data.region", "data.region", None),
            (' data."region" ', "data.region", None),
            ("data.region as land", "data.region as land", "land"),
            ("(data.region) as land", "data.region as land", "land"),
            ("((data.region))", "data.region", None),
            ("url_host(data.url) as host", "url_host(data.url) as host", "host"),
            (" lower( data.r )\n AS  r ", "lower( data.r ) as r", "r"),
            ("data.a || ' as b' as c", "data.a || ' as b' as c", "c"),
            ("hour(time) as h", "hour(time) as h", "h"),
            ("data.a > 1 as big", "data.a > 1 as big", "big"),
        ],
    )
    def test_a_name_stands_behind_as(self, text: str, same: str, given: str | None) -> None:
        """Also in capitals; what is in a literal is none."""
        found = parse_dimension(text, written=True)
        assert (found.text, found.given) == (same, given)
        assert parse_dimension(found.text) == found

    @pytest.mark.parametrize(
        ("text", "required", "at"),
        [
            ("url_host(data.url)", "a path, or an expression with a name", 0),
            ("data.a || ' as b'", "a path, or an expression with a name", 0),
            ("data.x + 1 as X", "a name", 14),
            ("data.x + as x", "a value behind +", 8),
            ("data.x + 'a' as x", "a number", 9),
            ("lower(data.r) as R", "a name", 17),
            ("data.r as _r", "a name", 10),
            ("lower(data.r, 1) as r", "", 0),
            ("nosuch(data.r) as r", "made of paths", 0),
            (
                "case when exp(data.x) > 2 then 'a' else 'b' end as e",
                "an expression without exp, ln, log10 and power",
                10,
            ),
            (
                "case when pow(data.x, 2) > 2 then 'a' else 'b' end as e",
                "an expression without exp, ln, log10 and power",
                10,
            ),
            (" url_host(data.url)", "a path, or an expression with a name", 1),
            (" ln(data.x) as e", "an expression without exp, ln, log10 and power", 1),
            ("ln(data.x) as e", "an expression without exp, ln, log10 and power", 0),
            ("lower(subject) as who", "an expression that does not read subject", 6),
            ("data" + ".a" * 9, "at most 8 names below data", 0),
            ("data" + ".a" * 2_000, "at most 8 names below data", 0),
            ("(data" + ".a" * 2_000 + ") as a", "at most 8 names below data", 1),
            ("lower(data" + ".a" * 2_000 + ") as a", "at most 8 names below data", 6),
            ("lower(data.a" + "::text" * 600 + ") as a", "made of paths", 12),
        ],
    )
    def test_what_is_wrong_is_shown(self, text: str, required: str, at: int) -> None:
        """With its place in the whole text."""
        with pytest.raises(ExpressionError) as raised:
            parse_dimension(text, written=True)
        assert required in raised.value.required
        assert (raised.value.text, raised.value.at) == (text, at)
        assert (raised.value.excerpt or "").endswith("\n" + " " * at + "^")

    @pytest.mark.parametrize(
        ("written", "same"),
        [
            ("hour(time)", "to_text(hour(time))"),
            ("floor(data.x / 10)", "to_text(floor(data.x / 10))"),
            ("data.x > 10", "to_text(data.x > 10)"),
            ("has(data.tags, 'eu')", "to_text(has(data.tags, 'eu'))"),
            ("case when data.a then 1 end", "to_text(case when data.a then 1 end)"),
            ("coalesce(data.a, data.b)", "coalesce(data.a, data.b) || ''"),
        ],
    )
    def test_what_is_computed_is_split_by_its_text(self, written: str, same: str) -> None:
        """A number or a truth by that of `to_text`; what has no kind of its own is text."""
        found = parse_dimension(f"{written} as x", written=True)
        wanted = parse_dimension(f"{same} as x")
        values: list[Any] = [3.5, -0.0, 1e25, True, False, "a", None, ["eu"], {}]
        for value in values:
            data = {"x": value, "a": value, "b": "b", "tags": value}
            event = {"weirms": "+001700000000123", "data": data}
            assert found.read(event) == wanted.read(event)
            assert found.read(event) is None or isinstance(found.read(event), str)

    def test_the_text_of_a_dimension_is_within_the_limits(self) -> None:
        """A truth stands twice in the tree of its text, and both count."""
        conditions = " and ".join(["data.a = 1"] * 40)
        with pytest.raises(ExpressionError, match="at most 200 nodes"):
            parse_dimension(f"{conditions} as x")


class TestMetric:
    def test_what_they_are_called(self) -> None:
        """The name that is given; else the last of a path, where that is unique."""
        metric = metric_by("data.region", "lower(data.agent) as agent", "data.a.x", "data.b.x as y")
        assert metric.dimension_names == ("region", "agent", "x", "y")
        assert [metric.dimension(name) for name in ("region", "data.region", "agent", "y")] == [
            *(0, 0, 1, 3),
        ]
        assert metric.dimension("data.agent") is None
        assert metric.dimension("None") is None
        swapped = metric_by("subject as who", "lower(data.s) as subject")
        assert (swapped.dimension("subject"), swapped.dimension("who")) == (1, 0)
        assert metric_by("data.a.x", "data.b.x").dimension_names == ("data.a.x", "data.b.x")
        assert list(metric.trees) == [metric.dimensions[1].tree]
        assert set(map(str, metric.paths)) == {"data.region", "data.agent", "data.a.x", "data.b.x"}

    @pytest.mark.parametrize(
        "by",
        [
            ("lower(data.a) as x", "upper(data.a) as x"),
            ("data.x", "lower(data.x) as x"),
            ("data.x", "data.y as x"),
            ("data.a as x", "data.b as x"),
            ("subject", "lower(data.s) as subject"),
        ],
    )
    def test_two_of_one_name_are_refused(self, by: tuple[str, ...]) -> None:
        """Nobody could say which is asked for."""
        with pytest.raises(ProblemError) as raised:
            metric_by(*by)
        (error,) = raised.value.errors
        assert error["pointer"] == "/by"
        assert error["required"] == "dimensions that each have a name of their own"

    def test_the_fault_of_one_has_its_place(self) -> None:
        """As that of any expression."""
        with pytest.raises(ProblemError) as raised:
            metric_by("data.a", "lowr(data.b) as b")
        (error,) = raised.value.errors
        assert error["pointer"] == "/by/1"
        assert error["excerpt"] == "lowr(data.b) as b\n^"


class TestUse:
    def test_an_event_is_in_the_series_that_is_computed(self) -> None:
        """Null stands for nothing; a path beside it is read as before."""
        metric = metric_by("url_host(data.url) as host", "data.n")
        assert series_of(metric, url="https://Shop.example/x", n=1) == encode_series(
            ["shop.example", "1"]
        )
        assert series_of(metric, url=7, n=1) == encode_series([None, "1"])
        assert series_of(metric) == encode_series([None, None])
        assert series_of(metric, url="https://a/", n=[1]) is None

    def test_what_is_computed_is_cut_before_it_is_joined(self) -> None:
        """It may be many times as long as what events hold."""
        metric = metric_by("data.a || data.a as twice", "data.b")
        long = "x|" * 100
        assert series_of(metric, a=long, b="y") == encode_series([cut_text(long * 2), "y"])
        assert len(cut_text(long * 2)) < len(long)

    def test_a_path_stays_what_it_was(self) -> None:
        """Of any scalar; `as` changes its name alone."""
        plain, named = metric_by("data.n"), metric_by("data.n as number")
        assert series_of(plain, n=1.5) == series_of(named, n=1.5) == "=1.5"
        assert named.dimensions[0].path == Path(("data", "n"))


def test_what_is_long_is_not_said_back_whole() -> None:
    """A mend fits on a line."""
    with pytest.raises(ExpressionError) as raised:
        parse_dimension(f"lower(data.a) || '{'x' * 500}'")
    assert len(raised.value.mend) < 200
    assert raised.value.mend.endswith("… as a")


def test_a_stored_one_that_reads_the_subject_is_read() -> None:
    """What is refused since is refused where it is written alone."""
    assert parse_dimension("lower(subject) as who").paths == (Path(("subject",)),)
