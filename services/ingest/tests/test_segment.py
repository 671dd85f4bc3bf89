"""Segment's tracking API, as its SDKs, RudderStack's and analytics.js speak it (INGEST 4.2)."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weir.event_time import format_time
from weir.mappings.named import NAMED
from weir.mappings.segment import CALLS
from weir.problems import ProblemError, Reason
from weir_ingest.protocols.batch import BatchLimits

from .drawn import JSON
from .in_process import ARRIVED_MS, KEY, Asked, Request, ask

BASIC = {"Authorization": f"Basic {base64.b64encode(f'{KEY}:'.encode()).decode()}"}
TRACK: dict[str, Any] = {
    "type": "track",
    "event": "Order Placed",
    "userId": "u42",
    "messageId": "m-1",
    "timestamp": "2026-03-01T10:00:00.000Z",
    "properties": {"total": 12.5},
}


def batch(*calls: dict[str, Any], **members: Any) -> Asked:
    """Return what becomes of a batch."""
    body = json.dumps({"batch": calls, **members}).encode()
    return ask(Request("/v1/batch", body, headers=BASIC))


class TestCalls:
    @pytest.mark.parametrize("call", CALLS)
    @pytest.mark.parametrize("slash", ["", "/"])
    def test_each_call_has_two_paths(self, call: str, slash: str) -> None:
        """The word and its first letter, each with and without a slash, name the call."""
        body = json.dumps({**TRACK, "type": "anything"}).encode()
        for path in (call, call[0]):
            asked = ask(Request(f"/v1/{path}{slash}", body, headers=BASIC))

            assert (asked.status, asked.body) == (200, b'{"success":true}')
            (event,) = asked.events
            assert event["type"] == f"dev.weir.segment.{call}"
            assert (event["id"], event["subject"]) == ("m-1", "u42")
            assert event["data"] == json.loads(body)

    @pytest.mark.parametrize("path", ["/v1/batch", "/v1/b", "/v1/import", "/v1/batch/"])
    def test_a_batch(self, path: str) -> None:
        """Calls of a batch say their type; the answer is what SDKs take for success."""
        body = json.dumps({"batch": [TRACK, {**TRACK, "type": "page", "messageId": 7}]}).encode()

        asked = ask(Request(path, body, headers=BASIC))

        assert (asked.status, asked.body) == (200, b'{"success":true}')
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["weir-position"] == "0:4711,3:4698"
        assert [one["type"] for one in asked.events] == [
            "dev.weir.segment.track",
            "dev.weir.segment.page",
        ]
        assert [one["id"] for one in asked.events] == ["m-1", "7"]

    def test_sent_again_it_is_the_same(self) -> None:
        """A batch that is sent again has the same identities, whatever its sent time."""
        first, second = (batch(TRACK, sentAt=format_time(ARRIVED_MS + late)) for late in (0, 9_000))

        assert first.events[0]["weirid"] == second.events[0]["weirid"]
        assert first.events[0]["time"] != second.events[0]["time"]

    @pytest.mark.parametrize(
        ("ids", "subject"),
        [
            ({"userId": "u", "anonymousId": "a"}, "u"),
            ({"userId": None, "anonymousId": "a"}, "a"),
            ({"userId": "", "anonymousId": "a"}, "a"),
            ({"userId": 42, "anonymousId": None}, "42"),
        ],
    )
    def test_who_it_is_about(self, ids: dict[str, Any], subject: str) -> None:
        """The user, else the anonymous id, as text; it places the record, too."""
        asked = batch({**TRACK, **ids})

        assert asked.events[0]["subject"] == subject
        assert asked.records[0].key == subject.encode()

    @pytest.mark.parametrize(
        ("change", "reason", "detail"),
        [
            ({"type": "click"}, "not_an_event", "type must be one of track, identify, page, "),
            ({"type": None}, "not_an_event", "screen, group, alias, got null"),
            ({"userId": None}, "not_an_event", "a call track must have userId or anonymousId"),
            ({"event": ""}, "not_an_event", "a call track must have event, a text, got none"),
            ({"userId": {}}, "attribute_invalid", "attribute userId must be text, got {}"),
            ({"userId": "a\x00"}, "invalid_unicode", "attribute userId must not hold U+0000"),
            ({"messageId": ""}, "id_invalid", "id must be text of 1 to 512 bytes"),
            ({"timestamp": "yesterday"}, "time_invalid", 'got "yesterday"'),
        ],
    )
    def test_one_bad_call_harms_no_other(
        self, change: dict[str, Any], reason: str, detail: str
    ) -> None:
        """It is kept with its reason, the answer is a success all the same, and tells of it."""
        asked = batch({**TRACK, **change}, {**TRACK, "messageId": "good"})

        assert asked.status == 200
        assert [one["id"] for one in asked.events] == ["good"]
        ((told, text),) = asked.refused
        assert told == reason
        assert json.loads(text) == {**TRACK, **change}
        body = asked.json
        assert (body["success"], body["quarantined"]) == (True, 1)
        assert (body["items"][0]["index"], body["items"][0]["code"]) == (0, reason)
        assert detail in body["items"][0]["detail"]

    @pytest.mark.parametrize(
        ("path", "body", "mapped"),
        [
            ("/v1/track", b'{"event":"e"}', b"segment.track"),
            ("/v1/batch", b'{"batch":[{}]}', b"segment"),
        ],
    )
    def test_how_it_was_read_is_told(self, path: str, body: bytes, mapped: bytes) -> None:
        """What is refused says by which mapping it was read, and that mapping is known."""
        (record,) = ask(Request(path, body, headers=BASIC)).records

        assert dict(record.headers)["weir-mapping"] == mapped
        assert mapped.decode() in NAMED

    def test_no_object_is_no_call(self) -> None:
        """Elements of a batch that are no objects are kept with their reason."""
        asked = ask(Request("/v1/batch", b'{"batch":[1,"a",null,[]]}', headers=BASIC))

        assert [reason for reason, _ in asked.refused] == ["not_an_event"] * 4

    def test_nan_of_python(self) -> None:
        """Python's SDKs write NaN, which becomes null and is named; other calls are whole."""
        body = b'{"batch":[{"type":"track","event":"e","userId":"u","properties":{"a":NaN}}],"x":1}'

        (event,) = ask(Request("/v1/batch", body, headers=BASIC)).events

        assert event["data"]["properties"] == {"a": None}
        assert event["nulled"] == "properties.a"


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "code", "detail"),
        [
            (b'{"batch":[', "invalid_json", "body must be JSON"),
            (b"[]", "invalid_json", "body must be JSON"),
            (b"{}", "request_invalid", "body must have batch, a list of calls"),
            (b'{"batch":{}}', "request_invalid", "body must have batch, a list of calls"),
            (b"\xff", "invalid_utf8", "text must be UTF-8"),
            (b"", "empty_body", "body must hold events"),
        ],
    )
    def test_a_batch_that_cannot_be_read(self, body: bytes, code: str, detail: str) -> None:
        """It is refused whole, with `code` and `message`, without which an SDK tries for ever."""
        asked = ask(Request("/v1/batch", body, headers=BASIC))

        assert (asked.status, asked.records) == (400, [])
        assert asked.json["code"] == code
        assert asked.json["message"].startswith(detail)

    def test_a_call_that_is_no_json(self) -> None:
        """A single call that is no JSON is refused, as the whole of what was sent."""
        asked = ask(Request("/v1/track", b'{"event":', headers=BASIC))

        assert (asked.status, asked.json["code"]) == (400, "invalid_json")

    def test_too_many_calls(self) -> None:
        """As many calls as allowed are taken, one more is refused before it is looked at."""
        limits = BatchLimits(2, 2)
        for count, status in ((2, 200), (3, 413)):
            body = json.dumps({"batch": [TRACK] * count}).encode()

            asked = ask(Request("/v1/batch", body, headers=BASIC), batch_limits=limits)

            assert asked.status == status

    def test_rudders_body(self) -> None:
        """RudderStack's SDK says that its gzip JSON is a form."""
        headers = {
            **BASIC,
            "Content-Type": "application/x-www-form-urlencoded",
            "Content-Encoding": "gzip",
        }
        body = gzip.compress(json.dumps({"batch": [TRACK]}).encode())

        assert len(ask(Request("/v1/batch", body, headers=headers)).events) == 1

    def test_an_outage(self) -> None:
        """503 with the seconds to wait, never 500; nothing is claimed to be stored."""
        failure = ProblemError(503, Reason.LOG_UNAVAILABLE, "not confirmed", retry_after_s=2)

        asked = ask(Request("/v1/batch", b'{"batch":[]}', headers=BASIC), failure=failure)

        assert (asked.status, asked.headers["retry-after"]) == (503, "2")
        assert asked.json["code"] == "log_unavailable"


class TestCredentials:
    @pytest.mark.parametrize("user", [f"{KEY}:", KEY, f"x:{KEY}"])
    def test_basic(self, user: str) -> None:
        """The key is the user of Basic credentials, with or without a colon, or the password."""
        word = base64.b64encode(user.encode()).decode()
        headers = {"Authorization": f"Basic {word}"}

        assert ask(Request("/v1/batch", b'{"batch":[]}', headers=headers)).status == 200

    @pytest.mark.parametrize("word", ["", "%%%", "d2s6", base64.b64encode(b":").decode()])
    def test_wrong_basic(self, word: str) -> None:
        """Anything else is no key, and is told as every wrong key is."""
        headers = {"Authorization": f"Basic {word}"}

        asked = ask(Request("/v1/batch", b'{"batch":[]}', headers=headers))

        assert (asked.status, asked.json["code"]) == (401, "unauthorized")

    @pytest.mark.parametrize("written", ['"writeKey"', r'"write\u004bey"'])
    def test_the_key_in_the_body_is_stored_nowhere(self, written: str) -> None:
        """analytics.js repeats the key in each call: it opens the door, and is left out."""
        call = f'\n{{{written}:"{KEY}","event":"e","userId":"u","properties":{{"a":1.50}}}}'

        asked = ask(Request("/v1/t", call.encode()))

        assert asked.status == 200
        assert KEY.encode() not in asked.records[0].value
        assert b'"properties":{"a":1.50}' in asked.records[0].value

    @pytest.mark.parametrize(
        "call",
        [
            '{"writeKey":"%s","userId":"u","event":"e","\\ud800":1}',
            '{"writeKey":"%s","context":{"\\ud800":1},"userId":"u","event":"e"}',
            '{"writeKey":"%s","userId":',
        ],
    )
    def test_a_call_that_cannot_be_read_has_no_key(self, call: str) -> None:
        """What is quarantined, since it cannot be read, is kept without the key, and alone."""
        good = json.dumps({**TRACK, "messageId": "good"})
        text = f'{{"context":{{"a":1}},"batch":[{call % KEY},{good}]}}'.encode()
        single = ask(Request("/v1/track", (call % KEY).encode(), headers=BASIC))
        whole = ask(Request("/v1/batch", text, headers=BASIC))

        if call.endswith("}"):
            assert (single.status, whole.status) == (200, 200)
            assert [one["id"] for one in whole.events] == ["good"]
        for asked in (single, whole):
            assert not any(KEY.encode() in one.value for one in asked.records)

    def test_the_key_of_a_batch(self) -> None:
        """The key of a batch stands beside its calls; one within a call is left out."""
        body = json.dumps({"writeKey": KEY, "batch": [{**TRACK, "writeKey": KEY}]}).encode()

        asked = ask(Request("/v1/b", body))

        assert asked.events[0]["data"] == TRACK

    @pytest.mark.parametrize(
        "body",
        [b'{"writeKey":"wk","batch":[]}', b'{"writeKey":7}', b"{}", rb'{"writeKey":"\ud800"}'],
    )
    def test_no_key_at_all(self, body: bytes) -> None:
        """Without a key in header or body nothing is stored."""
        asked = ask(Request("/v1/batch", body))

        assert (asked.status, asked.json["code"], asked.records) == (401, "unauthorized", [])

    def test_the_header_goes_first(self) -> None:
        """A wrong key in the header is refused, also where the body has the right one."""
        body = json.dumps({"writeKey": KEY, "batch": []}).encode()
        headers = {"Authorization": "Bearer wrong"}

        assert ask(Request("/v1/batch", body, headers=headers)).status == 401

    def test_settings_of_analytics_js(self) -> None:
        """What analytics.js asks for first sends it to the same host with the same key."""
        asked = ask(Request(f"/v1/projects/{KEY}/settings", method="GET"))

        assert asked.json == {"integrations": {"Segment.io": {"apiKey": KEY}}}


SERVER = {"library": {"name": "analytics-python", "version": "2.4.0"}}


class TestClock:
    @pytest.mark.parametrize(
        ("skew_ms", "members", "moved_ms", "source"),
        [
            (2_000, {}, 0, "client"),
            (2_001, {}, -2_001, "skew"),
            (-2_000, {}, 0, "client"),
            (-2_001, {}, 2_001, "skew"),
            (-60_000, {"channel": "server"}, 0, "client"),
            (-60_000, {"context": SERVER}, 0, "client"),
            (60_000, {"context": SERVER}, -60_000, "skew"),
            (-60_000, {"channel": "browser"}, 60_000, "skew"),
            (-60_000, {"receivedAt": "2026-03-01T10:00:00Z"}, 0, "client"),
        ],
    )
    def test_correction(
        self, skew_ms: int, members: dict[str, Any], moved_ms: int, source: str
    ) -> None:
        """A clock that is off is corrected by the sent time; a server's is only if it is ahead."""
        happened_ms = ARRIVED_MS - 3_600_000
        call = {**TRACK, "timestamp": format_time(happened_ms), **members}

        (event,) = batch(call, sentAt=format_time(ARRIVED_MS + skew_ms)).events

        assert (event["time"], event["timesrc"]) == (format_time(happened_ms + moved_ms), source)

    def test_which_time_is_whose(self) -> None:
        """`originalTimestamp` goes before `timestamp`, a call's `sentAt` before its batch's."""
        call = {
            **TRACK,
            "originalTimestamp": format_time(ARRIVED_MS - 5_000),
            "sentAt": format_time(ARRIVED_MS + 60_000),
        }

        (event,) = batch(call, sentAt=format_time(ARRIVED_MS), timestamp="2020-01-01").events

        assert event["time"] == format_time(ARRIVED_MS - 65_000)

    def test_without_a_time(self) -> None:
        """A call without a time happened when it arrived."""
        call = {name: value for name, value in TRACK.items() if name != "timestamp"}

        assert batch(call).events[0]["timesrc"] == "arrived"

    @pytest.mark.parametrize("sent", ["soon", None, {}, True])
    def test_a_sent_time_that_is_none(self, sent: Any) -> None:
        """It corrects nothing, and costs no call."""
        asked = batch(TRACK, sentAt=sent)

        assert [one["timesrc"] for one in asked.events] == ["client"]


class TestShared:
    def test_context_of_a_batch(self) -> None:
        """What a batch says once is under each call's own, which wins."""
        shared = {"context": {"ip": "1.1.1.1", "app": "a"}, "integrations": {"All": True}}
        own = {**TRACK, "context": {"app": "b"}}

        events = batch(own, {**TRACK, "context": None}, **shared).events

        assert events[0]["data"]["context"] == {"ip": "1.1.1.1", "app": "b"}
        assert events[1]["data"]["context"] == {"ip": "1.1.1.1", "app": "a"}
        assert [one["data"]["integrations"] for one in events] == [{"All": True}] * 2

    def test_what_is_shared_is_bounded(self) -> None:
        """A large context of many calls would be a bomb: it is refused before it is unfolded."""
        for size, status in ((20_900, 200), (21_100, 413)):
            asked = batch(
                *[{**TRACK, "messageId": n} for n in range(1_000)], context={"a": "x" * size}
            )

            assert asked.status == status
        assert asked.json["message"].startswith("context and integrations of a batch must be")


@given(st.lists(st.dictionaries(st.text("pq"), JSON, max_size=3), max_size=4), st.booleans())
def test_data_is_the_clients(properties: list[dict[str, Any]], nan: bool) -> None:
    """Whatever properties a batch has, each call's data is what the client wrote."""
    calls = [{**TRACK, "messageId": str(n), "properties": p} for n, p in enumerate(properties)]
    body = {
        "batch": calls,
        "sentAt": format_time(ARRIVED_MS),
        **({"more": float("nan")} if nan else {}),
    }

    asked = ask(Request("/v1/batch", json.dumps(body).encode(), headers=BASIC))

    assert [one["data"] for one in asked.events] == calls
