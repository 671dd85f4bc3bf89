"""Requests of OpenTelemetry's, as JSON and, written by protobuf's own runtime, as protobuf."""

from __future__ import annotations

import base64
import json
from importlib import import_module
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from .in_process import KEY, Asked, Request, ask

JSON, PROTOBUF = "application/json", "application/x-protobuf"
AT_MS = 1_772_359_200_000
AT_NS = AT_MS * 1_000_000
AT = "2026-03-01T10:00:00.000Z"
TRACE_ID, SPAN_ID = "5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174"
SERVICE = [{"key": "service.name", "value": {"stringValue": "shop"}}]
RESOURCE = {"attributes": SERVICE}
SCOPE = {"name": "m", "version": "1.2"}
HEAD = {
    "resource": {"attributes": {"service.name": "shop"}},
    "scope": {"name": "m", "version": "1.2"},
}
"""What stands first in the data of each event."""

# It has no types of its own.
_FROM_JSON: Any = import_module("google.protobuf.json_format").ParseDict
_MESSAGES: dict[str, Any] = {
    "logs": (ExportLogsServiceRequest, ExportLogsServiceResponse),
    "metrics": (ExportMetricsServiceRequest, ExportMetricsServiceResponse),
    "traces": (ExportTraceServiceRequest, ExportTraceServiceResponse),
}
_IDS = ("traceId", "spanId", "parentSpanId")


def attributes(**said: Any) -> list[dict[str, Any]]:
    """Return attributes that are texts; names are written with underscores for dots."""
    return [
        {"key": name.replace("_", "."), "value": {"stringValue": text}}
        for name, text in said.items()
    ]


def logs(*records: Any, resource: Any = RESOURCE, scope: Any = SCOPE) -> dict[str, Any]:
    """Return a request of log records."""
    groups = [{"scope": scope, "logRecords": [*records]}]
    return {"resourceLogs": [{"resource": resource, "scopeLogs": groups}]}


def traces(*spans: Any, resource: Any = RESOURCE, scope: Any = SCOPE) -> dict[str, Any]:
    """Return a request of spans."""
    groups = [{"scope": scope, "spans": [*spans]}]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": groups}]}


def metrics(*found: Any, resource: Any = RESOURCE, scope: Any = SCOPE) -> dict[str, Any]:
    """Return a request of metrics."""
    groups = [{"scope": scope, "metrics": [*found]}]
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": groups}]}


def gauge(*points: Any, name: str = "orders", **more: Any) -> dict[str, Any]:
    """Return a metric."""
    return {"name": name, "gauge": {"dataPoints": [*points]}, **more}


def log(text: str = "hi", **more: Any) -> dict[str, Any]:
    """Return a log record."""
    return {"timeUnixNano": str(AT_NS), "body": {"stringValue": text}, **more}


def span(**more: Any) -> dict[str, Any]:
    """Return a span."""
    times = {"startTimeUnixNano": str(AT_NS - 1_500_000), "endTimeUnixNano": str(AT_NS)}
    return {"traceId": TRACE_ID, "spanId": SPAN_ID, "name": "GET /", **times, **more}


def point(value: float = 1, **more: Any) -> dict[str, Any]:
    """Return a point."""
    return {"timeUnixNano": str(AT_NS), "asDouble": value, **more}


def signal_of(said: dict[str, Any]) -> str:
    """Return the path's end of a request."""
    (name,) = said
    return {"resourceLogs": "logs", "resourceSpans": "traces"}.get(name, "metrics")


def protobuf(said: dict[str, Any]) -> bytes:
    """Return a request in protobuf, by protobuf's own reading of JSON, which has ids in base64."""
    message = _MESSAGES[signal_of(said)][0]()
    encoded: bytes = _FROM_JSON(_with_base64(said), message).SerializeToString()
    return encoded


def _with_base64(said: Any) -> Any:
    if isinstance(said, dict):
        return {
            name: base64.b64encode(bytes.fromhex(value)).decode()
            if name in _IDS
            else _with_base64(value)
            for name, value in said.items()
        }
    return [_with_base64(one) for one in said] if isinstance(said, list) else said


def post(
    path: str,
    body: bytes,
    media_type: str,
    *,
    headers: dict[str, str] | None = None,
    **changes: Any,
) -> Asked:
    """Return what becomes of a body; a header given empty is not sent."""
    all_headers = {
        "Authorization": f"Bearer {KEY}",
        "Content-Type": media_type,
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    sent = {name: text for name, text in all_headers.items() if text}
    return ask(Request(f"/v1/{path}", body, headers=sent), **changes)


def send(said: dict[str, Any], media_type: str = JSON, **changes: Any) -> Asked:
    """Return what becomes of a request."""
    body = json.dumps(said).encode() if media_type == JSON else protobuf(said)
    return post(signal_of(said), body, media_type, **changes)


def answer(asked: Asked, path: str) -> Any:
    """Return an answer's message, read by protobuf's own runtime."""
    return _MESSAGES[path][1].FromString(asked.body)


def _status_class() -> Any:
    """Return google.rpc.Status, by its description."""
    described = import_module("google.protobuf.descriptor_pb2")
    field_of = described.FieldDescriptorProto
    file = described.FileDescriptorProto(name="s.proto", package="s", syntax="proto3")
    message = file.message_type.add(name="Status")
    message.field.add(name="code", number=1, type=field_of.TYPE_INT32, label=1)
    message.field.add(name="message", number=2, type=field_of.TYPE_STRING, label=1)
    pool = import_module("google.protobuf.descriptor_pool").DescriptorPool()
    pool.Add(file)
    factory = import_module("google.protobuf.message_factory")
    return factory.GetMessageClass(pool.FindMessageTypeByName("s.Status"))


STATUS = _status_class()


def status(asked: Asked) -> tuple[int, str]:
    """Return a refusal's code and message, in whatever it is."""
    if asked.headers["content-type"] == JSON:
        assert {*asked.json} == {"code", "message"}
        return asked.json["code"], asked.json["message"]
    assert asked.headers["content-type"] == PROTOBUF
    found = STATUS.FromString(asked.body)
    return found.code, found.message


def data(asked: Asked) -> list[Any]:
    """Return the data of each event."""
    return [event["data"] for event in asked.events]


def ids(asked: Asked) -> list[str]:
    """Return the identities of events."""
    return [event["weirid"] for event in asked.events]


def field(number: int, value: bytes) -> bytes:
    """Return a field of bytes as protobuf writes it."""
    size, length = len(value), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *length, size]) + value


def raw_logs(*records: bytes) -> bytes:
    """Return a request of log records given by their bytes."""
    scope = b"".join(field(2, record) for record in records)
    resource = field(1, field(1, field(1, b"service.name") + field(2, field(1, b"shop"))))
    return field(1, resource + field(2, field(1, field(1, b"m") + field(2, b"1.2")) + scope))
