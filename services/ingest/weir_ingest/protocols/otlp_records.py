"""Records of telemetry as they stand in an event's `data`, the same from either encoding.

Names are those of OTLP's JSON. Fields that are 0, empty or not set are left out; attributes are an
object, in the order of their names; enums are words; ids are hex; times are nanoseconds. A double
that JSON does not have is written as it never could be: `weir.admission` makes it null, and says
where.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from math import isfinite
from typing import Any

import msgspec
from msgspec import Raw, Struct

from weir_ingest.protocols.otlp_messages import Encoding, Room

_NAN = Raw(b"NaN")
# One number of many costs less than an attribute, a message with fields of its own more.
_NUMBERS_PER_PART, _PARTS_PER_MESSAGE = 4, 2
_NS_PER_MS = 1e6

_TEMPORALITIES = ("unspecified", "delta", "cumulative")
_KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
_STATUSES = ("unset", "ok", "error")

Number = int | float | Raw


class Base(Struct, omit_defaults=True, rename="camel", gc=False):
    """What is written without what is not said."""


class Resource(Base):
    """Who or what is observed."""

    attributes: dict[str, Any] = {}
    dropped_attributes_count: int = 0
    schema_url: str = ""


class Scope(Base):
    """The library that observes."""

    name: str = ""
    version: str = ""
    attributes: dict[str, Any] = {}
    dropped_attributes_count: int = 0
    schema_url: str = ""


class LogRecord(Base):
    """What was logged."""

    time_unix_nano: int = 0
    observed_time_unix_nano: int = 0
    severity_number: int = 0
    severity_text: str = ""
    event_name: str = ""
    body: Any = None
    attributes: dict[str, Any] = {}
    dropped_attributes_count: int = 0
    trace_id: str = ""
    span_id: str = ""
    flags: int = 0


class SpanEvent(Base):
    """Something that happened within a span."""

    time_unix_nano: int = 0
    name: str = ""
    attributes: dict[str, Any] = {}
    dropped_attributes_count: int = 0


class Link(Base):
    """Another span that has to do with a span."""

    trace_id: str = ""
    span_id: str = ""
    trace_state: str = ""
    attributes: dict[str, Any] = {}
    dropped_attributes_count: int = 0
    flags: int = 0


class Span(Base):
    """A piece of work."""

    name: str = ""
    kind: str | int = ""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    trace_state: str = ""
    flags: int = 0
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    duration_ms: float | None = None
    status: str | int = ""
    status_message: str = ""
    attributes: dict[str, Any] = {}
    dropped_attributes_count: int = 0
    events: list[SpanEvent] = []
    dropped_events_count: int = 0
    links: list[Link] = []
    dropped_links_count: int = 0


class Metric(Base):
    """What is measured; each of its points says it."""

    name: str = ""
    description: str = ""
    unit: str = ""
    metadata: dict[str, Any] = {}


class Data(Base):
    """How it is measured; each point says that, too."""

    kind: str
    temporality: str | int | None = None
    monotonic: bool | None = None


class Exemplar(Base):
    """A single measurement among those of a point."""

    time_unix_nano: int = 0
    value: Number | None = None
    trace_id: str = ""
    span_id: str = ""
    filtered_attributes: dict[str, Any] = {}


class Buckets(Base):
    """One side of an exponential histogram."""

    offset: int
    bucket_counts: list[int]


class Quantile(Base):
    """One of a summary's."""

    quantile: Number
    value: Number


class Point(Base):
    """What was measured, without the attributes, which tell its series."""

    start_time_unix_nano: int = 0
    time_unix_nano: int = 0
    value: Number | None = None
    count: int | None = None
    sum: Number | None = None
    min: Number | None = None
    max: Number | None = None
    bucket_counts: list[int] = []
    explicit_bounds: list[Number] = []
    scale: int | None = None
    zero_count: int | None = None
    zero_threshold: Number | None = None
    positive: Buckets | None = None
    negative: Buckets | None = None
    quantiles: list[Quantile] = []
    exemplars: list[Exemplar] = []
    flags: int = 0


def written(value: float) -> Number:
    """Return a number as JSON writes it, or as it would if it could."""
    return value if isfinite(value) else _NAN


def _written_if(value: float | None) -> Number | None:
    return None if value is None else written(value)


class Records:
    """Reads the messages of one request."""

    def __init__(self, encoding: Encoding, room: Room) -> None:
        self._room = room
        self._encoding = encoding
        self._integer = encoding.integer
        self._text = encoding.text
        self._id = encoding.identifier

    def resource(self, message: Any) -> Resource:
        """Read a resource, from what it stands in."""
        found = message.resource
        return Resource(
            self.attributes(found.attributes) if found else {},
            self._integer(found.dropped_attributes_count) if found else 0,
            self._text(message.schema_url),
        )

    def scope(self, message: Any) -> Scope:
        """Read a scope, from what it stands in."""
        found = message.scope
        if not found:
            return Scope(schema_url=self._text(message.schema_url))
        return Scope(
            self._text(found.name),
            self._text(found.version),
            self.attributes(found.attributes),
            self._integer(found.dropped_attributes_count),
            self._text(message.schema_url),
        )

    def attributes(self, pairs: Any) -> dict[str, Any]:
        """Return attributes; of a name twice the last."""
        text, value = self._text, self._value
        return {text(pair.key): value(pair.value) for pair in self._each(pairs)}

    def log_record(self, message: Any) -> LogRecord:
        """Read a log record."""
        return LogRecord(
            self._integer(message.time_unix_nano),
            self._integer(message.observed_time_unix_nano),
            self._integer(message.severity_number),
            self._text(message.severity_text),
            self._text(message.event_name),
            self._value(message.body),
            self.attributes(message.attributes),
            self._integer(message.dropped_attributes_count),
            self._id(message.trace_id),
            self._id(message.span_id),
            self._integer(message.flags),
        )

    def span(self, message: Any) -> Span:
        """Read a span."""
        start = self._integer(message.start_time_unix_nano)
        end = self._integer(message.end_time_unix_nano)
        status = message.status
        return Span(
            self._text(message.name),
            _word(self._integer(message.kind), _KINDS),
            self._id(message.trace_id),
            self._id(message.span_id),
            self._id(message.parent_span_id),
            self._text(message.trace_state),
            self._integer(message.flags),
            start,
            end,
            (end - start) / _NS_PER_MS if start and end else None,
            _word(self._integer(status.code) if status else 0, _STATUSES),
            self._text(status.message) if status else "",
            self.attributes(message.attributes),
            self._integer(message.dropped_attributes_count),
            [self._event(event) for event in self._each(message.events, _PARTS_PER_MESSAGE)],
            self._integer(message.dropped_events_count),
            [self._link(link) for link in self._each(message.links, _PARTS_PER_MESSAGE)],
            self._integer(message.dropped_links_count),
        )

    def _event(self, message: Any) -> SpanEvent:
        return SpanEvent(
            self._integer(message.time_unix_nano),
            self._text(message.name),
            self.attributes(message.attributes),
            self._integer(message.dropped_attributes_count),
        )

    def _link(self, message: Any) -> Link:
        return Link(
            self._id(message.trace_id),
            self._id(message.span_id),
            self._text(message.trace_state),
            self.attributes(message.attributes),
            self._integer(message.dropped_attributes_count),
            self._integer(message.flags),
        )

    def metric(self, message: Any) -> Metric:
        """Read what is said of a metric."""
        return Metric(
            self._text(message.name),
            self._text(message.description),
            self._text(message.unit),
            self.attributes(message.metadata),
        )

    def data(self, message: Any, kind: str) -> Data:
        """Read how a metric is measured."""
        data = Data(kind)
        if kind not in ("gauge", "summary"):
            number = self._integer(message.aggregation_temporality)
            data.temporality = _word(number, _TEMPORALITIES)
        if kind == "sum":
            data.monotonic = bool(message.is_monotonic)
        return data

    def point(self, message: Any, kind: str) -> Point:
        """Read a point."""
        point = Point(
            self._integer(message.start_time_unix_nano),
            self._integer(message.time_unix_nano),
            flags=self._integer(message.flags),
        )
        if kind != "summary":
            point.exemplars = [
                self._exemplar(one) for one in self._each(message.exemplars, _PARTS_PER_MESSAGE)
            ]
        if kind in ("gauge", "sum"):
            point.value = _written_if(self._encoding.number(message))
            return point
        point.count = self._integer(message.count)
        if kind == "summary":
            point.sum = written(self._encoding.double(message.sum))
            point.quantiles = [
                self._quantile(one)
                for one in self._each(message.quantile_values, _PARTS_PER_MESSAGE)
            ]
            return point
        for name in ("sum", "min", "max"):
            setattr(point, name, _written_if(self._encoding.optional(message, name)))
        if kind == "histogram":
            point.bucket_counts = self._integers(message.bucket_counts)
            point.explicit_bounds = self._doubles(message.explicit_bounds)
        else:
            self._read_exponential(message, point)
        return point

    def _read_exponential(self, message: Any, point: Point) -> None:
        point.scale = self._integer(message.scale)
        point.zero_count = self._integer(message.zero_count)
        point.zero_threshold = _written_if(self._encoding.double(message.zero_threshold) or None)
        point.positive = self._buckets(message.positive)
        point.negative = self._buckets(message.negative)

    def _buckets(self, message: Any) -> Buckets | None:
        counts = self._integers(message.bucket_counts) if message else []
        return Buckets(self._integer(message.offset), counts) if counts else None

    def _quantile(self, message: Any) -> Quantile:
        double = self._encoding.double
        return Quantile(written(double(message.quantile)), written(double(message.value)))

    def _exemplar(self, message: Any) -> Exemplar:
        return Exemplar(
            self._integer(message.time_unix_nano),
            _written_if(self._encoding.number(message)),
            self._id(message.trace_id),
            self._id(message.span_id),
            self.attributes(message.filtered_attributes),
        )

    def _value(self, message: Any) -> Any:
        """Return an AnyValue as JSON has it; one that holds nothing is null."""
        kind, content = self._encoding.content(message)
        if kind in ("string_value", "bool_value"):
            return content
        if kind == "int_value":
            return self._integer(content)
        if kind == "double_value":
            return written(self._encoding.double(content))
        if kind == "array_value":
            return [self._value(one) for one in self._each(content.values)]
        if kind == "kvlist_value":
            return self.attributes(content.values)
        if kind == "bytes_value":
            return base64.b64encode(self._encoding.octets(content)).decode()
        return None

    def _each(self, values: Any, parts: int = 1) -> Sequence[Any]:
        found = self._encoding.each(values)
        self._room.take_parts(len(found) * parts)
        return found

    def _integers(self, values: Any) -> list[int]:
        self._room.take_parts(len(values or ()) // _NUMBERS_PER_PART)
        return self._encoding.integers(values)

    def _doubles(self, values: Any) -> list[Number]:
        self._room.take_parts(len(values or ()) // _NUMBERS_PER_PART)
        found = self._encoding.doubles(values)
        return [*found] if all(map(isfinite, found)) else [*map(written, found)]


def _word(number: int, words: tuple[str, ...]) -> str | int:
    """Return what a number of an enum means; of one that is not known, the number."""
    return words[number] if 0 <= number < len(words) else number


encode = msgspec.json.Encoder(order="deterministic").encode
