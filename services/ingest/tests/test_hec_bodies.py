"""Bodies for Splunk's HTTP Event Collector: how they are cut, and what is wrong with them."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.mappings.hec import METADATA
from weir.problems import ProblemError, Reason
from weir_ingest.head import Head
from weir_ingest.protocols.batch import BatchLimits
from weir_ingest.protocols.hec import Events, Lines
from weir_ingest.protocols.json_text import split_object, split_values

from .in_process import KEY, LIMITS, Asked, Request, ask

EVENT = "/services/collector/event"
SPLUNK = {"Authorization": f"Splunk {KEY}"}
SUCCESS = b'{"text":"Success","code":0}'
LINES = "/services/collector/raw"
TWO = b'{"event":"a","host":"h1"}{"event":"b"}'
MIB = 1 << 20


def post(body: bytes, *, coding: str = "", **changes: Any) -> Asked:
    """Return what becomes of a body."""
    headers = {**SPLUNK, "Content-Encoding": coding} if coding else SPLUNK
    return ask(Request(EVENT, body, headers=headers), **changes)


def raw(body: bytes, query: str = "", **headers: str) -> Asked:
    """Return what becomes of plain lines."""
    return ask(Request(f"{LINES}?channel=c{query}", body, headers={**SPLUNK, **headers}))


def read(body: bytes, limits: BatchLimits = LIMITS) -> Sequence[bytes]:
    """Return the items that a body is cut into."""
    return Events().read(Head(Request(EVENT).scope(), 0), body, limits).items


class TestCutting:
    @pytest.mark.parametrize("between", [b"", b" ", b"\n", b"\r\n\t", b",", b" , \n", b",,"])
    def test_any_or_no_separator(self, between: bytes) -> None:
        """White space, commas or nothing may stand between objects, and around them."""
        body = between + between.join([b'{"event":"a"}', b'{"event":"}{"}', b'{"event":{}}'])

        assert [*read(body + between)] == [b'{"event":"a"}', b'{"event":"}{"}', b'{"event":{}}']

    @pytest.mark.parametrize(
        "body",
        [
            b'[{"event":"a"},{"event":"b"}]',
            b' [ {"event":"a"} , {"event":"b"} ] ',
            b'[{"event":"a"}]{"event":"b"}',
            b'[{"event":"a"}][{"event":"b"}][]',
            b'\xef\xbb\xbf{"event":"a"}{"event":"b"}',
        ],
    )
    def test_an_array(self, body: bytes) -> None:
        """An array is its elements, alone or among others; a byte order mark is none."""
        assert [*read(body)] == [b'{"event":"a"}', b'{"event":"b"}']

    def test_an_empty_array(self) -> None:
        """An empty array is a request without events, and succeeds."""
        asked = post(b"[]")

        assert (asked.status, asked.body, asked.records) == (200, SUCCESS, [])

    def test_each_item_is_its_own_bytes(self) -> None:
        """What is stored of an object is what the client wrote, to the digit and the space."""
        texts = [
            b'{"event": {"a" : 1.50, "b":1e2}}',
            b'{ "event":"\\u00e9\\/" }',
            b'{"event":"\xc3\xa9"}',
        ]

        asked = post(b"".join(texts))

        for text, record in zip(texts, asked.records, strict=True):
            assert record.value.endswith(b'"data":' + text + b"}")

    @pytest.mark.parametrize(
        ("body", "number", "place"),
        [
            (b'{"event":"a"', 0, "Input data was truncated (byte 12)"),
            (b'{"event":"a"}{"event":', 1, "Input data was truncated (byte 22)"),
            (b'{"event":"a"} x {"event":"b"}', 1, "invalid character (byte"),
            (b'[{"event":"a"}]{"event":"b"},{"event" "c"}', 2, "expected ':' (byte"),
            (b'{"event":tru}{"event":"b"}', 0, "invalid character (byte"),
            (b'{"event":"\\x"}', 0, "invalid escaped character (byte"),
            (b"event=a", 0, "invalid character (byte"),
            (b'{"event":NaN}{"event":"a', 1, "Input data was truncated (byte 24)"),
            (b'[{"event":"a"},', 0, "Input data was truncated (byte 15)"),
        ],
    )
    def test_broken(self, body: bytes, number: int, place: str) -> None:
        """Behind an object that is no JSON nothing is known: code 6 says which it is."""
        asked = post(body)

        assert (asked.status, asked.records) == (400, [])
        assert asked.json["text"] == "Invalid data format"
        assert (asked.json["code"], asked.json["invalid-event-number"]) == (6, number)
        assert asked.json["detail"].startswith("body must be JSON; ")
        assert place in asked.json["detail"]

    @pytest.mark.parametrize("body", [b"", b"  \r\n", b",", b"\xef\xbb\xbf"])
    def test_no_data(self, body: bytes) -> None:
        """A body without anything in it has no data: code 5, as Firehose's check expects."""
        asked = post(body)

        assert (asked.status, asked.json["text"], asked.json["code"]) == (400, "No data", 5)

    def test_as_many_as_may_be(self) -> None:
        """The last object that is allowed is taken, the next refuses the request."""
        limits = BatchLimits(max_events=3, max_batch_events=3)
        item = b'{"event":"e"}'

        for body in (item * 3, b"[%b,%b]%b" % (item, item, item)):
            assert len(post(body, batch_limits=limits).events) == 3
        for body in (item * 4, b"[%b,%b]%b%b" % (item, item, item, item), b"[]" * 4):
            asked = post(body, batch_limits=limits)
            assert (asked.status, asked.json["code"], asked.records) == (413, 6, [])
            assert asked.json["detail"].startswith("a request must hold at most 3 events, got more")

    def test_stops_at_the_limit(self) -> None:
        """What comes behind the limit is not even looked at."""
        limits = BatchLimits(max_events=2, max_batch_events=2)

        with pytest.raises(ProblemError) as raised:
            read(b'{"event":"e"}{"event":"e"}{}x', limits)

        assert raised.value.reason is Reason.TOO_MANY_EVENTS


BIG = 4 * MIB
HOSTILE = {
    "objects": b"{}" * (BIG // 2),
    "empty arrays": b"[]" * (BIG // 2),
    "arrays": (b"[" + b"{}," * 4_999 + b"{}]") * 200,
    "one long array": b"[" + b"{}," * (BIG // 3) + b"{}]",
    "opened": b'{"a":' * (BIG // 5),
    "opened arrays": b"[" * BIG,
    "edges within a text": b'{"event":"' + b"}{" * (BIG // 2) + b'"}',
    "open text": b'{"event":"' + b"}{" * (BIG // 2),
    "quotes": b'"' * BIG,
    "backslashes": b'"\\' * (BIG // 2),
    "escaped quotes": b'{"event":"' + b'\\"' * (BIG // 2) + b'"}',
    "blanks": b" " * BIG,
    "commas": b"," * BIG,
    "digits": b'{"event":{"a":' + b"1" * BIG + b"}}",
    "names twice, and NaN": b'{"event":{},' + b'"a":1,' * (BIG // 6) + b'"b":NaN}',
    "names twice, and NaN, often": (b'{"event":{},' + b'"a":1,' * 40_000 + b'"b":NaN}') * 16,
    "NaN": b'{"event":{"a":NaN}}' * 10_000,
    "NaN at the end": b'{"event":"%b"}' % (b"x" * 400) * 9_999 + b'{"event":{"a":NaN}}',
    "broken at the end": b'{"event":"%b"}' % (b"x" * 400) * 9_999 + b'{"event"',
    "a long host": b'{"host":"%b"}' % (b"h" * MIB) + b'{"event":"e"}' * 9_999,
    "a host as long as may be": b'{"host":"%b"}' % (b"h" * 510) + b'{"event":"e"}' * 9_999,
    "10,000 of 500 bytes": b'{"event":"%b","host":"h"}' % (b"x" * 475) * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_body_takes_long_to_cut(name: str) -> None:
    """Each body of some megabytes is cut, or refused, in a time that its length explains."""
    body = HOSTILE[name]
    start_s = time.process_time()

    try:
        items = read(body)
    except ProblemError:
        items = []

    assert time.process_time() - start_s < 2
    assert len(items) <= LIMITS.max_events
    assert sum(map(len, items)) < len(body) + 10_000 * 600


SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats()
JSON = st.recursive(
    SCALARS | st.text('aé"\\{}[], \n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"{'), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text('pq"}'), JSON, max_size=3), max_size=5),
    st.text(" \n,", max_size=3),
    st.booleans(),
)
def test_cut_is_what_was_joined(
    objects: list[dict[str, Any]], between: str, ensure_ascii: bool
) -> None:
    """Whatever objects are put behind one another, with NaN, they come apart as they were."""
    texts = [json.dumps(one, ensure_ascii=ensure_ascii).encode() for one in objects]

    assert [*split_values(between.encode().join(texts))] == texts


class TestSplitObject:
    def test_a_name_twice(self) -> None:
        """Of a name twice the last counts, also where the first is a number of any length."""
        body = b'{"a":%b , "a" : [1 ] ,"b":NaN}' % (b"9" * 5_000)

        assert split_object(body) == {"a": b"[1 ]", "b": b"NaN"}


class TestLines:
    def test_each_line_is_an_event(self) -> None:
        """Lines are events, whatever is in them; blank ones are none, and a CR ends none."""
        asked = raw(b'GET /\r\n\n  \n{"a": 1}\n \ttab "q" \\ \x1b[1m \xc3\xa9')

        assert (asked.status, asked.body) == (200, SUCCESS)
        assert [event["data"] for event in asked.events] == [
            {"event": "GET /"},
            {"event": '{"a": 1}'},
            {"event": ' \ttab "q" \\ \x1b[1m é'},
        ]
        assert {event["type"] for event in asked.events} == {"dev.weir.hec.event"}
        assert {event["timesrc"] for event in asked.events} == {"arrived"}

    def test_query(self) -> None:
        """What holds for all lines stands in the query."""
        asked = raw(
            b"a\nb", "&host=h1&source=%2Fvar%2Flog&sourcetype=syslog&index=i&time=1772359200"
        )

        for event, line in zip(asked.events, "ab", strict=True):
            assert event["data"] == {
                "event": line,
                "time": "1772359200",
                "host": "h1",
                "source": "/var/log",
                "sourcetype": "syslog",
                "index": "i",
            }
            assert (event["type"], event["subject"]) == ("dev.weir.hec.syslog", "h1")
            assert event["time"] == "2026-03-01T10:00:00.000Z"

    @pytest.mark.parametrize(
        ("query", "headers", "status"),
        [
            ("", {}, 400),
            ("?channel=", {}, 400),
            ("", {"X-Splunk-Request-Channel": ""}, 400),
            ("?channel=c", {}, 200),
            ("", {"X-Splunk-Request-Channel": "fe0ecfad-13d5-401b-847d-77833bd77131"}, 200),
        ],
    )
    def test_channel(self, query: str, headers: dict[str, str], status: int) -> None:
        """Lines need a channel, in a header or in the query."""
        asked = ask(Request(f"{LINES}{query}", b"a", headers={**SPLUNK, **headers}))

        assert asked.status == status
        if status == 400:
            assert asked.body == (
                b'{"text":"Data channel is missing","code":10,"detail":"lines must come with a '
                b'channel, got none; send X-Splunk-Request-Channel"}'
            )

    @pytest.mark.parametrize("body", [b"", b"\n \r\n"])
    def test_no_data(self, body: bytes) -> None:
        """A body without a line has no data: code 5."""
        asked = raw(body)

        assert (asked.status, asked.json["code"], asked.records) == (400, 5, [])

    def test_a_line_that_is_not_utf8(self) -> None:
        """A line of other bytes is quarantined with them, and harms no other."""
        asked = raw(b"a\nb\xff\nc")

        assert [event["data"]["event"] for event in asked.events] == ["a", "c"]
        assert asked.refused == [("invalid_utf8", b'{"event":"b\xff"}')]

    @pytest.mark.parametrize("name", [*METADATA, "time"])
    def test_a_query_of_no_use(self, name: str) -> None:
        """What stands in the query for all lines, and is nothing for one, refuses them."""
        long = raw(b"a", f"&{name}={'x' * 511}")
        control = raw(b"a", f"&{name}=x%00")

        assert (long.status, long.json["code"], long.records) == (400, 6, [])
        assert long.json["detail"].startswith(f"{name} must be at most 512 bytes without control")
        assert (control.status, control.json["code"]) == (400, 6)

    def test_as_many_as_may_be(self) -> None:
        """One line too many refuses the request."""
        limits = BatchLimits(max_events=2, max_batch_events=2)
        head = Head(Request(f"{LINES}?channel=c").scope(), 0)

        assert len(Lines().read(head, b"a\nb\n", limits).items) == 2
        with pytest.raises(ProblemError, match="a request must hold at most 2 events"):
            Lines().read(head, b"a\nb\nc", limits)

    @given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"))))
    def test_a_line_is_kept(self, lines: list[str]) -> None:
        """Whatever stands in a line stands in its event."""
        kept = [line.rstrip("\r") for line in lines if line.strip(" \t\r\x0b\x0c")]

        asked = raw("\n".join(lines).encode() or b"\n")

        assert [event["data"]["event"] for event in asked.events] == kept
        assert asked.status == (200 if kept else 400)


class TestBadInputs:
    @pytest.mark.parametrize(
        ("item", "reason"),
        [
            (b'{"event":{"a":' + b"[" * 31 + b"]" * 31 + b"}}", "too_deep"),
            (b'{"event":{"n":18446744073709551616}}', "number_range"),
            (b'{"event":"\\ud800"}', "invalid_unicode"),
            (b'{"event":"\xff"}', "invalid_utf8"),
            (b'{"event":"\\u12"}', "invalid_json"),
            (b'{"event":"%b"}' % (b"x" * 1_000_000), "event_too_large"),
            (b'{"event":"e","host":[]}', "attribute_invalid"),
        ],
    )
    def test_harm_no_other(self, item: bytes, reason: str) -> None:
        """An object that cannot be used is quarantined, with its reason and its bytes."""
        asked = post(b'{"event":"a"}%b{"event":"b"}' % item)

        assert (asked.status, [e["data"]["event"] for e in asked.events]) == (200, ["a", "b"])
        assert asked.refused == [(reason, item[:65_536])]
        assert (asked.json["items"][0]["index"], asked.json["items"][0]["code"]) == (1, reason)

    def test_depth(self) -> None:
        """Thirty-two levels are taken."""
        assert len(post(b'{"event":{"a":' + b"[" * 30 + b"]" * 30 + b"}}").events) == 1

    @pytest.mark.parametrize("depth", [1_100, 100_000])
    def test_far_too_deep(self, depth: int) -> None:
        """What a parser cannot go down refuses the request."""
        asked = post(b'{"event":{"a":' + b"[" * depth + b"]" * depth + b"}}")

        assert (asked.status, asked.json["code"], asked.records) == (400, 6, [])

    def test_numbers_that_json_does_not_have(self) -> None:
        """They become null, and the event says where."""
        (event,) = post(b'{"event":{"a":NaN,"b":[1e400],"c":9007199254740993}}').events

        assert event["data"]["event"] == {"a": None, "b": [None], "c": 9007199254740993}
        assert event["nulled"] == "event.a,event.b[0]"

    def test_what_says_weir(self) -> None:
        """Members under Weir's names are data and nothing else."""
        (event,) = post(
            b'{"event":"e","weirtenant":"other","tenant":"other","id":"1","type":"t"}'
        ).events

        assert (event["weirtenant"], event["type"]) == ("acme", "dev.weir.hec.event")

    def test_gzip(self) -> None:
        """Agents compress."""
        assert len(post(gzip.compress(TWO), coding="gzip").events) == 2

    @pytest.mark.parametrize(
        ("coding", "body", "status", "extra"),
        [
            ("snappy", b"x", 415, ("accept-encoding", "gzip, zstd, deflate")),
            ("gzip", gzip.compress(TWO)[:-9], 400, ("connection", "close")),
            ("gzip", gzip.compress(bytes(21 * MIB)), 413, None),
        ],
    )
    def test_codings(
        self, coding: str, body: bytes, status: int, extra: tuple[str, str] | None
    ) -> None:
        """What cannot be decoded is told by status and code 6."""
        asked = post(body, coding=coding)

        assert (asked.status, asked.json["code"], asked.records) == (status, 6, [])
        assert extra is None or asked.headers[extra[0]] == extra[1]
