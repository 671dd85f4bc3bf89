"""Segment's tracking API, which RudderStack's SDKs speak as well (INGEST 4.2).

One call a request, named by the path, or a batch of them. SDKs take exactly 200 for success, and
drop a whole batch on 400: so what is wrong with one call is never the batch's fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, UnsetType
from weir.mappings import segment
from weir.problems import ProblemError, Reason

from weir_ingest import openapi
from weir_ingest.answers import Answer, Item, encode, json_answer
from weir_ingest.head import Head
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.json_text import (
    check_depth,
    join_object,
    readable,
    split_array,
    split_object,
    text_of,
)
from weir_ingest.wire import Page, Route, Stored, Wire

_WRITE_KEY, _QUOTED_KEY = "writeKey", b'"writeKey"'
_KEY = re.compile(rb"wk_[a-z0-9]{8}_[A-Za-z0-9_\-]{32,256}")
_SHARED = ("context", "integrations")
_MAX_SHARED_BYTES = 20 << 20


_ANSWER = {
    "success": {"type": "boolean"},
    "quarantined": {"type": "integer"},
    "items": openapi.ITEMS,
}


class Success(msgspec.Struct, omit_defaults=True):
    """The body of a 200; SDKs read `success`, people the rest."""

    success: bool
    quarantined: int = 0
    items: list[Item] = []


class _Body(msgspec.Struct):
    write_key: Raw | UnsetType = msgspec.field(name=_WRITE_KEY, default=UNSET)
    batch: Raw | UnsetType = UNSET
    sent_at: Raw | UnsetType = msgspec.field(name="sentAt", default=UNSET)
    context: Raw | UnsetType = UNSET
    integrations: Raw | UnsetType = UNSET


_MEMBERS = tuple((field.name, field.encode_name) for field in msgspec.structs.fields(_Body))
_read_body = msgspec.json.Decoder(_Body).decode


class _Segment(Wire):
    has_key_in_body = True

    def key_in(self, head: Head, body: bytes) -> bytes:  # noqa: ARG002 - only the body has it
        """Return the body's `writeKey`."""
        return text_of(_said(readable(body)).get(_WRITE_KEY))

    def stored(self, stored: Stored) -> Answer:
        """Return what SDKs take for success."""
        return json_answer(200, encode(Success(True, len(stored.items), stored.items)))


class Call(_Segment):
    """One call a request."""

    document = openapi.json_path("Segment: one call", _ANSWER)

    def __init__(self, call: str) -> None:
        self._mapping = segment.mapping(call)
        self._mapped = f"{segment.PROTOCOL}.{call}"

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:  # noqa: ARG002 - one call
        """Take the body as one call.

        Raises:
            ProblemError: 400, if it is no JSON.
        """
        body = readable(body)
        check_depth(body)
        call = _call(body, {})
        return Batch(
            [call], segment.PROTOCOL, whole=True, mapping=self._mapping, mapped=self._mapped
        )


class Calls(_Segment):
    """A batch."""

    document = openapi.json_path("Segment: a batch of calls", _ANSWER)

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:  # noqa: ARG002 - all in the body
        """Cut a batch into its calls; what it says once for all is said by each of them.

        Raises:
            ProblemError: 400, or 413 `too_many_events`.
        """
        members = _said(readable(body))
        batch = members.get("batch", b"")
        if batch[:1] != b"[":
            raise ProblemError(400, Reason.REQUEST_INVALID, "body must have batch, a list of calls")
        shared = {name: members[name] for name in _SHARED if _holds(members.get(name, b""))}
        calls = split_array(batch, limits.max_events)
        _check_shared(shared, len(calls))
        items = [_call(item, shared) for item in calls]
        sent = members.get("sentAt", b"null")
        mapping = segment.mapping(sent=None if sent == b"null" else Raw(sent))
        return Batch(items, segment.PROTOCOL, mapping=mapping, mapped=segment.PROTOCOL)


def _said(body: bytes) -> dict[str, bytes]:
    """Return those members of a body that are for the service; millions of others cost nothing.

    Raises:
        ProblemError: 400, if it is no JSON object.
    """
    try:
        said = _read_body(body)
    except (msgspec.DecodeError, RecursionError):
        return split_object(body)  # numbers that JSON does not have, or it says what is wrong
    found = ((name, getattr(said, attribute)) for attribute, name in _MEMBERS)
    return {name: bytes(raw) for name, raw in found if raw is not UNSET}


def _check_shared(shared: Mapping[str, bytes], calls: int) -> None:
    """Refuse what would be far larger once each call says it: a body is bounded, this is, too.

    Raises:
        ProblemError: 413 `decompressed_too_large`.
    """
    size = sum(map(len, shared.values())) * calls
    if size > _MAX_SHARED_BYTES:
        message = (
            f"context and integrations of a batch must be at most {_MAX_SHARED_BYTES} bytes over "
            f"all of its calls, got {size} over {calls}; send it in parts"
        )
        raise ProblemError(413, Reason.DECOMPRESSED_TOO_LARGE, message)


def _call(item: bytes, shared: Mapping[str, bytes]) -> bytes:
    """Return a call with what its batch adds, and without the key, which is stored nowhere."""
    # Its name may be written with escapes.
    if not shared and _QUOTED_KEY not in item and b"\\u" not in item:
        return item
    try:
        members = split_object(item)
        members.pop(_WRITE_KEY, None)
        for name, given in shared.items():
            own = members.get(name, b"null")
            if own == b"null":
                members[name] = given
            elif own[:1] == b"{":
                members[name] = join_object({**split_object(given), **split_object(own)})
    except ProblemError:
        # That call's fault alone; what is kept of it has no key either.
        return _KEY.sub(b"", item)
    return join_object(members)


def _holds(value: bytes) -> bool:
    """Say whether a value is an object with members."""
    return value[:1] == b"{" and value != b"{}"


def settings(head: Head, write_key: str) -> Answer:  # noqa: ARG001 - the same for everybody
    """Return what analytics.js asks for before it sends anything: where its events go.

    It is no check of the key: that is made with each event.
    """
    return json_answer(200, encode({"integrations": {"Segment.io": {"apiKey": write_key}}}))


# Servers' SDKs write the word, analytics.js its first letter.
ROUTES = (
    *(Route((f"/v1/{call}", f"/v1/{call[0]}"), Call(call)) for call in segment.CALLS),
    Route(("/v1/batch", "/v1/b", "/v1/import"), Calls()),
)

PAGES = (Page("/v1/projects/{write_key}/settings", settings),)
