"""Events of Splunk's HTTP Event Collector (INGEST 4.7).

An object `{"time", "host", "source", "sourcetype", "index", "event", "fields"}` becomes an event
of type `dev.weir.hec.<sourcetype>` about its host, and stays whole in `data`. The protocol gives
an event no id.
"""

from __future__ import annotations

import collections.abc
import re

import msgspec

from weir.attributes import Attributes, Member, read_name, read_text
from weir.problems import Reason, echo
from weir.refusal import ItemRefusedError

PROTOCOL = "hec"
METADATA = ("host", "source", "sourcetype", "index")
"""What objects of a request need not say again."""

MAX_METADATA_BYTES = 512
"""Longest JSON of a sourcetype, and of what is carried over: thousands of objects may get it."""

_DEFAULT_TYPE = f"dev.weir.{PROTOCOL}.event"
_BLANK = re.compile(rb'"(?:\s|\\[nrt])*+"|\{\s*+\}|null')
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
# Vector's cut: the year 2400 in seconds. From 10^11 on a number's size tells its unit anyway.
_SECONDS_END, _MILLISECONDS_FROM = 13_569_465_600, 1e11


def mapping(
    text: bytes,
    members: collections.abc.Mapping[str, Member],
    arrived_ms: int,  # noqa: ARG001 - mappings are called alike
) -> Attributes:
    """Return what an object says of itself.

    Raises:
        ItemRefusedError: `not_an_event`, without a usable `event`; `attribute_invalid`,
            `invalid_unicode` or `time_invalid`.
    """
    _check_event(members.get("event"))
    said = Attributes.bare(text)
    said.type = _type_of(members.get("sourcetype"))
    said.subject = read_name("host", members.get("host"))
    time = members.get("time")
    if time is not None:
        _read_time(said, time)
    return said


def is_carried(name: str, value: bytes) -> bool:
    """Say whether the JSON of a `METADATA` member may go into objects that do not say it."""
    if len(value) > MAX_METADATA_BYTES:
        return False
    try:
        read_name(name, msgspec.Raw(value))
    except (ItemRefusedError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _check_event(raw: Member | None) -> None:
    if raw is None:
        message = "an object must have event, text or an object, got none"
    elif _BLANK.fullmatch(value := bytes(raw)):
        message = f"event must not be blank, got {value.decode()}"
    elif value[:1] in b'"{':
        return
    else:
        got = echo(value[:200].decode(errors="replace"))
        message = f"event must be text or an object, got {got}"
    raise ItemRefusedError(Reason.NOT_AN_EVENT, message)


def _type_of(raw: Member | None) -> str:
    if raw is None or bytes(raw) == b"null":
        return _DEFAULT_TYPE
    size = len(bytes(raw))
    if size > MAX_METADATA_BYTES:
        message = f"sourcetype must be at most {MAX_METADATA_BYTES} bytes, got {size}"
        raise ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)
    sourcetype = read_text("sourcetype", raw)
    return f"dev.weir.{PROTOCOL}.{sourcetype}" if sourcetype else _DEFAULT_TYPE


def _read_time(said: Attributes, raw: Member) -> None:
    said.read_time(raw)
    text = said.time_text.strip()
    if _NUMBER.fullmatch(text) and _SECONDS_END <= float(text) < _MILLISECONDS_FROM:
        said.time_ms = round(float(text))
