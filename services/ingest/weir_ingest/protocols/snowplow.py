"""Snowplow's tracker protocol 2 (INGEST 4.5).

Events come as a list in a body, or one of them in a query, which is answered with a picture. The
protocol has no credentials: without a key the app id of the first event opens the door, and only
for events of that app. Nothing of a connection is stored, so `SP-Anonymous` changes nothing.

Trackers give a request up on 400, 401, 403, 410 and 422 alone, and send it again for ever on any
other refusal: what would be refused again is 400.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import Raw
from weir.event import MAX_RECORD_BYTES
from weir.mappings import snowplow
from weir.problems import ProblemError, Reason
from weir.refusal import ItemRefusedError

from weir_ingest import openapi
from weir_ingest.answers import Answer
from weir_ingest.head import Head
from weir_ingest.keys import Keys, StoredKey, presented
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.protocols.json_text import (
    join_object,
    readable,
    split_array,
    split_object,
    split_values,
)
from weir_ingest.wire import Route, Stored, Wire

_QUERY_KEYS = ("access_token",)
# A tracker has one app id, so the first event says it; a body of anything else ends here.
_MOST_WITHOUT_APP = 100
# What of an event may need `snowplow.unfolded`; names may be written with escapes.
_FOLDED: Final = re.compile(rb'"(?:ue_p[xr]|cx|co)"|\\u')
# Refusals that trackers would answer by sending the same again.
_PERMANENT = frozenset({413, 415})

GIF: Final = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff"  # one dot, two colours
    b"!\xf9\x04\x01\x00\x00\x00\x00"  # the first of them is transparent
    b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
_NOT_CACHED = (b"cache-control", b"no-cache, no-store, must-revalidate")


class _Payload(msgspec.Struct):
    data: Raw = Raw(b"")


_read_payload = msgspec.json.Decoder(_Payload).decode


class _Snowplow(Wire):
    query_keys = _QUERY_KEYS
    has_key_in_body = True

    def refused(self, head: Head, problem: ProblemError) -> Answer:
        """Return a problem that trackers understand."""
        status = 400 if problem.status in _PERMANENT else problem.status
        return super().refused(head, replace(problem, status=status))


def _document(
    summary: str, stored: str, media_type: str, parameters: dict[str, str]
) -> dict[str, Any]:
    """Return what the OpenAPI document says of a path."""
    success = {"description": stored, "content": {media_type: {}}}
    refusals = {n: said for n, said in openapi.REFUSALS.items() if int(n) not in _PERMANENT}
    text = {"type": "string"}
    return {
        "summary": f"Snowplow: {summary}",
        "parameters": [
            {"name": name, "in": "query", "description": said, "schema": text}
            for name, said in parameters.items()
        ],
        "responses": {"200": success, **refusals},
    }


_BODY = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
_KEY = {"access_token": "The key, where no header can be sent; else the app id decides."}


class Payload(_Snowplow):
    """Events in a body: `{"schema", "data": [...]}`."""

    document = _document("events", "Stored; the body is ok.", "text/plain", _KEY) | {
        "requestBody": _BODY
    }

    def caller_in(self, head: Head, body: bytes, keys: Keys) -> StoredKey:  # noqa: ARG002 - the body says it
        """Return whom the first event's app id belongs to.

        Raises:
            ProblemError: As `Keys.app`; 400, if the body cannot be read.
        """
        return keys.app(_first_app(split_values(_events(readable(body))[1:-1])))

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:
        """Cut a body into its events.

        Raises:
            ProblemError: 400, or 413 `too_many_events`.
        """
        items = split_array(_events(readable(body)), limits.max_events)
        app = None if presented(head, self.query_keys) else _first_app(items)
        return _batch(map(_unfolded, items), app)

    def stored(self, stored: Stored) -> Answer:  # noqa: ARG002 - trackers look at the status alone
        """Return success."""
        return _answer(b"text/plain", b"ok")


class Pixel(_Snowplow):
    """One event in the query."""

    may_be_empty = True
    document = _document(
        "one event in the query",
        "Stored; a transparent pixel.",
        "image/gif",
        {"e": "Kind of the event.", "aid": "App id.", **_KEY},
    )

    def decode(self, head: Head, body: bytes, limit: int) -> bytes:  # noqa: ARG002 - the query has it all
        """Return nothing: what a body says is no part of the protocol."""
        return b""

    def caller_in(self, head: Head, body: bytes, keys: Keys) -> StoredKey:  # noqa: ARG002 - the query says it
        """Return whom the event's app id belongs to.

        Raises:
            ProblemError: As `Keys.app`.
        """
        return keys.app(head.query.get("aid", ""))

    def read(self, head: Head, body: bytes, limits: BatchLimits) -> Batch:  # noqa: ARG002 - one event
        """Take the query as one event, without the key, which is stored nowhere."""
        query = head.scope["query_string"].decode("utf-8", "surrogateescape")
        members = dict(parse_qsl(query, errors="surrogateescape"))
        for name in self.query_keys:
            members.pop(name, None)
        item = json.dumps(members, ensure_ascii=False).encode("utf-8", "surrogateescape")
        return _batch([_unfolded(item)], None)

    def stored(self, stored: Stored) -> Answer:  # noqa: ARG002 - browsers show it
        """Return the pixel."""
        answer = _answer(b"image/gif", GIF)
        answer.headers.append(_NOT_CACHED)
        return answer


def _answer(media_type: bytes, body: bytes) -> Answer:
    length = str(len(body)).encode()
    return Answer(200, body, [(b"content-type", media_type), (b"content-length", length)])


def _batch(items: Iterable[bytes], app: str | None) -> Batch:
    mapping = snowplow.mapping(app)
    return Batch([*items], snowplow.PROTOCOL, mapping=mapping, mapped=snowplow.PROTOCOL)


def _events(body: bytes) -> bytes:
    """Return the list of events of a body.

    Raises:
        ProblemError: 400, if there is none.
    """
    try:
        events = bytes(_read_payload(body).data)
    except (msgspec.DecodeError, RecursionError):
        events = split_object(body).get("data", b"")  # or it says what is wrong
    if events[:1] != b"[":
        message = "body must have data, a list of events; send it as trackers do"
        raise ProblemError(400, Reason.REQUEST_INVALID, message)
    return events


def _first_app(items: Iterable[bytes]) -> str:
    """Return the app id of the first event that has one, empty if there is none."""
    return next(filter(None, _apps(islice(items, _MOST_WITHOUT_APP))), "")


def _apps(items: Iterable[bytes]) -> Iterator[str]:
    for item in items:
        try:
            said = split_object(item).get("aid")
        except ProblemError:
            continue
        yield snowplow.app_of(None if said is None else Raw(said))


def _unfolded(item: bytes) -> bytes:
    """Return an event with its JSON members as JSON; as it came, if one of them is none.

    Then the mapping says why. One that is too large is refused for that.
    """
    if len(item) > MAX_RECORD_BYTES or not _FOLDED.search(item):
        return item
    try:
        return join_object(snowplow.unfolded(split_object(item)))
    except (ProblemError, ItemRefusedError, UnicodeDecodeError):
        return item


ROUTES = (
    Route(("/com.snowplowanalytics.snowplow/tp2",), Payload()),
    Route(("/i",), Pixel(), ("GET",)),
)
