"""PostHog's capture, as its SDKs and browsers speak it (INGEST 4.3).

v0 is one event, a list of them or a batch, with the key in the body; v1 is a batch with the key in
a header field, and its answer tells of each event. SDKs take exactly 200 for success, and drop a
whole batch on 400: so what is wrong with one event is never the batch's fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec
from msgspec import UNSET, Raw, UnsetType
from weir.attributes import MAX_ID_BYTES
from weir.mappings import posthog
from weir.problems import ProblemError, Reason

from weir_ingest import openapi
from weir_ingest.answers import Answer, Item, encode, json_answer, problem_answer
from weir_ingest.head import Head
from weir_ingest.keys import presented
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.json_text import readable, split_array, split_object, text_of
from weir_ingest.protocols.posthog_body import json_of
from weir_ingest.protocols.posthog_keys import first_key, key_of, said_in, without_key
from weir_ingest.wire import Page, Route, Stored, Wire

_SENT, _SDK = b"posthog-request-timestamp", b"posthog-sdk-info"
_QUERY_SENT = ("sent_at", "_")
_MILLISECONDS = re.compile(r"\d{13}", re.ASCII)
_LIST = re.compile(rb"\s*+\[")


class _Identified(msgspec.Struct):
    uuid: Raw | UnsetType = UNSET


_read_identified = msgspec.json.Decoder(_Identified).decode


class Success(msgspec.Struct, omit_defaults=True):
    """The body of a 200 of v0; SDKs read `status` at most, people the rest."""

    status: int
    quarantined: int = 0
    items: list[Item] = []


class Result(msgspec.Struct, omit_defaults=True):
    """What became of one event of v1: `ok` or `drop`."""

    result: str
    details: str = ""


class Results(msgspec.Struct, omit_defaults=True):
    """The body of a 200 of v1; `items` are those that no uuid could tell of."""

    results: dict[str, Result]
    items: list[Item] = []


@dataclass(frozen=True, slots=True)
class _Cut:
    """A body in its parts.

    Attributes:
        events: As they were sent.
        whole: The body is one event.
        sent: When the body says it was sent.
        key: The key that it carries for all of them.
    """

    events: list[bytes]
    whole: bool = False
    sent: bytes | None = None
    key: bytes = b""


class _PostHog(Wire):
    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a body into its events, whichever of the shapes it has.

        Raises:
            ProblemError: 400; 413 `too_many_events`, before the rest is read.
        """
        cut = _cut(readable(body), limits.max_events)
        cleaned = [without_key(event) for event in cut.events]
        if not (cut.key or presented(head)):
            _check_one_key({key for _, key in cleaned if key})
        return self._batch(head, cut, [event for event, _ in cleaned])

    def _batch(self, head: Head, cut: _Cut, events: list[bytes]) -> Batch:
        raise NotImplementedError


_V0_ANSWER = {
    "status": {"type": "integer", "enum": [1]},
    "quarantined": {"type": "integer"},
    "items": openapi.ITEMS,
}


class Capture(_PostHog):
    """v0: the body carries the key, and the query may carry the body."""

    has_key_in_body = True
    may_be_empty = True
    document = openapi.json_path("PostHog v0: events", _V0_ANSWER)

    def __init__(self, *, named: bool = True) -> None:
        self._named = named

    def decode(self, head: Head, body: bytes, limit: int) -> bytes:
        """Undo whatever the JSON is wrapped in; `data` of the query stands for a body.

        Raises:
            ProblemError: As `encodings.decode` and `json_of`; 400 if there is nothing.
        """
        said = head.query.get("data")
        if said:
            body = said.encode()
        elif body:
            body = super().decode(head, body, limit)
        if not body:
            message = "body must hold events, or data of the query or a form must, got none"
            raise ProblemError(400, Reason.EMPTY_BODY, message)
        return json_of(body, head.query.get("compression", ""), limit)

    def key_in(self, head: Head, body: bytes) -> bytes:  # noqa: ARG002 - only the body has it
        """Return the key that the body carries, or else its first event.

        Raises:
            ProblemError: 400, if that much of the body is no JSON.
        """
        text = readable(body)
        members = {"batch": text.strip()} if _LIST.match(text) else said_in(text)
        return key_of(members) or first_key(members.get("batch", b""))

    def _batch(self, head: Head, cut: _Cut, events: list[bytes]) -> Batch:
        sent = None if cut.sent is None else Raw(cut.sent)
        mapping = posthog.mapping(sent or _sent_in_query(head), named=self._named)
        mapped = posthog.PROTOCOL if self._named else posthog.ENGAGE
        return Batch(events, posthog.PROTOCOL, whole=cut.whole, mapping=mapping, mapped=mapped)

    def stored(self, stored: Stored) -> Answer:
        """Return what SDKs take for success."""
        return json_answer(200, encode(Success(1, len(stored.items), stored.items)))


_TEXT = {"type": "string"}
_RESULT = {
    "type": "object",
    "required": ["result"],
    "properties": {"result": {"type": "string", "enum": ["ok", "drop"]}, "details": _TEXT},
}
_V1_ANSWER = {
    "results": {"type": "object", "additionalProperties": _RESULT},
    "items": openapi.ITEMS,
}


class Analytics(_PostHog):
    """v1: a header field carries the key, and the answer tells of each event.

    It never says `retry`: all of a request is stored, or none of it is known to be, and then it
    is 503, after which the SDKs send all of it again and which everybody else understands.
    """

    document = openapi.json_path("PostHog v1: a batch of events", _V1_ANSWER)

    def _batch(self, head: Head, cut: _Cut, events: list[bytes]) -> Batch:
        sent = head.text(_SENT)
        library = (head.text(_SDK) or "").partition("/")[0].strip()
        mapping = posthog.mapping(Raw(encode(sent)) if sent else None, library)
        name = posthog.PROTOCOL
        return Batch(events, name, whole=cut.whole, mapping=mapping, mapped=name)

    def stored(self, stored: Stored) -> Answer:
        """Return what became of each event, by its uuid; the SDKs send none of them again."""
        refused = {item.index: item for item in stored.items}
        results: dict[str, Result] = {}
        untold = []
        for index, event in enumerate(stored.sent):
            uuid, item = _uuid_of(event), refused.get(index)
            if item is None:
                if uuid:
                    results.setdefault(uuid, Result("ok"))
            elif uuid:
                results[uuid] = Result("drop", f"{item.code}: {item.detail}")
            else:
                untold.append(item)
        return json_answer(200, encode(Results(results, untold)))


def _cut(text: bytes, limit: int) -> _Cut:
    if _LIST.match(text):
        return _Cut(split_array(text, limit))
    members = said_in(text)
    batch, sent = members.get("batch"), members.get("sent_at")
    if batch is None:
        return _Cut([text], whole=True)
    if batch[:1] != b"[":
        raise ProblemError(400, Reason.REQUEST_INVALID, "batch must be a list of events")
    events = split_array(batch, limit)
    return _Cut(events, sent=None if sent == b"null" else sent, key=key_of(members))


def _check_one_key(keys: set[bytes]) -> None:
    """Refuse a list whose events carry several keys: they would all be stored for the first."""
    if len(keys) > 1:
        message = f"events of a request must carry one key, got {len(keys)}; send one for each"
        raise ProblemError(400, Reason.REQUEST_INVALID, message)


def _sent_in_query(head: Head) -> Raw | None:
    """Return when the query says that the request was sent; of numbers only milliseconds count."""
    text = next((head.query[name] for name in _QUERY_SENT if name in head.query), "")
    if not text or (text.isdigit() and not _MILLISECONDS.fullmatch(text)):
        return None
    return Raw(encode(text))


def _uuid_of(event: bytes) -> str:
    """Return an event's uuid, as its sender looks for it; empty if it has none that could be."""
    try:
        raw = _read_identified(event).uuid
        value = b"" if raw is UNSET else bytes(raw)
    except (msgspec.DecodeError, RecursionError):
        try:
            value = split_object(event).get("uuid", b"")
        except ProblemError:
            return ""
    text = text_of(value) or (value if value[:1] in b"-0123456789" else b"")
    return text.decode() if len(text) <= MAX_ID_BYTES else ""


def nothing(head: Head, token: str = "") -> Answer:  # noqa: ARG001 - the same for everybody
    """Return that there are no flags and no settings; clients then keep to their own."""
    return json_answer(200, b"{}")


def no_ai(head: Head) -> Answer:  # noqa: ARG001 - the same for everybody
    """Return that these events are not taken, so that no client believes them to be stored."""
    message = "events of AI observability are not taken here; send them to /batch"
    return problem_answer(ProblemError(404, Reason.NOT_FOUND, message))


_BOTH = ("POST", "GET")

ROUTES = (
    Route(("/batch", "/capture", "/e", "/i/v0/e", "/track"), Capture(), _BOTH),
    Route(("/engage",), Capture(named=False), _BOTH),
    Route(("/i/v1/analytics/events",), Analytics()),
)

PAGES = (
    Page("/flags", nothing, _BOTH),
    Page("/decide", nothing, _BOTH),
    Page("/array/{token}/config", nothing),
    Page("/i/v0/ai/batch", no_ai, ("POST",)),
)
