"""Splunk's HTTP Event Collector (INGEST 4.7).

Objects that stand behind one another, or plain lines, and answers with Splunk's codes. An object
that is no JSON leaves unknown what follows it: that is the request's fault, code 6. One that is
JSON but no event is quarantined, and the request succeeds; so codes 12 and 13 are never answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType
from weir import json_exact
from weir.mappings import hec
from weir.problems import ProblemError, Reason, echo

from weir_ingest import openapi
from weir_ingest.answers import Answer, Item, encode, json_answer, problem_answer
from weir_ingest.head import Head
from weir_ingest.keys import presented
from weir_ingest.protocols.batch import Batch, BatchLimits, cut, too_many_events
from weir_ingest.protocols.json_text import quoted, split_array, split_values
from weir_ingest.wire import Page, Route, Stored, Wire

_QUERY_KEYS = ("token",)
_CHANNEL = b"x-splunk-request-channel"
_BOM = b"\xef\xbb\xbf"

_SUCCESS, _DISABLED, _NO_TOKEN, _NO_AUTHORIZATION, _BAD_TOKEN = range(5)
_NO_DATA, _BAD_FORMAT, _BUSY, _NO_CHANNEL, _NO_ACK, _HEALTHY = 5, 6, 9, 10, 14, 17
_TEXTS = {
    _SUCCESS: "Success",
    _DISABLED: "Token disabled",
    _NO_TOKEN: "Token is required",
    _NO_AUTHORIZATION: "Invalid authorization",
    _BAD_TOKEN: "Invalid token",
    _NO_DATA: "No data",
    _BAD_FORMAT: "Invalid data format",
    _BUSY: "Server is busy",
    _NO_CHANNEL: "Data channel is missing",
    _NO_ACK: "ACK is disabled",
    _HEALTHY: "HEC is healthy",
}
_CODES = {
    Reason.EMPTY_BODY: _NO_DATA,
    Reason.SCOPE_MISSING: _DISABLED,
    Reason.RATE_LIMITED: _BUSY,
    Reason.LOG_UNAVAILABLE: _BUSY,
    Reason.REQUEST_TIMEOUT: _BUSY,
}
# Where Splunk's status is another than that of everybody else.
_STATUSES = {_BAD_TOKEN: 403}


class Reply(msgspec.Struct, omit_defaults=True):
    """The body of every answer; `detail` and what follows it are ours."""

    text: str
    code: int
    event_number: int | UnsetType = msgspec.field(name="invalid-event-number", default=UNSET)
    detail: str = ""
    quarantined: int = 0
    items: list[Item] = []


@dataclass(eq=False)
class HecError(ProblemError):
    """A refusal that has a code of its own.

    Attributes:
        code: Splunk's.
        event_number: Which object is at fault, from 0.
    """

    code: int = _BAD_FORMAT
    event_number: int | UnsetType = UNSET


class _Hec(Wire):
    query_keys = _QUERY_KEYS

    def stored(self, stored: Stored) -> Answer:
        """Return success; senders look at `code` alone."""
        quarantined = len(stored.items)
        body = Reply(_TEXTS[_SUCCESS], _SUCCESS, quarantined=quarantined, items=stored.items)
        return json_answer(200, encode(body))

    def refused(self, head: Head, problem: ProblemError) -> Answer:
        """Return Splunk's code for a problem, with what else belongs to the answer."""
        code = _code_of(head, problem)
        reply = Reply(_TEXTS[code], code, detail=problem.message)
        if isinstance(problem, HecError):
            reply.event_number = problem.event_number
        others = problem_answer(problem).headers[2:]
        return json_answer(_STATUSES.get(code, problem.status), encode(reply), *others)


def _code_of(head: Head, problem: ProblemError) -> int:
    if isinstance(problem, HecError):
        return problem.code
    if problem.reason is not Reason.UNAUTHORIZED:
        return _CODES.get(problem.reason, _BAD_FORMAT)
    if presented(head, _QUERY_KEYS):
        return _BAD_TOKEN
    return _NO_AUTHORIZATION if b"authorization" in head.headers else _NO_TOKEN


_ANSWER = {
    "type": "object",
    "required": ["text", "code"],
    "properties": {
        "text": {"type": "string"},
        "code": {"type": "integer", "description": "Splunk's."},
        "invalid-event-number": {"type": "integer"},
        "detail": {"type": "string"},
        "quarantined": {"type": "integer"},
        "items": openapi.ITEMS,
    },
}


def _path(summary: str, media_type: str, *parameters: tuple[str, str]) -> dict[str, Any]:
    """Return what the OpenAPI document says of a path."""
    texts = {200: "Stored.", **openapi.PROBLEMS}
    text = {"type": "string"}
    answer = {"application/json": {"schema": _ANSWER}}
    return {
        "summary": f"Splunk HEC: {summary}",
        "requestBody": {"required": True, "content": {media_type: {"schema": text}}},
        "parameters": [
            {"name": name, "in": "query", "description": said, "schema": text}
            for name, said in parameters
        ],
        "responses": {str(n): {"description": t, "content": answer} for n, t in texts.items()},
    }


_METADATA = tuple((name, f"The {name} of what says none.") for name in hec.METADATA)


class Events(_Hec):
    """Objects, one behind the other."""

    document = _path("events", "application/json", *_METADATA)

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a body into its objects; what one says of host and the like holds for the next.

        Raises:
            ProblemError: 400, or 413 `too_many_events`, before the rest is cut.
        """
        items: list[bytes] = []
        body = body.removeprefix(_BOM)
        try:
            for item in _objects(body, limits.max_events):
                if len(items) == limits.max_events:
                    raise too_many_events(limits.max_events)
                items.append(item)
        except ProblemError as error:
            if error.reason is not Reason.INVALID_JSON:
                raise
            raise HecError(400, error.reason, error.message, event_number=len(items)) from None
        if not items and not body.strip(b" \t\r\n,"):
            raise _no_data(what="objects")
        carried = _query_metadata(head, hec.METADATA)
        return _batch(list(_carry_over(items, carried)))


def _objects(body: bytes, limit: int) -> Iterator[bytes]:
    for count, value in enumerate(split_values(body)):
        if count == limit:  # empty arrays would else have no end
            raise too_many_events(limit)
        if value[:1] == b"[":
            yield from split_array(value, limit)
        else:
            yield value


class _Said(msgspec.Struct):
    """What an object says that holds for the next one, too."""

    host: Raw | UnsetType = UNSET
    source: Raw | UnsetType = UNSET
    sourcetype: Raw | UnsetType = UNSET
    index: Raw | UnsetType = UNSET


_read_said = msgspec.json.Decoder(_Said).decode


def _said_of(item: bytes) -> dict[str, bytes] | None:
    """Return the metadata of an object, null left out; None if it cannot be told."""
    text = item
    try:
        said = _read_said(item)
    except (msgspec.DecodeError, RecursionError):
        text = json_exact.parsable(item)
        try:
            said = _read_said(text)
        except (msgspec.DecodeError, RecursionError):
            return None
    found = {}
    for name in hec.METADATA:
        raw = getattr(said, name)
        if raw is not UNSET and (value := bytes(raw)) != b"null":
            found[name] = value
    if text is not item and any(text.count(value) > item.count(value) for value in found.values()):
        return None  # one of them may be what a NaN or an escape was replaced with
    return found


def _carry_over(items: list[bytes], carried: dict[str, bytes]) -> Iterator[bytes]:
    """Return objects with what they leave to those before them, behind their own members.

    What cannot be used, or not be read, is carried nowhere, and neither is what came before it:
    an event rather has no host than a wrong one.
    """
    for item in items:
        if item[:1] != b"{":
            yield item
            continue
        said = _said_of(item)
        if said is None:
            carried.clear()
            yield item
            continue
        yield _joined(item, {n: v for n, v in carried.items() if n not in said})
        for name, value in said.items():
            if carried.get(name) != value:
                carried.pop(name, None)
                if hec.is_carried(name, value):
                    carried[name] = value


def _joined(item: bytes, added: Mapping[str, bytes]) -> bytes:
    if not added:
        return item
    own = item[:-1].rstrip()
    members = [b'"%b":%b' % (name.encode(), value) for name, value in added.items()]
    return b"%b%b%b}" % (own, b"" if own == b"{" else b",", b",".join(members))


class Lines(_Hec):
    """Plain lines; what else there is to say stands in the query."""

    document = _path(
        "plain lines",
        "text/plain",
        ("channel", "Needed where X-Splunk-Request-Channel is not sent."),
        ("time", "When all of them happened."),
        *_METADATA,
    )

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a body into its lines; blank ones are none.

        Raises:
            ProblemError: 400, or 413 `too_many_events`.
        """
        if not (head.headers.get(_CHANNEL) or head.query.get("channel")):
            message = "lines must come with a channel, got none; send X-Splunk-Request-Channel"
            raise HecError(400, Reason.REQUEST_INVALID, message, code=_NO_CHANNEL)
        lines = cut(body.removeprefix(_BOM), b"\n", limits.max_events)
        if not lines:
            raise _no_data(what="lines")
        said = _query_metadata(head, ("time", *hec.METADATA))
        items = [_joined(b'{"event":%b}' % quoted(line.rstrip(b"\r")), said) for line in lines]
        return _batch(items)


def _query_metadata(head: Head, names: tuple[str, ...]) -> dict[str, bytes]:
    """Return what the query says for every item.

    Raises:
        ProblemError: 400 `attribute_invalid`, if it is nothing for an attribute.
    """
    found = {name: encode(head.query[name]) for name in names if head.query.get(name)}
    for name, value in found.items():
        if not hec.is_carried(name, value):
            most, got = hec.MAX_METADATA_BYTES, echo(head.query[name])
            message = f'{name} must be at most {most} bytes without control characters, got "{got}"'
            raise HecError(400, Reason.ATTRIBUTE_INVALID, message)
    return found


def _batch(items: list[bytes]) -> Batch:
    return Batch(items, hec.PROTOCOL, mapping=hec.mapping, mapped=hec.PROTOCOL)


def _no_data(what: str) -> HecError:
    message = f"body must hold {what}, got only white space"
    return HecError(400, Reason.EMPTY_BODY, message, code=_NO_DATA)


def health(head: Head) -> Answer:  # noqa: ARG001 - the same for everybody
    """Return that requests are answered; a key is not asked for, as little as by Splunk."""
    return json_answer(200, encode(Reply(_TEXTS[_HEALTHY], _HEALTHY)))


def ack(head: Head) -> Answer:  # noqa: ARG001 - the same for everybody
    """Return that nothing is acknowledged later: a success means that Kafka has it."""
    return json_answer(400, encode(Reply(_TEXTS[_NO_ACK], _NO_ACK)))


_ROOT = "/services/collector"

ROUTES = (
    Route((_ROOT, f"{_ROOT}/event", f"{_ROOT}/event/1.0"), Events()),
    Route((f"{_ROOT}/raw", f"{_ROOT}/raw/1.0"), Lines()),
)

PAGES = (
    Page(f"{_ROOT}/health", health),
    Page(f"{_ROOT}/health/1.0", health),
    Page(f"{_ROOT}/ack", ack, ("POST",)),
)
