"""An input cut into entries: the same ones in whatever pieces it comes, each with its place."""

from __future__ import annotations

import csv
import io
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir_cli.sending import entries, rows
from weir_cli.sending.entries import REST, TOO_LONG, Cutter, Entry, LineCutter, Point
from weir_cli.sending.rows import NOT_UTF8, UNCLOSED, UNENDED, Row, RowCutter, is_open

START = Point()
# What is hard: ends of lines, quotes, and what looks like either.
TEXTS = st.lists(st.sampled_from(["a", "b,", '"', '""', "\n", "\r\n", ",", " ", "é", "x,y\n"]))
FIELDS = st.text(st.sampled_from('a,"\n\r é'), max_size=6)
TABLES = st.lists(st.lists(FIELDS, min_size=1, max_size=3), max_size=6)


def cut(cutter: Cutter, text: bytes, *at: int) -> list[Entry]:
    """Return what a cutter makes of a text that comes in pieces."""
    ends = [0, *sorted(at), len(text)]
    found = [one for a, b in pairwise(ends) for one in cutter.feed(text[a:b])]
    return found + cutter.end()


def rows_of(text: bytes, at: Point = START) -> list[Entry]:
    """Return the rows of CSV."""
    return cut(RowCutter(at, ","), text[at.offset :])


class TestLines:
    def test_places(self) -> None:
        """Each line has its offset and its number; the last one has no end."""
        first, blank, last = cut(LineCutter(Point(10, 4)), b"ab\r\n\n c")
        assert (first.start, first.line, first.raw) == (10, 4, b"ab\r")
        assert (first.after, first.is_cut, first.is_blank) == (Point(14, 5), False, False)
        assert (blank.start, blank.raw, blank.is_blank) == (14, b"", True)
        assert (last.start, last.raw, last.is_cut) == (15, b" c", True)
        assert last.after == Point(17, 6, is_within=True)

    @given(text=TEXTS.map("".join), data=st.data())
    def test_pieces_do_not_matter(self, text: str, data: st.DataObject) -> None:
        """Wherever a read ends: lines are the same, and together they are the input."""
        raw = text.encode()
        at = data.draw(st.lists(st.integers(0, len(raw))))
        found = cut(LineCutter(Point()), raw, *at)
        assert found == cut(LineCutter(Point()), raw)
        assert b"\n".join(one.raw for one in found) == raw.removesuffix(b"\n")
        assert [one.after.offset for one in found][-1:] == ([len(raw)] if raw else [])

    @given(text=TEXTS.map("".join), data=st.data())
    def test_cut_again_behind_any_line(self, text: str, data: st.DataObject) -> None:
        """From the point behind a line the rest is cut as it was."""
        raw = text.encode()
        found = cut(LineCutter(Point()), raw)
        done = data.draw(st.integers(0, len(found)))
        point = found[done - 1].after if done else Point()
        assert cut(LineCutter(point), raw[point.offset :]) == found[done:]

    @pytest.mark.parametrize("rest", [b"", b"\n", b"\r\n"])
    def test_a_line_that_gets_its_end_later(self, rest: bytes) -> None:
        """Nothing is left of it: it was sent."""
        found = cut(LineCutter(Point(3, 1, is_within=True)), rest + b"next\n")
        if rest:
            assert found[0].is_blank
        assert found[-1].line == (2 if rest else 1)
        assert [one.raw for one in found if not one.is_blank] == ([b"next"] if rest else [b""])

    def test_a_line_that_goes_on(self) -> None:
        """Its rest is no line, and is told as what it is; the next line is one."""
        rest, following = cut(LineCutter(Point(3, 7, is_within=True)), b"more\nnext\n")
        assert (rest.why, rest.line, rest.raw) == (REST, 7, b"")
        assert (following.why, following.line, following.raw) == ("", 8, b"next")

    @pytest.mark.parametrize("pieces", [(), (3,), (1, 2, 3, 4, 5, 6, 7), (6,)])
    def test_one_that_is_too_long(
        self, pieces: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is told, not kept; five bytes are taken where five are the most, six are not."""
        monkeypatch.setattr(entries, "MOST_BYTES", 5)
        long, good = cut(LineCutter(Point()), b"123456\n12345\n", *pieces)
        assert (long.why, long.raw, long.after) == (TOO_LONG, b"", Point(7, 2))
        assert (good.why, good.raw, good.after) == ("", b"12345", Point(13, 3))
        cutter = LineCutter(Point())
        for _ in range(100):
            cutter.feed(b"1234")
            assert len(cutter._rest) <= 5
        (endless,) = cut(LineCutter(Point()), b"1234567", *pieces)
        assert (endless.why, endless.is_cut, endless.is_blank) == (TOO_LONG, True, False)


class TestRows:
    def test_one_over_several_lines(self) -> None:
        """Its fields have the line breaks, its place is that of its first line."""
        first, second = rows_of(b'a,"b\r\nc""d\n"\r\n1,2')
        assert isinstance(first, Row)
        assert first.fields == ("a", 'b\r\nc"d\n')
        assert (first.start, first.line, first.after) == (0, 1, Point(14, 4))
        assert isinstance(second, Row)
        assert (second.fields, second.line, second.is_cut) == (("1", "2"), 4, True)

    @given(table=TABLES, ending=st.sampled_from(["\n", "\r\n"]), data=st.data())
    def test_what_the_csv_module_writes(
        self, table: list[list[str]], ending: str, data: st.DataObject
    ) -> None:
        """Whatever fields it writes are read, in whatever pieces they come."""
        written = io.StringIO()
        csv.writer(written, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows(table)
        raw = written.getvalue().encode()
        at = data.draw(st.lists(st.integers(0, len(raw))))
        found = cut(RowCutter(Point(), ","), raw, *at)
        assert [list(one.fields) for one in found if isinstance(one, Row)] == table
        assert len(found) == len(table)

    @given(text=TEXTS.map("".join), data=st.data())
    def test_pieces_and_beginnings_do_not_matter(self, text: str, data: st.DataObject) -> None:
        """Of any text: the same rows in any pieces, and from behind any of them the same rest."""
        raw = text.encode()
        at = data.draw(st.lists(st.integers(0, len(raw))))
        found = cut(RowCutter(Point(), ","), raw, *at)
        assert found == rows_of(raw)
        assert [one.start for one in found] == [0, *(one.after.offset for one in found[:-1])][
            : len(found)
        ]
        done = data.draw(st.integers(0, len(found)))
        point = found[done - 1].after if done else Point()
        if not point.is_within:
            assert rows_of(raw, point) == found[done:]

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            (b'"a"b,c\n', "a row must be CSV: ',' expected after '\"'"),
            (b"a\rb,c\n", "a row must be CSV: new-line character seen in unquoted field"),
            (b"\xff,c\n", NOT_UTF8),
        ],
    )
    def test_a_row_at_fault(self, wrong: bytes, why: str) -> None:
        """It is told, and the next one is read."""
        fault, good = rows_of(wrong + b"1,2\n")
        assert fault.why.startswith(why)
        assert (fault.line, fault.raw, fault.is_blank) == (1, b"", False)
        assert isinstance(good, Row)
        assert good.fields == ("1", "2")

    def test_a_quote_that_is_never_closed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its line alone is given up: what follows are rows."""
        monkeypatch.setattr(rows, "MOST_BYTES", 20)
        text = b'1,"open\n' + b"2,3\n" * 4
        fault, *good = rows_of(text)
        assert (fault.why, fault.line, fault.after) == (UNCLOSED, 1, Point(8, 2))
        assert [one.fields for one in good if isinstance(one, Row)] == [("2", "3")] * 4

    def test_one_that_the_next_quote_closes(self) -> None:
        """The text behind tells that it was no field: the lines after the first are rows."""
        fault, good = rows_of(b'1,"open\n2,"x"\n')
        assert (fault.line, "expected after" in fault.why) == (1, True)
        assert isinstance(good, Row)
        assert (good.fields, good.line) == (("2", "x"), 2)

    def test_one_that_is_open_as_the_input_ends(self) -> None:
        """It may go on: nothing behind it is taken for a row, or for sent."""
        good, left = rows_of(b'1,2\n3,"a\n4,5\n')
        assert isinstance(good, Row)
        assert (left.why, left.is_cut, left.start, left.line) == (UNENDED, True, 4, 2)

    def test_a_long_line_within_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The row is given up, and so is the line."""
        monkeypatch.setattr(entries, "MOST_BYTES", 8)
        found = rows_of(b'1,"a\n123456789\n4,5\n')
        assert [one.why for one in found] == [UNCLOSED, TOO_LONG, ""]

    @given(table=TABLES)
    def test_open_is_what_the_csv_module_says(self, table: list[list[str]]) -> None:
        """A line that ends within a field is one after which the module asks for more."""
        for fields in table:
            written = io.StringIO()
            csv.writer(written, lineterminator="\n").writerow(fields)
            *within, last = written.getvalue().encode().removesuffix(b"\n").split(b"\n")
            states = [is_open(line, b",", inside=at > 0) for at, line in enumerate([*within, last])]
            assert states == [True] * len(within) + [False]
