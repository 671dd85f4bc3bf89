"""Keys in bodies of PostHog's clients: where they may stand, and how they are left out.

A key is stored nowhere. It may stand as `api_key`, `token` or `$token` of the body or of an event,
or as `token` of an event's properties; what is there called a token and is no key is data.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice

import msgspec
from msgspec import UNSET, Raw, UnsetType
from weir.event import MAX_RECORD_BYTES
from weir.problems import ProblemError, Reason

from weir_ingest.protocols.json_text import join_object, split_object, split_values, text_of

_KEYS = ("api_key", "token", "$token")
_MAX_ASKED, _MAX_KEYS = 10, 5

# Keys of Weir's and of PostHog's. Elsewhere a token may be anything, a coin or a word.
_CREDENTIAL = re.compile(rb"(?:wk_[a-z0-9]{8}|ph[acrsx])_[A-Za-z0-9_\-]{1,256}")
_WRITTEN = re.compile(rb'"(?:api_key|\$?token)"\s*+:\s*+"(' + _CREDENTIAL.pattern + rb')"')


class _Said(msgspec.Struct):
    """What a body, or an event, says that is for the service."""

    api_key: Raw | UnsetType = UNSET
    token: Raw | UnsetType = UNSET
    dollar_token: Raw | UnsetType = msgspec.field(name="$token", default=UNSET)
    properties: Raw | UnsetType = UNSET
    batch: Raw | UnsetType = UNSET
    sent_at: Raw | UnsetType = UNSET


_NAMES = tuple((field.name, field.encode_name) for field in msgspec.structs.fields(_Said))


_read_said = msgspec.json.Decoder(_Said).decode


def said_in(text: bytes) -> dict[str, bytes]:
    """Return those members of an object that are for the service; the others cost nothing.

    Raises:
        ProblemError: 400, if it is no object.
    """
    try:
        said = _read_said(text)
    except msgspec.ValidationError:
        message = 'body must be an event, a list of events or {"batch": [...]}'
        raise ProblemError(400, Reason.REQUEST_INVALID, message) from None
    except (msgspec.DecodeError, RecursionError):
        return split_object(text)
    found = ((name, getattr(said, attribute)) for attribute, name in _NAMES)
    return {name: bytes(raw) for name, raw in found if raw is not UNSET}


def key_of(members: dict[str, bytes]) -> bytes:
    """Return the key that a body or an event carries."""
    for name in _KEYS:
        key = text_of(members.get(name))
        if key:
            return key
    properties = members.get("properties", b"")
    if properties[:1] == b"{":
        with suppress(ProblemError):  # that event's fault alone
            return text_of(said_in(properties).get("token"))
    return b""


def first_key(events: bytes) -> bytes:
    """Return the key of a list's first event that has one; of many only the first are looked at.

    Raises:
        ProblemError: 400, if that much of the list is no JSON.
    """
    if events[:1] != b"[":
        return b""
    inner = b" " + events[1:].rstrip().removesuffix(b"]")
    for event in islice(split_values(inner), _MAX_ASKED):
        with suppress(ProblemError):  # one that is no event is nobody's fault but its own
            key = key_of(said_in(event))
            if key:
                return key
    return b""


def without_key(event: bytes) -> tuple[bytes, bytes]:
    """Return an event without its key, which is stored nowhere, and that key."""
    keys: list[bytes] = []
    for _ in range(_MAX_KEYS):
        found = _WRITTEN.search(event) if _may_have_key(event) else None
        # Behind a backslash a quote begins no name: it stands within one.
        if found is None or event[: found.start()].endswith(b"\\"):
            break
        keys.append(found[1])
        event = _joined(event[: found.start()], event[found.end() :])
    if _may_have_key(event):
        event, odd = _searched(event)
        keys += odd
    return event, next(filter(None, keys), b"")


def _may_have_key(event: bytes) -> bool:
    # Names may be written with escapes.
    return b'token"' in event or b'api_key"' in event or b"\\u" in event


def _joined(before: bytes, after: bytes) -> bytes:
    """Return an object of what stands before and after a member that is left out."""
    before, after = before.rstrip(), after.lstrip()
    if before.endswith(b","):
        return before[:-1] + after
    return before + after.removeprefix(b",")


def _searched(event: bytes) -> tuple[bytes, list[bytes]]:
    """Return an event without keys that are not written as usual, and these keys."""
    if len(event) <= MAX_RECORD_BYTES:
        with suppress(ProblemError):
            members = said_in(event)
            own = {name: text_of(members[name]) for name in _KEYS if name in members}
            event, inner = _searched_properties(event, members.get("properties", b""))
            if own:
                members = split_object(event)
                event = join_object({n: v for n, v in members.items() if n not in _KEYS})
            return event, [*own.values(), *inner]
    # It is going to be refused, and kept.
    return _CREDENTIAL.sub(b"", event), []


def _searched_properties(event: bytes, properties: bytes) -> tuple[bytes, list[bytes]]:
    """Return an event whose properties have no key for a token, and that key."""
    if properties[:1] != b"{" or not (b"\\u" in properties or _CREDENTIAL.search(properties)):
        return event, []
    token = said_in(properties).get("token", b"")
    if not _CREDENTIAL.fullmatch(text_of(token)):
        return event, []
    return event.replace(properties, properties.replace(token, b'""')), [text_of(token)]
