"""The event as it stands in `weir.events`: its fixed places, its identity, its record.

A record's value is one CloudEvent in JSON. Its first two members stand at fixed
places, so that the engine reads identity and time without parsing JSON
(docs/interfaces.md 1). Everything here is pure; `admission.py` decides what may
become a record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

try:
    # The C function itself: half the price of hashlib's, which looks up an
    # OpenSSL provider for each digest. MD5 is no guard here, only a short name.
    from _md5 import md5 as _md5  # type: ignore[import-not-found]
except ImportError:  # a Python built without it
    from hashlib import md5 as _md5

# ── the fixed places ────────────────────────────────────────────────────────
VALUE_PREFIX: Final = b'{"weirid":"'
DIGEST_AT: Final = 11
DIGEST_END: Final = 43
TIME_AT: Final = 55
TIME_END: Final = 71
HEAD: Final = '{"weirid":"%s","weirms":"%+016d"'

MAX_RECORD_BYTES: Final = 1_000_000
"""Largest value and key together. A broker takes 48,588 more by default: room for headers."""
MAX_KEPT_BYTES: Final = 65_536
"""How much of an oversized item is kept in its refusal."""

DEFAULT_TENANT: Final = "default"
FOREIGN_SOURCE: Final = "kafka"
OWNER_PATTERN: Final = "[a-z0-9][a-z0-9_.-]{0,63}"
"""What a tenant, or the source of a key, may be called."""


class Placed(NamedTuple):
    """What stands at the fixed places of a record."""

    digest: bytes
    time_ms: int


def starts_like_event(value: bytes) -> bool:
    """Say whether a record's value has its identity and time at the fixed places."""
    return value.startswith(VALUE_PREFIX)


_PLACES: Final = re.compile(rb'\{"weirid":"[0-9a-f]{32}","weirms":"[+-][0-9]{15}')


def placed(value: bytes) -> Placed:
    """Read digest and event time from their fixed places.

    Exactly what ingest writes, and not all that Python reads as a number: the engine
    tells events by the same signs, and the two must agree on every record.

    Raises:
        ValueError: If there is no digest or time at those places.
    """
    if not _PLACES.match(value):
        message = "value must start with weirid and weirms at their fixed places"
        raise ValueError(message)
    digest = bytes.fromhex(value[DIGEST_AT:DIGEST_END].decode("ascii"))
    return Placed(digest, int(value[TIME_AT:TIME_END]))


def owner(tenant: str, source: str) -> tuple[str, str]:
    """Return tenant and source as they are accounted for; `default` and `kafka` for others.

    What a record says of itself may be anything: another producer wrote it.
    """
    return (
        tenant if _OWNER.fullmatch(tenant) else DEFAULT_TENANT,
        source if _OWNER.fullmatch(source) else FOREIGN_SOURCE,
    )


_OWNER: Final = re.compile(OWNER_PATTERN)
_MAX_KNOWN_SOURCE: Final = 512
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding the value of a record may raise, whoever wrote it: bytes that are no JSON or no
UTF-8, and what nests deeper than there are frames."""


# ── identity ────────────────────────────────────────────────────────────────


def identity_prefix(tenant: str, source: str) -> bytes:
    """Return what the digests of a source's identities all begin with."""
    # A client's source is as long as it likes: what is remembered must not be.
    made = _known_prefix if len(source) <= _MAX_KNOWN_SOURCE else _known_prefix.__wrapped__
    return made(tenant, source)


@lru_cache(maxsize=4096)
def _known_prefix(tenant: str, source: str) -> bytes:
    return b"".join(
        len(part).to_bytes(4, "big") + part for part in (tenant.encode(), source.encode())
    )


def identity_digest(tenant: str, source: str, event_id: str) -> bytes:
    """Return the 16 bytes that stand for an identity (DESIGN 4).

    MD5 over tenant, source and id in UTF-8, each after its length as 4 bytes
    big-endian: no two identities share the same input. Spark computes the same.
    """
    return bytes.fromhex(identity_hex(identity_prefix(tenant, source), event_id.encode()))


def identity_hex(prefix: bytes, event_id: bytes) -> str:
    """Return an identity's digest in hex, given its source's `identity_prefix`."""
    digest: str = _md5(prefix + len(event_id).to_bytes(4, "big") + event_id).hexdigest()  # noqa: S324
    return digest


# ── the record ──────────────────────────────────────────────────────────────


def partition_key(
    event_id: str, partitionkey: str | None, subject: str | None = None, *, built: bool = False
) -> bytes:
    """Return a record's key: a function of the event alone, so that a retry meets its first.

    Args:
        event_id: The event's id, the key when there is nothing better.
        partitionkey: The extension of that name.
        subject: Used for events that we build from a client's call: user,
            anonymous id or subject, in the client's order of preference.
        built: Whether we built the event; a received CloudEvent never goes by
            its subject.
    """
    return (partitionkey or (subject if built else None) or event_id).encode()


def encode_record(
    digest_hex: str, time_ms: int, attributes: Mapping[str, Any], data: tuple[str, bytes] | None
) -> bytes:
    """Return the value of an event's record.

    Args:
        digest_hex: Identity, 32 lower-case hex digits.
        time_ms: Corrected event time; `attributes["time"]` says the same.
        attributes: CloudEvents attributes in the order they are written.
        data: The member's name (`data` or `data_base64`) and its JSON; last.
    """
    head = HEAD % (digest_hex, time_ms)
    members = "".join(f',"{name}":{quote(value)}' for name, value in attributes.items())
    if data is None:
        return f"{head}{members}}}".encode()
    name, text = data
    return b"".join((f'{head}{members},"{name}":'.encode(), text, b"}"))


def quote(value: str | int | bool) -> str:
    """Return an attribute's value as JSON."""
    return _quote(value)


def read_event(value: bytes) -> dict[str, Any]:
    """Return a record's value as an event, for readers that show or evaluate it.

    The two members at the fixed places are left out: they repeat what `id` and
    `time` say.

    Raises:
        ValueError: If the value is no JSON object.
    """
    try:
        event: dict[str, Any] = _EVENT.decode(value)
    except (msgspec.MsgspecError, RecursionError) as error:
        message = f"value must be one JSON object; {error}"
        raise ValueError(message) from None
    event.pop("weirid", None)
    event.pop("weirms", None)
    return event


_quote = json.JSONEncoder(ensure_ascii=False).encode
_EVENT = msgspec.json.Decoder(dict[str, Any])
