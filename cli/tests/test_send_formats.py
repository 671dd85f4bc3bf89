"""What becomes of an entry: an event that says what stood there, with an id, or why it is none."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from weir.admission import Admitted, Refused, admit
from weir.event import read_event
from weir_cli.commands.send import FORMATS
from weir_cli.exits import UsageError
from weir_cli.sending import guessing
from weir_cli.sending.access import PATTERNS, AccessLog
from weir_cli.sending.entries import Entry, Point
from weir_cli.sending.fields import NotUnderstoodError, Shape, time_of, value_of
from weir_cli.sending.guessing import Beginning, Chosen, Format, pattern_of, read_as
from weir_cli.sending.identity import SOURCE, assigned_id, request_key
from weir_cli.sending.ndjson import Lines
from weir_cli.sending.rows import RowCutter
from weir_cli.sending.tables import Table

from .ingesting import TERMS

SHAPE = Shape("n")
LINE = '1.2.3.4 - ann [17/May/2015:10:05:03 +0200] "GET /a?b=1 HTTP/1.1" 200 17'
COMBINED = f'{LINE} "http://x/" "agent \\"7\\""'


def entry(raw: bytes, *, start: int = 0, is_cut: bool = False) -> Entry:
    """Return an entry of an input."""
    return Entry(start, 1, raw, Point(start + len(raw) + 1, 2), is_cut=is_cut)


def event(form: Format, raw: str | bytes) -> dict[str, Any]:
    """Return what a format makes of a line, decoded."""
    (one,) = form.cutter(Point()).feed((raw if isinstance(raw, bytes) else raw.encode()) + b"\n")
    said: dict[str, Any] = json.loads(form.event(one))
    return said


class TestIds:
    def test_of_what_they_are(self) -> None:
        """Name, place and bytes: the same again, another one where any of them differs."""
        found = {
            assigned_id(name, start, raw)
            for name in ("a", "b", "a\x00")
            for start in (0, 1, 256)
            for raw in (b"x", b"\x00x", b"")
        }
        assert len(found) == 27
        assert assigned_id("a", 7, b"x") == "fbad0b61b68c59c037781dbb549fed71"
        assert assigned_id("a", 7, b" x\r") == assigned_id("a", 7, b"x")
        assert request_key("a", 7) not in found

    def test_a_name_that_is_no_unicode(self) -> None:
        """A path may be any bytes."""
        assert assigned_id("\udcff", 0, b"") != assigned_id("", 0, b"")


class TestValues:
    @pytest.mark.parametrize(
        "text", ["0", "7", "-7", "1.50", "0.10", "-0.5", "123456789012345", "0.000000000000001"]
    )
    def test_numbers(self, text: str) -> None:
        """A text that is a number of JSON stays as it is written."""
        assert value_of(text) == text.encode()

    @pytest.mark.parametrize(
        "text",
        [
            *("01", "+1", "1.", ".5", "1e5", "-0", "-0.0", "1234567890123456", "1,5", "0x1", "NaN"),
            *("Infinity", "٣", "1 ", " 1", "-", "", "True", "FALSE", "null", "é", '"', "1_0"),
        ],
    )
    def test_texts(self, text: str) -> None:
        """What a number would not give back letter by letter stays text."""
        assert json.loads(value_of(text)) == text
        assert value_of(text)[:1] == b'"'

    def test_truths(self) -> None:
        """As JSON writes them, and no other way."""
        assert (value_of("true"), value_of("false")) == (b"true", b"false")

    @given(st.text() | st.floats().map(str) | st.integers().map(str))
    def test_what_is_read_back_is_what_stood_there(self, text: str) -> None:
        """Of any text, also through a double."""
        if any("\ud800" <= sign <= "\udfff" for sign in text):
            return
        raw = value_of(text)
        if raw[:1] == b'"':
            assert json.loads(raw) == text
        elif raw not in (b"true", b"false"):
            assert raw.decode() == text
            assert f"{float(text):.{len(text.partition('.')[2])}f}" == text

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("17/May/2015:10:05:03 +0000", "2015-05-17T10:05:03+00:00"),
            ("01/Jan/2026:00:00:00 -0330", "2026-01-01T00:00:00-03:30"),
            ("31/Dec/1999:23:59:60", "1999-12-31T23:59:60Z"),
            (" 17/May/2015:10:05:03 +0000 ", "2015-05-17T10:05:03+00:00"),
            ("17/Mai/2015:10:05:03 +0000", "17/Mai/2015:10:05:03 +0000"),
            ("2026-01-01", "2026-01-01"),
            ("1772359200", "1772359200"),
        ],
    )
    def test_times(self, text: str, wanted: str) -> None:
        """Those of web servers are written as ingest reads them; others are for ingest to read."""
        assert time_of(text) == wanted


class TestTables:
    TABLE = Table(("n", "zip", "who"), ",", Shape("n", texts=frozenset({"zip"})))

    def test_a_row(self) -> None:
        """Each column with something in it is in `data`; numbers are numbers, but where asked."""
        assert event(self.TABLE, "7,01234,") == {
            "id": assigned_id("n", 0, b"7,01234,"),
            "source": SOURCE,
            "type": "dev.weir.csv.event",
            "data": {"n": 7, "zip": "01234"},
        }
        assert event(self.TABLE, "1.5,,x")["data"] == {"n": 1.5, "zip": "", "who": "x"}

    def test_columns_that_say_more(self) -> None:
        """Type, source, id, time and subject; a row without an id gets one."""
        shape = Shape("n", "urn:a", "shop.order", id="i", time="t", subject="s")
        table = Table(("i", "t", "s"), ",", shape)
        assert event(table, "o-1,17/May/2015:10:05:03 +0000,ann") == {
            "id": "o-1",
            "source": "urn:a",
            "type": "shop.order",
            "time": "2015-05-17T10:05:03+00:00",
            "subject": "ann",
            "data": {"i": "o-1", "t": "17/May/2015:10:05:03 +0000", "s": "ann"},
        }
        found = event(table, ",5,")
        assert found["id"] == assigned_id("n", 0, b",5,")
        assert (found["time"], "subject" in found) == ("5", False)

    @pytest.mark.parametrize(
        ("row", "why"),
        [
            ("1,2", "a row must have 3 fields, got 2"),
            ("1,2,3,4", "a row must have 3 fields, got 4"),
        ],
    )
    def test_another_number_of_fields(self, row: str, why: str) -> None:
        """Which column lacks nobody knows."""
        with pytest.raises(NotUnderstoodError, match=f"^{why}$"):
            event(self.TABLE, row)

    @pytest.mark.parametrize("time", ["", " "])
    def test_no_time(self, time: str) -> None:
        """Where a column has it, a row without it would count as of now."""
        with pytest.raises(NotUnderstoodError, match='must have a time in "t", got none'):
            event(Table(("a", "t"), ",", Shape("n", time="t")), f"1,{time}")

    @pytest.mark.parametrize(
        ("columns", "shape", "why"),
        [
            (("a", "b", "a"), SHAPE, "must name each column once, got a; see --format and --del"),
            (("a", ""), SHAPE, "must name each column once, got one without a name; see"),
            (("a",), Shape("n", id="b"), '--id must name a column, got "b"; there are a'),
            (("a",), Shape("n", texts=frozenset("c")), '--text must name a column, got "c"; the'),
        ],
    )
    def test_columns_that_cannot_be_meant(
        self, columns: tuple[str, ...], shape: Shape, why: str
    ) -> None:
        """Before anything is sent."""
        with pytest.raises(UsageError, match=why):
            Table(columns, ",", shape)


# What is in `data` of the lines above.
ASKED = {
    "client": "1.2.3.4",
    "user": "ann",
    "status": 200,
    "bytes": 17,
    "method": "GET",
    "path": "/a?b=1",
    "status_class": "2xx",
}
MORE = {"referrer": "http://x/", "agent": 'agent \\"7\\"'}


class TestAccessLogs:
    @pytest.mark.parametrize(
        ("pattern", "line", "more"),
        [
            ("common", LINE, {}),
            ("combined", COMBINED, MORE),
            ("nginx", COMBINED, MORE),
            ("nginx", f'{COMBINED} "5.6.7.8"', MORE | {"forwarded": "5.6.7.8"}),
            ("nginx", f'{COMBINED} "-"', MORE),
        ],
    )
    def test_patterns_with_names(self, pattern: str, line: str, more: dict[str, str]) -> None:
        """What a server writes: numbers are numbers, the time is the event's."""
        assert event(AccessLog(pattern, SHAPE), line) == {
            "id": assigned_id("n", 0, line.encode()),
            "source": SOURCE,
            "type": "web.request",
            "time": "2015-05-17T10:05:03+02:00",
            "data": ASKED | more,
        }
        assert pattern in PATTERNS

    @pytest.mark.parametrize(
        ("asked", "status", "wanted"),
        [
            ("-", "408 -", {}),
            ("", "400 0", {"bytes": 0}),
            (r"\x16\x03\x01", "400 5", {"request": r"\x16\x03\x01", "bytes": 5}),
            ("GET", "400 5", {"request": "GET", "bytes": 5}),
            ("GET /a b HTTP/1.1", "400 5", {"request": "GET /a b HTTP/1.1", "bytes": 5}),
            ("M-SEARCH /a", "400 5", {"method": "M-SEARCH", "path": "/a", "bytes": 5}),
        ],
    )
    def test_requests_that_are_none(self, asked: str, status: str, wanted: dict[str, Any]) -> None:
        """A server has answered them, so they count; what is `-` is nothing."""
        line = f'::1 - - [17/May/2015:10:05:03 +0000] "{asked}" {status}'
        number = int(status[:3])
        common = {"client": "::1", "status": number, "status_class": f"{status[0]}xx"}
        assert event(AccessLog("common", SHAPE), line)["data"] == common | wanted

    def test_another_encoding(self) -> None:
        """Bytes that are no UTF-8 are kept as their numbers."""
        found = event(AccessLog("common", SHAPE), LINE.encode().replace(b"/a", b"/\xe9"))
        assert found["data"]["path"] == r"/\xe9?b=1"

    @pytest.mark.parametrize(
        ("pattern", "line"),
        [
            ("combined", LINE),
            ("combined", COMBINED[:-1]),
            ("combined", f'{COMBINED} "5.6.7.8"'),
            ("common", COMBINED),
            ("common", "hello"),
        ],
    )
    def test_lines_that_do_not_match(self, pattern: str, line: str) -> None:
        """All of a line must: what is left over would be lost without a word."""
        with pytest.raises(NotUnderstoodError, match=f"^a line must match the pattern {pattern}$"):
            event(AccessLog(pattern, SHAPE), line)

    def test_a_line_that_is_being_written(self) -> None:
        """Half a number is a number, too."""
        form = AccessLog("common", SHAPE)
        with pytest.raises(NotUnderstoodError, match=r"^the last line must end with a line feed$"):
            form.event(entry(LINE.encode(), is_cut=True))

    def test_a_pattern_of_ones_own(self) -> None:
        """Groups are fields, that named `time` is the time; those without text are left out."""
        pattern = r"(?P<time>\S+) (?P<took>\d+)ms (?P<zip>\d+) (?P<user>\S+)( (?P<more>.*))?"
        form = AccessLog(pattern, Shape("n", subject="user", texts=frozenset({"zip"})))
        found = event(form, "2026-01-01T00:00:00Z 12ms 123 ann")
        assert (found["time"], found["subject"]) == ("2026-01-01T00:00:00Z", "ann")
        assert found["data"] == {"took": 12, "zip": "123", "user": "ann"}
        assert event(form, "x 12ms 123 - more")["data"] == {
            "took": 12,
            "zip": "123",
            "more": "more",
        }
        at = AccessLog(r"(?P<at>\S+)", Shape("n", time="at"))
        assert event(at, "5") | {"id": ""} == {
            "id": "", "source": SOURCE, "type": "web.request", "time": "5", "data": {"at": 5}
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("pattern", "shape", "why"),
        [
            ("(", SHAPE, r"--pattern must be combined, common, nginx or a regular expression, got"),
            (
                r"\d+",
                SHAPE,
                r"or have named groups, such as \(\?P<path>\\S\+\), got '\\\\d\+'; eac",
            ),
            ("common", Shape("n", id="x"), '--id must name a group of the pattern, got "x"; it ha'),
        ],
    )
    def test_patterns_that_cannot_be_used(self, pattern: str, shape: Shape, why: str) -> None:
        """Before anything is sent."""
        with pytest.raises(UsageError, match=why):
            AccessLog(pattern, shape)


def judged(line: bytes) -> Admitted | Refused:
    """Return what ingest makes of a line, at the first place of a request without a key."""
    return admit(line, 0, TERMS)


NAMES = st.sampled_from(
    [
        "id",
        "type",
        "source",
        "data",
        "time",
        "timestamp",
        "date",
        "specversion",
        "subject",
        "x",
        "ID",
    ]
)
VALUES = st.sampled_from(
    ['"a"', '""', "null", "7", "1772359200", '"2026-01-01"', "NaN", "1e400", "{}", '"1.0"', "[1]"]
)
OBJECTS = st.lists(st.tuples(NAMES, VALUES), max_size=5).map(
    lambda members: "{" + ", ".join(f'"{name}": {value}' for name, value in members) + "}"
)


class TestNdjson:
    @given(OBJECTS)
    @example('{"id": null, "type": "a", "data": {}}')
    @example('{"source": null, "type": "a", "data": {}}')
    @example('{"type": "a", "data": {"x": NaN}}')
    @example('{"x": NaN}')
    @example('{"id": "a", "id": null, "data": 7}')
    @example("{ }")
    @example('{"timestamp": null, "date": 7}')
    def test_ingest_takes_it_as_it_was(self, line: str) -> None:
        """Whatever an object says: as without us, or refused for the same reason, but for its id.

        That is the same each time.
        """
        sent = Lines(SHAPE).event(entry(line.encode()))
        before, after = judged(line.encode()), judged(sent)
        if isinstance(before, Refused) or isinstance(after, Refused):
            assert isinstance(before, Refused)
            assert isinstance(after, Refused)
            assert before.reason == after.reason
            return
        assert after.retry_safe
        was, became = (read_event(one.value) for one in (before, after))
        # Its bytes tell where a number became null; below `data` now.
        differ = {"nulled"} if before.retry_safe else {"nulled", "id", "source"}
        if was["source"] != f"urn:weir:src:{TERMS.source}":
            differ.discard("source")
        assert {name: value for name, value in was.items() if name not in differ} == {
            name: value for name, value in became.items() if name not in differ
        }
        if not before.retry_safe:
            assert became["id"] == assigned_id("n", 0, line.encode())

    def test_an_event_with_an_id_is_sent_as_it_is(self) -> None:
        """Byte by byte, without the white space around it."""
        line = b'{"id": 7, "type":"a","data" : {"x": 1.50}}'
        assert Lines(SHAPE).event(entry(b" " + line + b"\r")) == line

    @pytest.mark.parametrize(
        ("said", "source"), [({}, SOURCE), ({"source": None}, SOURCE), ({"source": "a"}, "a")]
    )
    def test_an_event_that_gets_an_id_has_a_source(self, said: dict[str, Any], source: str) -> None:
        """One of the key's would be another one for another key, and so the identity."""
        line = json.dumps({"type": "a", "data": {}, **said})
        found = event(Lines(SHAPE), line)
        assert (found["id"], found["source"]) == (assigned_id("n", 0, line.encode()), source)
        assert event(Lines(SHAPE), '{"x": 1}')["source"] == SOURCE

    def test_what_the_command_line_adds(self) -> None:
        """Only to what does not say it: a type, a source; of bare data also id, time, subject."""
        form = Lines(Shape("n", "urn:a", "shop.order", id="o", time="ts", subject="who"))
        assert event(form, '{"id":"a","data":{}}') == {
            "id": "a", "data": {}, "type": "shop.order", "source": "urn:a"
        }  # fmt: skip
        own = {"id": "a", "type": "b", "source": "c", "data": {}}
        assert event(form, json.dumps(own)) == own
        bare = {"type": "x", "o": 7, "ts": 1_772_359_200, "who": 8, "n": 1}
        assert event(form, json.dumps(bare)) == {
            "id": 7, "source": "urn:a", "type": "shop.order", "time": 1_772_359_200,
            "subject": "8", "data": bare,
        }  # fmt: skip

    def test_bare_data_without_the_time_that_is_asked_for(self) -> None:
        """It would count as of now."""
        form = Lines(Shape("n", time="ts"))
        for line in ('{"x": 1}', '{"ts": null}'):
            with pytest.raises(NotUnderstoodError, match='must have a time in "ts", got none'):
                event(form, line)

    @pytest.mark.parametrize(
        "line",
        [
            *(b"hello", b"{", b"7", b"[1]", b"\xff", b'{"x": "\\ud800"}'),
            *(b'{"x": ' + b"9" * 30 + b"}", b"[" * 2_000, b'{"x":' + b"[" * 2_000),
        ],
    )
    def test_what_ingest_will_not_take_goes_there(self, line: bytes) -> None:
        """It is quarantined there, and the ledger knows of it; cut off, it is left."""
        assert Lines(SHAPE).event(entry(line)) == line
        assert isinstance(judged(line), Refused)
        with pytest.raises(
            NotUnderstoodError, match=r"^the last line must be an object of JSON, or"
        ):
            Lines(SHAPE).event(entry(line, is_cut=True))
        assert Lines(SHAPE).event(entry(b'{"id":1,"data":2}', is_cut=True))


class TestGuessing:
    @pytest.mark.parametrize(
        ("label", "head", "wanted"),
        [
            ("a.ndjson", b"", "NDJSON"),
            ("a.JSONL.gz", b"x", "NDJSON"),
            ("standard input", b'\n {"a":1}\n', "NDJSON"),
            ("a.csv", b"a,b\n", "CSV with the columns a, b, each row as of its arrival (--time)"),
            (
                "a.csv.gz",
                b"\xef\xbb\xbf a , b\r\n",
                "CSV with the columns a, b, each row as of its",
            ),
            ("a.tsv", b"a\tb\n", "CSV with the columns a, b, "),
            ("a.log", COMBINED.encode(), "an access log by the pattern combined"),
            ("a", LINE.encode() + b"\n", "an access log by the pattern common"),
            ("a", f'{COMBINED} "-"\n'.encode(), "an access log by the pattern nginx"),
        ],
    )
    def test_by_name_and_first_line(self, label: str, head: bytes, wanted: str) -> None:
        """The name goes before; a byte order mark is no part of the first column."""
        form, first = read_as(Beginning(label, head, is_whole=True), Chosen(), SHAPE)
        assert form.told().startswith(wanted)
        marks = 3 if head.startswith(b"\xef") else 0
        assert first.offset == (len(head) if form.word == "csv" else marks)

    @pytest.mark.parametrize(
        ("head", "hint"),
        [(b"a,b\n", "give --format ndjson, csv, access-log"), (b"[1]", "`jq -c '.[]'` makes lin")],
    )
    def test_what_shows_nothing(self, head: bytes, hint: str) -> None:
        """It is not guessed at."""
        with pytest.raises(UsageError, match=r"a\.txt must show what it is by its name") as error:
            read_as(Beginning("a.txt", head, is_whole=True), Chosen(), SHAPE)
        assert hint in str(error.value)

    @pytest.mark.parametrize(
        ("chosen", "shape", "why"),
        [
            (Chosen("csv", "common"), SHAPE, "--pattern must come with --format access-log, got"),
            (Chosen("ndjson", "", ";"), SHAPE, "--delimiter must come with --format csv, got it"),
            (Chosen("csv", "", "ab"), SHAPE, "--delimiter must be one ASCII sign, or .t for a tab"),
            (Chosen("csv", "", '"'), SHAPE, "--delimiter must be one ASCII sign, or .t for a tab"),
            (Chosen("ndjson"), Shape("n", texts=frozenset("a")), "--text must come with CSV or"),
        ],
    )
    def test_what_does_not_fit(self, chosen: Chosen, shape: Shape, why: str) -> None:
        """What is chosen for one format says nothing of another."""
        with pytest.raises(UsageError, match=why):
            read_as(Beginning("a", b"a\n", is_whole=True), chosen, shape)

    @pytest.mark.parametrize("head", [b"", b"\n\n", b'"a'])
    def test_csv_without_columns(self, head: bytes) -> None:
        """A row must name them."""
        with pytest.raises(
            UsageError, match=r"a\.csv must begin with a row that names its columns"
        ):
            read_as(Beginning("a.csv", head, is_whole=True), Chosen(), SHAPE)

    def test_what_is_chosen(self) -> None:
        """A pattern says that it is an access log; a delimiter may be a tab."""
        head = Beginning("a.csv", b"a;b\n", is_whole=True)
        assert read_as(head, Chosen("csv", "", ";"), SHAPE)[0].told().count(",") == 2
        form, _ = read_as(head, Chosen("", r"(?P<x>.*)"), SHAPE)
        assert form.told() == "an access log by the pattern (?P<x>.*)"
        tabbed = Beginning("a", b"a\tb\n", is_whole=False)
        assert "columns a, b," in read_as(tabbed, Chosen("csv", "", "\\t"), SHAPE)[0].told()
        assert read_as(tabbed, Chosen("access-log"), SHAPE)[0].told().endswith("combined")

    def test_words(self) -> None:
        """The command line offers what can be read."""
        assert FORMATS == guessing.FORMATS
        assert pattern_of("hello") == ""


def test_json_of_both_kinds_is_the_same() -> None:
    """What is written by hand here is what a writer of JSON makes of it."""
    form = Table(("a", "b"), ",", SHAPE)
    (row,) = RowCutter(Point(), ",").feed(b'"\x01""\\",\xc3\xa9\n')
    assert msgspec.json.encode(json.loads(form.event(row))) == form.event(row)
