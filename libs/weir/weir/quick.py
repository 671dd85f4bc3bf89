"""The quick way of `admission.admit`: the same answers, for items without surprises.

Nearly every item is ASCII or printable Unicode, has only the usual attributes
and a time that is already canonical. Such an item is decoded once, its record
written from parts that are made once a request: 2 µs instead of 30. Whatever is
unusual comes back as None and goes the careful way. A property test holds that
both ways give the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw, UnsetType

from weir import admission, event, json_exact
from weir.attributes import is_event
from weir.event_time import format_time, is_same_text, parse_time

if TYPE_CHECKING:
    from weir.admission import Admitted, Refused, Terms

Made = tuple[bytes, bytes, int, bool]
"""Value, key, time in ms, retry-safe: the fields of `Admitted`."""

# With less than this an item cannot become a value that is too large.
_MAX_ITEM_BYTES = 900_000
_LOW_BITS = 48
# In UTF-8 at most the 512 bytes that an id may have.
_MAX_ID_LENGTH = 128
_MIN_13_DIGITS, _MAX_13_DIGITS = 10**12, 10**13 - 1
_NO_TIME = (UNSET, None)
_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII)


_UNSAID = "".join(("un", "said"))
"""The version where none is given; known by identity, so that no client can say it."""
_NO_DATA = Raw(b"")


class _Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event with the usual attributes only."""

    specversion: str = _UNSAID
    id: str = ""
    source: str = ""
    type: str = ""
    time: str | int | float | UnsetType = UNSET
    subject: str = ""
    partitionkey: str = ""
    data: Raw = _NO_DATA


class _Bare(msgspec.Struct, gc=False):
    """What tells an object without envelope, and when it happened."""

    specversion: Raw | UnsetType = UNSET
    type: Raw | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    timestamp: str | int | float | UnsetType | None = UNSET
    date: str | int | float | UnsetType | None = UNSET


_read_event = msgspec.json.Decoder(_Event).decode
_read_bare = msgspec.json.Decoder(_Bare).decode
_read_members = msgspec.json.Decoder(dict[str, Raw]).decode


@lru_cache(maxsize=4096)
def _second_ms(text: str) -> int:
    """Return a second's start; events of one request share few of them."""
    if _SECOND.fullmatch(text) is None:
        raise ValueError(text)
    return parse_time(text)


def read_time(said: str | float) -> tuple[int, str]:
    """Return a time in ms and as it is written in a record.

    Raises:
        ValueError: If it is no time.
    """
    if isinstance(said, str):
        length = len(said)
        if length == 24 and said[19] == "." and said[20:23].isdigit() and said[23] == "Z":
            return _second_ms(said[:19]) + int(said[20:23]), said
        if length == 20 and said[19] == "Z":
            return _second_ms(said[:19]), f"{said[:19]}.000Z"
    time_ms = parse_time(said)
    return time_ms, format_time(time_ms)


@lru_cache(maxsize=4096)
def _defaults(
    source_id: str, protocol: str, event_type: str | None, subject: str | None
) -> tuple[str, str, bool]:
    """Return source and type of items without one, and whether JSON takes them as they are."""
    source = f"urn:weir:src:{source_id}"
    chosen = event_type or f"dev.weir.{protocol}.event"
    return source, chosen, _verbatim(source, chosen, subject or "")


@lru_cache(maxsize=4096)
def _constants(tenant: str, source_id: str, protocol: str) -> tuple[str, str]:
    """Return what stands in every record of a credential, around the arrival's time."""
    quote = event.quote
    return (
        f'","weirtenant":{quote(tenant)},"weirsource":{quote(source_id)},"arrivedat":"',
        f',"ingestproto":{quote(protocol)},"requestid":',
    )


class Quick:
    """The quick way for the items of one request."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._source, self._type, self._usable = _defaults(
            terms.source, terms.protocol, terms.type, terms.subject
        )
        arrived = format_time(terms.arrived_ms)
        self._arrived = terms.arrived_ms, arrived
        before, after = _constants(terms.tenant, terms.source, terms.protocol)
        request = f'{after}"{terms.request_id}","requestpos":'
        self._middle_client = f'{before}{arrived}","timesrc":"client"{request}'
        self._middle_arrived = f'{before}{arrived}","timesrc":"arrived"{request}'
        self._usable = self._usable and _verbatim(terms.request_id) and bool(terms.request_id)
        self._usable = self._usable and terms.mapping is None
        first_id = admission.uuid7(terms.arrived_ms, terms.seed)
        self._high, self._low = first_id[:-12], int(first_id[-12:], 16)
        self._bare_first = False

    def admit(self, item: bytes, position: int, *, plain: bool) -> Made | None:
        """Return an item's record, None if it must go the careful way.

        Args:
            item: JSON as the client wrote it.
            position: Its place in the request.
            plain: It is known to be `json_exact.is_plain`.
        """
        if not self._usable or len(item) > _MAX_ITEM_BYTES:
            return None
        if item.count(b"{") + item.count(b"[") > json_exact.MAX_DEPTH:
            return None
        try:
            # What is not left as it was, also where nothing tells of it any more: a number beyond
            # doubles under a name that comes again.
            if b"NaN" in item or (not plain and json_exact.mend(item).text is not item):
                return None
            # Items of one request mostly look alike: what the last one was goes first.
            if self._bare_first:
                made = self._bare(item, position)
                self._bare_first = made is not None
                return made or self._event(item, position, plain=plain)
            return self._event(item, position, plain=plain)
        except msgspec.ValidationError:
            return self._other(item, position)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None

    def _other(self, item: bytes, position: int) -> Made | None:
        """Try an item that is no usual event as an object without envelope."""
        if self._terms.strict:
            return None
        try:
            made = self._bare(item, position)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        self._bare_first = made is not None
        return made

    def _event(self, item: bytes, position: int, *, plain: bool) -> Made | None:
        said = _read_event(item)
        if not self._terms.strict:
            said.source = said.source or self._source
            said.type = said.type or self._type
            if said.specversion is _UNSAID:
                said.specversion = "1.0"
        if said.specversion != "1.0" or not said.source or not said.type:
            return None
        if said.data is _NO_DATA or not 0 < len(said.id) <= _MAX_ID_LENGTH:
            return None
        if not plain and not _verbatim(
            said.id, said.source, said.type, said.subject, said.partitionkey
        ):
            return None
        return self._write(said, position, retry_safe=True)

    def _bare(self, item: bytes, position: int) -> Made | None:
        found = _read_bare(item)
        if found.specversion is not UNSET or found.data is not UNSET:
            return None
        if found.type is not UNSET and is_event(_read_members(item)):
            return None
        time = found.date if found.timestamp in _NO_TIME else found.timestamp
        keyed = self._terms.idempotency_key is not None
        said = _Event(
            id=admission.assigned_id(item, position, self._terms) if keyed else self._id(position),
            source=self._source,
            type=self._type,
            time=UNSET if time is None else time,
            data=Raw(item),
        )
        return self._write(said, position, retry_safe=keyed)

    def _id(self, position: int) -> str:
        """Return what `assigned_id` would; only its last digits change within a request."""
        low = self._low + position
        if low >> _LOW_BITS:
            return admission.assigned_id(b"", position, self._terms)
        return f"{self._high}{low:012x}"

    def _write(self, said: _Event, position: int, *, retry_safe: bool) -> Made | None:
        terms, time = self._terms, said.time
        subject = said.subject or terms.subject
        tail = f',"subject":"{subject}"' if subject else ""
        if time is UNSET:
            (time_ms, text), middle = self._arrived, self._middle_arrived
        else:
            (time_ms, text), middle = read_time(time), self._middle_client
            if time_ms > terms.arrived_ms:
                return None
            if not is_same_text(str(time), text):
                if not _verbatim(str(time)):
                    return None
                tail += f',"clienttime":"{time}"'
        key = said.partitionkey
        extra = f',"partitionkey":"{key}"' if key else ""
        raw_id = said.id.encode()
        digest = event.identity_hex(event.identity_prefix(terms.tenant, said.source), raw_id)
        # Formatting with a width costs twice as much as joining.
        place = (
            f"+00{time_ms}" if _MIN_13_DIGITS <= time_ms <= _MAX_13_DIGITS else f"{time_ms:+016d}"
        )
        head = (
            f'{{"weirid":"{digest}","weirms":"{place}","specversion":"1.0",'
            f'"id":"{said.id}","source":"{said.source}","type":"{said.type}","time":"{text}'
            f'{middle}{position}{tail},"datacontenttype":"application/json"{extra},"data":'
        )
        chosen = key or (None if terms.strict else subject)
        value = b"".join((head.encode(), said.data, b"}"))
        placed_by = chosen.encode() if chosen else raw_id
        # A subject or key stands in both.
        if len(value) + len(placed_by) > event.MAX_RECORD_BYTES:
            return None
        return value, placed_by, time_ms, retry_safe


def _verbatim(*texts: str) -> bool:
    """Say whether texts stand in JSON as they are."""
    return all(t.isprintable() and '"' not in t and "\\" not in t for t in texts)


def admit_all(items: Sequence[bytes], start: int, terms: Terms) -> list[Admitted | Refused]:
    """Return what each of a request's items becomes; the first stands at place `start`."""
    quick = Quick(terms)
    all_plain = json_exact.is_plain(b"\n".join(items))
    admitted = admission.Admitted
    judged: list[Admitted | Refused] = []
    for position, item in enumerate(items, start):
        plain = all_plain or json_exact.is_plain(item)
        made = quick.admit(item, position, plain=plain)
        judged.append(admission.admit(item, position, terms) if made is None else admitted(*made))
    return judged
