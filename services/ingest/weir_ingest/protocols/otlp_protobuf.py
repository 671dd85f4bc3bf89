"""OTLP in protobuf: cut by hand, then read record by record with protobuf's own runtime."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # it has no types
from opentelemetry.proto.logs.v1 import logs_pb2 as logs
from opentelemetry.proto.metrics.v1 import metrics_pb2 as metrics
from opentelemetry.proto.trace.v1 import trace_pb2 as trace
from weir.problems import ProblemError, Reason

from weir_ingest.protocols.otlp_messages import DATA, Child, Room, UnreadableError

# How a field is written: the low three bits of its tag.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MORE, _MAX_VARINT_BYTES = 0x80, 10
_DATA: Final = {child.number: child for child in DATA}

_READ: Final[dict[str, Any]] = {
    name: getattr(module, name).FromString
    for module, names in (
        (logs, ("ResourceLogs", "ScopeLogs", "LogRecord")),
        (trace, ("ResourceSpans", "ScopeSpans", "Span")),
        (metrics, ("ResourceMetrics", "ScopeMetrics", "Metric")),
        (metrics, (child.message for child in DATA)),
        (metrics, ("NumberDataPoint", "HistogramDataPoint", "SummaryDataPoint")),
        (metrics, ("ExponentialHistogramDataPoint",)),
    )
    for name in names
}


class Protobuf:
    """The encoding."""

    def cut(self, message: bytes, child: Child, room: Room) -> tuple[bytes, list[bytes]]:
        """Return a message without the elements of a list in it, and those.

        Raises:
            ProblemError: 400 `request_invalid`; 413.
        """
        own, found = _split(message, (child.number,), room)
        return own, [value for _number, value in found]

    def data(self, metric: bytes, room: Room) -> tuple[bytes, Child | None, bytes]:
        """Return a metric without its data, which kind they are, and the data.

        Of several kinds the last one holds, and what comes in parts is one.

        Raises:
            ProblemError: As `cut`.
        """
        own, found = _split(metric, _DATA, room)
        if not found:
            return own, None, b""
        last = found[-1][0]
        start = max((n + 1 for n, (number, _) in enumerate(found) if number != last), default=0)
        return own, _DATA[last], b"".join(value for _number, value in found[start:])

    def read(self, message: bytes, name: str) -> Any:
        """Return a message.

        Raises:
            UnreadableError: `invalid_utf8`, `too_deep` or `not_an_event`.
        """
        try:
            return _READ[name](message)
        except DecodeError as error:
            raise _unreadable(name, str(error).rpartition(": ")[2]) from None

    def evidence(self, message: bytes) -> bytes:
        """Return a message in JSON, which has no bytes, in base64."""
        return b'"%b"' % base64.b64encode(message)

    def content(self, value: Any) -> tuple[str | None, Any]:
        """Return which kind an AnyValue is, and what it holds."""
        kind = value.WhichOneof("value")
        return kind, getattr(value, kind) if kind else None

    def number(self, point: Any) -> int | float | None:
        """Return what a point measured."""
        kind = point.WhichOneof("value")
        return getattr(point, kind) if kind else None

    def optional(self, message: Any, name: str) -> float | None:
        """Return a double that may not be there."""
        return getattr(message, name) if message.HasField(name) else None

    def integer(self, value: int) -> int:
        """Return an integer."""
        return value

    def double(self, value: float) -> float:
        """Return a double."""
        return value

    def integers(self, values: Sequence[int]) -> list[int]:
        """Return the integers of a list."""
        return [*values]

    def doubles(self, values: Sequence[float]) -> list[float]:
        """Return the doubles of a list."""
        return [*values]

    def text(self, value: str) -> str:
        """Return a text."""
        return value

    def octets(self, value: bytes) -> bytes:
        """Return bytes."""
        return value

    def identifier(self, value: bytes) -> str:
        """Return an id in hex; one of zeros is none."""
        return value.hex() if value.strip(b"\0") else ""

    def each(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return the elements of a list."""
        return values


def _split(message: bytes, numbers: Any, room: Room) -> tuple[bytes, list[tuple[int, bytes]]]:
    """Return a message without the messages in some of its fields, and those."""
    own: list[bytes] = []
    found: list[tuple[int, bytes]] = []
    at, end = 0, len(message)
    while at < end:
        room.take_parts(1)
        start = at
        tag, at = _varint(message, at)
        kind, number = tag & 7, tag >> 3
        if kind == _BYTES:
            size, at = _varint(message, at)
            if number in numbers:
                found.append((number, message[at : at + size]))
                start = at + size
            at += size
        elif kind == _VARINT:
            _value, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise _broken(why=f"it has a field of kind {kind}")
        if at > end:
            raise _broken(why="it ends early")
        own.append(message[start:at])
    return b"".join(own), found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number without sign, and where it ends."""
    try:
        value = message[at]
        if value < _MORE:
            return value, at + 1
        value -= _MORE
        for place in range(1, _MAX_VARINT_BYTES):
            byte = message[at + place]
            value |= (byte & ~_MORE) << 7 * place
            if byte < _MORE:
                return value, at + place + 1
    except IndexError:
        raise _broken(why="it ends early") from None
    raise _broken(why=f"it has a number of more than {_MAX_VARINT_BYTES} bytes")


def _broken(why: str) -> ProblemError:
    message = f"body must be an export request of OTLP in protobuf; {why}"
    return ProblemError(400, Reason.REQUEST_INVALID, message)


def _unreadable(name: str, why: str) -> UnreadableError:
    """Return why the runtime takes a message for none: it says so in words only."""
    if "UTF-8" in why:
        return UnreadableError(Reason.INVALID_UTF8, f"texts of a {name} must be UTF-8; {why}")
    if "Depth" in why or "depth" in why:
        message = f"a {name} must nest at most 100 messages deep, attributes included; {why}"
        return UnreadableError(Reason.TOO_DEEP, message)
    message = f"a {name} must be the message of that name in protobuf; {why}"
    return UnreadableError(Reason.NOT_AN_EVENT, message)
