"""What may become an event: every check of one item, and the record it becomes.

Ingest calls `admit` for each item of a request; the engine calls `admit_foreign`
for a record that another producer put into the topic. Both end in the same code,
so that an event is the same wherever it came in. Pure: no clock, no randomness,
no logging; what is needed of them comes in with `Terms`.

One bad item never harms another: it comes back as `Refused`, with its reason.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from weir import event, json_exact
from weir.attributes import Attributes, Member, is_event
from weir.event_time import Clocks, correct, format_time, is_same_text, parse_time
from weir.json_exact import MAX_DEPTH
from weir.mappings import Mapping
from weir.problems import Reason
from weir.refusal import ItemRefusedError

_BARE_TIME_FIELDS = ("timestamp", "date")
_ID_RANDOM_BITS = 74


class Admitted(NamedTuple):
    """An item that became a record.

    Attributes:
        value: The record's value, in its canonical bytes.
        key: The record's key.
        time_ms: Corrected event time.
        retry_safe: False if the id was made up here, so that a second sending
            counts twice.
    """

    value: bytes
    key: bytes
    time_ms: int
    retry_safe: bool = True

    @property
    def digest(self) -> bytes:
        """The identity's digest, 16 bytes."""
        return event.placed(self.value).digest


class Refused(NamedTuple):
    """An item that cannot be used; its bytes are kept with the reason."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every item of a request.

    Attributes:
        tenant: From the credential.
        source: The source's id, from the credential (`weirsource`).
        arrived_ms: When the request began to arrive.
        protocol: Name of the protocol (`ingestproto`).
        strict: Items claim to be CloudEvents: what the specification requires
            must be there. Otherwise anything readable is an event.
        request_id: UUID of the request; empty for a record of another producer.
        type: Type of an item without one.
        subject: Subject of an item without one.
        idempotency_key: From the header of that name; makes ids that a retry repeats.
        seed: Random bits of the request, for ids that nobody gave.
        time_field: Path of members, divided by dots, where an object without envelope says
            when it happened; empty: `timestamp`, else `date`.
        mapping: Reads items of a client that knows nothing of Weir; None: they are
            events or bare data.
    """

    tenant: str
    source: str
    arrived_ms: int
    protocol: str
    strict: bool = False
    request_id: str = ""
    type: str | None = None
    subject: str | None = None
    idempotency_key: str | None = None
    seed: int = 0
    mapping: Mapping | None = None
    time_field: str = ""


def admit(item: bytes, position: int, terms: Terms) -> Admitted | Refused:
    """Return the record that one item of a request becomes, or why it cannot.

    Args:
        item: The item's JSON as the client wrote it.
        position: Its place in the request, from 0.
        terms: What holds for the request.
    """
    try:
        text, nulled = _readable(item)
        members = _members(text)
        if terms.mapping is not None:
            _check_data_depth(text)
            said = terms.mapping(text, members, terms.arrived_ms)
            if said.is_row:
                _read_bare_time(said, members, terms)
            return _admit_said(said, nulled, position, terms, text)
        if not terms.strict and not is_event(members):
            return _admit_bare(text, members, nulled, position, terms)
        return _admit_event(members, nulled, position, terms, text)
    except ItemRefusedError as error:
        return Refused(error.reason, str(error))


def admit_foreign(
    value: bytes | None, *, received_ms: int, recheck: bool = False, origin: str = ""
) -> Admitted | Refused:
    """Return what a record of another producer counts as (RELIABILITY 4 row 30).

    The record must be a CloudEvent in structured JSON. It gets tenant `default`
    and source `kafka`. The answer is a function of the arguments alone: a replay
    decides as the first time.

    Args:
        value: The record's value.
        received_ms: When the broker appended it, as a running maximum.
        recheck: The record claims to be ours (it starts with `weirid`): keep its
            tenant and source, and refuse it unless identity and time agree.
        origin: Topic, partition and offset; makes the id of an event without one.
    """
    if value is None:
        return Refused(Reason.NOT_AN_EVENT, "a record must have a value; this one is a tombstone")
    if recheck and event.starts_like_event(value):
        return _recheck(value)
    terms = Terms(
        tenant=event.DEFAULT_TENANT,
        source=event.FOREIGN_SOURCE,
        arrived_ms=received_ms,
        protocol=event.FOREIGN_SOURCE,
        strict=True,
        idempotency_key=origin,
    )
    found = admit(value, 0, terms)
    if isinstance(found, Refused) and found.reason is Reason.INVALID_JSON:
        return Refused(Reason.NOT_AN_EVENT, found.detail)
    return found


def _recheck(value: bytes) -> Admitted | Refused:
    """Check that a record of ours says one thing only."""
    if len(value) > event.MAX_RECORD_BYTES:
        return Refused(Reason.EVENT_TOO_LARGE, _too_large(len(value)))
    try:
        _readable(value)
        place = event.placed(value)
        said = event.read_event(value)
        digest = event.identity_digest(said["weirtenant"], said["source"], said["id"])
        time_ms = parse_time(said["time"])
        built = not said["ingestproto"].startswith("cloudevents")
        own = said.get("partitionkey")  # may be a number, which is keyed by its text
        key = event.partition_key(
            said["id"], str(own) if own else None, said.get("subject"), built=built
        )
    except ItemRefusedError as error:
        return Refused(error.reason, str(error))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Refused(Reason.NOT_AN_EVENT, f"record must be whole; {error!r}")
    if (digest, time_ms) != place:
        message = "weirid and weirms must agree with tenant, source, id and time"
        return Refused(Reason.NOT_AN_EVENT, message)
    return Admitted(value, key, time_ms)


def _readable(item: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return an item as JSON can hold it, and what became null for it."""
    if len(item) > event.MAX_RECORD_BYTES:
        raise ItemRefusedError(Reason.EVENT_TOO_LARGE, _too_large(len(item)))
    if json_exact.is_deeper(item, MAX_DEPTH + 1):
        raise ItemRefusedError(Reason.TOO_DEEP, f"data must nest at most {MAX_DEPTH} deep")
    if json_exact.is_plain(item) and b"NaN" not in item and b"Infinity" not in item:
        return item, ()
    mended = json_exact.mend(item)
    return mended.text, mended.nulled


def _check_data_depth(data: bytes) -> None:
    if json_exact.is_deeper(data, MAX_DEPTH):
        raise ItemRefusedError(Reason.TOO_DEEP, f"data must nest at most {MAX_DEPTH} deep")


def _too_large(length: int) -> str:
    return f"event must be at most {event.MAX_RECORD_BYTES} bytes with its key, got {length}"


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _members(text: bytes) -> dict[str, Member]:
    try:
        return _MEMBERS.decode(text)
    except msgspec.ValidationError:
        message = "event must be a JSON object"
        raise ItemRefusedError(Reason.NOT_AN_EVENT, message) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ItemRefusedError(Reason.INVALID_JSON, str(error)) from None


def _admit_event(
    members: dict[str, Member],
    nulled: tuple[str, ...],
    position: int,
    terms: Terms,
    text: bytes,
) -> Admitted | Refused:
    """Admit an item that has an envelope."""
    said = Attributes.read(members, strict=terms.strict)
    return _admit_said(said, nulled, position, terms, text)


def _admit_said(
    said: Attributes, nulled: tuple[str, ...], position: int, terms: Terms, text: bytes
) -> Admitted | Refused:
    """Admit an item by what it says of itself."""
    clocks = Clocks(said.time_ms, said.sent_ms, terms.arrived_ms, server=said.server)
    event_id = said.id if said.id is not None else assigned_id(text, position, terms)
    safe = said.id is not None or terms.idempotency_key is not None
    return _record(said, _Build(event_id, clocks, nulled, position, safe), terms)


def _admit_bare(
    text: bytes,
    members: dict[str, Member],
    nulled: tuple[str, ...],
    position: int,
    terms: Terms,
) -> Admitted | Refused:
    """Admit an object without envelope: all of it is `data`."""
    _check_data_depth(text)
    said = Attributes.bare(text)
    _read_bare_time(said, members, terms)
    clocks = Clocks(said.time_ms, None, terms.arrived_ms)
    event_id = assigned_id(text, position, terms)
    safe = terms.idempotency_key is not None
    return _record(said, _Build(event_id, clocks, nulled, position, safe), terms)


def _read_bare_time(said: Attributes, members: dict[str, Member], terms: Terms) -> None:
    """Read when an object without envelope happened: where its source says, else as usual."""
    time = _member_at(members, terms.time_field) if terms.time_field else None
    if time is not None:
        said.read_time(time)
    for name in _BARE_TIME_FIELDS:
        if name in members and said.time_ms is None:
            said.read_time(members[name])


def _member_at(members: dict[str, Member], path: str) -> Member | None:
    """Return what stands at a path, None if nothing does; a name may have dots itself."""
    if path in members:
        return members[path]
    name, dot, rest = path.partition(".")
    inner = members.get(name)
    if not dot or inner is None or bytes(inner)[:1] != b"{":
        return None
    return _member_at(_members(bytes(inner)), rest)


@dataclass(frozen=True, slots=True)
class _Build:
    """What a record needs besides its attributes."""

    event_id: str
    clocks: Clocks
    nulled: tuple[str, ...]
    position: int
    retry_safe: bool


def _record(said: Attributes, build: _Build, terms: Terms) -> Admitted | Refused:
    time_ms, time_source = correct(build.clocks)
    source = said.source or f"urn:weir:src:{terms.source}"
    subject = said.subject or terms.subject
    attributes: dict[str, str | int | bool] = {
        "specversion": "1.0",
        "id": build.event_id,
        "source": source,
        "type": said.type or terms.type or f"dev.weir.{terms.protocol}.event",
        "time": format_time(time_ms),
        "weirtenant": terms.tenant,
        "weirsource": terms.source,
        "arrivedat": format_time(terms.arrived_ms),
        "timesrc": time_source.value,
        "ingestproto": terms.protocol,
    }
    if terms.request_id:
        attributes["requestid"] = terms.request_id
        attributes["requestpos"] = build.position
    if subject:
        attributes["subject"] = subject
    if said.time_text and not is_same_text(said.time_text, format_time(time_ms)):
        attributes["clienttime"] = said.time_text
    if build.nulled:
        attributes["nulled"] = said.names_of(build.nulled)
    for name, value in said.others.items():
        attributes.setdefault(name, value)
    digest = event.identity_hex(
        event.identity_prefix(terms.tenant, source), build.event_id.encode()
    )
    record = event.encode_record(digest, time_ms, attributes, said.data)
    key = event.partition_key(build.event_id, said.partition_key, subject, built=not terms.strict)
    size = len(record) + len(key)
    if size > event.MAX_RECORD_BYTES:
        return Refused(Reason.EVENT_TOO_LARGE, _too_large(size))
    return Admitted(record, key, time_ms, build.retry_safe)


def assigned_id(text: bytes, position: int, terms: Terms) -> str:
    """Return the id of an item that came without one.

    With an Idempotency-Key it is a digest of key, place and bytes, so that a
    retry repeats it; else a UUIDv7 of the request's arrival and its random bits.
    """
    if terms.idempotency_key is not None:
        key = terms.idempotency_key.encode()
        head = len(key).to_bytes(4, "big") + key + position.to_bytes(4, "big")
        return hashlib.sha256(head + text).hexdigest()[:32]
    return uuid7(terms.arrived_ms, terms.seed + position)


def uuid7(time_ms: int, random: int) -> str:
    """Return a UUIDv7 (RFC 9562) from a time and 74 random bits."""
    random %= 1 << _ID_RANDOM_BITS
    number = (
        (time_ms & (1 << 48) - 1) << 80
        | 7 << 76
        | (random >> 62) << 64
        | 2 << 62
        | (random & (1 << 62) - 1)
    )
    digits = f"{number:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
