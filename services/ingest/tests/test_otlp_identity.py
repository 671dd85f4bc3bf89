"""OTLP: when an event was, whom it is from, and by what it is known again (INGEST 2.3, 4.4)."""

from __future__ import annotations

from typing import Any

import pytest
from weir.event_time import format_time

from .in_process import ARRIVED_MS
from .otlp_requests import (
    AT_MS,
    AT_NS,
    JSON,
    PROTOBUF,
    TRACE_ID,
    attributes,
    data,
    gauge,
    ids,
    log,
    logs,
    metrics,
    point,
    send,
    span,
    traces,
)

BOTH = pytest.mark.parametrize("media_type", [JSON, PROTOBUF])


class TestTime:
    @BOTH
    @pytest.mark.parametrize(
        ("at_ns", "expected"),
        [
            (1, "1970-01-01T00:00:00.000Z"),
            (999_999, "1970-01-01T00:00:00.000Z"),
            (1_000_000, "1970-01-01T00:00:00.001Z"),
            (AT_MS, "1970-01-01T00:29:32.359Z"),
        ],
    )
    def test_nanoseconds(self, media_type: str, at_ns: int, expected: str) -> None:
        """A time is in nanoseconds, whatever its size."""
        (event,) = send(metrics(gauge({**point(), "timeUnixNano": at_ns})), media_type).events

        assert (event["time"], event["timesrc"]) == (expected, "client")

    @BOTH
    def test_a_time_far_ahead(self, media_type: str) -> None:
        """A time of another year is clamped, as everywhere, and kept beside it."""
        said = {**point(), "timeUnixNano": str(2**64 - 1)}

        (event,) = send(metrics(gauge(said)), media_type).events

        assert (event["time"], event["timesrc"]) == (format_time(ARRIVED_MS), "clamped")
        assert event["clienttime"] == "2554-07-21T23:34:33.709Z"
        assert event["data"]["timeUnixNano"] == 2**64 - 1

    @BOTH
    def test_no_time(self, media_type: str) -> None:
        """What does not say when it was is when it arrived, and its id is made up.

        Two log records that say the same without a time may be two, and a second sending of
        one cannot be told from them.
        """
        said = {"body": {"stringValue": "hi"}}
        asked = send(logs(said), media_type)
        again = send(logs(said), media_type)

        assert (asked.events[0]["time"], asked.events[0]["timesrc"]) == (
            format_time(ARRIVED_MS),
            "arrived",
        )
        assert asked.events[0]["id"] != again.events[0]["id"]

    @BOTH
    def test_no_time_but_a_key(self, media_type: str) -> None:
        """With an Idempotency-Key an id that is made up is the same the next time."""
        said = metrics(gauge({"asInt": "1"}))
        one, two = (send(said, media_type, headers={"Idempotency-Key": "k"}) for _ in "12")

        assert one.events[0]["id"] == two.events[0]["id"]


class TestSender:
    @BOTH
    @pytest.mark.parametrize(
        ("said", "key", "subject"),
        [
            ({"service_name": "shop", "service_instance_id": "i-1"}, "i-1", "shop"),
            ({"service_name": "shop", "service_instance_id": ""}, "shop", "shop"),
            ({"service_name": "shop"}, "shop", "shop"),
            ({"service_instance_id": "i-1"}, "i-1", None),
            ({}, None, None),
        ],
    )
    def test_keys(
        self, media_type: str, said: dict[str, str], key: str | None, subject: str | None
    ) -> None:
        """Events are kept in order by instance, else by service; a log is about its service."""
        pairs = [
            {"key": name.replace("service_", "service.").replace("instance_", "instance."), **pair}
            for name, pair in ((n, {"value": {"stringValue": v}}) for n, v in said.items())
        ]

        asked = send(logs(log(), resource={"attributes": pairs}), media_type)

        (event,) = asked.events
        assert (event.get("partitionkey"), event.get("subject")) == (key, subject)
        assert asked.records[0].key.decode() == (key or subject or event["id"])

    @BOTH
    def test_a_metric_without_a_service(self, media_type: str) -> None:
        """Points of nobody are kept in order by their metric."""
        asked = send(metrics(gauge(point()), resource={}), media_type)

        assert asked.records[0].key == b"orders"
        assert "partitionkey" not in asked.events[0]

    @BOTH
    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ({"intValue": "7"}, "7"),
            ({"boolValue": True}, None),
            ({"arrayValue": {"values": [{"stringValue": "shop"}]}}, None),
            ({}, None),
        ],
    )
    def test_a_service_that_is_no_text(
        self, media_type: str, value: Any, expected: str | None
    ) -> None:
        """A number is a name; what is no name names nothing, and costs no event."""
        pairs = [{"key": "service.name", "value": value}]

        (event,) = send(logs(log(), resource={"attributes": pairs}), media_type).events

        assert event.get("subject") == expected


class TestIdentity:
    @BOTH
    @pytest.mark.parametrize(
        "said",
        [
            logs(log(), log(), log("other")),
            metrics(gauge(point(), point(2), {**point(), "attributes": attributes(a="1")})),
            traces(span(), span(spanId="00f067aa0ba902b7")),
        ],
    )
    def test_sent_again(self, media_type: str, said: dict[str, Any]) -> None:
        """A request that is sent again has the same events, all of them different ones."""
        one, two = send(said, media_type), send(said, media_type)

        assert ids(one) == ids(two)
        assert len({*ids(one)}) == len(one.records)

    @BOTH
    def test_equal_records_say_their_place(self, media_type: str) -> None:
        """Of log records that are equal, each but the first says which it is."""
        asked = send(logs(log(), log("x"), log(), log()), media_type)

        assert [found.get("ordinal") for found in data(asked)] == [None, None, 1, 2]

    @BOTH
    def test_a_point_is_told_by_its_series_and_time(self, media_type: str) -> None:
        """A point sent again with another value is the same one."""
        one = send(metrics(gauge(point(1), description="a")), media_type)
        two = send(metrics(gauge(point(2), description="b")), media_type)

        assert ids(one) == ids(two)

    @BOTH
    def test_points_of_one_series_and_time(self, media_type: str) -> None:
        """Two points of one series and time are two, whatever else is said of their metrics."""
        asked = send(
            metrics(gauge(point(1), description="a"), gauge(point(2), description="b")), media_type
        )

        assert [found.get("ordinal") for found in data(asked)] == [None, 1]
        assert len({*ids(asked)}) == 2

    @BOTH
    @pytest.mark.parametrize(
        "other",
        [
            metrics(gauge(point(), name="other")),
            metrics(gauge(point(), unit="s")),
            metrics({"name": "orders", "sum": {"dataPoints": [point()]}}),
            metrics(gauge({**point(), "timeUnixNano": AT_NS + 1})),
            metrics(gauge(point(attributes=attributes(a="1")))),
            metrics(gauge(point()), resource={}),
            metrics(gauge(point()), scope={"name": "m", "version": "1.3"}),
        ],
    )
    def test_what_tells_points_apart(self, media_type: str, other: dict[str, Any]) -> None:
        """Resource, scope, metric, unit, kind, attributes or time: another is another point."""
        said = metrics(gauge(point()))
        both = {"resourceMetrics": [*said["resourceMetrics"], *other["resourceMetrics"]]}

        asked = send(both, media_type)

        assert ids(asked) == [*ids(send(said, media_type)), *ids(send(other, media_type))]
        assert len({*ids(asked)}) == 2

    @BOTH
    @pytest.mark.parametrize(
        "other",
        [
            logs(log("other")),
            logs(log(), resource={}),
            logs(log(), scope={}),
            logs(log(severityNumber=1)),
            logs(log(traceId=TRACE_ID)),
        ],
    )
    def test_what_tells_logs_apart(self, media_type: str, other: dict[str, Any]) -> None:
        """Whatever differs in a log record, its resource or its scope makes it another."""
        assert ids(send(logs(log()), media_type)) != ids(send(other, media_type))

    @BOTH
    def test_a_span_sent_twice_in_one_request(self, media_type: str) -> None:
        """A span is told by its ids alone, so it is the same one, changed or not."""
        asked = send(traces(span(), span(), span(name="other")), media_type)

        assert len({*ids(asked)}) == 1
        assert data(asked)[0] == data(asked)[1]
