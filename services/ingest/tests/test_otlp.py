"""OpenTelemetry's protocol (INGEST 4.4): what records become, from either encoding."""

from __future__ import annotations

import base64
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.event_time import format_time
from weir.expressions import Used, use

from .in_process import Asked
from .otlp_requests import (
    AT,
    AT_MS,
    AT_NS,
    HEAD,
    JSON,
    PROTOBUF,
    RESOURCE,
    SCOPE,
    SERVICE,
    SPAN_ID,
    TRACE_ID,
    attributes,
    data,
    gauge,
    log,
    logs,
    metrics,
    point,
    send,
    span,
    traces,
)

BOTH = pytest.mark.parametrize("media_type", [JSON, PROTOBUF])


def value_of(asked: Asked) -> Any:
    """Return the one attribute of a log record."""
    return data(asked)[0]["attributes"]["a"]


def with_value(value: Any) -> dict[str, Any]:
    """Return a request of a log record with one attribute."""
    return logs(log(attributes=[{"key": "a", "value": value}]))


class TestLogs:
    @BOTH
    def test_a_record_is_an_event(self, media_type: str) -> None:
        """A log record is an event about its service, with all that is said of it."""
        asked = send(
            logs(
                {
                    "timeUnixNano": str(AT_NS + 999_999),
                    "observedTimeUnixNano": str(AT_NS + 5),
                    "severityNumber": 9,
                    "severityText": "INFO",
                    "eventName": "order.placed",
                    "body": {"stringValue": "hi"},
                    "attributes": attributes(sku="a"),
                    "droppedAttributesCount": 2,
                    "traceId": TRACE_ID.upper(),
                    "spanId": SPAN_ID,
                    "flags": 1,
                }
            ),
            media_type,
        )

        (event,) = asked.events
        assert event["type"] == "dev.weir.otlp.log"
        assert (event["subject"], event["ingestproto"]) == ("shop", "otlp")
        assert (event["time"], event["timesrc"]) == (AT, "client")
        assert event["data"] == {
            **HEAD,
            "timeUnixNano": AT_NS + 999_999,
            "observedTimeUnixNano": AT_NS + 5,
            "severityNumber": 9,
            "severityText": "INFO",
            "eventName": "order.placed",
            "body": "hi",
            "attributes": {"sku": "a"},
            "droppedAttributesCount": 2,
            "traceId": TRACE_ID,
            "spanId": SPAN_ID,
            "flags": 1,
        }
        assert not {"clienttime", "sentat"} & {*event}

    @BOTH
    def test_observed_time(self, media_type: str) -> None:
        """Where a record does not say when it was, it was when it was observed."""
        said = {"observedTimeUnixNano": str(AT_NS), "body": {"stringValue": "hi"}}

        (event,) = send(logs(said, scope={}), media_type).events

        assert (event["time"], event["timesrc"]) == (AT, "client")
        assert event["data"] == {
            "resource": HEAD["resource"],
            "scope": {},
            "observedTimeUnixNano": AT_NS,
            "body": "hi",
        }

    @BOTH
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            ({"intValue": "7"}, 7),
            ({"boolValue": False}, False),
            ({"kvlistValue": {"values": attributes(a="b")}}, {"a": "b"}),
            ({"arrayValue": {"values": [{"doubleValue": 0.5}]}}, [0.5]),
            ({"stringValue": ""}, ""),
        ],
    )
    def test_any_body(self, media_type: str, body: Any, expected: Any) -> None:
        """A body may be any value."""
        assert data(send(logs(log(body=body)), media_type))[0]["body"] == expected

    @BOTH
    def test_all_that_is_said_of_resource_and_scope(self, media_type: str) -> None:
        """Resource and scope have attributes, how many were dropped, and their schemas."""
        said = logs(
            log(),
            resource={**RESOURCE, "droppedAttributesCount": 3},
            scope={**SCOPE, "attributes": attributes(a="b"), "droppedAttributesCount": 4},
        )
        said["resourceLogs"][0]["schemaUrl"] = "http://x/1"
        said["resourceLogs"][0]["scopeLogs"][0]["schemaUrl"] = "http://x/2"

        (found,) = data(send(said, media_type))

        assert found["resource"] == {
            "attributes": {"service.name": "shop"},
            "droppedAttributesCount": 3,
            "schemaUrl": "http://x/1",
        }
        assert found["scope"] == {
            **SCOPE,
            "attributes": {"a": "b"},
            "droppedAttributesCount": 4,
            "schemaUrl": "http://x/2",
        }

    @BOTH
    def test_an_id_of_zeros_is_none(self, media_type: str) -> None:
        """A log record need not belong to a trace, and a root span has no parent."""
        asked = send(logs(log(traceId="0" * 32, spanId="")), media_type)
        root = send(traces(span(parentSpanId="0" * 16)), media_type)

        assert not {"traceId", "spanId", "parentSpanId"} & {*data(asked)[0]}
        assert "parentSpanId" not in data(root)[0]


class TestValues:
    @BOTH
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ({"stringValue": 'q"\\\né漢😀\x00'}, 'q"\\\né漢😀\x00'),
            ({"boolValue": True}, True),
            ({"intValue": "9007199254740993"}, 9007199254740993),
            ({"intValue": str(2**63 - 1)}, 2**63 - 1),
            ({"intValue": str(-(2**63))}, -(2**63)),
            ({"doubleValue": 1e300}, 1e300),
            ({"doubleValue": 5e-324}, 5e-324),
            ({"bytesValue": base64.b64encode(b"\xff\x00").decode()}, "/wA="),
            ({"arrayValue": {"values": [{"intValue": 1}, {}]}}, [1, None]),
            ({"arrayValue": {}}, []),
            (
                {"kvlistValue": {"values": [{"key": "b", "value": {"arrayValue": {}}}]}},
                {"b": []},
            ),
            ({"kvlistValue": {}}, {}),
            ({}, None),
        ],
    )
    def test_kinds(self, media_type: str, value: Any, expected: Any) -> None:
        """A value of every kind is the value in JSON, exactly; bytes are base64."""
        asked = send(with_value(value), media_type)

        assert value_of(asked) == expected
        assert type(value_of(asked)) is type(expected)
        assert "nulled" not in asked.events[0]

    @BOTH
    def test_a_double_stays_one(self, media_type: str) -> None:
        """A whole double is written as one, and so is minus zero."""
        asked = send(with_value({"doubleValue": 3}), media_type)
        zero = send(with_value({"doubleValue": -0.0}), media_type)

        assert b'"attributes":{"a":3.0}' in asked.records[0].value
        assert math.copysign(1, value_of(zero)) == -1

    @BOTH
    @pytest.mark.parametrize("double", ["NaN", "Infinity", "-Infinity"])
    def test_what_json_does_not_have(self, media_type: str, double: str) -> None:
        """A double that JSON does not have is null, and said to be."""
        asked = send(with_value({"doubleValue": double}), media_type)
        measured = send(metrics(gauge({**point(), "asDouble": double})), media_type)

        assert value_of(asked) is None
        assert asked.events[0]["nulled"] == "attributes.a"
        assert data(measured)[0]["value"] is None
        assert measured.events[0]["nulled"] == "value"

    @BOTH
    def test_a_name_twice(self, media_type: str) -> None:
        """Of an attribute that is there twice the last one holds."""
        pairs = [*attributes(a="1"), *attributes(a="2")]

        assert value_of(send(logs(log(attributes=pairs)), media_type)) == "2"

    @BOTH
    def test_order_of_attributes(self, media_type: str) -> None:
        """Attributes in another order, also within a value, are the same event."""

        def asked(*names: str) -> Asked:
            pairs = attributes(**dict.fromkeys(names, "x"))
            inner = [{"key": "in", "value": {"kvlistValue": {"values": pairs}}}]
            resource = {"attributes": [*SERVICE, *pairs] if names[0] == "a" else [*pairs, *SERVICE]}
            return send(logs(log(attributes=[*pairs, *inner]), resource=resource), media_type)

        one, two = asked("a", "b"), asked("b", "a")

        assert one.events[0]["weirid"] == two.events[0]["weirid"]
        assert [*data(one)[0]["attributes"]] == ["a", "b", "in"]


class TestMetrics:
    @BOTH
    def test_a_point_is_an_event(self, media_type: str) -> None:
        """A point is an event about its metric, and says what is said of the metric."""
        exemplar = {
            "timeUnixNano": str(AT_NS - 1),
            "asInt": "4",
            "traceId": TRACE_ID,
            "spanId": SPAN_ID,
            "filteredAttributes": attributes(user="u1"),
        }
        found = {
            "name": "orders",
            "description": "how many",
            "unit": "1",
            "metadata": attributes(prometheus_type="counter"),
            "sum": {
                "aggregationTemporality": 2,
                "isMonotonic": True,
                "dataPoints": [
                    {
                        "attributes": attributes(sku="a"),
                        "startTimeUnixNano": str(AT_NS - 10),
                        "timeUnixNano": str(AT_NS),
                        "asInt": "9007199254740993",
                        "exemplars": [exemplar],
                        "flags": 1,
                    }
                ],
            },
        }

        (event,) = send(metrics(found), media_type).events

        assert event["type"] == "dev.weir.otlp.metric"
        assert (event["subject"], event["partitionkey"]) == ("orders", "shop")
        assert (event["time"], event["timesrc"]) == (AT, "client")
        assert event["data"] == {
            **HEAD,
            "name": "orders",
            "description": "how many",
            "unit": "1",
            "metadata": {"prometheus.type": "counter"},
            "kind": "sum",
            "temporality": "cumulative",
            "monotonic": True,
            "attributes": {"sku": "a"},
            "startTimeUnixNano": AT_NS - 10,
            "timeUnixNano": AT_NS,
            "value": 9007199254740993,
            "exemplars": [
                {
                    "timeUnixNano": AT_NS - 1,
                    "value": 4,
                    "traceId": TRACE_ID,
                    "spanId": SPAN_ID,
                    "filteredAttributes": {"user": "u1"},
                }
            ],
            "flags": 1,
        }

    @BOTH
    @pytest.mark.parametrize(
        ("number", "word"),
        [(0, "unspecified"), (1, "delta"), (2, "cumulative"), (3, 3), (-1, -1)],
    )
    def test_temporality(self, media_type: str, number: int, word: Any) -> None:
        """Temporality is a word; a number that is not known stays one."""
        said = {"aggregationTemporality": number, "dataPoints": [point()]}

        (found,) = data(send(metrics({"name": "m", "sum": said}), media_type))

        assert (found["temporality"], found["monotonic"]) == (word, False)

    @BOTH
    def test_gauge(self, media_type: str) -> None:
        """A gauge has neither temporality nor direction; a value of 0 is one, none is none."""
        none = {"timeUnixNano": str(AT_NS + 1), "flags": 1}

        zero, absent = data(send(metrics(gauge(point(0), none)), media_type))

        assert zero == {
            **HEAD,
            **{"name": "orders", "kind": "gauge", "timeUnixNano": AT_NS, "value": 0.0},
        }
        assert "value" not in absent
        assert absent["flags"] == 1

    @BOTH
    def test_histogram(self, media_type: str) -> None:
        """A histogram is a point with its counts and bounds; the sum need not be there."""
        said = {
            "aggregationTemporality": 1,
            "dataPoints": [
                {
                    "timeUnixNano": str(AT_NS),
                    "count": "3",
                    "sum": 0,
                    "min": -1.5,
                    "max": 2,
                    "bucketCounts": ["1", 2, "0"],
                    "explicitBounds": [0, 10.5],
                    "exemplars": [{"timeUnixNano": str(AT_NS), "asDouble": 1.5}],
                },
                {"timeUnixNano": str(AT_NS + 1)},
            ],
        }

        one, two = data(send(metrics({"name": "lat", "histogram": said}), media_type))

        named = {**HEAD, "name": "lat", "kind": "histogram", "temporality": "delta"}
        assert one == {
            **named,
            "timeUnixNano": AT_NS,
            "count": 3,
            "sum": 0.0,
            "min": -1.5,
            "max": 2.0,
            "bucketCounts": [1, 2, 0],
            "explicitBounds": [0.0, 10.5],
            "exemplars": [{"timeUnixNano": AT_NS, "value": 1.5}],
        }
        assert two == {**named, "timeUnixNano": AT_NS + 1, "count": 0}

    @BOTH
    def test_exponential_histogram(self, media_type: str) -> None:
        """An exponential histogram keeps its scale, and each side that has buckets."""
        said = {
            "aggregationTemporality": 2,
            "dataPoints": [
                {
                    "timeUnixNano": str(AT_NS),
                    "count": "6",
                    "sum": 9.5,
                    "min": 1,
                    "max": 4,
                    "scale": -1,
                    "zeroCount": "1",
                    "zeroThreshold": 1e-9,
                    "positive": {"offset": -2, "bucketCounts": ["5", "0"]},
                    "negative": {"offset": 3},
                }
            ],
        }

        (found,) = data(send(metrics({"name": "lat", "exponentialHistogram": said}), media_type))

        assert found == {
            **HEAD,
            **{"name": "lat", "kind": "exponentialHistogram", "temporality": "cumulative"},
            **{"timeUnixNano": AT_NS, "count": 6, "sum": 9.5, "min": 1.0, "max": 4.0},
            **{"scale": -1, "zeroCount": 1, "zeroThreshold": 1e-9},
            "positive": {"offset": -2, "bucketCounts": [5, 0]},
        }

    @BOTH
    def test_summary(self, media_type: str) -> None:
        """A summary has its quantiles."""
        said = {
            "dataPoints": [
                {
                    "timeUnixNano": str(AT_NS),
                    "count": "6",
                    "sum": 9.5,
                    "quantileValues": [{"quantile": 0.5, "value": 2}, {"quantile": 1}],
                }
            ]
        }

        (found,) = data(send(metrics({"name": "lat", "summary": said}), media_type))

        assert found == {
            **HEAD,
            **{"name": "lat", "kind": "summary", "timeUnixNano": AT_NS, "count": 6, "sum": 9.5},
            "quantiles": [{"quantile": 0.5, "value": 2.0}, {"quantile": 1.0, "value": 0.0}],
        }

    @BOTH
    def test_nulled_in_lists(self, media_type: str) -> None:
        """A bound that JSON does not have is null in its place."""
        said = {"dataPoints": [{**point(), "explicitBounds": [1, "Infinity"]}]}
        del said["dataPoints"][0]["asDouble"]

        (event,) = send(metrics({"name": "lat", "histogram": said}), media_type).events

        assert event["data"]["explicitBounds"] == [1.0, None]
        assert event["nulled"] == "explicitBounds[1]"

    @BOTH
    def test_a_metric_without_points(self, media_type: str) -> None:
        """A metric without data, or without points, is nothing."""
        asked = send(metrics({"name": "m"}, gauge(), {"name": "s", "sum": {}}), media_type)

        assert (asked.status, asked.records) == (200, [])


class TestSpans:
    @BOTH
    def test_a_span_is_an_event(self, media_type: str) -> None:
        """A span is an event about what it is called, at its end, with all that is said of it."""
        said = span(
            kind=2,
            parentSpanId="00f067aa0ba902b7",
            traceState="k=v",
            flags=257,
            status={"code": 2, "message": "no"},
            attributes=attributes(http_method="GET"),
            droppedAttributesCount=1,
            events=[{"timeUnixNano": str(AT_NS - 1), "name": "e", "attributes": attributes(a="1")}],
            droppedEventsCount=2,
            links=[{"traceId": TRACE_ID, "spanId": SPAN_ID, "traceState": "l=w", "flags": 1}],
            droppedLinksCount=3,
        )

        (event,) = send(traces(said), media_type).events

        assert event["type"] == "dev.weir.otlp.span"
        assert (event["subject"], event["id"]) == ("GET /", TRACE_ID + SPAN_ID)
        assert (event["time"], event["timesrc"]) == (AT, "client")
        assert event["data"] == {
            **HEAD,
            "name": "GET /",
            "kind": "server",
            "traceId": TRACE_ID,
            "spanId": SPAN_ID,
            "parentSpanId": "00f067aa0ba902b7",
            "traceState": "k=v",
            "flags": 257,
            "startTimeUnixNano": AT_NS - 1_500_000,
            "endTimeUnixNano": AT_NS,
            "durationMs": 1.5,
            "status": "error",
            "statusMessage": "no",
            "attributes": {"http.method": "GET"},
            "droppedAttributesCount": 1,
            "events": [{"timeUnixNano": AT_NS - 1, "name": "e", "attributes": {"a": "1"}}],
            "droppedEventsCount": 2,
            "links": [{"traceId": TRACE_ID, "spanId": SPAN_ID, "traceState": "l=w", "flags": 1}],
            "droppedLinksCount": 3,
        }

    @BOTH
    @pytest.mark.parametrize(
        ("number", "kind", "status"),
        [
            (0, "unspecified", "unset"),
            (1, "internal", "ok"),
            (2, "server", "error"),
            (3, "client", 3),
            (4, "producer", 4),
            (5, "consumer", 5),
            (6, 6, 6),
        ],
    )
    def test_words(self, media_type: str, number: int, kind: Any, status: Any) -> None:
        """Kind and status are words; a number that is not known stays one."""
        (found,) = data(send(traces(span(kind=number, status={"code": number})), media_type))

        assert (found["kind"], found["status"]) == (kind, status)

    @BOTH
    def test_without_an_end(self, media_type: str) -> None:
        """A span that has not ended is one of when it began, and has no duration."""
        said = span()
        del said["endTimeUnixNano"]

        (event,) = send(traces(said), media_type).events

        assert event["time"] == format_time(AT_MS - 2)  # begun 1.5 ms before
        assert "durationMs" not in event["data"]


PAGE = (Path(__file__).parents[3] / "docs" / "clients" / "opentelemetry.md").read_text("utf-8")


def used(block: str, asked: Asked) -> list[tuple[float | None, str]]:
    """Return what a metric of the page makes of events: value and series."""
    metric = check(None, None, block).model
    assert isinstance(metric, Metric)
    found = [use(metric, event) for event in asked.events]
    return [(one.value, str(one.series)) for one in found if isinstance(one, Used)]


class TestPage:
    def test_metrics(self) -> None:
        """The metrics on the page measure what it says."""
        orders, durations = re.findall(r"```yaml\n(kind: .*?)```", PAGE, re.DOTALL)
        total = {
            "aggregationTemporality": 1,
            "dataPoints": [point(3, attributes=attributes(sku="a"))],
        }
        cumulative = {**total, "aggregationTemporality": 2}
        counted = send(
            metrics({"name": "orders", "sum": total}, {"name": "orders", "sum": cumulative})
        )

        assert used(orders, counted) == [(3.0, "=a")]
        assert used(durations, send(traces(span(kind=2), span(kind=1)))) == [(1.5, "=shop|=unset")]

    def test_curl(self) -> None:
        """The line that asks without an SDK is an event."""
        (body,) = re.findall(r"-d '(.*)'", PAGE)

        (event,) = send(json.loads(body)).events

        assert (event["type"], event["subject"], event["time"]) == ("dev.weir.otlp.log", "shop", AT)
