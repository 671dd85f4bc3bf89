"""The messages of OTLP: which hold which, and what an encoding must tell of them.

    Export…ServiceRequest {Resource… = 1, ...}
    Resource… {Resource resource = 1; Scope… = 2, ...; string schema_url = 3}
    Scope… {InstrumentationScope scope = 1; LogRecord, Metric or Span = 2, ...; schema_url = 3}
    Metric {name, unit, ...; Gauge gauge = 5 or Sum sum = 7 or ...}
    Gauge {NumberDataPoint data_points = 1, ...}

A request is cut into its records before any of them is read. So what is wrong with one of them is
its own fault, and neither runtime, protobuf's or JSON's, makes objects of a whole request before
one can count them: of 20 MB of empty records it would make gigabytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from weir.problems import ProblemError, Reason

from weir_ingest.protocols.batch import too_many_events

_CONTAINERS_PER_EVENT, _PARTS_PER_EVENT = 4, 50
_MIN_ITEMS_BYTES = 20 << 20


class UnreadableError(Exception):
    """A message that cannot be read.

    Attributes:
        reason: What is told of it.
        why: A sentence.
    """

    def __init__(self, reason: Reason, why: str) -> None:
        super().__init__(why)
        self.reason = reason
        self.why = why


class Child(NamedTuple):
    """A field that holds other messages.

    Attributes:
        number: Its number in protobuf.
        name: Its name in JSON.
        message: What it holds.
    """

    number: int
    name: str
    message: str


class Signal(NamedTuple):
    """What one kind of telemetry is called.

    Attributes:
        name: As in an event's type.
        path: As in a request's path.
        children: From the request down to what holds records, or metrics.
        noun: What its records are called in sentences.
        rejected: The field that counts them, in JSON.
    """

    name: str
    path: str
    children: tuple[Child, Child, Child]
    noun: str
    rejected: str


LOGS = Signal(
    "log",
    "logs",
    (
        Child(1, "resourceLogs", "ResourceLogs"),
        Child(2, "scopeLogs", "ScopeLogs"),
        Child(2, "logRecords", "LogRecord"),
    ),
    "log records",
    "rejectedLogRecords",
)
METRICS = Signal(
    "metric",
    "metrics",
    (
        Child(1, "resourceMetrics", "ResourceMetrics"),
        Child(2, "scopeMetrics", "ScopeMetrics"),
        Child(2, "metrics", "Metric"),
    ),
    "data points",
    "rejectedDataPoints",
)
TRACES = Signal(
    "span",
    "traces",
    (
        Child(1, "resourceSpans", "ResourceSpans"),
        Child(2, "scopeSpans", "ScopeSpans"),
        Child(2, "spans", "Span"),
    ),
    "spans",
    "rejectedSpans",
)

DATA = (
    Child(5, "gauge", "Gauge"),
    Child(7, "sum", "Sum"),
    Child(9, "histogram", "Histogram"),
    Child(10, "exponentialHistogram", "ExponentialHistogram"),
    Child(11, "summary", "Summary"),
)
"""What a metric may be; it is one of them."""

POINTS = {
    "Gauge": Child(1, "dataPoints", "NumberDataPoint"),
    "Sum": Child(1, "dataPoints", "NumberDataPoint"),
    "Histogram": Child(1, "dataPoints", "HistogramDataPoint"),
    "ExponentialHistogram": Child(1, "dataPoints", "ExponentialHistogramDataPoint"),
    "Summary": Child(1, "dataPoints", "SummaryDataPoint"),
}
"""The points of each of them."""


@dataclass(slots=True)
class Room:
    """What a request may still hold, so that none takes more time and memory than its events earn.

    Attributes:
        limit: How many events it may hold.
        max_bytes: Of all their items together.
        events: How many more.
        containers: The same of resources, scopes, metrics.
        parts: The same of attributes, fields, and whatever else there are many of.
        bytes: The same of items: a resource is said once for many records, each of which gets it.
    """

    limit: int
    max_bytes: int
    events: int
    containers: int
    parts: int
    bytes: int

    @classmethod
    def of(cls, max_events: int, body_bytes: int) -> Room:
        """Return the room of a request."""
        containers, parts = max_events * _CONTAINERS_PER_EVENT, max_events * _PARTS_PER_EVENT
        max_bytes = max(_MIN_ITEMS_BYTES, 2 * body_bytes)
        return cls(max_events, max_bytes, max_events, containers, parts, max_bytes)

    def check_events(self, count: int) -> None:
        """Refuse a request that has more events to come than it may have.

        Raises:
            ProblemError: 413 `too_many_events`, as from the others.
        """
        if count > self.events:
            raise too_many_events(self.limit)

    def take_event(self, size: int) -> None:
        """Count an item."""
        self.check_events(1)
        self.events -= 1
        self.bytes -= size
        if self.bytes < 0:
            raise _too_much(self.max_bytes, "bytes of records, each with its resource and scope")

    def take_container(self) -> None:
        """Count a resource, a scope or a metric."""
        self.containers -= 1
        if self.containers < 0:
            raise _too_much(self.limit * _CONTAINERS_PER_EVENT, "resources, scopes and metrics")

    def take_parts(self, count: int) -> None:
        """Count attributes or the like."""
        self.parts -= count
        if self.parts < 0:
            raise _too_much(self.limit * _PARTS_PER_EVENT, "attributes, fields and other parts")


def _too_much(limit: int, what: str) -> ProblemError:
    message = f"a request must hold at most {limit} {what}, got more; send it in parts"
    return ProblemError(413, Reason.TOO_MANY_EVENTS, message)


class Encoding(Protocol):
    """How messages are written: in protobuf, or in JSON. Each method reads one kind of field."""

    def cut(self, message: bytes, child: Child, room: Room) -> tuple[bytes, list[bytes]]:
        """Return a message without the elements of a list in it, and those.

        Raises:
            ProblemError: 400 where that is none; 413.
        """
        ...

    def data(self, metric: bytes, room: Room) -> tuple[bytes, Child | None, bytes]:
        """Return a metric without its data, which kind they are, and the data.

        Raises:
            ProblemError: As `cut`.
        """
        ...

    def read(self, message: bytes, name: str) -> Any:
        """Return a message by the names of its fields.

        Raises:
            UnreadableError: If it is none.
        """
        ...

    def evidence(self, message: bytes) -> bytes:
        """Return a message, as it came, in JSON."""
        ...

    def content(self, value: Any) -> tuple[str | None, Any]:
        """Return which kind an AnyValue is, by its field's name in protobuf, and what it holds."""
        ...

    def number(self, point: Any) -> int | float | None:
        """Return what a point or an exemplar measured."""
        ...

    def optional(self, message: Any, name: str) -> float | None:
        """Return a double that may not be there."""
        ...

    def integer(self, value: Any) -> int:
        """Return an integer, or an enum's number."""
        ...

    def double(self, value: Any) -> float:
        """Return a double."""
        ...

    def integers(self, values: Any) -> list[int]:
        """Return the integers of a list."""
        ...

    def doubles(self, values: Any) -> list[float]:
        """Return the doubles of a list."""
        ...

    def text(self, value: Any) -> str:
        """Return a text."""
        ...

    def octets(self, value: Any) -> bytes:
        """Return bytes."""
        ...

    def identifier(self, value: Any) -> str:
        """Return the id of a trace or a span, in hex."""
        ...

    def each(self, values: Any) -> Sequence[Any]:
        """Return the elements of a list."""
        ...
