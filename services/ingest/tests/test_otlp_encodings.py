"""OTLP's two encodings: what is odd in each of them, and what is none (INGEST 4.4)."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .in_process import Asked
from .otlp_requests import (
    AT_NS,
    JSON,
    PROTOBUF,
    SERVICE,
    data,
    field,
    gauge,
    ids,
    log,
    logs,
    metrics,
    point,
    post,
    protobuf,
    raw_logs,
    send,
    signal_of,
    span,
    traces,
)


def post_json(text: str, path: str = "logs", media_type: str = JSON) -> Asked:
    """Return what becomes of a body in JSON."""
    return post(path, text.encode(), media_type)


def one_log(members: str) -> Asked:
    """Return what becomes of a log record, given by its members, and of a good one beside it."""
    beside = '{"timeUnixNano":1,"body":{"stringValue":"beside"}}'
    text = '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{%s},%s]}]}]}'
    return post_json(text % (members, beside))


class TestJson:
    @pytest.mark.parametrize(
        "media_type", [JSON, f"{JSON}; charset=utf-8", "Application/JSON", f"{JSON} ;x=y"]
    )
    def test_media_type(self, media_type: str) -> None:
        """The media type may have parameters, and any case."""
        asked = post_json(json.dumps(logs(log())), media_type=media_type)

        assert (asked.status, len(asked.events)) == (200, 1)
        assert asked.headers["content-type"] == JSON

    def test_unknown_fields(self) -> None:
        """Members that are not known are passed over, wherever they stand and whatever they are."""

        def with_unknown(node: Any) -> Any:
            if isinstance(node, dict):
                known = {name: with_unknown(value) for name, value in node.items()}
                return {"new": {"deep": [1, None]}, **known, "time_unix_nano": 7, "x": "y"}
            return [with_unknown(one) for one in node] if isinstance(node, list) else node

        for said in (logs(log()), traces(span()), metrics(gauge(point()))):
            text = json.dumps(with_unknown(said))
            assert ids(post_json(text, signal_of(said))) == ids(send(said))

    def test_names_with_underscores(self) -> None:
        """The names of protobuf are unknown names."""
        asked = post_json('{"resource_logs":[{"scope_logs":[]}]}')
        record = one_log('"time_unix_nano":"5","severity_number":9,"timeUnixNano":"1000000"')

        assert (asked.status, asked.records) == (200, [])
        assert data(record)[0] == {
            **{"resource": {}, "scope": {}},
            "timeUnixNano": 1_000_000,
        }

    def test_null(self) -> None:
        """Null is as good as nothing, for every field of every message."""
        said = {
            "resourceLogs": [
                {
                    "resource": None,
                    "schemaUrl": None,
                    "scopeLogs": [{"scope": None, "logRecords": None}, {"logRecords": [log()]}],
                },
                {"scopeLogs": None},
            ]
        }
        record = one_log(
            '"timeUnixNano":1,"observedTimeUnixNano":null,"severityText":null,"attributes":null,'
            '"traceId":null,"flags":null,"body":{"stringValue":null,"arrayValue":{"values":null}}'
        )

        assert len(send(said).events) == 1
        assert post_json('{"resourceLogs":null}').status == 200
        assert data(record)[0] == {"resource": {}, "scope": {}, "timeUnixNano": 1, "body": []}

    @pytest.mark.parametrize(
        "said", ["1772359200000000000", '"1772359200000000000"', "1.7723592e18", '"1.7723592e18"']
    )
    def test_integers(self, said: str) -> None:
        """An integer is a number or a text, also with an exponent."""
        (found, _beside) = data(one_log(f'"timeUnixNano":{said}'))

        assert found["timeUnixNano"] == AT_NS

    @pytest.mark.parametrize(
        ("members", "reason", "why"),
        [
            (
                '"timeUnixNano":"soon"',
                "not_an_event",
                'an integer must be one, got "soon"',
            ),
            ('"timeUnixNano":1.5', "not_an_event", 'an integer must be one, got "1.5"'),
            (
                '"body":{"intValue":"18446744073709551616"}',
                "number_range",
                "integers must fit 64 bits, got one of 20 digits; send it as text",
            ),
            (
                '"body":{"intValue":-9223372036854775809}',
                "number_range",
                "integers must fit 64 bits, got one of 20 digits; send it as text",
            ),
            (
                f'"body":{{"intValue":{"9" * 5_000}}}',
                "number_range",
                "integers must fit 64 bits, got one of 5000 digits; send it as text",
            ),
            (
                '"timeUnixNano":{}',
                "not_an_event",
                "a LogRecord must be the message of that name in JSON; Expected `int | float | "
                "str | null`, got `object` - at `$.timeUnixNano`",
            ),
            (
                '"severityNumber":"SEVERITY_NUMBER_INFO"',
                "not_an_event",
                'an integer must be one, got "SEVERITY_NUMBER_INFO"',
            ),
            (
                '"body":{"doubleValue":"much"}',
                "not_an_event",
                'a double must be a number, got "much"',
            ),
            (
                '"body":{"bytesValue":"x"}',
                "not_an_event",
                'bytesValue must be base64, got "x"',
            ),
            (
                '"attributes":[null]',
                "not_an_event",
                "a LogRecord must be the message of that name in JSON; Expected `object`, got "
                "`null` - at `$.attributes[0]`",
            ),
        ],
    )
    def test_a_record_that_is_none(self, members: str, reason: str, why: str) -> None:
        """A record that cannot be read is in quarantine, with its bytes; the others are stored."""
        asked = one_log(members)

        assert data(asked)[0]["body"] == "beside"
        ((found, kept),) = asked.refused
        assert found == reason
        assert b"{%b}" % members.encode() in kept
        told = asked.json["partialSuccess"]["errorMessage"]
        assert told.endswith(f"; record 0: {reason}, {why}")

    @pytest.mark.parametrize(
        ("count", "reason"),
        [
            (2**64 - 1, None),
            (str(2**64), "number_range"),
            (1.5, "not_an_event"),
            ("many", "not_an_event"),
        ],
    )
    def test_counts(self, count: Any, reason: str | None) -> None:
        """Each of many counts is an integer as any other."""
        said = {"dataPoints": [{"timeUnixNano": 1, "bucketCounts": [1, count]}]}

        asked = send(metrics({"name": "m", "histogram": said}))

        assert [found for found, _kept in asked.refused] == ([reason] if reason else [])
        assert [found["bucketCounts"] for found in data(asked)] == ([] if reason else [[1, count]])

    def test_a_record_that_is_no_object(self) -> None:
        """So is what is no object at all."""
        asked = send(logs(5, log()))

        assert [reason for reason, _kept in asked.refused] == ["not_an_event"]
        assert len(asked.events) == 1

    @pytest.mark.parametrize("text", ["/+8=", "_-8=", "_-8", "/+8"])
    def test_base64(self, text: str) -> None:
        """Bytes may be in the base64 of URLs, and without its end; they are kept in the other."""
        (found, _beside) = data(one_log(f'"timeUnixNano":1,"body":{{"bytesValue":"{text}"}}'))

        assert found["body"] == "/+8="

    @pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400", "-1e400", "9" * 400])
    def test_bare_words_and_large_numbers(self, number: str) -> None:
        """A double beyond JSON is null, also where it is written without quotes."""
        asked = one_log(
            f'"timeUnixNano":1,"body":{{"arrayValue":{{"values":[{{"doubleValue":{number}}}]}}}}'
        )

        assert [found["body"] for found in data(asked)] == [[None], "beside"]
        assert [event.get("nulled") for event in asked.events] == ["body[0]", None]

    def test_large_but_whole(self) -> None:
        """A double may be written as an integer of many digits."""
        (found, _beside) = data(one_log(f'"timeUnixNano":1,"body":{{"doubleValue":1{"0" * 30}}}'))

        assert found["body"] == 1e30

    @pytest.mark.parametrize("text", ["\\ud800", "\\udc00x"])
    def test_half_of_a_pair(self, text: str) -> None:
        """Half of a surrogate pair is the fault of its record alone."""
        asked = one_log(f'"body":{{"stringValue":"{text}"}}')

        assert [reason for reason, _kept in asked.refused] == ["invalid_unicode"]
        assert data(asked)[0]["body"] == "beside"

    def test_ids_in_base64(self) -> None:
        """Ids are hex: base64, as protobuf's own mapping has it, is no id of a span."""
        asked = send(traces(span(traceId="W47/95gDgQPSabYzgT/GDA==")))

        ((reason, _kept),) = asked.refused
        assert reason == "id_invalid"
        assert (
            "traceId of a span must be 32 hex digits, not all of them 0, "
            'got "w47/95gdgqpsabyzgt/gda=="' in asked.json["partialSuccess"]["errorMessage"]
        )

    @pytest.mark.parametrize(
        ("text", "code", "why"),
        [
            ("[]", "invalid_json", "body must be JSON; Expected `object`, got `array`"),
            ("{", "invalid_json", "body must be JSON; Input data was truncated (byte 1)"),
            ("nope", "invalid_json", "body must be JSON; "),
            ('{"resourceLogs":{}}', "request_invalid", "resourceLogs must be a list, got {}"),
            (
                '{"resourceLogs":[{"scopeLogs":"x"}]}',
                "request_invalid",
                'scopeLogs must be a list, got "x"',
            ),
            ('{"resourceLogs":[5]}', "invalid_json", "body must be JSON; Expected `object`"),
            ('{"resourceLogs":[{"scopeLogs":[{"logRecords":[{]}]}]}', "invalid_json", "body must"),
        ],
    )
    def test_a_body_that_is_none(self, text: str, code: str, why: str) -> None:
        """Where it is not clear what the records are, the whole request is refused."""
        asked = post_json(text)

        assert (asked.status, asked.records) == (400, [])
        assert asked.json["code"] == 3
        assert asked.json["message"].startswith(f"{code}: {why}")

    def test_invalid_utf8(self) -> None:
        """A body that is no UTF-8 is no JSON."""
        asked = post("logs", b'{"resourceLogs":[{"x":"\xff"}]}', JSON)

        assert asked.status == 400
        assert asked.json["message"].startswith("invalid_utf8: text must be UTF-8, got byte 0xff")

    def test_a_metric_of_two_kinds(self) -> None:
        """A metric is of one kind."""
        said = {**gauge(point()), "sum": {"dataPoints": [point(), point()]}}

        assert [found["kind"] for found in data(send(metrics(said)))] == ["gauge"]


def post_protobuf(body: bytes, path: str = "logs") -> Asked:
    """Return what becomes of a body in protobuf."""
    return post(path, body, PROTOBUF)


TIME = b"\x09" + struct.pack("<Q", AT_NS)


def text_body(text: bytes) -> bytes:
    """Return the body of a log record."""
    return field(5, field(1, text))


class TestProtobuf:
    def test_order_of_fields(self) -> None:
        """Resource and scope may come after what is under them, and in parts."""
        service = field(1, field(1, b"service.name") + field(2, field(1, b"shop")))
        resource = field(1, service) + field(1, b"")
        scope = field(1, field(1, b"m")) + field(1, field(2, b"1.2"))
        group = field(2, field(2, TIME + text_body(b"hi")) + scope)

        asked = post_protobuf(field(1, group + resource))

        assert ids(asked) == ids(send(logs(log())))

    def test_data_in_parts(self) -> None:
        """Data that come in parts are one; of two kinds the last one holds."""

        def values(metric: bytes) -> list[Any]:
            asked = post_protobuf(field(1, field(2, field(2, field(1, b"m") + metric))), "metrics")
            return [(found["kind"], found["value"]) for found in data(asked)]

        one, two, three = (
            field(1, b"\x19" + struct.pack("<Q", AT_NS) + b"\x31" + struct.pack("<q", n))
            for n in (1, 2, 3)
        )
        gauges, sums = field(5, one) + field(5, two), field(7, three)

        assert values(gauges) == [("gauge", 1), ("gauge", 2)]
        assert values(gauges + sums) == [("sum", 3)]
        assert values(sums + gauges) == [("gauge", 1), ("gauge", 2)]
        assert values(field(5, one) + sums + field(5, two)) == [("gauge", 2)]

    def test_unknown_fields(self) -> None:
        """Fields that are not known are passed over, wherever they stand and however written."""
        unknown = b"\xf8\x07\x80\x01" + b"\xf9\x07" + bytes(8) + b"\xfd\x07" + bytes(4)
        unknown += b"\xfa\x07\x03abc"
        scope = field(2, field(2, TIME + unknown + text_body(b"hi")) + unknown)

        asked = post_protobuf(unknown + field(1, unknown + scope))

        assert [found["body"] for found in data(asked)] == ["hi"]

    @pytest.mark.parametrize(
        ("record", "reason", "why"),
        [
            (
                text_body(b"\xff"),
                "invalid_utf8",
                "texts of a LogRecord must be UTF-8; String field had bad UTF-8",
            ),
            (
                b"\x0a",
                "not_an_event",
                "a LogRecord must be the message of that name in protobuf; Wire format was corrupt",
            ),
        ],
    )
    def test_a_record_that_is_none(self, record: bytes, reason: str, why: str) -> None:
        """A record that cannot be read is in quarantine, in base64; the others are stored."""
        asked = post_protobuf(raw_logs(TIME + record, TIME + text_body(b"beside")))

        assert [found["body"] for found in data(asked)] == ["beside"]
        ((found, kept),) = asked.refused
        item = json.loads(kept)
        assert item == {
            "resource": {"attributes": {"service.name": "shop"}},
            "scope": {"name": "m", "version": "1.2"},
            "unreadable": {
                "message": "LogRecord",
                "reason": reason,
                "why": why,
                "raw": base64.b64encode(TIME + record).decode(),
            },
        }
        assert found == reason

    @pytest.mark.parametrize(
        ("body", "why"),
        [
            (b"\x0a\x05ab", "it ends early"),
            (b"\x0a", "it ends early"),
            (b"\x80", "it ends early"),
            (b"\xf9\x07\x00", "it ends early"),
            (b"\x0b\x0c", "it has a field of kind 3"),
            (b"\x80" * 11, "it has a number of more than 10 bytes"),
            (b'{"resourceLogs":[]}', "it has a field of kind 3"),
        ],
    )
    def test_a_body_that_is_none(self, body: bytes, why: str) -> None:
        """Where it is not clear what the records are, the whole request is refused."""
        asked = post_protobuf(body)

        assert (asked.status, asked.records) == (400, [])
        expected = f"request_invalid: body must be an export request of OTLP in protobuf; {why}"
        assert asked.body.endswith(expected.encode())

    def test_cut_anywhere(self) -> None:
        """A body that is cut is refused or, between two groups, is fewer of them."""
        whole = protobuf(metrics(gauge(point()), resource={"attributes": SERVICE}))
        statuses = {at: post_protobuf(whole[:at], "metrics").status for at in range(1, len(whole))}

        assert {*statuses.values()} == {400}

    @given(st.binary(max_size=60))
    @settings(max_examples=100, deadline=None)
    def test_any_bytes(self, body: bytes) -> None:
        """Bytes of any kind are an answer of the protocol's, whichever signal they claim to be."""
        for path in ("logs", "metrics", "traces"):
            asked = post_protobuf(body, path)
            assert asked.status in (200, 400)
            assert asked.headers["content-type"] == PROTOBUF

    @given(st.data())
    @settings(max_examples=100, deadline=None)
    def test_changed_bytes(self, draw: st.DataObject) -> None:
        """A request with changed bytes is an answer of the protocol's, too, in either encoding."""
        said = draw.draw(st.sampled_from([logs(log()), traces(span()), metrics(gauge(point()))]))
        for media_type in (JSON, PROTOBUF):
            body = bytearray(json.dumps(said).encode() if media_type == JSON else protobuf(said))
            for _ in range(draw.draw(st.integers(1, 4))):
                body[draw.draw(st.integers(0, len(body) - 1))] = draw.draw(st.integers(0, 255))
            asked = post(signal_of(said), bytes(body), media_type)
            assert asked.status in (200, 400, 413)
