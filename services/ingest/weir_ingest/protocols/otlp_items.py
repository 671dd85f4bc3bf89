"""The items of a request: one for each log record, data point and span.

What its resource, scope and metric say stands in each of them; that text is made once. A record
that cannot be read is an item, too, with its bytes and the reason: the mapping refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from weir.event import MAX_RECORD_BYTES
from weir.mappings.otlp import UNREADABLE
from weir.problems import Reason

from weir_ingest.protocols.otlp_messages import (
    METRICS,
    POINTS,
    TRACES,
    Encoding,
    Room,
    Signal,
    UnreadableError,
)
from weir_ingest.protocols.otlp_records import Metric, Point, Records, encode


def items_of(body: bytes, signal: Signal, encoding: Encoding, max_events: int) -> list[bytes]:
    """Return the items of a request, in its order.

    Args:
        body: Decoded.
        signal: What it has.
        encoding: How it is written.
        max_events: How many it may hold.

    Raises:
        ProblemError: 400, if it is no such request; 413, before the rest is read.
    """
    return _Reader(signal, encoding, Room.of(max_events, len(body))).read(body)


@dataclass(frozen=True, slots=True)
class _Series:
    """What the points of a metric have in common.

    Attributes:
        kind: Which data they are.
        message: What each of them is.
        head: The members that each item begins with.
        name: What tells the metric from others.
    """

    kind: str
    message: str
    head: bytes
    name: Hashable


class _Reader:
    def __init__(self, signal: Signal, encoding: Encoding, room: Room) -> None:
        self._signal = signal
        self._encoding = encoding
        self._room = room
        self._records = Records(encoding, room)
        self._items: list[bytes] = []
        self._seen: dict[Hashable, int] = {}

    def read(self, body: bytes) -> list[bytes]:
        resources, scopes, records = self._signal.children
        cut, room = self._encoding.cut, self._room
        for group in cut(body, resources, room)[1]:
            room.take_container()
            own, inner = cut(group, scopes, room)
            if len(own) > MAX_RECORD_BYTES:
                self._append(group)  # refused for its size
                continue
            head = self._member("resource", own, resources.message, self._records.resource)
            for scope in inner:
                room.take_container()
                own, found = cut(scope, records, room)
                if len(own) > MAX_RECORD_BYTES:
                    self._append(scope)
                    continue
                said = self._member("scope", own, scopes.message, self._records.scope)
                self._read_records(b"%b,%b" % (head, said), found)
        return self._items

    def _member(self, member: str, own: bytes, message: str, build: Callable[[Any], Any]) -> bytes:
        found, text = self._members(own, message, build)
        return text if found is None else b'"%b":{%b}' % (member.encode(), text)

    def _read_records(self, head: bytes, records: list[bytes]) -> None:
        if self._signal is METRICS:
            for metric in records:
                self._metric(head, metric)
            return
        self._room.check_events(len(records))
        is_span = self._signal is TRACES
        name = self._signal.children[-1].message
        build = self._records.span if is_span else self._records.log_record
        for record in records:
            if len(record) > MAX_RECORD_BYTES:
                self._append(record)
                continue
            found, text = self._members(record, name, build)
            item = _item(head, text)
            # A span has an id of its own.
            self._add(item, None if is_span or found is None else item)

    def _metric(self, head: bytes, message: bytes) -> None:
        self._room.take_container()
        own, child, data = self._encoding.data(message, self._room)
        if child is None:
            return
        point = POINTS[child.message]
        data_own, points = self._encoding.cut(data, point, self._room)
        if len(own) + len(data_own) > MAX_RECORD_BYTES:
            self._append(message)
            return
        self._room.check_events(len(points))
        kind = child.name
        metric, said = self._members(own, "Metric", self._records.metric)
        how = self._members(data_own, child.message, lambda d: self._records.data(d, kind))[1]
        name = (head, metric.name, metric.unit, kind) if isinstance(metric, Metric) else None
        series = _Series(kind, point.message, _joined(head, said, how), name)
        for text in points:
            self._point(text, series)

    def _point(self, message: bytes, series: _Series) -> None:
        if len(message) > MAX_RECORD_BYTES:
            self._append(message)
            return
        attributes = b""

        def build(found: Any) -> Point:
            nonlocal attributes
            attributes = encode(self._records.attributes(found.attributes))
            return self._records.point(found, series.kind)

        point, text = self._members(message, series.message, build)
        if not isinstance(point, Point):
            self._add(_item(series.head, text), None)
            return
        said = b"" if attributes == b"{}" else b'"attributes":%b' % attributes
        name = series.name and (series.name, attributes, point.time_unix_nano)
        self._add(_item(series.head, said, text), name)

    def _members(self, message: bytes, name: str, build: Callable[[Any], Any]) -> tuple[Any, bytes]:
        """Return a message, and its members in JSON; None, and why, if it cannot be read."""
        try:
            found = build(self._encoding.read(message, name))
            return found, encode(found)[1:-1]
        except UnreadableError as error:
            reason, why = error.reason, error.why
        except UnicodeEncodeError:
            reason, why = Reason.INVALID_UNICODE, "strings must be Unicode"
        head = encode({"message": name, "reason": reason, "why": why})[:-1]
        evidence = self._encoding.evidence(message)
        return None, b'"%b":%b,"raw":%b}' % (UNREADABLE.encode(), head, evidence)

    def _add(self, item: bytes, name: Hashable) -> None:
        """Take an item; of those that are one by name, each further one says its place."""
        if name is not None:
            before = self._seen.get(name, 0)
            self._seen[name] = before + 1
            if before:
                item = b'%b,"ordinal":%d}' % (item[:-1], before)
        self._append(item)

    def _append(self, item: bytes) -> None:
        self._room.take_event(len(item))
        self._items.append(item)


def _joined(*members: bytes) -> bytes:
    return b",".join(text for text in members if text)


def _item(*members: bytes) -> bytes:
    return b"{%b}" % _joined(*members)
