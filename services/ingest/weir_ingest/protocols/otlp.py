"""OpenTelemetry's protocol over HTTP (INGEST 4.4): metrics, logs and traces.

Protobuf or JSON, and the answer in what the request was in. A record that cannot be used is in
quarantine, and counted as rejected in a 200: exporters log that, and send nothing again. They do
so after 429, 502, 503 and 504 only, and drop what they have after anything else.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from weir.mappings import otlp
from weir.mappings.named import NAMED
from weir.problems import MAX_ERRORS, ProblemError, Reason, echo

from weir_ingest import openapi
from weir_ingest.answers import Answer, Item, encode, problem_answer
from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.json_text import readable
from weir_ingest.protocols.otlp_items import items_of
from weir_ingest.protocols.otlp_json import Json
from weir_ingest.protocols.otlp_messages import LOGS, METRICS, TRACES, Encoding, Signal
from weir_ingest.protocols.otlp_protobuf import Protobuf
from weir_ingest.wire import Route, Stored, Wire

_PROTOBUF, _JSON = b"application/x-protobuf", b"application/json"
_ENCODINGS: dict[bytes, Encoding] = {_PROTOBUF: Protobuf(), _JSON: Json()}

# gRPC's codes, as google.rpc.Status has them: exporters log them.
_INVALID_ARGUMENT, _UNAVAILABLE = 3, 14
_CODES = {401: 16, 403: 7, 429: 8, 503: _UNAVAILABLE}
_STATUS = {
    "type": "object",
    "properties": {"code": {"type": "integer"}, "message": {"type": "string"}},
}


class Status(msgspec.Struct):
    """The body of a refusal, google.rpc.Status."""

    code: int
    message: str


class Otlp(Wire):
    """The protocol; a subclass is a signal."""

    may_be_empty = True
    signal: ClassVar[Signal]

    def decode(self, head: Head, body: bytes, limit: int) -> bytes:
        """Undo a body's Content-Encoding.

        Raises:
            ProblemError: 415, if it is neither protobuf nor JSON; else as `encodings.decode`.
        """
        _check_type(head)
        # A message without fields has no bytes, whatever coding is named.
        return super().decode(head, body, limit) if body else body

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a request into its records.

        Raises:
            ProblemError: As `items_of`.
        """
        media_type = _media_type(head)
        if media_type == _JSON:
            body = readable(body)
            if not body.strip():
                message = "body must be a JSON object, got none; an empty request is {}"
                raise ProblemError(400, Reason.EMPTY_BODY, message)
        items = items_of(body, self.signal, _ENCODINGS[media_type], limits.max_events)
        name = f"{otlp.PROTOCOL}.{self.signal.name}"
        return Batch(items, otlp.PROTOCOL, mapping=NAMED[name], mapped=name)

    def stored(self, stored: Stored) -> Answer:
        """Return an empty message, or how many records are rejected, and why."""
        media_type, rejected = _media_type(stored.head), len(stored.items)
        if not rejected:
            return _answer(200, media_type, b"{}" if media_type == _JSON else b"")
        told = self._told(stored)
        if media_type == _JSON:
            partial = {self.signal.rejected: str(rejected), "errorMessage": told}
            return _answer(200, media_type, encode({"partialSuccess": partial}))
        return _answer(200, media_type, _bytes_field(1, _pair(rejected, told)))

    def _told(self, stored: Stored) -> str:
        rejected, noun = len(stored.items), self.signal.noun
        told = "; ".join(map(_why, stored.items[:MAX_ERRORS]))
        left = rejected - MAX_ERRORS
        more = f"; and {left} more" if left > 0 else ""
        return (
            f"{rejected} of {len(stored.judged)} {noun} cannot be used and are in quarantine, "
            f"the others are stored; {told}{more}"
        )

    def refused(self, head: Head, problem: ProblemError) -> Answer:
        """Return a problem as a google.rpc.Status, with the header fields that belong to it."""
        further = problem_answer(problem).headers[2:]
        status = problem.status
        if problem.reason is Reason.REQUEST_TIMEOUT:
            # A body that stopped coming may come whole next time, but 408 is never sent again.
            status, further = 503, [*further, (b"retry-after", b"1")]
        said = f"{problem.reason}: {problem.message}"
        code = _CODES.get(status, _INVALID_ARGUMENT)
        if _media_type(head) == _PROTOBUF:
            return _answer(status, _PROTOBUF, _pair(code, said), *further)
        return _answer(status, _JSON, encode(Status(code, said)), *further)


def _media_type(head: Head) -> bytes:
    return head.content_type.partition(b";")[0].strip()


def _check_type(head: Head) -> None:
    if _media_type(head) not in _ENCODINGS:
        got = echo(head.content_type.decode("latin-1"))
        message = (
            f'content-type must be {_PROTOBUF.decode()} or {_JSON.decode()}, got "{got}"; '
            "set the exporter's protocol to http/protobuf or http/json"
        )
        raise ProblemError(415, Reason.UNSUPPORTED_MEDIA_TYPE, message)


def _why(item: Item) -> str:
    return f"record {item.index}: {item.code}, {item.detail}"


def _answer(status: int, media_type: bytes, body: bytes, *further: tuple[bytes, bytes]) -> Answer:
    length = str(len(body)).encode()
    headers = [(b"content-type", media_type), (b"content-length", length), *further]
    return Answer(status, body, headers)


def _pair(number: int, text: str) -> bytes:
    """Return a message of a number and a text.

    So are google.rpc.Status (code, message) and each signal's partial success (how many records
    are rejected, why).
    """
    return b"\x08%b%b" % (_varint(number), _bytes_field(2, text.encode()))


def _bytes_field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    binary = {"type": "string", "format": "binary"}
    return {_PROTOBUF.decode(): {"schema": binary}, _JSON.decode(): {"schema": schema}}


def _document(signal: Signal) -> dict[str, Any]:
    partial = {
        "type": "object",
        "properties": {
            signal.rejected: {"type": "string", "description": "How many are in quarantine."},
            "errorMessage": {"type": "string"},
        },
    }
    answer = {"type": "object", "properties": {"partialSuccess": partial}}
    # No 408: it would never be sent again.
    texts = {status: text for status, text in openapi.PROBLEMS.items() if status != 408}
    return {
        "summary": f"OTLP: {signal.noun}",
        "requestBody": {"content": _content({"type": "object"})},
        "responses": {
            "200": {"description": "Stored.", "content": _content(answer)},
            **{
                str(status): {"description": text, "content": _content(_STATUS)}
                for status, text in texts.items()
            },
        },
    }


class Metrics(Otlp):
    """Metrics, by their points."""

    signal = METRICS
    document = _document(METRICS)


class Logs(Otlp):
    """Logs."""

    signal = LOGS
    document = _document(LOGS)


class Traces(Otlp):
    """Traces, by their spans."""

    signal = TRACES
    document = _document(TRACES)


ROUTES = tuple(Route((f"/v1/{wire.signal.path}",), wire) for wire in (Metrics(), Logs(), Traces()))
