"""Telemetry of OpenTelemetry's (INGEST 4.4): log records, points of metrics, spans.

Each becomes an event of type `dev.weir.otlp.<signal>`, about its metric, its service or its span,
with what it was sent under: resource, scope and, for a point, the metric. A span has an id of its
own, the others get a digest of what they say: telemetry sent again is the same events.
"""

from __future__ import annotations

import collections.abc
import hashlib
import re
from functools import partial

import msgspec

from weir.attributes import Attributes, Member, read_name
from weir.event_time import TimeInvalidError, format_time
from weir.mappings import Mapping
from weir.problems import Reason, echo
from weir.refusal import ItemRefusedError

PROTOCOL = "otlp"
LOG, METRIC, SPAN = SIGNALS = ("log", "metric", "span")
UNREADABLE = "unreadable"
"""The member that stands in an item for what was no message of OTLP's: reason, why, and bytes."""

# The first that is there says when it was.
_TIMES = {
    LOG: ("timeUnixNano", "observedTimeUnixNano"),
    METRIC: ("timeUnixNano",),
    SPAN: ("endTimeUnixNano", "startTimeUnixNano"),
}
# What tells a point of a metric from others; `ordinal` is the place among equal ones of a request.
_POINT = (*("resource", "scope", "name", "unit", "kind", "attributes", "timeUnixNano", "ordinal"),)
_DIGITS = 32
_NS_PER_MS = 1_000_000
_ABSENT = msgspec.Raw(b"null")
_TRACE_ID, _SPAN_ID = re.compile(rb'"([0-9a-f]{32})"'), re.compile(rb'"([0-9a-f]{16})"')


class _Said(msgspec.Struct, frozen=True):
    """The attributes of a resource that say who sends."""

    instance: msgspec.Raw = msgspec.field(default=_ABSENT, name="service.instance.id")
    service: msgspec.Raw = msgspec.field(default=_ABSENT, name="service.name")


class _Resource(msgspec.Struct):
    attributes: _Said = _Said()


class _Unreadable(msgspec.Struct):
    reason: Reason
    why: str


_read_resource = msgspec.json.Decoder(_Resource).decode
_read_unreadable = msgspec.json.Decoder(_Unreadable).decode
_read_integer = msgspec.json.Decoder(int).decode


def mapping(signal: str) -> Mapping:
    """Return the mapping of a signal's items.

    Args:
        signal: One of `SIGNALS`.
    """
    return partial(_read, signal)


def _read(
    signal: str,
    text: bytes,
    members: collections.abc.Mapping[str, Member],
    arrived_ms: int,  # noqa: ARG001 - mappings are called alike
) -> Attributes:
    if UNREADABLE in members:
        raise _refusal(members[UNREADABLE])
    service, key = _sender(members.get("resource", _ABSENT))
    said = Attributes.bare(text)
    said.type = f"dev.weir.{PROTOCOL}.{signal}"
    said.subject = service if signal == LOG else read_name("name", members.get("name"))
    said.partition_key = key
    if key is not None:
        said.others["partitionkey"] = key
    name = next((name for name in _TIMES[signal] if name in members), None)
    if name is not None:
        said.time_ms, said.time_text = _time_of(name, members[name])
    if signal == METRIC and said.subject is None:
        raise ItemRefusedError(Reason.NOT_AN_EVENT, "a metric must have a name, got none")
    if signal == SPAN:
        said.id = _id_in("traceId", _TRACE_ID, members) + _id_in("spanId", _SPAN_ID, members)
    elif name is not None:
        said.id = _digest(members, _POINT) if signal == METRIC else _hex(hashlib.sha256(text))
    # Without any time, what says the same may still have happened twice: then an id is assigned.
    return said


def _sender(resource: Member) -> tuple[str | None, str | None]:
    """Return what the service is called, and by what its events are kept in order."""
    try:
        said = _read_resource(resource).attributes
    except msgspec.MsgspecError:
        return None, None
    service = _name_of("service.name", said.service)
    return service, _name_of("service.instance.id", said.instance) or service


def _name_of(name: str, raw: Member) -> str | None:
    """Return text or a number; an attribute may be anything, and what is no name names nothing."""
    return read_name(name, raw) if bytes(raw)[:1] in b'"-0123456789' else None


def _time_of(name: str, raw: Member) -> tuple[int, str]:
    """Return a time, which is in nanoseconds whatever its size, and how it is written."""
    try:
        time_ms = _read_integer(raw) // _NS_PER_MS
        return time_ms, format_time(time_ms)
    except (msgspec.MsgspecError, OverflowError):
        got = bytes(raw)[:40].decode(errors="replace")
        message = f"{name} must be nanoseconds between the years 1 and 9999, got {echo(got)}"
        raise TimeInvalidError(message) from None


def _id_in(
    name: str, pattern: re.Pattern[bytes], members: collections.abc.Mapping[str, Member]
) -> str:
    raw = bytes(members.get(name, b"none"))
    match = pattern.fullmatch(raw)
    if match is None:
        digits = 32 if pattern is _TRACE_ID else 16
        got = echo(raw[:200].decode(errors="replace"))
        message = f"{name} of a span must be {digits} hex digits, not all of them 0, got {got}"
        raise ItemRefusedError(Reason.ID_INVALID, message)
    return match[1].decode()


def _digest(members: collections.abc.Mapping[str, Member], names: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for name in names:
        raw = bytes(members.get(name, b""))
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return _hex(digest)


def _hex(digest: hashlib._Hash) -> str:
    return digest.hexdigest()[:_DIGITS]


def _refusal(raw: Member) -> ItemRefusedError:
    try:
        said = _read_unreadable(raw)
    except msgspec.MsgspecError:
        return ItemRefusedError(Reason.NOT_AN_EVENT, f"an item must not have {UNREADABLE}")
    return ItemRefusedError(said.reason, said.why)
