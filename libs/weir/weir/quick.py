"""The quick way of `admission.admit`: the same answers, for items without surprises.

Nearly every item is ASCII or printable Unicode, has only the usual attributes
and a time that is already canonical. Such an item is decoded once, its record
written from parts that are made once a request: 2 µs instead of 30. What is looked for
in each of them is looked for once in all, and all are decoded by one call, where they
are alike. Whatever is unusual comes back as None and goes the careful way. A property
test holds that all ways give the same bytes.
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
from weir.event import identity_hex
from weir.event_time import format_time, is_same_text, parse_time

if TYPE_CHECKING:
    from weir.admission import Admitted, Refused, Terms

# With less than this an item cannot become a value that is too large.
_MAX_ITEM_BYTES = 900_000
_LOW_BITS = 48
_new = tuple.__new__
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# In UTF-8 at most the 512 bytes that an id may have.
_MAX_ID_LENGTH = 128
_MIN_13_DIGITS, _MAX_13_DIGITS = 10**12, 10**13 - 1
_NO_TIME = (UNSET, None)
# A leap second is written as the second after it.
_SECOND = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d", re.ASCII)


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


_EVENTS, _BARES = msgspec.json.Decoder(_Event), msgspec.json.Decoder(_Bare)
_read_event, _read_events = _EVENTS.decode, _EVENTS.decode_lines
_read_bare, _read_bares = _BARES.decode, _BARES.decode_lines
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
        self._second = "", 0
        self._prefix = "", b""

    def admit(self, item: bytes, position: int, *, plain: bool) -> Admitted | None:
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

    def _other(self, item: bytes, position: int) -> Admitted | None:
        """Try an item that is no usual event as an object without envelope."""
        if self._terms.strict or self._terms.time_field:
            return None
        try:
            made = self._bare(item, position)
        except (msgspec.DecodeError, ValueError, RecursionError):
            return None
        self._bare_first = made is not None
        return made

    def _event(self, item: bytes, position: int, *, plain: bool) -> Admitted | None:
        said = _read_event(item)
        if not self._is_usual(said):
            return None
        if not plain and not _verbatim(
            said.id, said.source, said.type, said.subject, said.partitionkey
        ):
            return None
        return self._write(said, position, retry_safe=True)

    def _is_usual(self, said: _Event) -> bool:
        """Say whether an event has what it must, after it got what items without it get."""
        if not self._terms.strict:
            said.source = said.source or self._source
            said.type = said.type or self._type
            if said.specversion is _UNSAID:
                said.specversion = "1.0"
        if said.specversion != "1.0" or not said.source or not said.type:
            return False
        return said.data is not _NO_DATA and 0 < len(said.id) <= _MAX_ID_LENGTH

    def run(self, items: Sequence[bytes], text: bytes, start: int) -> list[Admitted | None] | None:
        """Return the records of items that are alike, None in place of one that is unusual.

        Args:
            items: JSON as the client wrote it.
            text: The same, a line each; known to be `json_exact.is_plain`.
            start: The place of the first in the request.

        Returns:
            None if they are not alike.
        """
        if not self._usable or len(text) > _MAX_ITEM_BYTES or b"NaN" in text:
            return None
        if not _is_value_a_line(text, len(items)) or not _is_shallow(text):
            return None
        try:
            events = _read_events(text)
            keyed = True
        except msgspec.ValidationError:
            events, keyed = self._run_bare(items, text, start)
        except (msgspec.DecodeError, RecursionError):
            return None
        if len(events) != len(items):
            return None
        return [
            self._try_write(said, position, retry_safe=keyed)
            for position, said in enumerate(events, start)
        ]

    def _run_bare(
        self, items: Sequence[bytes], text: bytes, start: int
    ) -> tuple[list[_Event], bool]:
        """Return objects without envelope as events, and whether a retry repeats their ids.

        No event at all if one of them may have an envelope.
        """
        keyed = self._terms.idempotency_key is not None
        try:
            found = [] if self._terms.strict or self._terms.time_field else _read_bares(text)
        except (msgspec.DecodeError, RecursionError):
            return [], keyed
        bare = all(
            one.type is UNSET and one.data is UNSET and one.specversion is UNSET for one in found
        )
        if len(found) != len(items) or not bare:
            return [], keyed
        return [self._of_bare(one, items[n], start + n) for n, one in enumerate(found)], keyed

    def _try_write(self, said: _Event, position: int, *, retry_safe: bool) -> Admitted | None:
        if not self._is_usual(said):
            return None
        try:
            return self._write(said, position, retry_safe=retry_safe)
        except (ValueError, OverflowError):
            return None

    def _bare(self, item: bytes, position: int) -> Admitted | None:
        found = _read_bare(item)
        if found.specversion is not UNSET or found.data is not UNSET:
            return None
        if found.type is not UNSET and is_event(_read_members(item)):
            return None
        said = self._of_bare(found, item, position)
        return self._write(said, position, retry_safe=self._terms.idempotency_key is not None)

    def _of_bare(self, found: _Bare, item: bytes, position: int) -> _Event:
        """Return an object without envelope as the event that it becomes."""
        time = found.date if found.timestamp in _NO_TIME else found.timestamp
        keyed = self._terms.idempotency_key is not None
        return _Event(
            id=admission.assigned_id(item, position, self._terms) if keyed else self._id(position),
            source=self._source,
            type=self._type,
            time=UNSET if time is None else time,
            data=Raw(item),
        )

    def _id(self, position: int) -> str:
        """Return what `assigned_id` would; only its last digits change within a request."""
        low = self._low + position
        if low >> _LOW_BITS:
            return admission.assigned_id(b"", position, self._terms)
        return f"{self._high}{low:012x}"

    def _read_time(self, said: str | float) -> tuple[int, str]:
        """Return what `read_time` does; events of one request come in runs of a second."""
        if not isinstance(said, str) or len(said) != 24 or said[19] != "." or said[23] != "Z":
            return read_time(said)
        second, digits = said[:19], said[20:23]
        if not digits.isdigit():
            return read_time(said)
        if second != self._second[0]:
            self._second = second, _second_ms(second)
        return self._second[1] + int(digits), said

    def _prefix_of(self, source: str) -> bytes:
        """Return what the digests of a source's identities begin with."""
        if source != self._prefix[0]:
            self._prefix = source, event.identity_prefix(self._terms.tenant, source)
        return self._prefix[1]

    def _write(self, said: _Event, position: int, *, retry_safe: bool) -> Admitted | None:
        terms, time = self._terms, said.time
        subject = said.subject or terms.subject
        tail = f',"subject":"{subject}"' if subject else ""
        if time is UNSET:
            (time_ms, text), middle = self._arrived, self._middle_arrived
        else:
            (time_ms, text), middle = self._read_time(time), self._middle_client
            if time_ms > terms.arrived_ms:
                return None
            if time is not text and not is_same_text(str(time), text):
                if not _verbatim(str(time)):
                    return None
                tail += f',"clienttime":"{time}"'
        key = said.partitionkey
        extra = f',"partitionkey":"{key}"' if key else ""
        raw_id = said.id.encode()
        digest = identity_hex(self._prefix_of(said.source), raw_id)
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
        # What a named tuple does, without the function that it writes in Python.
        return _new(admission.Admitted, (value, placed_by, time_ms, retry_safe))


def _verbatim(*texts: str) -> bool:
    """Say whether texts stand in JSON as they are."""
    return all(t.isprintable() and '"' not in t and "\\" not in t for t in texts)


def _is_value_a_line(text: bytes, lines: int) -> bool:
    """Say whether values that a decoder finds in a text are those of its lines.

    It takes values that span lines, and several of one line: an item that breaks off would be
    read on in the next. A line's end between two braces ends a value, since no string holds one
    and within a value a comma or a bracket would follow.
    """
    return text.count(b"\n") == text.count(b"}\n{") == lines - 1


def _is_shallow(text: bytes) -> bool:
    """Say whether brackets close, and nest no deeper than data may; those in strings count, too."""
    brackets = text.translate(None, _NOT_BRACKETS)
    for _ in range(json_exact.MAX_DEPTH):
        if not brackets:
            return True
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


def admit_all(items: Sequence[bytes], start: int, terms: Terms) -> list[Admitted | Refused]:
    """Return what each of a request's items becomes; the first stands at place `start`."""
    quick = Quick(terms)
    text = b"\n".join(items)
    all_plain = json_exact.is_plain(text)
    run = quick.run(items, text, start) if all_plain and len(items) > 1 else None
    if run is not None:
        return [made or admission.admit(items[n], start + n, terms) for n, made in enumerate(run)]
    judged: list[Admitted | Refused] = []
    for position, item in enumerate(items, start):
        plain = all_plain or json_exact.is_plain(item)
        made = quick.admit(item, position, plain=plain)
        judged.append(made or admission.admit(item, position, terms))
    return judged
