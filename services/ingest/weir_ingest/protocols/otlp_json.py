"""OTLP in JSON: as protobuf's mapping says, but with ids in hex and enums as integers.

Names are lowerCamelCase, and those that are not known are passed over. An integer may be a number
or a text, a double also `"NaN"`, `"Infinity"` and `"-Infinity"`; null is as good as nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from math import inf
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from weir import json_exact
from weir.problems import ProblemError, Reason, echo

from weir_ingest.protocols.json_text import join_object, split_array, split_object
from weir_ingest.protocols.otlp_messages import (
    DATA,
    LOGS,
    METRICS,
    TRACES,
    Child,
    Room,
    UnreadableError,
)

# An attribute that nests as deep as data may takes four brackets for each of its levels.
_MAX_BRACKETS = 300
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_MAX_DIGITS = 20
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_DOUBLE = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|(?i:nan|-?inf(inity)?)", re.ASCII)

Integer = int | str | float | None
Double = float | int | str | None
Text = str | None


class _Message(Struct, rename="camel", gc=False):
    pass


class AnyValue(_Message):
    """A value of some kind."""

    string_value: Text = None
    bool_value: bool | None = None
    int_value: Integer = None
    double_value: Double = None
    array_value: ArrayValue | None = None
    kvlist_value: KeyValueList | None = None
    bytes_value: Text = None


class KeyValue(_Message):
    """An attribute."""

    key: Text = None
    value: AnyValue | None = None


Attributes = list[KeyValue] | None


class ArrayValue(_Message):
    """Values."""

    values: list[AnyValue] | None = None


class KeyValueList(_Message):
    """Attributes that are a value."""

    values: Attributes = None


class _Resource(_Message):
    attributes: Attributes = None
    dropped_attributes_count: Integer = None


class _UnderResource(_Message):
    resource: _Resource | None = None
    schema_url: Text = None


class _Scope(_Message):
    name: Text = None
    version: Text = None
    attributes: Attributes = None
    dropped_attributes_count: Integer = None


class _UnderScope(_Message):
    scope: _Scope | None = None
    schema_url: Text = None


class _LogRecord(_Message):
    time_unix_nano: Integer = None
    observed_time_unix_nano: Integer = None
    severity_number: Integer = None
    severity_text: Text = None
    event_name: Text = None
    body: AnyValue | None = None
    attributes: Attributes = None
    dropped_attributes_count: Integer = None
    trace_id: Text = None
    span_id: Text = None
    flags: Integer = None


class _Event(_Message):
    time_unix_nano: Integer = None
    name: Text = None
    attributes: Attributes = None
    dropped_attributes_count: Integer = None


class _Link(_Message):
    trace_id: Text = None
    span_id: Text = None
    trace_state: Text = None
    attributes: Attributes = None
    dropped_attributes_count: Integer = None
    flags: Integer = None


class _Status(_Message):
    message: Text = None
    code: Integer = None


class _Span(_Message):
    trace_id: Text = None
    span_id: Text = None
    trace_state: Text = None
    parent_span_id: Text = None
    flags: Integer = None
    name: Text = None
    kind: Integer = None
    start_time_unix_nano: Integer = None
    end_time_unix_nano: Integer = None
    attributes: Attributes = None
    dropped_attributes_count: Integer = None
    events: list[_Event] | None = None
    dropped_events_count: Integer = None
    links: list[_Link] | None = None
    dropped_links_count: Integer = None
    status: _Status | None = None


class _Metric(_Message):
    name: Text = None
    description: Text = None
    unit: Text = None
    metadata: Attributes = None


class _Data(_Message):
    aggregation_temporality: Integer = None
    is_monotonic: bool | None = None


class _Measured(_Message):
    time_unix_nano: Integer = None
    as_double: Double = None
    as_int: Integer = None


class _Exemplar(_Measured):
    trace_id: Text = None
    span_id: Text = None
    filtered_attributes: Attributes = None


class _Point(_Measured):
    attributes: Attributes = None
    start_time_unix_nano: Integer = None
    exemplars: list[_Exemplar] | None = None
    flags: Integer = None


class _Counted(_Point):
    count: Integer = None
    sum: Double = None
    min: Double = None
    max: Double = None


class _HistogramPoint(_Counted):
    bucket_counts: list[int | str | float] | None = None
    explicit_bounds: list[float | int | str] | None = None


class _Buckets(_Message):
    offset: Integer = None
    bucket_counts: list[int | str | float] | None = None


class _ExponentialPoint(_Counted):
    scale: Integer = None
    zero_count: Integer = None
    zero_threshold: Double = None
    positive: _Buckets | None = None
    negative: _Buckets | None = None


class _Quantile(_Message):
    quantile: Double = None
    value: Double = None


class _SummaryPoint(_Counted):
    quantile_values: list[_Quantile] | None = None


_TYPES: dict[str, type[Struct]] = {
    **dict.fromkeys(("ResourceLogs", "ResourceMetrics", "ResourceSpans"), _UnderResource),
    **dict.fromkeys(("ScopeLogs", "ScopeMetrics", "ScopeSpans"), _UnderScope),
    **dict.fromkeys((child.message for child in DATA), _Data),
    "LogRecord": _LogRecord,
    "Span": _Span,
    "Metric": _Metric,
    "NumberDataPoint": _Point,
    "HistogramDataPoint": _HistogramPoint,
    "ExponentialHistogramDataPoint": _ExponentialPoint,
    "SummaryDataPoint": _SummaryPoint,
}
_READ = {name: msgspec.json.Decoder(kind).decode for name, kind in _TYPES.items()}
_KINDS = AnyValue.__struct_fields__

# What stands in a message that holds others; unknown members are passed over, not kept.
_HELD = (
    *("resource", "scope", "schemaUrl", "name", "description", "unit", "metadata"),
    *("aggregationTemporality", "isMonotonic", "dataPoints", *(child.name for child in DATA)),
    *(child.name for signal in (LOGS, METRICS, TRACES) for child in signal.children),
)
_HOLDER = msgspec.defstruct("Holder", [(name, Raw | UnsetType, UNSET) for name in _HELD], gc=False)
_read_holder = msgspec.json.Decoder(_HOLDER).decode


class Json:
    """The encoding."""

    def cut(self, message: bytes, child: Child, room: Room) -> tuple[bytes, list[bytes]]:
        """Return a message without the elements of a list in it, and those.

        Raises:
            ProblemError: 400 `invalid_json`, `too_deep` or `request_invalid`; 413.
        """
        members = _members(message)
        text = members.pop(child.name, b"null")
        if text != b"null" and text[:1] != b"[":
            why = f"{child.name} must be a list, got {echo(text[:200].decode(errors='replace'))}"
            raise ProblemError(400, Reason.REQUEST_INVALID, why)
        found = [] if text == b"null" else split_array(text, room.limit)
        room.take_parts(len(members) + len(found))
        return join_object(members), found

    def data(self, metric: bytes, room: Room) -> tuple[bytes, Child | None, bytes]:
        """Return a metric without its data, which kind they are, and the data.

        Raises:
            ProblemError: As `cut`.
        """
        members = _members(metric)
        room.take_parts(len(members))
        found = [(child, members.pop(child.name, b"null")) for child in DATA]
        kind, data = next(((c, text) for c, text in found if text != b"null"), (None, b""))
        return join_object(members), kind, data

    def read(self, message: bytes, name: str) -> Any:
        """Return a message.

        Raises:
            UnreadableError: `too_deep` or `not_an_event`.
        """
        if json_exact.is_deeper(message, _MAX_BRACKETS):
            why = f"data must nest at most {json_exact.MAX_DEPTH} deep"
            raise UnreadableError(Reason.TOO_DEEP, why)
        try:
            return _READ[name](message)
        except msgspec.DecodeError:
            return _read_carefully(message, name)

    def evidence(self, message: bytes) -> bytes:
        """Return a message as it is."""
        return message

    def content(self, value: AnyValue | None) -> tuple[str | None, Any]:
        """Return which kind an AnyValue is, and what it holds."""
        if value is not None:
            for kind in _KINDS:
                content = getattr(value, kind)
                if content is not None:
                    return kind, content
        return None, None

    def number(self, point: Any) -> int | float | None:
        """Return what a point measured."""
        if point.as_double is not None:
            return self.double(point.as_double)
        return None if point.as_int is None else self.integer(point.as_int)

    def optional(self, message: Any, name: str) -> float | None:
        """Return a double that may not be there."""
        value = getattr(message, name)
        return None if value is None else self.double(value)

    def integer(self, value: Integer) -> int:
        """Return an integer.

        Raises:
            UnreadableError: `not_an_event` or `number_range`.
        """
        if value is None:
            return 0
        exact = value if isinstance(value, int) else _exact(value)
        if not _INT_MIN <= exact <= _INT_MAX:
            raise _not_integer(str(exact))
        return exact

    def integers(self, values: Sequence[int | str | float] | None) -> list[int]:
        """Return the integers of a list, at once if nothing is odd about them.

        Those beyond 64 bits are left to `weir.admission`, as nothing is reckoned with them.

        Raises:
            UnreadableError: As `integer`.
        """
        try:
            return msgspec.convert(values or (), list[int], strict=False)
        except msgspec.ValidationError:
            return [*map(self.integer, values or ())]

    def double(self, value: Double) -> float:
        """Return a double.

        Raises:
            UnreadableError: `not_an_event`.
        """
        if isinstance(value, str) and not _DOUBLE.fullmatch(value):
            message = f'a double must be a number, got "{echo(value)}"'
            raise UnreadableError(Reason.NOT_AN_EVENT, message)
        try:
            return 0.0 if value is None else float(value)
        except OverflowError:
            return inf if isinstance(value, int) and value > 0 else -inf

    def doubles(self, values: Sequence[float | int | str] | None) -> list[float]:
        """Return the doubles of a list, at once if nothing is odd about them.

        Raises:
            UnreadableError: As `double`.
        """
        try:
            return msgspec.convert(values or (), list[float], strict=False)
        except msgspec.ValidationError:
            return [*map(self.double, values or ())]

    def text(self, value: Text) -> str:
        """Return a text."""
        return value or ""

    def octets(self, value: str) -> bytes:
        """Return bytes; their base64 may be that of URLs, and without its end.

        Raises:
            UnreadableError: `not_an_event`.
        """
        text = value.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        except (binascii.Error, ValueError):
            message = f'bytesValue must be base64, got "{echo(value)}"'
            raise UnreadableError(Reason.NOT_AN_EVENT, message) from None

    def identifier(self, value: Text) -> str:
        """Return an id, which is hex; one of zeros is none."""
        return value.lower() if value and value.strip("0") else ""

    def each(self, values: Sequence[Any] | None) -> Sequence[Any]:
        """Return the elements of a list."""
        return values or ()


def _members(message: bytes) -> dict[str, bytes]:
    try:
        found = msgspec.structs.astuple(_read_holder(message))
    except (msgspec.DecodeError, RecursionError):
        return split_object(message)
    pairs = zip(_HELD, found, strict=True)
    return {name: bytes(raw) for name, raw in pairs if raw is not UNSET}


def _read_carefully(message: bytes, name: str) -> Any:
    """Return a message with `NaN`, or with a number beyond a double."""
    try:
        return msgspec.convert(json.loads(message), _TYPES[name])
    except (ValueError, msgspec.ValidationError) as error:
        why = f"a {name} must be the message of that name in JSON; {error}"
        raise UnreadableError(Reason.NOT_AN_EVENT, why) from None


def _exact(value: float | str) -> int:
    """Return the integer that a text or a double is."""
    if isinstance(value, str):
        if _INTEGER.fullmatch(value) and len(value) <= _MAX_DIGITS + 1:
            return int(value)
        if _INTEGER.fullmatch(value) or not _DOUBLE.fullmatch(value):
            raise _not_integer(value)
    number = float(value)
    if not number.is_integer():
        raise _not_integer(str(value))
    return int(number)


def _not_integer(text: str) -> UnreadableError:
    if _INTEGER.fullmatch(text):
        message = f"integers must fit 64 bits, got one of {len(text)} digits; send it as text"
        return UnreadableError(Reason.NUMBER_RANGE, message)
    return UnreadableError(Reason.NOT_AN_EVENT, f'an integer must be one, got "{echo(text)}"')
