"""Requests of Prometheus' remote write 1.0, written with protobuf's own runtime."""

from __future__ import annotations

import struct
from importlib import import_module
from typing import Any

import cramjam

from .in_process import KEY, Asked, Request, ask

STALE: float = struct.unpack("<d", bytes.fromhex("020000000000f07f"))[0]
HEADERS = {
    "Authorization": f"Bearer {KEY}",
    "Content-Encoding": "snappy",
    "Content-Type": "application/x-protobuf",
    "User-Agent": "Prometheus/3.5.0",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}
PATH = "/api/v1/write"
SERIES = {"__name__": "orders_total", "job": "shop"}
AT_MS = 1_772_359_200_000

# It has no types of its own.
_DESCRIBED: Any = import_module("google.protobuf.descriptor_pb2")
_POOLS: Any = import_module("google.protobuf.descriptor_pool")
_FACTORY: Any = import_module("google.protobuf.message_factory")
_FIELD = _DESCRIBED.FieldDescriptorProto
_MESSAGES = {
    "WriteRequest": "timeseries:1:*TimeSeries metadata:3:*Metadata",
    "TimeSeries": "labels:1:*Label samples:2:*Sample exemplars:3:*Exemplar histograms:4:*Histogram",
    "Label": "name:1:BYTES value:2:BYTES",
    "Sample": "value:1:DOUBLE timestamp:2:INT64",
    "Exemplar": "labels:1:*Label value:2:DOUBLE timestamp:3:INT64",
    "Metadata": "type:1:INT32 metric_family_name:2:BYTES help:4:BYTES unit:5:BYTES",
    "Span": "offset:1:SINT32 length:2:UINT32",
    "Histogram": "count_int:1:UINT64 count_float:2:DOUBLE sum:3:DOUBLE schema:4:SINT32 "
    "zero_threshold:5:DOUBLE zero_count_int:6:UINT64 zero_count_float:7:DOUBLE "
    "negative_spans:8:*Span negative_deltas:9:*SINT64 negative_counts:10:*DOUBLE "
    "positive_spans:11:*Span positive_deltas:12:*SINT64 positive_counts:13:*DOUBLE "
    "reset_hint:14:INT32 timestamp:15:INT64 custom_values:16:*DOUBLE",
}


def _described() -> Any:
    file = _DESCRIBED.FileDescriptorProto(name="w.proto", package="w", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            field, number, kind = text.split(":")
            label = _FIELD.LABEL_REPEATED if kind[0] == "*" else _FIELD.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            added = message.field.add(name=field, number=int(number), label=label)
            if kind in _MESSAGES:
                added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".w.{kind}"
            else:
                added.type = getattr(_FIELD, f"TYPE_{kind}")
    pool = _POOLS.DescriptorPool()
    pool.Add(file)
    return _FACTORY.GetMessageClass(pool.FindMessageTypeByName("w.WriteRequest"))


WriteRequest = _described()


def labels(said: dict[str, str]) -> list[dict[str, bytes]]:
    """Return labels as the message has them."""
    return [{"name": n.encode(), "value": v.encode()} for n, v in said.items()]


def series(said: dict[str, str], *samples: tuple[float, int], **more: Any) -> dict[str, Any]:
    """Return a series as the message has it."""
    found = [{"value": value, "timestamp": at_ms} for value, at_ms in samples]
    return {"labels": labels(said), "samples": found, **more}


def message(*found: dict[str, Any], **more: Any) -> bytes:
    """Return a request's bytes."""
    encoded: bytes = WriteRequest(timeseries=found, **more).SerializeToString()
    return encoded


def snappy(body: bytes) -> bytes:
    """Return a body as one block."""
    return bytes(cramjam.snappy.compress_raw(body))


def write(*found: dict[str, Any], **changes: Any) -> Asked:
    """Return what becomes of some series."""
    return send(message(*found), **changes)


def send(body: bytes, *, headers: dict[str, str] | None = None, **changes: Any) -> Asked:
    """Return what becomes of a decoded body; a header given empty is not sent."""
    all_headers = {**HEADERS, **(headers or {})}
    sent = {name: text for name, text in all_headers.items() if text}
    return ask(Request(PATH, snappy(body), headers=sent), **changes)
