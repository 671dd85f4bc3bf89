"""OTLP: what is too much, too large or too deep, and what is kept of it (INGEST 4.4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weir.admission import Admitted, Refused, Terms, admit
from weir.event import MAX_RECORD_BYTES
from weir.mappings.named import NAMED
from weir.names import HEADER_LENGTH, HEADER_MAPPING, HEADER_REASON
from weir.problems import Reason
from weir_ingest.protocols.batch import BatchLimits
from weir_ingest.protocols.otlp_json import Json
from weir_ingest.protocols.otlp_messages import UnreadableError

from .in_process import KEY, Asked
from .otlp_requests import (
    AT_NS,
    JSON,
    PROTOBUF,
    SERVICE,
    attributes,
    data,
    field,
    gauge,
    log,
    logs,
    metrics,
    point,
    post,
    protobuf,
    raw_logs,
    send,
    span,
    status,
    traces,
)

BOTH = pytest.mark.parametrize("media_type", [JSON, PROTOBUF])
TEXT = "x" * MAX_RECORD_BYTES


def few(limit: int) -> dict[str, Any]:
    """Return a limit of events."""
    return {"batch_limits": BatchLimits(limit, 1)}


def reasons(asked: Asked) -> list[str]:
    """Return why records could not be used."""
    return [reason for reason, _kept in asked.refused]


class TestTooMany:
    @BOTH
    @pytest.mark.parametrize(
        ("said", "fits"),
        [
            (logs(*(log(str(n)) for n in range(3))), True),
            (logs(*(log(str(n)) for n in range(4))), False),
            (traces(*(span(spanId=f"{n:016x}") for n in range(1, 4))), True),
            (traces(*(span() for n in range(4))), False),
            (metrics(gauge(point(), point()), gauge(point())), True),
            (metrics(gauge(point(), point()), gauge(point(), point())), False),
        ],
    )
    def test_events(self, media_type: str, said: dict[str, Any], fits: bool) -> None:
        """A request has as many events as it may, and one too many is refused whole."""
        asked = send(said, media_type, **few(3))

        assert (asked.status, len(asked.records)) == ((200, 3) if fits else (413, 0))
        if not fits:
            message = "a request must hold at most 3 events, got more; send them in parts"
            assert status(asked) == (3, f"too_many_events: {message}")

    def test_they_are_counted_before_they_are_read(self) -> None:
        """What is too many is told of, whatever else is wrong with the records."""
        assert send(logs(*[5] * 9), **few(8)).status == 413
        assert post("logs", raw_logs(*[b"\xff"] * 9), PROTOBUF, **few(8)).status == 413

    @BOTH
    def test_they_are_counted_first(self, media_type: str) -> None:
        """Of too many records none is read, whatever there is in them."""
        first = {"attributes": attributes(a="b") * 500}
        for said in (
            logs({**log(), **first}, *[log()] * 8),
            traces({**span(), **first}, *[span()] * 8),
            metrics(gauge({**point(), **first}, *[point()] * 8)),
        ):
            told = status(send(said, media_type, **few(8)))[1]
            assert told.startswith("too_many_events: a request must hold at most 8 events, ")

    @BOTH
    @pytest.mark.parametrize(("count", "fits"), [(2, True), (3, False)])
    def test_containers(self, media_type: str, count: int, fits: bool) -> None:
        """Nor are there more than four resources, scopes and metrics for each of them."""
        found = [{"name": str(n)} for n in range(count)]
        scopes = [{"metrics": found[:2]}, {"metrics": found[2:]}]
        said = {"resourceMetrics": [{"scopeMetrics": scopes}, {"scopeMetrics": [{}, {}]}]}

        asked = send(said, media_type, **few(2))

        assert asked.status == (200 if fits else 413)
        if not fits:
            assert status(asked)[1] == (
                "too_many_events: a request must hold at most 8 resources, scopes and metrics, "
                "got more; send it in parts"
            )

    @BOTH
    @pytest.mark.parametrize(
        ("many", "few_of_them"),
        [
            (lambda n: log(attributes=attributes(a="b") * n), 40),
            (lambda n: log(body={"arrayValue": {"values": [{}] * n}}), 40),
            (lambda n: log(body={"kvlistValue": {"values": [{"key": "a"}] * n}}), 40),
            (lambda n: span(events=[{}] * n), 20),
            (lambda n: span(links=[{}] * n), 20),
            (lambda n: {"exemplars": [{}] * n}, 20),
            (lambda n: {"quantileValues": [{}] * n}, 20),
            (lambda n: {"explicitBounds": [1] * n}, 160),
            (lambda n: {"bucketCounts": [1] * n}, 160),
        ],
    )
    def test_parts(self, media_type: str, many: Any, few_of_them: int) -> None:
        """Nor more than fifty attributes for each, and what costs as much as they do."""

        def said(count: int) -> dict[str, Any]:
            record = many(count)
            if "body" in record or "attributes" in record:
                return logs(record)
            if "traceId" in record:
                return traces(record)
            kind = "summary" if "quantileValues" in record else "histogram"
            return metrics({"name": "m", kind: {"dataPoints": [record]}})

        asked = send(said(few_of_them), media_type, **few(1))
        refused = send(said(few_of_them * 2), media_type, **few(1))

        assert (asked.status, refused.status) == (200, 413)
        assert status(refused)[1] == (
            "too_many_events: a request must hold at most 50 attributes, fields and other parts, "
            "got more; send it in parts"
        )

    @BOTH
    @pytest.mark.parametrize(("count", "fits"), [(22, True), (24, False)])
    def test_bytes(self, media_type: str, count: int, fits: bool) -> None:
        """A resource is said once and stands in each event: all of them have a bound."""
        resource = {"attributes": attributes(a="x" * 900_000)}

        asked = send(logs(*(log(str(n)) for n in range(count)), resource=resource), media_type)

        assert (asked.status, len(asked.events)) == ((200, count) if fits else (413, 0))
        if not fits:
            assert status(asked)[1] == (
                "too_many_events: a request must hold at most 20971520 bytes of records, each "
                "with its resource and scope, got more; send it in parts"
            )

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("logs", b"\x0a\x00" * 1_000_000),
            ("logs", field(1, b"\x12\x00" * 1_000_000)),
            ("logs", field(1, field(2, b"\x12\x00" * 1_000_000))),
            ("logs", b"\x20\x00" * 1_000_000),
            ("logs", raw_logs(*[b"\x32\x00" * 400_000] * 4)),
            ("metrics", field(1, field(2, b"\x12\x00" * 1_000_000))),
            ("metrics", field(1, field(2, field(2, field(5, b"\x0a\x00" * 1_000_000))))),
            ("traces", field(1, field(2, field(2, b"\x5a\x00" * 400_000) * 4))),
        ],
    )
    def test_messages_without_bytes(self, path: str, body: bytes) -> None:
        """Two bytes make a message: of millions of them no objects are made."""
        assert post(path, body, PROTOBUF).status == 413

    @pytest.mark.parametrize(
        "text",
        [
            '{"resourceLogs":[%s{}]}',
            '{"resourceLogs":[{"scopeLogs":[%s{}]}]}',
            '{"resourceLogs":[{"scopeLogs":[{"logRecords":[%s{}]}]}]}',
        ],
    )
    def test_objects_without_members(self, text: str) -> None:
        """So it is in JSON."""
        assert post("logs", (text % ("{}," * 300_000)).encode(), JSON).status == 413


class TestTooLarge:
    @BOTH
    @pytest.mark.parametrize(
        ("said", "kept"),
        [
            (logs(log(TEXT), log()), 1),
            (traces(span(traceState=TEXT), span()), 1),
            (metrics(gauge(point(attributes=attributes(a=TEXT)), point())), 1),
            (metrics(gauge(point(), point(), description=TEXT), gauge(point())), 1),
            (logs(log(), log(), scope={"name": TEXT}), 0),
            (logs(log(), log(), resource={"attributes": attributes(a=TEXT)}), 0),
        ],
    )
    def test_a_part_over_the_limit(self, media_type: str, said: dict[str, Any], kept: int) -> None:
        """What is too large is one quarantined item, with all that is under it."""
        asked = send(said, media_type)

        assert (asked.status, len(asked.events)) == (200, kept)
        assert reasons(asked) == ["event_too_large"]
        (refused,) = [one for one in asked.records if one.headers[0][0] == HEADER_REASON]
        assert int(dict(refused.headers)[HEADER_LENGTH] or 0) > MAX_RECORD_BYTES

    @BOTH
    def test_what_is_kept(self, media_type: str) -> None:
        """Of a record that is too large the first bytes are kept, as they came."""
        record = log(TEXT)
        points = {"timeUnixNano": "1", "attributes": attributes(a=TEXT)}
        for said, text in ((logs(record), record), (metrics(gauge(points)), points)):
            ((_reason, kept),) = send(said, media_type).refused
            whole = json.dumps(text).encode() if media_type == JSON else protobuf(said)
            assert len(kept) == 65_536
            assert whole.startswith(kept) if media_type == JSON else kept in whole

    @BOTH
    def test_beside_others(self, media_type: str) -> None:
        """The groups beside it are stored."""
        large = logs(log(), resource={"attributes": attributes(a=TEXT)})
        said = {"resourceLogs": [*large["resourceLogs"], *logs(log())["resourceLogs"]]}

        assert [found["body"] for found in data(send(said, media_type))] == ["hi"]

    @BOTH
    def test_too_large_with_its_resource(self, media_type: str) -> None:
        """A record may be too large only with what it is under; then it alone is."""
        resource = {"attributes": [*SERVICE, *attributes(a="x" * 600_000)]}

        asked = send(logs(log("y" * 500_000), log(), resource=resource), media_type)

        assert (reasons(asked), len(asked.events)) == (["event_too_large"], 1)


def nested(levels: int, kind: str = "arrayValue") -> dict[str, Any]:
    """Return a value that nests."""
    value: dict[str, Any] = {"intValue": 1}
    for _ in range(levels):
        inner = value if kind == "arrayValue" else {"key": "k", "value": value}
        value = {kind: {"values": [inner]}}
    return value


class TestTooDeep:
    @BOTH
    @pytest.mark.parametrize("kind", ["arrayValue", "kvlistValue"])
    @pytest.mark.parametrize(
        ("levels", "fits"), [(31, True), (32, False), (33, False), (60, False)]
    )
    def test_edge(self, media_type: str, kind: str, levels: int, fits: bool) -> None:
        """Data nest at most 32 deep, the record itself counted; beyond, it is one item's fault."""
        if media_type == JSON:
            asked = send(logs(log(body=nested(levels, kind)), log()), media_type)
        else:
            asked = post(
                "logs", raw_logs(_nested_log(levels, kind), _nested_log(0, kind)), PROTOBUF
            )

        assert asked.status == 200
        assert reasons(asked) == ([] if fits else ["too_deep"])
        assert len(asked.events) == (2 if fits else 1)

    def test_far_too_deep_in_protobuf(self) -> None:
        """A body of any depth is one quarantined item."""
        asked = post("logs", raw_logs(_nested_log(5_000), _nested_log(0)), PROTOBUF)

        ((reason, kept),) = asked.refused
        assert reason == "too_deep"
        assert json.loads(kept)["unreadable"]["why"] == (
            "a LogRecord must nest at most 100 messages deep, attributes included; "
            "Exceeded upb_DecodeOptions_MaxDepth"
        )
        assert len(asked.events) == 1

    @pytest.mark.parametrize(("levels", "answered"), [(200, 200), (100_000, 400)])
    def test_far_too_deep_in_json(self, levels: int, answered: int) -> None:
        """So it is in JSON, but for what is deeper than a parser can go: that is no request."""
        body = "[" * levels + "]" * levels
        text = f'{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{body}}}]}}]}}]}}'

        asked = post("logs", text.encode(), JSON)

        assert asked.status == answered
        assert reasons(asked) == (["too_deep"] if answered == 200 else [])
        if answered == 400:
            assert status(asked)[1] == "too_deep: data must nest at most 32 deep, got far more"

    @pytest.mark.parametrize("kind", ["arrayValue", "kvlistValue"])
    @pytest.mark.parametrize("levels", [74, 76, 99, 101, 200])
    def test_values_that_nest_in_json(self, kind: str, levels: int) -> None:
        """A value is not followed further than it may go."""
        asked = send(logs(log(body=nested(levels, kind)), log()))

        assert (asked.status, reasons(asked), len(asked.events)) == (200, ["too_deep"], 1)

    @pytest.mark.parametrize(
        ("brackets", "reason"), [(300, Reason.NOT_AN_EVENT), (301, Reason.TOO_DEEP)]
    )
    def test_brackets(self, brackets: int, reason: Reason) -> None:
        """What nests far deeper than data may is not given to a parser."""
        text = b'{"body":%b%b}' % (b"[" * (brackets - 1), b"]" * (brackets - 1))

        with pytest.raises(UnreadableError) as caught:
            Json().read(text, "LogRecord")

        assert caught.value.reason is reason

    def test_depth_of_a_resource(self) -> None:
        """Where a resource is too deep, each record under it is in quarantine, and no other."""
        deep = [{"key": "a", "value": nested(90)}]
        bad = logs(log("1"), log("2"), resource={"attributes": deep})

        asked = send({"resourceLogs": [*bad["resourceLogs"], *logs(log())["resourceLogs"]]})

        assert reasons(asked) == ["too_deep", "too_deep"]
        assert [found["body"] for found in data(asked)] == ["hi"]


def _nested_log(levels: int, kind: str = "arrayValue") -> bytes:
    """Return a log record whose body nests, in protobuf, as its own runtime would refuse to."""
    value = b"\x18\x01"
    for _ in range(levels):
        if kind == "arrayValue":
            value = field(5, field(1, value))
        else:
            value = field(6, field(1, field(1, b"k") + field(2, value)))
    return b"\x09" + AT_NS.to_bytes(8, "little") + field(5, value)


class TestQuarantine:
    @pytest.mark.parametrize(
        ("resource", "scope", "message"),
        [
            (field(1, field(1, b"\xff")), b"", "ResourceLogs"),
            (b"", field(1, field(1, b"\xff")), "ScopeLogs"),
        ],
    )
    def test_a_part_that_is_none(self, resource: bytes, scope: bytes, message: str) -> None:
        """Where a resource or a scope cannot be read, the records under it are in quarantine."""
        inner = scope + field(2, _nested_log(0)) + field(2, _nested_log(1))
        body = field(1, field(1, resource) + field(2, inner)) + raw_logs(_nested_log(0))

        asked = post("logs", body, PROTOBUF)

        assert reasons(asked) == ["invalid_utf8", "invalid_utf8"]
        items = [json.loads(kept) for _reason, kept in asked.refused]
        assert [item["body"] for item in items] == [1, [1]]
        assert {item["unreadable"]["message"] for item in items} == {message}
        assert len(asked.events) == 1

    @pytest.mark.parametrize(
        ("metric", "message"),
        [
            (field(1, b"\xff") + field(5, field(1, b"") * 2), "Metric"),
            (field(7, field(1, b"") * 2 + b"\x00\x00"), "Sum"),
            (field(5, field(1, b"\x19") * 2), "NumberDataPoint"),
        ],
    )
    def test_a_metric_that_is_none(self, metric: bytes, message: str) -> None:
        """Where a metric cannot be read, its points are in quarantine, each for itself."""
        asked = post("metrics", field(1, field(2, field(2, metric))), PROTOBUF)

        items = [json.loads(kept) for _reason, kept in asked.refused]
        assert [item["unreadable"]["message"] for item in items] == [message, message]

    @pytest.mark.parametrize(
        ("said", "reason", "why"),
        [
            (traces(span(spanId="")), "id_invalid", "spanId of a span must be 16 hex digits"),
            (traces(span(traceId="00")), "id_invalid", "traceId of a span must be 32 hex digits"),
            (traces(span(spanId="ab" * 9)), "id_invalid", "not all of them 0, got"),
            (traces(span(name="a\x00")), "invalid_unicode", "attribute name must not hold U+0000"),
            (metrics(gauge(point(), name="")), "not_an_event", "a metric must have a name"),
            (
                logs(log(), resource={"attributes": attributes(service_name="a\x07")}),
                "invalid_unicode",
                "attribute service.name must not hold U+0007",
            ),
        ],
    )
    @BOTH
    def test_what_cannot_be_an_event(
        self, media_type: str, said: dict[str, Any], reason: str, why: str
    ) -> None:
        """Ids that are none, and names that no attribute may have, are refused one by one."""
        asked = send(said, media_type)

        assert (asked.status, asked.events, reasons(asked)) == (200, [], [reason])
        assert why.encode() in asked.body

    def test_a_replay_reads_it_so(self) -> None:
        """What is refused says how it was read, and mended it becomes what it should have been."""
        (record,) = send(metrics(gauge(point(), name=""))).records
        (good,) = send(metrics(gauge(point(), name="orders"))).events

        name = dict(record.headers)[HEADER_MAPPING]
        assert name == b"otlp.metric"
        mended = record.value.replace(b'"kind"', b'"name":"orders","kind"')
        found = admit(mended, 0, Terms("acme", "web", 0, "replay", mapping=NAMED["otlp.metric"]))

        assert isinstance(found, Admitted)
        assert json.loads(found.value)["weirid"] == good["weirid"]

    @pytest.mark.parametrize(
        ("signal", "item", "reason", "why"),
        [
            ("log", "{}", None, ""),
            ("log", '{"resource":5,"timeUnixNano":1}', None, ""),
            (
                "log",
                '{"timeUnixNano":"soon"}',
                Reason.TIME_INVALID,
                'timeUnixNano must be nanoseconds between the years 1 and 9999, got "soon"',
            ),
            (
                "log",
                '{"timeUnixNano":9223372036854775807000}',
                Reason.NUMBER_RANGE,
                "integers must fit 64 bits, got one of 22 digits; send it as text",
            ),
            ("log", '{"unreadable":1}', Reason.NOT_AN_EVENT, "an item must not have unreadable"),
            (
                "span",
                '{"unreadable":{"reason":"no such","why":"x"}}',
                Reason.NOT_AN_EVENT,
                "an item must not have unreadable",
            ),
            (
                "span",
                '{"unreadable":{"reason":"too_deep","why":"it was"}}',
                Reason.TOO_DEEP,
                "it was",
            ),
            ("span", "{}", Reason.ID_INVALID, None),
            ("metric", "[]", Reason.NOT_AN_EVENT, "event must be a JSON object"),
        ],
    )
    def test_items_that_nobody_made(
        self, signal: str, item: str, reason: Reason | None, why: str | None
    ) -> None:
        """A replay may read anything: it is an event, or refused in words."""
        terms = Terms("acme", "web", 0, "replay", mapping=NAMED[f"otlp.{signal}"])
        found = admit(item.encode(), 0, terms)

        if reason is None:
            assert isinstance(found, Admitted)
        else:
            assert isinstance(found, Refused)
            assert found.reason is reason
            assert why in (found.detail, None)

    @BOTH
    def test_the_key_is_not_stored(self, media_type: str) -> None:
        """The key comes in a header field, and is in no record."""
        asked = send(logs(log(), log(TEXT)), media_type)

        assert len(asked.records) == 2
        assert not any(KEY.encode() in one.value + one.key for one in asked.records)
