"""The attributes of a CloudEvent as clients write them: read, checked, named.

CloudEvents 1.0.2 with the leniencies of INGEST 4.1: `null` is absent, extension
names are lowered, what starts with `weir` is dropped, because tenant and source
are the credential's word and not the client's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from weir.event_time import parse_time
from weir.problems import Reason, echo
from weir.refusal import ItemRefusedError

Member = msgspec.Raw

MAX_ID_BYTES = 512
_INT32 = 2**31

ENVELOPE = frozenset(
    {
        *("specversion", "id", "source", "type", "time", "subject", "data", "data_base64"),
        *("datacontenttype", "dataschema", "partitionkey", "sentat"),
    }
)
# What Weir writes itself; a client's word under these names is not taken.
_OURS = frozenset(
    ("arrivedat", "timesrc", "clienttime", "ingestproto", "requestid", "requestpos", "nulled")
)
_NAME = re.compile(r"[a-z0-9]+")
# Control characters and noncharacters, which CloudEvents bans from strings; lone
# surrogates never get here.
_BANNED = re.compile(
    "[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
    + "]"
)


def is_event(members: Mapping[str, Member]) -> bool:
    """Say whether an object without CloudEvents content type has an envelope.

    It has one if it says `specversion`, or a `type` and `data`, or nothing but
    members of the envelope with one of the two among them. Anything else is data.
    """
    if "specversion" in members:
        return True
    named = "type" in members and bytes(members["type"])[:1] == b'"'
    if named and "data" in members:
        return True
    return (named or "data" in members) and ENVELOPE.issuperset(members)


@dataclass(slots=True)
class Attributes:
    """What an event says of itself."""

    id: str | None = None
    source: str | None = None
    type: str | None = None
    subject: str | None = None
    time_ms: int | None = None
    sent_ms: int | None = None
    partition_key: str | None = None
    others: dict[str, str | int | bool] = field(default_factory=dict)
    data: tuple[str, bytes] | None = None
    time_text: str = ""
    """The client's own word for `time_ms`."""
    is_row: bool = False
    """All of it is data: when it happened is said as in any object without an envelope."""
    server: bool = False
    """It comes from a server library: a sent time long ago is a retry, no slow clock."""

    @classmethod
    def bare(cls, text: bytes) -> Attributes:
        """Return the attributes of an object that is all data."""
        return cls(others={"datacontenttype": "application/json"}, data=("data", text))

    @classmethod
    def read(cls, members: Mapping[str, Member], *, strict: bool) -> Attributes:
        """Read and check the members of an event.

        Raises:
            ItemRefusedError: `not_an_event`, `id_invalid`, `invalid_unicode`,
                `attribute_invalid`.
            TimeInvalidError: If `time` is no time.
        """
        said = cls()
        values = {name: raw for name, raw in members.items() if bytes(raw) != b"null"}
        said._read_data(members, values)
        said.id = read_id(values.pop("id", None))
        said._read_context(values, strict=strict)
        if "time" in values:
            said.read_time(values.pop("time"))
        if "sentat" in values:
            said.read_sent(values.pop("sentat"))
        for name, raw in values.items():
            said._read_other(name, raw)
        key = said.others.get("partitionkey")
        said.partition_key = str(key) if key else None
        return said

    def _read_context(self, values: dict[str, Member], *, strict: bool) -> None:
        version = values.pop("specversion", None)
        if version is not None and bytes(version) != b'"1.0"':
            message = f'specversion must be "1.0", got {echo(_shown(version))}'
            raise ItemRefusedError(Reason.NOT_AN_EVENT, message)
        if strict and version is None:
            raise _missing(name="specversion")
        for name in ("source", "type"):
            text = read_text(name, values.pop(name)) if name in values else None
            if strict and not text:
                raise _missing(name=name)
            setattr(self, name, text or None)
        if "subject" in values:
            self.subject = read_text("subject", values.pop("subject")) or None

    def _read_data(self, members: Mapping[str, Member], values: dict[str, Member]) -> None:
        values.pop("data", None)
        base64 = values.pop("data_base64", None)
        if "data" in members and base64 is not None:
            message = "an event must have data or data_base64, got both"
            raise ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)
        if "data" in members:
            self.data = ("data", bytes(members["data"]))
            self.others["datacontenttype"] = "application/json"
        elif base64 is not None:
            read_text("data_base64", base64)
            self.data = ("data_base64", bytes(base64))

    def read_time(self, raw: Member) -> None:
        """Read when the client says it happened; JSON null is no time.

        Raises:
            ItemRefusedError: If the member is no text and no number.
            TimeInvalidError: If it is no time.
        """
        if bytes(raw) == b"null":
            return
        value = _time_value(raw)
        self.time_ms = parse_time(value)
        self.time_text = _time_text(value)

    def read_sent(self, raw: Member) -> None:
        """Read when the client says it sent it.

        Raises:
            ItemRefusedError: If the member is no text and no number.
            TimeInvalidError: If it is no time.
        """
        value = _time_value(raw)
        self.sent_ms = parse_time(value)
        self.others["sentat"] = _time_text(value)

    def read_sent_if_any(self, raw: Member | None) -> None:
        """Read a sent time; one that is none corrects nothing, and costs no event."""
        if raw is not None:
            with suppress(ItemRefusedError):
                self.read_sent(raw)

    def _read_other(self, name: str, raw: Member) -> None:
        """Read an optional attribute or an extension."""
        lowered = name.lower()
        if lowered.startswith("weir") or lowered in _OURS:
            return
        if not _NAME.fullmatch(lowered):
            message = f"attribute names must be a-z and 0-9, got {echo(name)}; move it into data"
            raise ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)
        value: Any = _scalar(raw)
        if isinstance(value, str):
            _check_characters(lowered, value)
            if not value:
                return
        elif not isinstance(value, bool | int) or not -_INT32 <= value < _INT32:
            message = (
                f"attribute {echo(lowered)} must be text, a boolean or a 32-bit integer; "
                f"got {echo(_shown(raw))}; move it into data"
            )
            raise ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)
        self.others[lowered] = value

    @staticmethod
    def names_of(nulled: tuple[str, ...]) -> str:
        """Return the value of the extension `nulled`: places, comma-separated."""
        return _BANNED.sub("�", ",".join(nulled))[:1024]


def present(raw: Member | UnsetType | None) -> Member | None:
    """Return a member that is there and not null."""
    return None if raw is None or raw is UNSET or bytes(raw) == b"null" else raw


def read_id(raw: Member | None) -> str | None:
    """Return an event's id, None where there is none (RELIABILITY 4 row 20).

    A number is its JSON text.

    Raises:
        ItemRefusedError: `id_invalid`: empty, no text, or over 512 bytes.
    """
    if raw is None:
        return None
    text = bytes(raw)
    if text[:1] not in b'"-0123456789':
        raise _bad_id(got=echo(_shown(raw)))
    event_id = _scalar(raw) if text[:1] == b'"' else text.decode()
    size = len(event_id.encode())
    if not 0 < size <= MAX_ID_BYTES:
        raise _bad_id(got=f"{size} bytes")
    _check_characters("id", event_id)
    return str(event_id)


def _bad_id(got: str) -> ItemRefusedError:
    message = f"id must be text of 1 to {MAX_ID_BYTES} bytes or a number, got {got}"
    return ItemRefusedError(Reason.ID_INVALID, message)


def read_text(name: str, raw: Member) -> str:
    """Return an attribute that must be text.

    Raises:
        ItemRefusedError: `attribute_invalid` or `invalid_unicode`.
    """
    value = _scalar(raw)
    if not isinstance(value, str):
        message = f"attribute {name} must be text, got {echo(_shown(raw))}"
        raise ItemRefusedError(Reason.ATTRIBUTE_INVALID, message)
    _check_characters(name, value)
    return value


def read_name(name: str, raw: Member | None) -> str | None:
    """Return what a client calls somebody or something: text, or a number as its JSON text.

    None where it is absent, null or empty.

    Raises:
        ItemRefusedError: `attribute_invalid` or `invalid_unicode`.
    """
    if raw is None or bytes(raw) == b"null":
        return None
    text = bytes(raw)
    if text[:1] in b"-0123456789":
        return text.decode()
    return read_text(name, raw) or None


def _check_characters(name: str, value: str) -> None:
    if value.isprintable():
        return
    found = _BANNED.search(value)
    if found is not None:
        message = f"attribute {echo(name)} must not hold U+{ord(found.group()):04X}"
        raise ItemRefusedError(Reason.INVALID_UNICODE, message)


def _scalar(raw: Member) -> Any:
    return msgspec.json.decode(raw)


def _time_value(raw: Member) -> str | float:
    value = _scalar(raw)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        message = f"a time must be text or a number, got {echo(_shown(raw))}"
        raise ItemRefusedError(Reason.TIME_INVALID, message)
    return value


def _time_text(value: str | float) -> str:
    """Return a time as said, without the line ends and tabs that reading it passes over."""
    return _BANNED.sub("", str(value))


def _shown(raw: Member) -> str:
    return bytes(raw)[:200].decode(errors="replace")


def _missing(name: str) -> ItemRefusedError:
    return ItemRefusedError(Reason.NOT_AN_EVENT, f"a CloudEvent must have {name}, got none")
