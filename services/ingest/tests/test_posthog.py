"""PostHog's capture v0, as its SDKs and browsers speak it (INGEST 4.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weir.event_time import format_time
from weir.mappings.named import NAMED
from weir.problems import ProblemError, Reason
from weir_ingest.protocols.batch import BatchLimits

from .in_process import ARRIVED_MS, KEY, Asked, Request, ask

BEARER = {"Authorization": f"Bearer {KEY}"}
HAPPENED_MS = ARRIVED_MS - 3_600_000
EVENT: dict[str, Any] = {
    "event": "order_placed",
    "distinct_id": "u42",
    "uuid": "0190a2c4-0000-7000-8000-000000000001",
    "timestamp": format_time(HAPPENED_MS),
    "properties": {"total": 12.5},
}
V0 = ("/batch", "/capture", "/e", "/i/v0/e", "/track", "/engage")
V1 = "/i/v1/analytics/events"


def batch(*events: Any, target: str = "/batch/", **members: Any) -> Asked:
    """Return what becomes of a batch of v0."""
    body = json.dumps({"api_key": KEY, "batch": events, **members}).encode()
    return ask(Request(target, body))


def without(*names: str) -> dict[str, Any]:
    """Return the event without some of its members."""
    return {name: value for name, value in EVENT.items() if name not in names}


class TestShapes:
    @pytest.mark.parametrize("path", V0)
    @pytest.mark.parametrize("slash", ["", "/"])
    @pytest.mark.parametrize("method", ["POST", "GET"])
    def test_each_path_takes_each_shape(self, path: str, slash: str, method: str) -> None:
        """One event, a list or a batch may come to every path, with and without a slash."""
        shapes = [
            {**EVENT, "api_key": KEY},
            [{**EVENT, "api_key": KEY}],
            {"api_key": KEY, "batch": [EVENT], "historical_migration": True},
        ]
        for shape in shapes:
            asked = ask(Request(path + slash, json.dumps(shape).encode(), method))

            assert (asked.status, asked.body) == (200, b'{"status":1}')
            assert asked.headers["content-type"] == "application/json"
            assert asked.headers["weir-position"] == "0:4711,3:4698"
            assert [one["data"] for one in asked.events] == [EVENT]

    def test_what_becomes_of_an_event(self) -> None:
        """Type, id, subject, time and key are told by it, and it stays whole in `data`."""
        asked = batch(EVENT)

        (event,) = asked.events
        assert event["type"] == "dev.weir.posthog.event"
        assert (event["id"], event["subject"]) == (EVENT["uuid"], "u42")
        assert (event["time"], event["timesrc"]) == (EVENT["timestamp"], "client")
        assert event["ingestproto"] == "posthog"
        assert (event["datacontenttype"], event["data"]) == ("application/json", EVENT)
        assert asked.records[0].key == b"u42"

    @pytest.mark.parametrize(
        "name", ["$set", "$identify", "$create_alias", "$groupidentify", "$pageview"]
    )
    def test_special_names(self, name: str) -> None:
        """Events that PostHog acts upon are events like others."""
        event = {**EVENT, "event": name, "$set": {"plan": "pro"}}

        (found,) = batch(event).events

        assert (found["type"], found["data"]) == ("dev.weir.posthog.event", event)

    def test_the_same_again(self) -> None:
        """An event sent again has the same identity, whatever way and sent time it came with."""
        asked = [
            batch(EVENT, sent_at=format_time(ARRIVED_MS)),
            batch(EVENT, sent_at=format_time(ARRIVED_MS + 9_000)),
            ask(Request("/capture", json.dumps({**EVENT, "token": KEY}).encode())),
            ask(Request(V1, json.dumps({"batch": [EVENT]}).encode(), headers=BEARER)),
        ]

        assert len({one.events[0]["weirid"] for one in asked}) == 1
        assert asked[0].events[0]["time"] != asked[1].events[0]["time"]

    def test_without_a_uuid(self) -> None:
        """An id is assigned, another one each time; a key for repeats makes it the same."""
        body = json.dumps({"api_key": KEY, "batch": [without("uuid"), {**EVENT, "uuid": None}]})
        repeated = Request("/batch", body.encode(), headers={"Idempotency-Key": '"a"'})

        ids = [one["id"] for again in (1, 2) for one in ask(Request("/e", body.encode())).events]
        first, second = ask(repeated), ask(repeated)

        assert len(set(ids)) == 4
        assert [one["weirid"] for one in first.events] == [one["weirid"] for one in second.events]

    @pytest.mark.parametrize(
        ("members", "subject"),
        [
            ({"distinct_id": "a", "properties": {"distinct_id": "b"}}, "a"),
            ({"distinct_id": None, "properties": {"distinct_id": "b"}}, "b"),
            ({"distinct_id": "", "properties": {"distinct_id": "b"}}, "b"),
            ({"properties": {"distinct_id": "b"}}, "b"),
            ({"$distinct_id": "c", "properties": {"distinct_id": "b"}}, "c"),
            ({"distinct_id": 42}, "42"),
        ],
    )
    def test_who_it_is_about(self, members: dict[str, Any], subject: str) -> None:
        """`distinct_id` of the event, else `$distinct_id`, else that of its properties."""
        asked = batch({**without("distinct_id"), **members})

        assert asked.events[0]["subject"] == subject
        assert asked.records[0].key == subject.encode()

    def test_engage_needs_no_name(self) -> None:
        """At `/engage` an event says only what is set; elsewhere it must have a name."""
        event = {"$distinct_id": "d", "$set": {"plan": "pro"}, "uuid": "1"}
        body = json.dumps({**event, "$token": KEY}).encode()

        (found,) = ask(Request("/engage/", body)).events
        elsewhere = ask(Request("/track/", body))

        assert (found["subject"], found["data"]) == ("d", event)
        assert [reason for reason, _ in elsewhere.refused] == ["not_an_event"]

    def test_nothing_in_it(self) -> None:
        """An empty batch is a success."""
        asked = batch()

        assert (asked.status, asked.body, asked.records) == (200, b'{"status":1}', [])

    def test_a_browser_may_read_the_answer(self) -> None:
        """Pages of other origins may send, by beacons and with a preflight."""
        body = json.dumps({"api_key": KEY, "batch": [EVENT]}).encode()
        headers = {"Origin": "https://shop.example", "Content-Type": "text/plain"}
        asks = {"Access-Control-Request-Method": "POST"}

        asked = ask(Request("/e/?beacon=1", body, headers=headers))
        before = ask(Request("/e/", method="OPTIONS", headers={**headers, **asks}))

        assert (asked.status, asked.body) == (200, b'{"status":1}')
        assert asked.headers["access-control-allow-origin"] == "https://shop.example"
        assert before.status == 204
        assert "content-type" in before.headers["access-control-allow-headers"]


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "reason", "detail"),
        [
            ({"event": None}, "not_an_event", "an event must have event, a text, got null"),
            ({"event": ""}, "not_an_event", 'an event must have event, a text, got ""'),
            ({"event": 7}, "not_an_event", "an event must have event, a text, got 7"),
            (
                {"distinct_id": None},
                "not_an_event",
                "an event must have distinct_id, of itself or in properties, got none",
            ),
            ({"distinct_id": {}}, "attribute_invalid", "distinct_id must be text, got {}"),
            ({"distinct_id": "a\x00"}, "invalid_unicode", "distinct_id must not hold U+0000"),
            ({"uuid": ""}, "id_invalid", "id must be text of 1 to 512 bytes or a number, got 0"),
            ({"uuid": {}}, "id_invalid", "id must be text of 1 to 512 bytes or a number, got {}"),
            ({"uuid": "u" * 513}, "id_invalid", "got 513 bytes"),
            ({"timestamp": "yesterday"}, "time_invalid", 'got "yesterday"'),
            ({"timestamp": "2026-02-30T00:00:00Z"}, "time_invalid", "must exist in the calendar"),
            ({"timestamp": ""}, "time_invalid", 'got ""'),
            ({"offset": "5"}, "time_invalid", "offset must be a plausible number of millisecond"),
            ({"offset": True}, "time_invalid", "milliseconds, got true"),
            ({"offset": 4e12}, "time_invalid", "milliseconds, got 4000000000000.0"),
            ({"properties": {"n": 10**30}}, "number_range", "integers must fit 64 bits"),
        ],
    )
    def test_one_bad_event_harms_no_other(
        self, change: dict[str, Any], reason: str, detail: str
    ) -> None:
        """It is kept with its reason, the answer is a success all the same, and tells of it."""
        asked = batch({**EVENT, **change}, {**EVENT, "uuid": "good"})

        assert asked.status == 200
        assert [one["id"] for one in asked.events] == ["good"]
        ((told, text),) = asked.refused
        assert (told, json.loads(text)) == (reason, {**EVENT, **change})
        body = asked.json
        assert (body["status"], body["quarantined"]) == (1, 1)
        assert (body["items"][0]["index"], body["items"][0]["code"]) == (0, reason)
        assert detail in body["items"][0]["detail"]

    @pytest.mark.parametrize("uuid", ["u" * 512, 7, -1])
    def test_ids_that_are_good(self, uuid: Any) -> None:
        """A text of up to 512 bytes is an id, and a number by its text."""
        assert batch({**EVENT, "uuid": uuid}).events[0]["id"] == str(uuid)

    def test_no_object_is_no_event(self) -> None:
        """Elements of a batch that are no objects are kept with their reason."""
        asked = batch(1, "a", None, [])

        assert (asked.status, len(asked.refused)) == (200, 4)
        assert {reason for reason, _ in asked.refused} == {"not_an_event"}

    def test_numbers_that_json_does_not_have(self) -> None:
        """They become null, and are named; the other events are whole."""
        body = b'{"api_key":"%b","batch":[{"event":"e","distinct_id":"u","properties":%b},%b]}'
        odd = b'{"a":NaN,"b":1e400,"c":9007199254740993}'

        asked = ask(Request("/batch", body % (KEY.encode(), odd, json.dumps(EVENT).encode())))

        assert asked.events[0]["data"]["properties"] == {"a": None, "b": None, "c": 2**53 + 1}
        assert asked.events[0]["nulled"] == "properties.a,properties.b"
        assert asked.events[1]["data"] == EVENT

    def test_depth(self) -> None:
        """32 levels are data, 33 are too deep for an event."""
        deep = [{**EVENT, "x": json.loads("[" * n + "]" * n), "uuid": str(n)} for n in (31, 32)]

        asked = batch(*deep)

        assert [one["id"] for one in asked.events] == ["31"]
        assert [reason for reason, _ in asked.refused] == ["too_deep"]

    @pytest.mark.parametrize("levels", [1_100, 100_000])
    @pytest.mark.parametrize("start", [b'{"event":"e","x":', b'{"batch":[', b"["])
    def test_far_too_deep(self, start: bytes, levels: int) -> None:
        """A body that no parser could follow is refused whole, with its key in it or before it."""
        for headers in ({}, BEARER):
            asked = ask(Request("/e", start + b"[" * levels, headers=headers))

            assert (asked.status, asked.json["code"]) == (400, "too_deep")

    @pytest.mark.parametrize("name", [b"token", b"t\\u006fken"])
    def test_half_a_pair(self, name: bytes) -> None:
        """Half of a surrogate pair harms its own event, even in a name, and of the first event."""
        body = b'[{"\\ud800":1,"' + name + b'":"%b"},%b]'
        good = json.dumps({**EVENT, "token": KEY}).encode()

        asked = ask(Request("/e", body % (KEY.encode(), good)))

        assert [reason for reason, _ in asked.refused] == ["invalid_unicode"]
        assert [one["data"] for one in asked.events] == [EVENT]
        assert KEY.encode() not in asked.refused[0][1]

    def test_a_large_event(self) -> None:
        """An event over the size of a record is kept in part, without its key."""
        large = {"api_key": KEY, **EVENT, "properties": {"a": "x" * 1_000_000}}

        asked = ask(Request("/capture", json.dumps(large).encode()))

        assert [reason for reason, _ in asked.refused] == ["event_too_large"]
        assert KEY.encode() not in asked.records[0].value

    @pytest.mark.parametrize(
        ("body", "code", "detail"),
        [
            (b'{"batch":[', "invalid_json", "body must be JSON; Input data was truncated"),
            (b'[{"event":"e', "invalid_json", "body must be JSON; Input data was truncated"),
            (b'[{"event":NaN', "invalid_json", "body must be JSON; Input data was truncated"),
            (b'{"event":"e"} x', "invalid_json", "body must be JSON"),
            (b"7", "request_invalid", 'body must be an event, a list of events or {"batch"'),
            (b"{\xff", "invalid_utf8", "text must be UTF-8"),
            (b"", "empty_body", "body must hold events"),
        ],
    )
    def test_a_body_that_cannot_be_read(self, body: bytes, code: str, detail: str) -> None:
        """It is refused whole, also where its key has not been found yet."""
        for headers in ({}, BEARER):
            asked = ask(Request("/batch", body, headers=headers))

            assert (asked.status, asked.records) == (400, [])
            assert asked.json["code"] == code
            assert asked.json["detail"].startswith(detail)

    def test_an_event_that_is_no_json(self) -> None:
        """Where it is all of the body, the request is refused, however late that is seen."""
        event = b'{"event":"e","distinct_id":"u","a":"\\u12"}'

        asked = ask(Request("/e", event, headers=BEARER))

        assert (asked.status, asked.json["code"], asked.records) == (400, "invalid_json", [])

    def test_a_batch_that_is_no_list(self) -> None:
        """What a batch holds must be a list."""
        asked = ask(Request("/batch", b'{"batch":{}}', headers=BEARER))

        assert (asked.status, asked.json["code"]) == (400, "request_invalid")
        assert asked.json["message"] == "batch must be a list of events"

    @pytest.mark.parametrize("make", [list, lambda events: {"api_key": KEY, "batch": events}])
    def test_too_many_events(self, make: Any) -> None:
        """As many events as allowed are taken, one more is refused before it is looked at."""
        for count, status in ((2, 200), (3, 413)):
            body = json.dumps(make([EVENT] * count)).encode()

            request = Request("/batch", body, headers=BEARER)

            assert ask(request, batch_limits=BatchLimits(2, 2)).status == status

    def test_a_list_of_millions(self) -> None:
        """A list of nothing is not made into millions of events before somebody says stop."""
        body = json.dumps({"api_key": KEY}).encode()[:-1] + b',"batch":[' + b"0," * 2_000_000

        assert ask(Request("/batch", body + b"0]}")).status == 413

    @pytest.mark.parametrize("path", ["/batch/", V1])
    @pytest.mark.parametrize(
        ("status", "reason"), [(503, Reason.LOG_UNAVAILABLE), (429, Reason.RATE_LIMITED)]
    )
    def test_not_now(self, path: str, status: int, reason: Reason) -> None:
        """503 or 429 with the seconds to wait, never 500, and never `retry`: all is sent again."""
        failure = ProblemError(status, reason, "not confirmed", retry_after_s=2)
        body = json.dumps({"batch": [EVENT]}).encode()

        asked = ask(Request(path, body, headers=BEARER), failure=failure)

        assert (asked.status, asked.headers["retry-after"]) == (status, "2")
        assert asked.json["detail"] == "not confirmed"

    @pytest.mark.parametrize(
        ("target", "mapped"),
        [("/batch", b"posthog"), ("/engage", b"posthog.engage"), (V1, b"posthog")],
    )
    def test_how_it_was_read_is_told(self, target: str, mapped: bytes) -> None:
        """What is refused says by which mapping it was read, and that mapping is known."""
        (record,) = ask(Request(target, b'{"batch":[{}]}', headers=BEARER)).records

        assert dict(record.headers)["weir-mapping"] == mapped
        assert mapped.decode() in NAMED


LIBRARY: dict[str, Any] = {"$lib": "posthog-node"}


class TestClock:
    @pytest.mark.parametrize(
        ("skew_ms", "properties", "moved_ms", "source"),
        [
            (2_000, {}, 0, "client"),
            (2_001, {}, -2_001, "skew"),
            (-2_000, {}, 0, "client"),
            (-2_001, {}, 2_001, "skew"),
            (-60_000, {"$is_server": True}, 0, "client"),
            (-60_000, {"$is_server": False, **LIBRARY}, 60_000, "skew"),
            (-60_000, LIBRARY, 0, "client"),
            (-60_000, {"$lib": "web"}, 60_000, "skew"),
            (60_000, {"$is_server": True}, -60_000, "skew"),
            (60_000, {"$ignore_sent_at": True}, 0, "client"),
            (60_000, {"$ignore_sent_at": "true"}, 0, "client"),
            (60_000, {"$ignore_sent_at": False}, -60_000, "skew"),
            (60_000, {"$ignore_sent_at": None}, -60_000, "skew"),
        ],
    )
    def test_correction(
        self, skew_ms: int, properties: dict[str, Any], moved_ms: int, source: str
    ) -> None:
        """A clock that is off is corrected by the sent time; a server's is only if it is ahead."""
        event = {**EVENT, "properties": properties}

        (found,) = batch(event, sent_at=format_time(ARRIVED_MS + skew_ms)).events

        assert (found["time"], found["timesrc"]) == (format_time(HAPPENED_MS + moved_ms), source)

    @pytest.mark.parametrize(
        ("query", "moved_ms"),
        [
            (f"sent_at={ARRIVED_MS + 60_000}", -60_000),
            (f"_={ARRIVED_MS + 60_000}", -60_000),
            (f"sent_at={ARRIVED_MS + 60_000}&_={ARRIVED_MS}", -60_000),
            (f"sent_at={format_time(ARRIVED_MS + 60_000)}", -60_000),
            (f"_={ARRIVED_MS // 1_000 + 60}", 0),
            ("_=k3ad9", 0),
            ("_=", 0),
        ],
    )
    def test_sent_in_the_query(self, query: str, moved_ms: int) -> None:
        """The query says when, in milliseconds or as a text; anything else is no time."""
        asked = batch(EVENT, target=f"/e/?ip=1&{query}&ver=1.1")

        assert asked.events[0]["time"] == format_time(HAPPENED_MS + moved_ms)

    @pytest.mark.parametrize(
        ("sent", "moved_ms"),
        [
            (ARRIVED_MS + 60_000, -60_000),
            ("2026-03-01T22:21:00+01:00", -60_000),
            (None, -5_000),
            ("soon", 0),
            (True, 0),
        ],
    )
    def test_sent_in_the_body(self, sent: Any, moved_ms: int) -> None:
        """The body goes before the query, as text or number; one that is none corrects nothing."""
        asked = batch(EVENT, target=f"/e?_={ARRIVED_MS + 5_000}", sent_at=sent)

        assert asked.events[0]["time"] == format_time(HAPPENED_MS + moved_ms)

    def test_sent_of_the_event_itself(self) -> None:
        """An event that says when it was sent is believed before its batch."""
        event = {**EVENT, "sent_at": format_time(ARRIVED_MS + 60_000)}

        (found,) = batch(event, sent_at=format_time(ARRIVED_MS)).events
        (alone,) = ask(Request("/e", json.dumps({**event, "token": KEY}).encode())).events

        assert found["time"] == alone["time"] == format_time(HAPPENED_MS - 60_000)

    @pytest.mark.parametrize(
        ("offset", "time_ms"),
        [
            (1_500, ARRIVED_MS - 1_500),
            (0, ARRIVED_MS),
            (1_500.4, ARRIVED_MS - 1_500),
            (-60_000, ARRIVED_MS + 60_000),
            (None, HAPPENED_MS - 60_000),
        ],
    )
    def test_offset(self, offset: Any, time_ms: int) -> None:
        """An event with an offset happened so long before it arrived, whatever clocks say."""
        sent = format_time(ARRIVED_MS + 60_000)

        (event,) = batch({**EVENT, "offset": offset}, sent_at=sent).events

        assert event["time"] == format_time(time_ms)

    @pytest.mark.parametrize(
        ("timestamp", "time", "source"),
        [
            (None, format_time(ARRIVED_MS), "arrived"),
            ("2999-01-01T00:00:00Z", format_time(ARRIVED_MS), "clamped"),
            (HAPPENED_MS, format_time(HAPPENED_MS), "client"),
            (HAPPENED_MS // 1_000, format_time(HAPPENED_MS), "client"),
            ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000Z", "client"),
        ],
    )
    def test_odd_times(self, timestamp: Any, time: str, source: str) -> None:
        """No time is the arrival, a far future too; numbers are read by their size."""
        (event,) = batch({**EVENT, "timestamp": timestamp}).events

        assert (event["time"], event["timesrc"]) == (time, source)
