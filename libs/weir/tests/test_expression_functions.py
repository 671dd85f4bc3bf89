"""The functions of the language against other ways to compute the same."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ua_parser import BasicResolver, Domain, load_builtins
from weir.expressions import agents, evaluate, parse_where
from weir.expressions.calculations import rounded
from weir.expressions.limits import growth
from weir.expressions.texts import lpad, rpad, split_part, to_number
from weir.expressions.times import (
    DAY_MS,
    UNITS,
    date_trunc,
    day,
    day_of_week,
    hour,
    minute,
    month,
    to_time,
    year,
)
from weir.expressions.tree import Compare
from weir.expressions.urls import host, path, query

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
instants = st.datetimes(
    datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis adds the zone
    datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
)
words = st.from_regex(r"[a-z0-9._~-]{1,8}", fullmatch=True)


def ms_of(instant: datetime) -> int:
    """Return the milliseconds since the epoch, a started one left out."""
    return (instant - EPOCH) // MILLISECOND


_SAFARI = "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1"
_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0"


class TestAgents:
    @pytest.mark.parametrize(
        ("text", "browser", "system", "device"),
        [
            (
                f"Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) {_SAFARI}",
                *("Mobile Safari", "iOS", "iPhone"),
            ),
            (
                f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME} Safari/537.36 Edg/126.0.0.0",
                *("Edge", "Windows", None),
            ),
            (
                f"Mozilla/5.0 (Linux; Android 14; Pixel 8) {_CHROME} Mobile Safari/537.36",
                *("Chrome Mobile", "Android", "Pixel 8"),
            ),
            (
                "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
                *("Googlebot", None, "Spider"),
            ),
            ("curl/8.5.0", "curl", None, None),
            ("AB-7", None, None, None),
            ("", None, None, None),
            ("curl/8.5.0 \ud83d", "curl", None, None),
        ],
    )
    def test_names_are_those_of_the_lists(
        self, text: str, browser: str | None, system: str | None, device: str | None
    ) -> None:
        """As the lists are read by Python's own patterns, one after the other."""
        slow = BasicResolver(load_builtins())(text, Domain.ALL)
        found = (slow.user_agent, slow.os, slow.device)
        assert tuple(one.family if one else None for one in found) == (browser, system, device)
        ours = agents.browser(text), agents.os(text), agents.device(text)
        assert ours == (browser, system, device)

    def test_a_long_text_ends_at_once(self) -> None:
        """Python's patterns would go back over it for minutes."""
        text = "Mozilla/5.0 (Linux; Android 1; " * 30_000
        assert (agents.browser(text), agents.os(text)) == ("Android", "Android")


class TestTimes:
    @given(instants)
    def test_parts_equal_those_of_the_calendar_of_python(self, instant: datetime) -> None:
        """Year, month, day, day of the week, hour and minute are those that Python tells."""
        ms = float(ms_of(instant))
        assert (year(ms), month(ms), day(ms)) == (instant.year, instant.month, instant.day)
        assert (hour(ms), minute(ms)) == (instant.hour, instant.minute)
        assert day_of_week(ms) == instant.isoweekday()

    @given(instants, st.sampled_from(UNITS))
    def test_truncated_is_the_last_start_of_the_unit(self, instant: datetime, unit: str) -> None:
        """`date_trunc` sets what is finer to its start, as Python's `replace` does."""
        start = instant.replace(microsecond=0)
        for finer, names in (
            ({"second": 0}, UNITS[1:]),
            ({"minute": 0}, UNITS[2:]),
            ({"hour": 0}, UNITS[3:]),
            ({"day": 1}, ("month", "quarter", "year")),
            ({"month": (instant.month - 1) // 3 * 3 + 1}, ("quarter",)),
            ({"month": 1}, ("year",)),
        ):
            start = start.replace(**finer) if unit in names else start  # type: ignore[arg-type]
        if unit == "week":
            start -= timedelta(days=instant.isoweekday() - 1)
        assert date_trunc(unit, float(ms_of(instant))) == ms_of(start)

    @given(st.integers(-(10**15) + 1, 10**15 - 1))
    def test_the_calendar_goes_on_beyond_the_years_of_python(self, ms: int) -> None:
        """Every 400 years the calendar repeats, as far as times go."""
        cycle = 146_097 * DAY_MS
        within = float(ms % cycle)
        assert month(float(ms)) == month(within)
        assert day(float(ms)) == day(within)
        assert day_of_week(float(ms)) == day_of_week(within)
        assert year(float(ms)) == (year(within) or 0) + ms // cycle * 400

    def test_no_time_beyond_fifteen_digits(self) -> None:
        """A number of more digits is no time, whatever is asked of it."""
        assert hour(10.0**15 - 1) == 1
        assert [f(10.0**15) for f in (year, month, day, hour, minute)] == [None] * 5
        assert date_trunc("week", -(10.0**15)) is None

    @given(instants, st.integers(-18 * 60, 18 * 60), st.sampled_from("T "))
    def test_iso_text_reads_back(self, instant: datetime, offset: int, between: str) -> None:
        """What Python writes in ISO 8601, in any zone, is the same time when read."""
        zone = timezone(timedelta(minutes=offset))
        try:
            text = instant.astimezone(zone).isoformat(between)
        except OverflowError:
            return
        assert to_time(text) == ms_of(instant)
        assert to_time(text.replace("+00:00", "Z")) == ms_of(instant)

    @pytest.mark.parametrize(
        ("text", "ms"),
        [
            ("1970-01-02", DAY_MS),
            ("1970-01-01T00:01", 60_000),
            ("1970-01-01 00:00:01", 1_000),
            ("1970-01-01T00:00:00.9999Z", 999),
            ("1969-12-31T23:59:59.9999Z", -1),
            ("1970-01-01T00:00:00+0100", -3_600_000),
            ("2023-02-29", None),
            ("1900-02-29", None),
            ("2000-02-29", 951_782_400_000),
            ("1970-01-01T24:00", None),
            ("1970-01-01T00:00:60", None),
            ("1970-1-1", None),
            (" 1970-01-01", None),
            ("1970-01-01T00:00:00+18:01", None),
            ("1970-01-01T00:00:00 Europe/Berlin", None),
            ("now", None),
        ],
    )
    def test_iso_texts(self, text: str, ms: float | None) -> None:
        """Days and zones that there are not are null, and so is every other form."""
        assert to_time(text) == ms


class TestNumbers:
    @given(st.floats(-1e12, 1e12), st.integers(1, 15))
    def test_rounded_is_the_nearest_of_that_many_digits(self, number: float, digits: int) -> None:
        """No number of that many digits is nearer to the one that is seen; a half goes to even."""
        seen, unit = Fraction(Decimal(repr(number))), Fraction(1, 10**digits)
        below = math.floor(seen / unit)
        left = seen / unit - below
        half_up = left > Fraction(1, 2) or (left == Fraction(1, 2) and below % 2 == 1)
        assert rounded(number, digits) == float((below + half_up) * unit)

    @given(st.text(alphabet="0123456789+-.eE xd_", max_size=12))
    def test_numbers_out_of_texts(self, text: str) -> None:
        """A text is a number if it is spelled like one in SQL, and then it is Python's."""
        spelled = re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d{1,4})?", text) is not None
        number = float(text) if spelled else math.inf
        assert to_number(text) == (number if math.isfinite(number) else None)


class TestTexts:
    @given(st.text(max_size=8), st.integers(0, 12), st.text(min_size=1, max_size=3))
    def test_padded_has_the_length(self, text: str, length: int, filler: str) -> None:
        """A padded text has the length, and keeps the text at its side, or its beginning."""
        for padded, kept in (
            (lpad(text, length, filler), str.endswith),
            (rpad(text, length, filler), str.startswith),
        ):
            assert len(padded) == length
            assert kept(padded, text) if length >= len(text) else padded == text[:length]

    @given(st.lists(st.text(alphabet="ab", max_size=3), min_size=1), st.integers(1, 9))
    def test_parts_are_counted_from_both_ends(self, parts: list[str], place: int) -> None:
        """The n-th part is that of the list, from the end if n is negative, else empty."""
        text, padded = "/".join(parts), ["", *parts, *[""] * 9]
        assert split_part(text, "/", place) == padded[place]
        assert split_part(text, "/", -place) == ["", *reversed(parts), *[""] * 9][place]

    @given(st.text(max_size=20), st.text(max_size=20))
    def test_no_text_outgrows_what_it_is_made_of(self, one: str, other: str) -> None:
        """What a chain of functions makes is at most as long as the bound says."""
        text = (
            "replace(upper(data.a) || trim(data.b), 'a', 'b') || if(data.c, data.a, data.b) = 'x'"
        )
        tree = parse_where(text)
        assert isinstance(tree, Compare)
        made = evaluate(tree.left, {"data": {"a": one, "b": other, "c": True}})
        assert growth(tree.left) == 3
        assert len(str(made)) <= 3 * max(len(one), len(other))


class TestUrls:
    @given(words, words, st.lists(st.tuples(words, words), max_size=3), words)
    def test_parts_of_a_plain_url(
        self, name: str, below: str, pairs: list[tuple[str, str]], end: str
    ) -> None:
        """Host, path and parameters are those that Python's own reader finds."""
        asked = "&".join(f"{key}={value}" for key, value in pairs)
        url = f"https://u:p@{name.upper()}:443/{below}?{asked}#{end}"
        split = urlsplit(url)
        assert host(url) == name == split.hostname
        assert path(url) == split.path
        found = dict(reversed(parse_qsl(split.query, keep_blank_values=True)))
        for key in (*dict(pairs), end):
            assert query(url, key) == found.get(key)

    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("/pay?a=1", (None, "/pay", "1")),
            ("//Cdn.example/x", ("cdn.example", "/x", None)),
            ("https://h", ("h", "", None)),
            ("https://h?a=&a=2", ("h", "", "")),
            ("http://[::A]:80/x#?a=1", ("[::a]", "/x", None)),
            ("mailto:ann@example.com", (None, "ann@example.com", None)),
            ("https://:443/", (None, "/", None)),
            ("https://a@b@C/", ("c", "/", None)),
            ("https://h/ä b?x=1|2&a=ö", ("h", "/ä b", "ö")),
            ("no url at all", (None, "no url at all", None)),
        ],
    )
    def test_hosts_paths_and_parameters(
        self, text: str, parts: tuple[str | None, str, str | None]
    ) -> None:
        """What is no right URL is cut in the same places, and nothing is decoded."""
        assert (host(text), path(text), query(text, "a")) == parts
