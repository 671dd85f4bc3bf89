"""Calls of Segment's tracking API, which RudderStack's SDKs send as well (INGEST 4.2).

A call becomes an event of type `dev.weir.segment.<call>` about its user, and stays whole in
`data`: `event` and `properties` of a track call, `traits` of an identify call. Its id is
`messageId`, which the SDKs keep when they send a call again.
"""

from __future__ import annotations

import collections.abc
from functools import partial

import msgspec

from weir.attributes import Attributes, Member, present, read_id, read_name
from weir.mappings import Mapping
from weir.problems import Reason, echo
from weir.refusal import ItemRefusedError

PROTOCOL = "segment"
CALLS = ("track", "identify", "page", "screen", "group", "alias")

# Libraries that run on servers, whose clocks are kept right: when what they send was written
# long before it comes, it was sent again. `context.library.name`, as the SDKs write it.
_SERVERS = (
    "analytics-python",
    "analytics-node",
    "@segment/analytics-node",
    "analytics-ruby",
    "analytics-go",
    "analytics-java",
    "analytics-php",
    "analytics-rust",
    "analytics.net",
    "rudder-sdk-python",
    "rudder-analytics-python",
)


class _Library(msgspec.Struct, frozen=True):
    name: str = ""


class _Context(msgspec.Struct):
    library: _Library = _Library()


_read_context = msgspec.json.Decoder(_Context).decode
_read_text = msgspec.json.Decoder(str).decode


def mapping(call: str | None = None, sent: Member | None = None) -> Mapping:
    """Return the mapping of a request's calls.

    Args:
        call: Which one it is, where the path says so; else each says its `type`.
        sent: When the batch was sent; a call may say it of itself.
    """
    return partial(_read, call, sent)


def _read(
    call: str | None,
    sent: Member | None,
    text: bytes,
    members: collections.abc.Mapping[str, Member],
    arrived_ms: int,  # noqa: ARG001 - mappings are called alike
) -> Attributes:
    call = call or _call_of(members)
    said = Attributes.bare(text)
    said.type = f"dev.weir.{PROTOCOL}.{call}"
    said.id = read_id(present(members.get("messageId")))
    said.subject = read_name("userId", members.get("userId")) or read_name(
        "anonymousId", members.get("anonymousId")
    )
    if said.subject is None:
        raise _missing(call, "userId or anonymousId")
    if call == "track" and not _has_text(members, "event"):
        raise _missing(call, "event, a text")
    time = present(members.get("originalTimestamp")) or present(members.get("timestamp"))
    if time is not None:
        said.read_time(time)
    # A call that was received by somebody else before has been corrected there.
    if present(members.get("receivedAt")) is None:
        said.read_sent_if_any(present(members.get("sentAt")) or sent)
    said.server = _is_server(members)
    return said


def _call_of(members: collections.abc.Mapping[str, Member]) -> str:
    raw = members.get("type")
    said = raw and bytes(raw)[:1] == b'"' and _read_text(raw)
    if said not in CALLS:
        got = echo(bytes(raw or b"none")[:200].decode(errors="replace"))
        message = f"type must be one of {', '.join(CALLS)}, got {got}"
        raise ItemRefusedError(Reason.NOT_AN_EVENT, message)
    return str(said)


def _has_text(members: collections.abc.Mapping[str, Member], name: str) -> bool:
    text = bytes(members.get(name, b""))
    return text[:1] == b'"' and text != b'""'


def _is_server(members: collections.abc.Mapping[str, Member]) -> bool:
    if bytes(members.get("channel", b"")) == b'"server"':
        return True
    try:
        name = _read_context(members["context"]).library.name
    except (KeyError, msgspec.MsgspecError):
        return False
    return name.lower() in _SERVERS


def _missing(call: str, what: str) -> ItemRefusedError:
    return ItemRefusedError(Reason.NOT_AN_EVENT, f"a call {call} must have {what}, got none")
