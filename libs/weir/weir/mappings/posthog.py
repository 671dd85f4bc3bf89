"""Events of PostHog's SDKs, whichever way they come in (INGEST 4.3).

An event becomes one of type `dev.weir.posthog.event` about its `distinct_id`, and stays whole in
`data`: its name is `data.event`, what it is about `data.properties`. `$set`, `$identify`,
`$create_alias`, `$groupidentify` and `$pageview` are names like others. Its id is `uuid`, which
the SDKs keep when they send it again.
"""

from __future__ import annotations

import collections.abc
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec import UNSET, Raw, UnsetType

from weir.attributes import Attributes, Member, present, read_id, read_name
from weir.mappings import Mapping
from weir.problems import Reason, echo
from weir.refusal import ItemRefusedError

PROTOCOL = "posthog"
ENGAGE = f"{PROTOCOL}.engage"
"""The mapping of events that need not say their name."""

# Libraries that run on servers, whose clocks are kept right: when what they send was written
# long before it comes, it was sent again. Newer ones say `$is_server`, too.
_SERVERS = (
    "posthog-python",
    "posthog-node",
    "posthog-go",
    "posthog-ruby",
    "posthog-php",
    "posthog-java",
    "posthog-server",
    "posthog-dotnet",
    "posthog-elixir",
    "posthog-rs",
)
_TRUE = (b"true", b"1", b'"true"', b'"1"')
_MAX_OFFSET_MS = 100 * 366 * 86_400_000


class _Properties(msgspec.Struct):
    distinct_id: Raw | UnsetType = UNSET
    is_server: Raw | UnsetType = msgspec.field(name="$is_server", default=UNSET)
    lib: Raw | UnsetType = msgspec.field(name="$lib", default=UNSET)
    ignore_sent_at: Raw | UnsetType = msgspec.field(name="$ignore_sent_at", default=UNSET)


class _Options(msgspec.Struct):
    disable_skew_correction: Raw | UnsetType = UNSET


_read_properties = msgspec.json.Decoder(_Properties).decode
_read_options = msgspec.json.Decoder(_Options).decode
_read_text = msgspec.json.Decoder(str).decode


@dataclass(frozen=True, slots=True)
class _Request:
    """What a request says for all of its events."""

    sent: Member | None
    library: str
    named: bool


def mapping(sent: Member | None = None, library: str = "", *, named: bool = True) -> Mapping:
    """Return the mapping of a request's events.

    Args:
        sent: When the request was sent; an event may say it of itself.
        library: Which one sent it, where the events do not say their `$lib`.
        named: An event must say its name.
    """
    return partial(_read, _Request(sent, library, named))


def _read(
    request: _Request,
    text: bytes,
    members: collections.abc.Mapping[str, Member],
    arrived_ms: int,
) -> Attributes:
    if request.named:
        _check_name(members.get("event"))
    properties = _properties_of(members)
    said = Attributes.bare(text)
    said.type = f"dev.weir.{PROTOCOL}.event"
    said.id = read_id(present(members.get("uuid")))
    said.subject = _subject_of(members, properties)
    offset = present(members.get("offset"))
    if offset is not None:
        # It was measured with one clock, so no other is to be corrected.
        said.time_ms = arrived_ms - _offset_ms(offset)
        return said
    time = present(members.get("timestamp"))
    if time is not None:
        said.read_time(time)
    if not _is_exact(members, properties):
        said.read_sent_if_any(present(members.get("sent_at")) or request.sent)
    said.server = _is_server(properties, request.library)
    return said


def _check_name(raw: Member | None) -> None:
    name = bytes(raw or b"none")
    if name[:1] != b'"' or name == b'""':
        got = echo(name[:200].decode(errors="replace"))
        message = f"an event must have event, a text, got {got}"
        raise ItemRefusedError(Reason.NOT_AN_EVENT, message)


def _properties_of(members: collections.abc.Mapping[str, Member]) -> _Properties:
    """Return what is to be known of an event's properties; of what is no object nothing."""
    with suppress(KeyError, msgspec.MsgspecError):
        return _read_properties(members["properties"])
    return _Properties()


def _subject_of(members: collections.abc.Mapping[str, Member], properties: _Properties) -> str:
    places = (members.get("distinct_id"), members.get("$distinct_id"), properties.distinct_id)
    for raw in places:
        name = read_name("distinct_id", present(raw))
        if name is not None:
            return name
    message = "an event must have distinct_id, of itself or in properties, got none"
    raise ItemRefusedError(Reason.NOT_AN_EVENT, message)


def _offset_ms(raw: Member) -> int:
    """Return how long before its arrival an event happened."""
    text = bytes(raw)
    if text[:1] in b"-0123456789":
        offset_ms: float = msgspec.json.decode(text)
        if abs(offset_ms) <= _MAX_OFFSET_MS:
            return round(offset_ms)
    got = echo(text[:200].decode(errors="replace"))
    message = f"offset must be a plausible number of milliseconds, got {got}"
    raise ItemRefusedError(Reason.TIME_INVALID, message)


def _is_exact(members: collections.abc.Mapping[str, Member], properties: _Properties) -> bool:
    """Say whether an event asks that its time be taken as it is."""
    asked = [properties.ignore_sent_at]
    with suppress(KeyError, msgspec.MsgspecError):
        asked.append(_read_options(members["options"]).disable_skew_correction)
    return any(raw is not UNSET and bytes(raw) in _TRUE for raw in asked)


def _is_server(properties: _Properties, library: str) -> bool:
    if properties.is_server is not UNSET:
        return bytes(properties.is_server) in _TRUE
    lib = present(properties.lib)
    if lib is not None:
        with suppress(msgspec.MsgspecError):
            library = _read_text(lib)
    return library.lower() in _SERVERS
