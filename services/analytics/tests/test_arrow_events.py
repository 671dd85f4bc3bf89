"""Events as columns: each view of each path is what the reference reads, on hostile values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from weir.expressions import Path, parse_path
from weir.expressions.numbers import scalar_text
from weir.members import MemberReader
from weir_analytics.panes.arrow_decode import WideDecoder, decoder_of
from weir_analytics.panes.arrow_events import Events
from weir_analytics.panes.arrow_members import Coded, Members
from weir_analytics.panes.arrow_reads import Reads
from weir_analytics.panes.compile_views import View
from weir_analytics.panes.places import times_ms_of

from .compile_cases import (
    ARRAYS,
    ATTRIBUTES,
    FITTING,
    NUMBERS,
    PATHS,
    TEXTS,
    TIMES,
    TYPED,
    draw_event,
    event_of,
)
from .test_arrow_nodes import reader

pytestmark = pytest.mark.usefixtures("each_decoder")
JOBS, EVENTS = 6, 80
VIEWS = (View.NUMBER, View.TEXT, View.BOOL, View.PRESENT, View.SIZE, View.ITEMS)
DRAWN = tuple(
    parse_path(text)
    for text in {
        *(*PATHS, *ARRAYS, *ATTRIBUTES, "time", "id", "type", "source", "weirsource"),
        *(text for texts in TYPED.values() for text in texts),
        *(text for text in FITTING.values() if "(" not in text),
    }
)
X = parse_path("data.x")
FINITE = tuple(text for text in (*NUMBERS, *TIMES) if "e400" not in text)
BIG = ("9007199254740993", "9007199254740992", "18446744073709551616", "-9223372036854775809")
# Of `data.x`: columns of one JSON type, and of several.
COLUMNS = {
    "whole_numbers": [text for text in FINITE if text.lstrip("-").isdigit()],
    "small_whole_numbers": ["1", "-7", "0", "null", "-0", "1"],
    "fractions": [text for text in FINITE if not text.lstrip("-").isdigit()],
    "truths": ["true", "false", "null", "true"],
    "texts": list(TEXTS),
    "texts_and_nulls": [*TEXTS, "null", '"1"', '"true"', '"null"'],
    "nulls": ["null", "null"],
    "arrays": ["[]", "[1,2]", "null", "[[3]]"],
    "objects": ["{}", '{"a":1}', "null"],
    "numbers": list(FINITE),
    "whole_numbers_and_fractions": ["1", "1.0", "1e0", "2", "2.5", "-0.0", "0", "1e100", *BIG],
    "beyond_doubles": ["1", "1.5", "9" * 400, "-" + "9" * 400, "null", *BIG],
    "one_in_every_type": ["1", "1.0", "true", '"1"', '"true"', "null", "[1]", '{"1":1}'],
    "numbers_and_truths": ["1", "true", "0", "false", "0.0", "1.0"],
    "numbers_and_texts": ["1", '"1"', "1.0", '"1.0"', "7.5", '"7.5"', '"0"', "-0.0"],
    "all": [*FINITE, *TEXTS, *BIG, "null", "true", "false", "[]", "[null]", "{}", '{"x":[]}'],
}
GOOD = event_of('{"x":7,"y":"a"}').encode()
DEEP = "[" * 50_000 + "]" * 50_000
BAD = {
    "empty": b"",
    "no_json": GOOD[:-1],
    "no_json_in_what_is_skipped": event_of('{"x":7,"z":nul}').encode(),
    "trailing": GOOD + b"}",
    "no_object": b"[1]",
    "half_a_surrogate": event_of('{"x":"\\ud800"}').encode(),
    "too_deep": event_of(f'{{"x":{DEEP}}}').encode(),
    "too_deep_in_what_is_skipped": event_of(f'{{"z":{DEEP}}}').encode(),
    "too_deep_where_data_is_no_object": event_of(f"[{DEEP}]").encode(),
    "deeper_than_any_event": event_of(f'{{"z":{"[" * 511}{"]" * 511}}}').encode(),
    "nan": event_of('{"x":NaN}').encode(),
}
# Members that cannot be read, of records whose grammar holds: only another producer writes them.
UNREAD = {
    "beyond_doubles": b"1e400",
    "beyond_doubles_in_a_list": b"[1,-1e400]",
    "too_many_digits": b"9" * 5_000,
    "no_utf8": b'"\xff"',
    "no_utf8_in_a_name": b'{"\xff":1}',
    "twice": b'1,"z":[1e400]',
    "as_deep_as_an_event_may_be": b"[" * 510 + b"]" * 510,
}


def members_of(reads: Reads) -> Members:
    """Return what takes what is read."""
    return Members(decoder_of(reads.all), reads)


def events_of(values: Sequence[bytes], paths: Iterable[Path]) -> Events:
    """Return some values as events of which some paths may be read."""
    members = members_of(Reads(paths))
    members.add(values)
    return Events(members, times_ms_of(values))


def told(found: Any) -> object:
    """Return a view so that 1, 1.0 and true differ, and -0.0 and 0."""
    return repr(found) if isinstance(found, list) else (str(found.type), repr(found.to_pylist()))


def texts_in(coded: Coded) -> list[object]:
    """Return of each event its text in a list, null of null, nothing if there is none."""
    return [[coded.texts[code]] if code >= 0 else [] for code in coded.codes.tolist()]


def text_of(value: Any) -> list[object]:
    """Return the same of one JSON value, by the reference."""
    try:
        return [scalar_text(value)]
    except TypeError:
        return []


def assert_read(events: Events, raw: Sequence[bytes], paths: Iterable[Path], hint: object) -> None:
    """Assert that all views of some paths are those of the reference."""
    said = [json.loads(one) for one in raw]
    wanted = reader(said)
    for path in paths:
        for view in VIEWS:
            found = events.read(path, view)
            assert told(found) == told(wanted(path, view)), (hint, str(path), view)
        texts = [text_of(path.read(event)) for event in said]
        assert texts_in(events.coded(path)) == texts, (hint, str(path))


def drawn(random: Random, count: int) -> list[bytes]:
    """Return drawn events without what makes an event of another producer none (`BAD`)."""
    found: list[bytes] = []
    while len(found) < count:
        value = draw_event(random).encode()
        try:
            msgspec.json.decode(value)
        except msgspec.DecodeError:
            continue
        found.append(value)
    return found


class TestViews:
    def test_drawn_events(self, seed: int) -> None:
        """Every path of the drawn cases is read in each way as the reference reads it."""
        for job in range(JOBS):
            values = drawn(Random(f"{seed}/{job}"), EVENTS)  # noqa: S311 - cases, no secrets
            assert_read(events_of(values, DRAWN), values, DRAWN, (seed, job))

    @pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
    def test_a_column_of_whatever_types(self, column: list[str]) -> None:
        """One type or several: a value is never cast, and equal ones of two types stay two."""
        values = [event_of(f'{{"x":{text}}}').encode() for text in column]
        values += [event_of("{}").encode(), *values[:2]]
        assert_read(events_of(values, [X]), values, [X], column)

    def test_equal_numbers_of_several_types_are_not_one_text(self) -> None:
        """1 and 1.0 are the text `1`, true is not, though Python calls all of them equal."""
        values = [event_of(f'{{"x":{x}}}').encode() for x in ("1", "true", "1.0", "0", "false")]
        codes, texts = events_of(values, [X]).coded(X)

        assert [texts[code] for code in codes] == ["1", "true", "1", "0", "false"]
        assert sorted(map(str, texts)) == ["0", "1", "None", "false", "true"]

    def test_a_whole_number_keeps_its_digits_as_a_text(self) -> None:
        """2**53 + 1 is as a number the nearest double, as a text itself."""
        values = [event_of(f'{{"x":{x}}}').encode() for x in (2**53, 2**53 + 1, 2**64)]
        events = events_of(values, [X])

        assert events.read(X, View.NUMBER).to_pylist() == [2.0**53, 2.0**53, 2.0**64]
        assert texts_in(events.coded(X)) == [[str(2**53)], [str(2**53 + 1)], [str(2**64)]]

    @pytest.mark.parametrize("value", ["7", "-12", "true", "false", "1.5", "null", '"a"', '""'])
    def test_attributes_that_are_no_texts(self, value: str) -> None:
        """A number or truth is its text where an attribute is text; an extension stays itself."""
        said = ("subject", "partitionkey", "sequence")
        paths = [parse_path(text) for text in (*said[:2], "extension.sequence", "id")]
        value_of = event_of("{}")
        values = [value_of.encode()]
        values += [value_of.replace(',"data"', f',"{n}":{value},"data"').encode() for n in said]
        values += [value_of.replace(',"data"', f',"{n}":"b","data"').encode() for n in said]
        assert_read(events_of(values, paths), values, paths, value)

    @pytest.mark.parametrize("data", ["5", '"text"', "[1]", '[{"x":1}]', "true", "null", "{}"])
    def test_data_that_has_no_members(self, data: str) -> None:
        """Nothing is read of it; the other events, and what is besides it, are read."""
        paths = [
            parse_path(text) for text in ("data.x", "data.x.y", "data.x[0]", "subject", "time")
        ]
        values = [
            event_of(data, subject="a"),
            event_of('{"x":[{"y":1}]}'),
            event_of('{"x":{"y":2}}'),
        ]
        values.append(event_of("{}").replace(',"data":{}', ""))
        raw = [value.encode() for value in values]
        assert_read(events_of(raw, paths), raw, paths, data)
        assert_read(events_of(raw, paths[3:]), raw, paths[3:], data)

    def test_deeper_paths_and_elements(self) -> None:
        """Members below members and elements of arrays, where there is another type or nothing."""
        texts = ("data.x.y", "data.x.y.z", "data.x[0]", "data.x[1].y", "data.x[0][1]", 'data."x y"')
        paths = [parse_path(text) for text in texts]
        shapes = (
            *('{"y":1}', '{"y":{"z":1.0}}', '{"y":null}', "[]", "[1]", '[null,{"y":"a"}]'),
            *("[[true,[2]]]", "1", '"[0]"', '{"[0]":1}', '{"0":1}', "null", '{"y":{"z":[]}}'),
        )
        values = [event_of(f'{{"x":{x},"x y":{x}}}').encode() for x in shapes]
        assert_read(events_of(values, paths), values, paths, shapes)

    def test_of_a_repeated_member_the_last_is_read(self) -> None:
        """As in the reference; a name may be written with escapes."""
        data = (
            '{"x":1,"x":"a"}',
            '{"x":"a","x":1}',
            '{"x":1,"x":null}',
            '{"\\u0078":2}',
            '{"X":3}',
        )
        values = [event_of(one).encode() for one in data]
        assert_read(events_of(values, [X]), values, [X], data)

    @pytest.mark.parametrize("first", ["5", "[1]", '"a"', "null", '{"x":1}'])
    @pytest.mark.parametrize("last", ['{"x":7}', "5", "null"])
    def test_of_two_members_of_one_name_the_last_counts(self, first: str, last: str) -> None:
        """Also of data, whatever the first one is."""
        value = event_of(last).encode().replace(b'"data":', f'"data":{first},"data":'.encode())
        assert_read(events_of([value, GOOD], [X]), [value, GOOD], [X], (first, last))

    def test_no_events(self) -> None:
        """Of none each view is empty, and of its type."""
        assert_read(events_of([], DRAWN), [], DRAWN, None)


class TestBad:
    @pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
    def test_one_bad_value_spoils_no_other(self, bad: bytes) -> None:
        """What is no event is nothing, has nothing to read, and the others are as without it."""
        paths = [X, parse_path("data.y"), parse_path("subject")]
        decoder = decoder_of(paths)
        other = event_of('{"x":"b"}', subject="s").encode()
        structs = decoder.events([GOOD, other, bad, GOOD])
        events = events_of([GOOD, other, bad, GOOD], paths)

        assert [one is decoder.nothing for one in structs] == [False, False, True, False]
        assert (events.members.words("type").codes < 0).tolist() == [False, False, True, False]
        assert events.read(X, View.PRESENT).to_pylist() == [True, True, False, True]
        assert_read(events.part(np.array([0, 1, 3])), [GOOD, other, GOOD], paths, bad)

    def test_all_are_bad(self) -> None:
        """A list of nothing but such values reads as nothing at all."""
        decoder, values = decoder_of([X]), list(BAD.values())
        events = events_of(values, [X])

        assert all(one is decoder.nothing for one in decoder.events(values))
        assert events.members.words("type").texts == []
        assert events.read(X, View.NUMBER).null_count == len(BAD)
        assert events.coded(X).texts == [None]

    @pytest.mark.parametrize("data", ['{"z":1e400,"x":7}', '{"z":"\\u0000","x":7}', '{"x":7}  '])
    def test_what_nobody_reads_may_be_beyond_doubles(self, data: str) -> None:
        """A member that no metric reads is passed over, and the rest is read."""
        events = events_of([event_of(data).encode(), GOOD], [X])

        assert events.read(X, View.NUMBER).to_pylist() == [7.0, 7.0]


class TestUnread:
    """What a record is does not depend on what is read of it."""

    @pytest.mark.parametrize("unread", UNREAD.values(), ids=UNREAD)
    @pytest.mark.parametrize(
        "paths", [(), ("data.x",), ("data.z",), ("data.x", "data.z", "subject")]
    )
    def test_it_is_an_event_whoever_reads(self, unread: bytes, paths: tuple[str, ...]) -> None:
        """Its other members are there, and the one that cannot be read is null or what it is."""
        value = event_of('{"x":7,"z":@}', subject="s").encode().replace(b"@", unread)
        asked = [parse_path(path) for path in paths]
        events = events_of([GOOD, value, GOOD], asked)

        assert (events.members.words("type").codes < 0).tolist() == [False] * 3
        if X in asked:
            assert events.read(X, View.NUMBER).to_pylist() == [7.0] * 3
        if asked[1:]:
            assert events.read(asked[2], View.TEXT).to_pylist() == [None, "s", None]
            assert events.read(asked[1], View.NUMBER).to_pylist() == [None] * 3

    @pytest.mark.parametrize(("outer", "inner"), [("@", "z"), ("zz", "@"), ("@", "@")])
    def test_names_that_are_no_utf8(self, outer: str, inner: str) -> None:
        """Of the event or of its data: they are nobody's, and the other members are there."""
        value = event_of(f'{{"{inner}":1,"x":7}}').replace('"id"', f'"{outer}":2,"id"')
        values = [value.encode().replace(b"@", b"\xff"), GOOD]
        events = events_of(values, [X, parse_path("data.y"), parse_path("id")])

        assert (events.members.words("type").codes < 0).tolist() == [False, False]
        assert events.read(X, View.NUMBER).to_pylist() == [7.0, 7.0]
        assert events.read(parse_path("data.y"), View.TEXT).to_pylist() == [None, "a"]
        assert events.read(parse_path("id"), View.TEXT).to_pylist() == ["1", "1"]

    @pytest.mark.parametrize("paths", [(), ("data.x",)])
    @pytest.mark.parametrize("data", [b"[1e400]", b'"\xff"', b"1e400", b'{"\xff":1}', b"null"])
    def test_data_that_is_no_object(self, paths: tuple[str, ...], data: bytes) -> None:
        """None of its members is there, and the event is one."""
        value = event_of("@").encode().replace(b"@", data)
        events = events_of([value, GOOD], [parse_path(path) for path in paths])

        assert (events.members.words("type").codes < 0).tolist() == [False, False]
        if paths:
            assert events.read(X, View.PRESENT).to_pylist() == [False, True]

    @pytest.mark.parametrize("frames", [0, 300])
    def test_how_many_calls_are_under_way_decides_nothing(self, frames: int) -> None:
        """A record at the limit is read, and one beyond it is none, also deep in other calls."""

        def below(n: int) -> list[bool]:
            if n:
                return below(n - 1)
            values = [
                event_of(f'{{"x":{"[" * deep}{"]" * deep}}}').encode() for deep in (510, 511, 900)
            ]
            codes = events_of(values, [X]).members.words("type").codes
            return [bool(code >= 0) for code in codes]

        assert below(frames) == [True, False, False]


class TestPart:
    @pytest.mark.parametrize("known", [True, False], ids=["read_before", "not_read_before"])
    def test_a_part_reads_as_the_whole_does_there(self, seed: int, known: bool) -> None:
        """Some of the events, and some of these: each as if they had been all."""
        random = Random(f"{seed}/part/{known}")  # noqa: S311
        for size in (0, 1, 2, 17, EVENTS - 1, EVENTS):
            values = drawn(random, EVENTS)
            whole = events_of(values, DRAWN)
            if known:
                assert_read(whole, values, DRAWN, seed)
            at = np.array(sorted(random.sample(range(EVENTS), size)), np.intp)
            part = whole.part(at)
            own = [values[n] for n in at.tolist()]
            assert len(part) == size
            # Some paths are known to the part's own parent only.
            assert_read(part, own, DRAWN[::2], (seed, size))
            fewer = np.array(sorted(random.sample(range(size), size // 2)), np.intp)
            assert_read(part.part(fewer), [own[n] for n in fewer.tolist()], DRAWN, (seed, size))

    def test_what_is_read_of_the_whole_later_changes_nothing(self) -> None:
        """A part that was read first, and a whole that is read then, say the same of an event."""
        values = [event_of(f'{{"x":{x}}}').encode() for x in ("1", "true", '"a"', "[1]", "2")]
        whole = events_of(values, [X])
        at = np.array([0, 4], np.intp)
        part = whole.part(at)

        assert_read(part, [values[0], values[4]], [X], "first")
        assert_read(whole, values, [X], "whole")
        assert_read(whole.part(at), [values[0], values[4]], [X], "second")


class TestDecoder:
    @pytest.mark.parametrize(("names", "wide"), [(125, False), (126, True)])
    def test_many_names_are_not_looked_for(
        self, names: int, wide: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Beyond 128 with those of the envelope members are cut out under whatever name."""
        monkeypatch.undo()
        paths = [parse_path(f"data.m{n}") for n in range(names)]
        decoder = decoder_of(paths)

        assert isinstance(decoder, WideDecoder) is wide
        (event,) = decoder.events([event_of('{"m7":"a"}').encode()])
        (data,) = decoder.data_of([event])
        assert (decoder.inner("m7")(data), decoder.inner("m8")(data)) == ("a", None)
        assert decoder.outer("type")(event) == "t"

    def test_data_that_nobody_reads_is_skipped(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not read member by member, which is for what cannot be read."""
        decoder = decoder_of([parse_path("subject")])

        def read(*_: Any) -> Any:
            pytest.fail("read member by member")

        monkeypatch.setattr(MemberReader, "read", read)
        assert len(decoder.events([event_of(data).encode() for data in ("{}", "null", "7")])) == 3
