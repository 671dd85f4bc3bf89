"""Splunk's HTTP Event Collector, as agents and log drivers speak it (INGEST 4.7)."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.admission import Admitted, Terms, admit
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.event_time import format_time
from weir.expressions import NotMatched, Used, use
from weir.mappings.hec import METADATA
from weir.mappings.named import NAMED
from weir.names import HEADER_MAPPING
from weir.problems import ProblemError, Reason

from .in_process import ARRIVED_MS, KEY, Asked, Request, ask

EVENT = "/services/collector/event"
RAW = "/services/collector/raw"
SPLUNK = {"Authorization": f"Splunk {KEY}"}
SUCCESS = b'{"text":"Success","code":0}'
EXAMPLE = (
    b'{"time":1772359200.123,"host":"h1","source":"app","sourcetype":"_json",'
    b'"event":{"msg":"hi"},"fields":{"dc":"a"}}{"event":"second"}'
)
# What the Python package splunk-handler 3.0.0 sent for two lines of a log.
RECORDED = (
    b'{"event": "order placed", "host": "web-1", "index": "main", "source": "shop", '
    b'"sourcetype": "app:log", "time": 1772399990.7441902}{"event": "paid", "host": "web-1", '
    b'"index": "main", "source": "shop", "sourcetype": "app:log", "time": 1772399990.7442932}'
)
MIB = 1 << 20


def post(body: bytes, target: str = EVENT, **changes: Any) -> Asked:
    """Return what becomes of a body."""
    return ask(Request(target, body, headers=SPLUNK), **changes)


def one(**members: Any) -> Asked:
    """Return what becomes of one object, which has an event if nothing else is said."""
    return post(json.dumps({"event": "e", **members}).encode())


class TestPaths:
    @pytest.mark.parametrize("path", ["", "/event", "/event/1.0"])
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_events(self, path: str, slash: str) -> None:
        """Each path takes objects, with and without a slash; the answer is Splunk's."""
        asked = post(b'{"event":"e"}', f"/services/collector{path}{slash}")

        assert (asked.status, asked.body, len(asked.events)) == (200, SUCCESS, 1)
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["weir-position"] == "0:4711,3:4698"

    @pytest.mark.parametrize("path", ["", "/1.0"])
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_lines(self, path: str, slash: str) -> None:
        """Both paths take lines."""
        asked = post(b"a\nb", f"{RAW}{path}{slash}?channel=c")

        assert (asked.status, asked.body, len(asked.events)) == (200, SUCCESS, 2)

    @pytest.mark.parametrize("path", ["/health", "/health/1.0", "/health/"])
    def test_health(self, path: str) -> None:
        """Who asks whether the collector is well needs no key."""
        asked = ask(Request(f"/services/collector{path}", method="GET"))

        assert (asked.status, asked.body) == (200, b'{"text":"HEC is healthy","code":17}')

    def test_ack(self) -> None:
        """Nothing is acknowledged later: a success already means that Kafka has it."""
        asked = ask(Request("/services/collector/ack?channel=c", b"{}", headers=SPLUNK))

        assert (asked.status, asked.body) == (400, b'{"text":"ACK is disabled","code":14}')

    @pytest.mark.parametrize("method", ["OPTIONS", "HEAD"])
    @pytest.mark.parametrize("path", [EVENT, f"{EVENT}/1.0", RAW])
    def test_checks_of_a_connection(self, method: str, path: str) -> None:
        """Docker's log driver asks with OPTIONS before it sends, others with HEAD: exactly 200."""
        assert ask(Request(path, method=method)).status == 200


class TestKeys:
    @pytest.mark.parametrize(
        "headers",
        [
            SPLUNK,
            {"Authorization": f"splunk  {KEY}"},
            {"Authorization": f"Bearer {KEY}"},
            {"Authorization": f"Basic {base64.b64encode(f'x:{KEY}'.encode()).decode()}"},
        ],
    )
    def test_in_the_header(self, headers: dict[str, str]) -> None:
        """The key comes behind Splunk, as a password, or as everywhere; it is stored nowhere."""
        asked = ask(Request(EVENT, b'{"event":1}{"event":"e"}', headers=headers))

        assert (asked.status, len(asked.records)) == (200, 2)
        assert not any(KEY.encode() in one.value + one.key for one in asked.records)

    @pytest.mark.parametrize("target", [f"{EVENT}?", f"{RAW}?channel=c&"])
    def test_in_the_query(self, target: str) -> None:
        """Without a header it comes as ?token=; it is stored nowhere."""
        asked = ask(Request(f"{target}token={KEY}", b'{"event":"e"}'))

        assert (asked.status, len(asked.events)) == (200, 1)
        assert KEY.encode() not in asked.records[0].value + asked.records[0].key

    @pytest.mark.parametrize(
        ("headers", "query", "status", "code", "text"),
        [
            ({}, "", 401, 2, "Token is required"),
            ({}, "?access_token=x", 401, 2, "Token is required"),
            ({"Authorization": "Splunk"}, "", 401, 3, "Invalid authorization"),
            ({"Authorization": f"Token {KEY}"}, "", 401, 3, "Invalid authorization"),
            ({"Authorization": "Basic %"}, "", 401, 3, "Invalid authorization"),
            ({"Authorization": "Splunk 0"}, "", 403, 4, "Invalid token"),
            ({"Authorization": f"Splunk {KEY[:-1]}t"}, "", 403, 4, "Invalid token"),
            ({}, "?token=0", 403, 4, "Invalid token"),
        ],
    )
    def test_refused(
        self, headers: dict[str, str], query: str, status: int, code: int, text: str
    ) -> None:
        """No key, none that can be read, and a wrong one have a code each; nothing is stored."""
        asked = ask(Request(f"{EVENT}{query}", EXAMPLE, headers=headers))

        assert (asked.status, asked.records) == (status, [])
        assert (asked.json["code"], asked.json["text"]) == (code, text)
        assert asked.json["detail"].startswith("a request must carry a valid key")

    @pytest.mark.parametrize(
        ("status", "reason", "code", "text"),
        [
            (403, Reason.SCOPE_MISSING, 1, "Token disabled"),
            (503, Reason.LOG_UNAVAILABLE, 9, "Server is busy"),
            (429, Reason.RATE_LIMITED, 9, "Server is busy"),
            (408, Reason.REQUEST_TIMEOUT, 9, "Server is busy"),
        ],
    )
    def test_told_by_a_code(self, status: int, reason: Reason, code: int, text: str) -> None:
        """A key that may not write is not enabled; what helps to wait for is busy, with when."""
        failure = ProblemError(status, reason, "why", retry_after_s=2)

        asked = post(EXAMPLE, failure=failure)

        assert (asked.status, asked.headers["retry-after"]) == (status, "2")
        assert asked.body == b'{"text":"%b","code":%d,"detail":"why"}' % (text.encode(), code)


class TestMapping:
    def test_the_example(self) -> None:
        """An object is an event of its sourcetype about its host, and stays whole."""
        asked = post(EXAMPLE)

        assert (asked.status, asked.body) == (200, SUCCESS)
        first, second = asked.events
        assert first["type"] == "dev.weir.hec._json"
        assert (first["subject"], first["timesrc"]) == ("h1", "client")
        assert (first["time"], first["clienttime"]) == (
            "2026-03-01T10:00:00.123Z",
            "1772359200.123",
        )
        assert first["data"] == json.loads(EXAMPLE[: EXAMPLE.index(b'{"event":"second"}')])
        assert second["data"] == {
            "event": "second",
            "host": "h1",
            "source": "app",
            "sourcetype": "_json",
        }
        assert (second["type"], second["subject"]) == (first["type"], "h1")
        assert (second["time"], second["timesrc"]) == (format_time(ARRIVED_MS), "arrived")
        assert [record.key for record in asked.records] == [b"h1", b"h1"]
        assert [event["ingestproto"] for event in asked.events] == ["hec", "hec"]

    def test_a_recorded_client(self) -> None:
        """What a logging handler sent becomes two events, with nothing refused."""
        asked = post(RECORDED)

        assert (asked.status, asked.body, asked.refused) == (200, SUCCESS, [])
        assert [event["type"] for event in asked.events] == ["dev.weir.hec.app:log"] * 2
        assert [event["time"] for event in asked.events] == ["2026-03-01T21:19:50.744Z"] * 2
        assert [event["data"]["event"] for event in asked.events] == ["order placed", "paid"]

    @pytest.mark.parametrize(
        ("sourcetype", "event_type"),
        [
            ("access_combined", "dev.weir.hec.access_combined"),
            ("aws:cloudtrail", "dev.weir.hec.aws:cloudtrail"),
            ("my log é", "dev.weir.hec.my log é"),
            ("s" * 510, f"dev.weir.hec.{'s' * 510}"),
            ("", "dev.weir.hec.event"),
            (None, "dev.weir.hec.event"),
        ],
    )
    def test_sourcetype(self, sourcetype: str | None, event_type: str) -> None:
        """A sourcetype is a part of the type as it is; without one the type says event."""
        assert one(sourcetype=sourcetype).events[0]["type"] == event_type

    def test_without_sourcetype(self) -> None:
        """An object that says nothing but its event has a type all the same, and its id as key."""
        asked = one()

        assert asked.events[0]["type"] == "dev.weir.hec.event"
        assert "subject" not in asked.events[0]
        assert asked.records[0].key.decode() == asked.events[0]["id"]

    @pytest.mark.parametrize(
        ("sourcetype", "code", "detail"),
        [
            (7, "attribute_invalid", "attribute sourcetype must be text, got 7"),
            ({"a": 1}, "attribute_invalid", 'attribute sourcetype must be text, got {"a": 1}'),
            ("s" * 511, "attribute_invalid", "sourcetype must be at most 512 bytes, got 513"),
            ("a\u0000", "invalid_unicode", "attribute sourcetype must not hold U+0000"),
        ],
    )
    def test_unusable_sourcetype(self, sourcetype: Any, code: str, detail: str) -> None:
        """What is nothing for a type leaves the event in quarantine, and the request succeeds."""
        asked = one(sourcetype=sourcetype)

        assert (asked.status, asked.json["code"], asked.json["quarantined"]) == (200, 0, 1)
        assert asked.json["items"] == [
            {"index": 0, "status": "quarantined", "code": code, "detail": detail}
        ]

    @pytest.mark.parametrize(("host", "subject"), [("h", "h"), (7, "7"), ("", None), (None, None)])
    def test_host(self, host: Any, subject: str | None) -> None:
        """The host is the subject; a number is its text, an empty one is none."""
        assert one(host=host).events[0].get("subject") == subject


class TestEvent:
    @pytest.mark.parametrize("event", [b'"e"', b'{"a":null}', b'{"a":{}}', b'" . "', b'"0"'])
    def test_usable(self, event: bytes) -> None:
        """Text and objects are events, if there is anything in them."""
        assert len(post(b'{"event":%b}' % event).events) == 1

    @pytest.mark.parametrize(
        ("members", "detail"),
        [
            (b"", "an object must have event, text or an object, got none"),
            (b'"fields":{}', "an object must have event, text or an object, got none"),
            (b'"event":null', "event must not be blank, got null"),
            (b'"event":""', 'event must not be blank, got ""'),
            (b'"event":" \\n\\t"', 'event must not be blank, got " \\n\\t"'),
            (b'"event":{ }', "event must not be blank, got { }"),
            (b'"event":7', "event must be text or an object, got 7"),
            (b'"event":true', "event must be text or an object, got true"),
            (b'"event":["a"]', 'event must be text or an object, got ["a"]'),
        ],
    )
    def test_not_usable(self, members: bytes, detail: str) -> None:
        """An object without an event to use is quarantined alone; codes 12 and 13 never come."""
        asked = post(b'{"event":"a"}{%b}{"event":"b"}' % members)

        assert (asked.status, asked.json["text"], asked.json["code"]) == (200, "Success", 0)
        assert [event["data"]["event"] for event in asked.events] == ["a", "b"]
        assert asked.refused == [("not_an_event", b"{%b}" % members)]
        (item,) = asked.json["items"]
        assert (item["index"], item["code"], item["detail"]) == (1, "not_an_event", detail)

    @pytest.mark.parametrize("value", [b'"text"', b"7", b"null", b"true"])
    def test_no_object(self, value: bytes) -> None:
        """A value that is no object is quarantined alone."""
        asked = post(b'{"event":"a","host":"h"}\n%b\n{"event":"b"}' % value)

        assert (asked.status, [event["subject"] for event in asked.events]) == (200, ["h", "h"])
        assert asked.refused == [("not_an_event", value)]
        assert asked.json["items"][0]["detail"] == "event must be a JSON object"

    def test_a_replay_reads_it_so(self) -> None:
        """What is refused says how it was read, and mended it becomes what it should have been."""
        asked = post(b'{"host":"h1","sourcetype":"x","event":"a"}{"event":7}')
        (record,) = [r for r in asked.records if r.headers[0][0] == "weir-reason"]

        name = dict(record.headers)[HEADER_MAPPING]
        assert isinstance(name, bytes)
        mended = record.value.replace(b"7", b'"seven"')
        terms = Terms("acme", "web", ARRIVED_MS, "replay", mapping=NAMED[name.decode()])
        found = admit(mended, 0, terms)

        assert isinstance(found, Admitted)
        event = json.loads(found.value)
        assert (event["type"], event["subject"]) == ("dev.weir.hec.x", "h1")


class TestTime:
    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            (1772359200, "2026-03-01T10:00:00.000Z"),
            (1772359200.1234, "2026-03-01T10:00:00.123Z"),
            ("1772359200.123000", "2026-03-01T10:00:00.123Z"),
            (" 1772359200 ", "2026-03-01T10:00:00.000Z"),
            (13569465600, "1970-06-07T01:17:45.600Z"),
            (99999999999, "1973-03-03T09:46:39.999Z"),
            ("99999999999", "1973-03-03T09:46:39.999Z"),
            (1772359200123, "2026-03-01T10:00:00.123Z"),
            (1772359200123456, "2026-03-01T10:00:00.123Z"),
            (1772359200123456789, "2026-03-01T10:00:00.123Z"),
            ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000Z"),
            (0, "1970-01-01T00:00:00.000Z"),
        ],
    )
    def test_read(self, said: Any, expected: str) -> None:
        """Seconds, as number or text; from the year 2400 on milliseconds, as with Vector."""
        (event,) = one(time=said).events

        assert (event["time"], event["timesrc"]) == (expected, "client")

    @pytest.mark.parametrize("said", [13569465599, 13569465599.9])
    def test_far_ahead(self, said: float) -> None:
        """Just below that cut it is a second of the year 2399: clamped to the arrival."""
        (event,) = one(time=said).events

        assert (event["time"], event["timesrc"]) == (format_time(ARRIVED_MS), "clamped")
        assert event["clienttime"] == str(said)

    @pytest.mark.parametrize("members", [{}, {"time": None}])
    def test_none(self, members: dict[str, Any]) -> None:
        """Without a time it is the arrival."""
        (event,) = one(**members).events

        assert (event["time"], event["timesrc"]) == (format_time(ARRIVED_MS), "arrived")

    @pytest.mark.parametrize("said", ["", "now", "-", True, {}, [], 1e30])
    def test_unreadable(self, said: Any) -> None:
        """A time that is none leaves its event in quarantine, and harms no other."""
        body = json.dumps({"event": "a", "time": said}).encode() + b'{"event":"b"}'

        asked = post(body)

        assert (asked.status, len(asked.events)) == (200, 1)
        assert [reason for reason, _ in asked.refused] == ["time_invalid"]

    def test_is_not_carried_over(self) -> None:
        """The time of one object says nothing of the next."""
        asked = post(b'{"event":"a","time":1772359200}{"event":"b"}')

        assert [event["timesrc"] for event in asked.events] == ["client", "arrived"]


def metadata(asked: Asked) -> list[list[Any]]:
    """Return host, source, sourcetype and index of each event."""
    return [[event["data"].get(name) for name in METADATA] for event in asked.events]


class TestCarriedOver:
    def test_until_it_is_said_anew(self) -> None:
        """Host, source, sourcetype and index hold until an object says them anew."""
        asked = post(
            b'{"event":"a"}'
            b'{"event":"b","host":"h1","source":"s1","sourcetype":"t1","index":"i1"}'
            b'{"event":"c"}'
            b'{"event":"d","host":"h2"}'
            b'{"event":"e","sourcetype":"t2","index":null}'
        )

        assert metadata(asked) == [
            [None, None, None, None],
            ["h1", "s1", "t1", "i1"],
            ["h1", "s1", "t1", "i1"],
            ["h2", "s1", "t1", "i1"],
            ["h2", "s1", "t2", "i1"],
        ]
        assert [event.get("subject") for event in asked.events] == [None, "h1", "h1", "h2", "h2"]
        types = [event["type"].rpartition(".")[2] for event in asked.events]
        assert types == ["event", "t1", "t1", "t1", "t2"]

    def test_into_what_says_nothing(self) -> None:
        """An empty object says where it comes from, too, in quarantine."""
        asked = post(b'{"event":"a","host":"h1"}{ }{}')

        assert asked.refused == [("not_an_event", b'{"host":"h1"}')] * 2

    def test_not_into_the_next_request(self) -> None:
        """A request starts with nothing."""
        post(b'{"event":"a","host":"h1"}')

        assert metadata(post(b'{"event":"b"}')) == [[None] * 4]

    def test_from_the_query(self) -> None:
        """What the query says holds for objects that say nothing, until one does."""
        asked = post(
            b'{"event":"a"}{"event":"b","host":"own"}{"event":"c"}',
            f"{EVENT}?host=q%20h&sourcetype=t",
        )

        assert [host for host, *_ in metadata(asked)] == ["q h", "own", "own"]
        assert [event["type"] for event in asked.events] == ["dev.weir.hec.t"] * 3

    def test_from_one_that_is_quarantined(self) -> None:
        """An object without event says all the same where the next ones come from."""
        assert metadata(post(b'{"host":"h1"}{"event":"a"}'))[0][0] == "h1"

    @pytest.mark.parametrize(
        "host",
        [
            b'"%b"' % (b"h" * 511),
            b"{}",
            b"true",
            b'"\\ud800"',
            b'"a\\u0000"',
            b'"a\xff"',
        ],
    )
    def test_what_cannot_be_used_goes_nowhere(self, host: bytes) -> None:
        """A host that is none is not carried over, and neither is the one before it."""
        asked = post(
            b'{"event":"a","host":"h1","source":"s1"}{"event":"b","host":%b}{"event":"c"}' % host
        )

        assert (asked.events[0]["subject"], asked.events[-1]["data"].get("host")) == ("h1", None)
        assert "subject" not in asked.events[-1]
        assert asked.events[-1]["data"]["event"] == "c"

    def test_as_far_as_it_may_be_long(self) -> None:
        """A host of 512 bytes, quotes included, is carried over."""
        host = "h" * 510

        asked = post(json.dumps({"event": "a", "host": host}).encode() + b'{"event":"b"}')

        assert [event["subject"] for event in asked.events] == [host, host]

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (b'{"event":{"v":NaN},"host":"h1"}', b'{"event":"b"}'),
            (b'{"event":"a","host":"h1"}', b'{"event":{"v":-Infinity}}'),
            (b'{"event":{"v":NaN},"host":"10.0.0.1"}', b'{"event":{"v":NaN}}'),
            (b'{"event":"\\u00e9","host":"h1","x":NaN}', b'{"event":"b"}'),
        ],
    )
    def test_past_nan(self, first: bytes, second: bytes) -> None:
        """It goes out of, and into, objects with numbers that JSON does not have."""
        asked = post(first + second)

        hosts = [event["data"]["host"] for event in asked.events]
        assert len(hosts) == 2
        assert hosts[0] == hosts[1]
        assert b"NaN" not in asked.records[0].value
        nulled = [event.get("nulled") for event in asked.events]
        assert nulled.count("event.v") + nulled.count("x") >= 1

    def test_a_host_called_nan(self) -> None:
        """A host that cannot be told from what stands for a NaN is rather lost than wrong."""
        asked = post(b'{"event":{"v":NaN},"host":"NaN"}{"event":"b"}')

        assert [event.get("subject") for event in asked.events] == ["NaN", None]

    @given(
        st.lists(
            st.dictionaries(st.sampled_from(METADATA), st.none() | st.text("ab", max_size=2)),
            max_size=6,
        )
    )
    def test_equals_the_slow_way(self, said: list[dict[str, str | None]]) -> None:
        """Whatever objects say, each has its own word, else the last before it."""
        body = b"".join(json.dumps({"event": "e", **members}).encode() for members in said)
        expected, last = [], dict.fromkeys(METADATA)
        for members in said:
            last |= {name: text for name, text in members.items() if text is not None}
            expected.append(list(last.values()))

        assert metadata(post(body or b"[]")) == expected


class TestSentAgain:
    def test_with_a_key(self) -> None:
        """With an Idempotency-Key a request that is sent again has the same identities."""
        headers = {**SPLUNK, "Idempotency-Key": '"8e03"'}

        first, second = (ask(Request(EVENT, EXAMPLE, headers=headers)) for _ in range(2))
        lines = [ask(Request(f"{RAW}?channel=c", b"a\na", headers=headers)) for _ in range(2)]

        assert len({event["weirid"] for event in first.events + second.events}) == 2
        assert len({event["weirid"] for asked in lines for event in asked.events}) == 2

    def test_without(self) -> None:
        """Without one it counts twice: the protocol has no ids."""
        first, second = post(EXAMPLE), post(EXAMPLE)

        assert len({event["weirid"] for event in first.events + second.events}) == 4


PAGE = Path(__file__).parents[3] / "docs" / "clients" / "splunk.md"


def test_the_page() -> None:
    """The metric on the page for users counts what it says."""
    (block,) = re.findall(r"```yaml\n(kind: .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    metric = check(None, None, block).model
    assert isinstance(metric, Metric)
    body = b'{"host":"web-1","sourcetype":"shop","event":{"level":"%b"}}'

    found = [use(metric, event) for event in post(body % b"error" + body % b"info").events]

    assert isinstance(found[0], Used)
    assert "web-1" in str(found[0].series)
    assert isinstance(found[1], NotMatched)
