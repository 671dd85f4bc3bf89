"""Events of Snowplow's trackers, tracker protocol 2 (INGEST 4.5).

An event becomes one of type `dev.weir.snowplow.<e>` about its user, and stays in `data` with the
names and the texts of the tracker, but for what is JSON in another writing: `ue_px` and `ue_pr`
become `unstruct`, `cx` and `co` become `contexts` (`unfolded`). Its id is `eid`, which trackers
keep when they send an event again.
"""

from __future__ import annotations

import base64
import collections.abc
import re
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from weir import json_exact
from weir.attributes import Attributes, Member, present, read_id, read_name, read_text
from weir.mappings import Mapping
from weir.problems import Reason, echo
from weir.refusal import ItemRefusedError

PROTOCOL = "snowplow"
KINDS = ("pv", "pp", "se", "ue", "tr", "ti")
"""Page view, page ping, structured, self-describing, transaction, and an item of one."""

# What holds JSON: in base64url, in itself, and its name in `data`.
_WRITTEN: Final = (("ue_px", "ue_pr", "unstruct"), ("cx", "co", "contexts"))
_NAMES: Final = frozenset(name for *names, _ in _WRITTEN for name in names)
_SUBJECTS = ("uid", "duid", "nuid", "tnuid")
# Platforms whose clocks are kept right: when what they send was written long before it comes, it
# was sent again.
_SERVERS = (b'"srv"', b'"pc"')
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:\S+")


class _Inner(msgspec.Struct, frozen=True):
    schema: msgspec.Raw


class _SelfDescribing(msgspec.Struct, frozen=True):
    data: _Inner


_read_text = msgspec.json.Decoder(str).decode
_read_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_self_describing = msgspec.json.Decoder(_SelfDescribing).decode


def mapping(app: str | None = None) -> Mapping:
    """Return the mapping of a request's events.

    Args:
        app: The app id that all of them must have, where one opened the door; None, where a key
            did.
    """
    return partial(_read, app)


def app_of(raw: Member | None) -> str:
    """Return the app id that a member `aid` holds, empty if it is none."""
    with suppress(ItemRefusedError, msgspec.DecodeError):
        return read_name("aid", raw) or ""
    return ""


def unfolded(members: collections.abc.Mapping[str, bytes]) -> dict[str, bytes]:
    """Return an event's members with those that are JSON in another writing as JSON.

    Raises:
        ItemRefusedError: `invalid_json`, `invalid_utf8` or `too_deep`, if one cannot be decoded;
            `attribute_invalid`, if the same is there twice.
    """
    found = dict(members)
    for encoded, plain, name in _WRITTEN:
        given = [one for one in (encoded, plain) if not _is_blank(members.get(one))]
        if len(given) > 1:
            message = f"an event must have {encoded} or {plain}, got both; leave one of them out"
            raise ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)
        for one in given:
            found[name] = _decoded(one, found.pop(one), in_base64=one == encoded)
    return found


def _is_blank(raw: bytes | None) -> bool:
    return raw is None or raw in (b"null", b'""')


def _decoded(name: str, raw: bytes, *, in_base64: bool) -> bytes:
    try:
        text = _read_text(raw)
        found = _from_base64(text) if in_base64 else text.encode()
    except (msgspec.MsgspecError, ValueError) as error:
        raise _undecodable(name, raw, str(error), in_base64=in_base64) from None
    json_exact.check_utf8(found)
    if json_exact.is_deeper(found, json_exact.MAX_DEPTH):
        message = f"{name} must nest at most {json_exact.MAX_DEPTH} deep, got more"
        raise ItemRefusedError(Reason.TOO_DEEP, message)
    with suppress(msgspec.DecodeError):
        _read_object(found)
        return found
    try:
        _read_object(json_exact.parsable(found))
    except msgspec.MsgspecError as error:
        raise _undecodable(name, raw, str(error), in_base64=in_base64) from None
    return found


def _from_base64(text: str) -> bytes:
    """Decode base64 with the alphabet for URLs or the other one, with padding or without.

    Raises:
        ValueError: If it is something else.
    """
    digits = text.replace("-", "+").replace("_", "/")
    return base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)


def _undecodable(name: str, raw: bytes, why: str, *, in_base64: bool) -> ItemRefusedError:
    what = "base64url of a JSON object" if in_base64 else "the text of a JSON object"
    got = echo(raw[:200].decode(errors="replace"))
    return ItemRefusedError(Reason.INVALID_JSON, f"{name} must be {what}, got {got}; {why}")


def _read(
    app: str | None,
    text: bytes,
    members: collections.abc.Mapping[str, Member],
    arrived_ms: int,  # noqa: ARG001 - mappings are called alike
) -> Attributes:
    _check_app(app, members)
    kind = _kind_of(members)
    _check_unfolded(members)
    said = Attributes.bare(text)
    said.type = f"dev.weir.{PROTOCOL}.{kind}"
    said.id = read_id(present(members.get("eid")))
    for name in _SUBJECTS:
        said.subject = said.subject or read_name(name, members.get(name))
    if kind == "ue":
        said.others["dataschema"] = _schema_of(members.get("unstruct"))
    _read_times(said, members)
    said.server = bytes(members.get("p", b"")) in _SERVERS
    return said


def _check_app(app: str | None, members: collections.abc.Mapping[str, Member]) -> None:
    """Refuse an event of another app than the one that opened the door."""
    if app is not None and (own := app_of(members.get("aid"))) != app:
        message = (
            f'aid must be "{echo(app)}" as in the first event of the request, got "{echo(own)}"; '
            "send the events of each app by themselves, or send a key"
        )
        raise ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)


def _kind_of(members: collections.abc.Mapping[str, Member]) -> str:
    raw = bytes(members.get("e", b"none"))
    said = _read_text(raw) if raw[:1] == b'"' else None
    if said not in KINDS:
        got = echo(raw[:200].decode(errors="replace"))
        message = f"e must be one of {', '.join(KINDS)}, got {got}"
        raise ItemRefusedError(Reason.NOT_AN_EVENT, message)
    return str(said)


def _check_unfolded(members: collections.abc.Mapping[str, Member]) -> None:
    """Refuse an event with something that is still in another writing: it says why."""
    left = {
        n: bytes(raw) for n, raw in members.items() if n in _NAMES and not _is_blank(bytes(raw))
    }
    if left:
        unfolded(left)
        names = ", ".join(sorted(left))
        raise ItemRefusedError(Reason.NOT_AN_EVENT, f"{names} must be decoded; send it anew")


def _schema_of(raw: Member | None) -> str:
    """Return the schema of a self-describing event, which tells what it is."""
    schema, got = "", "none"
    if raw is not None:
        try:
            schema = read_text("schema", _read_self_describing(raw).data.schema)
            got = f'"{echo(schema)}"'
        except msgspec.MsgspecError as error:
            got = str(error)
    if not _URI.fullmatch(schema):
        message = (
            "an event ue must have ue_px or ue_pr with a URI in data.schema, such as "
            f"iglu:com.acme/order/jsonschema/1-0-0, got {got}"
        )
        raise ItemRefusedError(Reason.NOT_AN_EVENT, message)
    return schema


def _read_times(said: Attributes, members: collections.abc.Mapping[str, Member]) -> None:
    """Read when it happened; a true time is nothing to correct."""
    true = present(members.get("ttm"))
    created = true or present(members.get("dtm"))
    if created is not None:
        said.read_time(created)
    if true is None:
        said.read_sent_if_any(present(members.get("stm")))
