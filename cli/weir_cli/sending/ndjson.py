"""A line of JSON as an event: as it is where it has an id, else with one, and nothing else changed.

What ingest takes for bare data is put into an envelope by the same rules (docs/ingest.md 4.6).
What it will not take goes there all the same, and is quarantined by it: a line that is no JSON
too, since the ledger is to know of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from weir import json_exact
from weir.attributes import is_event
from weir.refusal import ItemRefusedError

from weir_cli.sending.entries import Cutter, Entry, LineCutter, Point
from weir_cli.sending.fields import NotUnderstoodError, Shape, object_of, quoted
from weir_cli.sending.identity import SOURCE

Members = Mapping[str, msgspec.Raw]

TYPE: Final = "dev.weir.ndjson.event"
# Where ingest looks for the time of what has no envelope.
TIMES: Final = ("timestamp", "date")
_read = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Lines:
    """NDJSON: an object of JSON a line."""

    word = "ndjson"

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def told(self) -> str:
        """Return what it is read as, in words."""
        return "NDJSON"

    def cutter(self, at: Point) -> Cutter:
        """Return what cuts an input from a point on."""
        return LineCutter(at)

    def event(self, entry: Entry) -> bytes:
        """Return a line as it is sent.

        Raises:
            NotUnderstoodError: If it is cut off, or bare data without the time that it must have.
        """
        text = entry.raw.strip()
        members = members_of(text)
        if members is None:
            if entry.is_cut:
                msg = "the last line must be an object of JSON, or end with a line feed"
                raise NotUnderstoodError(msg)
            return text
        if is_event(members):
            return self._completed(entry, text, members)
        return self._wrapped(entry, text, members)

    def _completed(self, entry: Entry, text: bytes, members: Members) -> bytes:
        """Return an event with what it does not say itself in front."""
        shape, added = self._shape, dict[str, bytes]()
        if shape.type and "type" not in members:
            added["type"] = quoted(shape.type)
        if _said(members, "id") is None:
            added["id"] = shape.assigned(entry)
        if _said(members, "source") is None and ("id" in added or shape.source):
            added["source"] = quoted(shape.source or SOURCE)
        if not added:
            return text
        if added.keys() & members.keys():
            # Of a name twice the last counts: a null of its own would take away what is added.
            kept = {name: bytes(raw) for name, raw in members.items() if name not in added}
            return object_of(added | kept)
        return b"%b,%b" % (object_of(added)[:-1], text[1:])

    def _wrapped(self, entry: Entry, text: bytes, members: Members) -> bytes:
        """Return bare data in an envelope."""
        shape = self._shape
        chosen = {name: _said(members, name) for name in (shape.id, shape.time, shape.subject)}
        time = chosen.get(shape.time) if shape.time else _first(members)
        if shape.time and time is None:
            msg = f'an event must have a time in "{shape.time}", got none'
            raise NotUnderstoodError(msg)
        subject = chosen[shape.subject] or b""
        envelope = {
            "id": chosen[shape.id] or shape.assigned(entry),
            "source": quoted(shape.source or SOURCE),
            "type": quoted(shape.type or TYPE),
            "time": time or b"",
            "subject": b'"%b"' % subject if subject[:1] in b"-0123456789" and subject else subject,
            "data": text,
        }
        return object_of({name: raw for name, raw in envelope.items() if raw})


def members_of(text: bytes) -> Members | None:
    """Return the members of an object as ingest reads it; None for what it will not take."""
    try:
        if json_exact.is_deeper(text, json_exact.MAX_DEPTH + 1):
            return None
        plain = json_exact.is_plain(text) and b"NaN" not in text and b"Infinity" not in text
        return _read(text if plain else json_exact.mend(text).text)
    except (msgspec.DecodeError, UnicodeDecodeError, ItemRefusedError):
        return None


def _said(members: Members, name: str) -> bytes | None:
    """Return a member as it is written; null counts as none."""
    raw = bytes(members[name]) if name and name in members else b"null"
    return None if raw == b"null" else raw


def _first(members: Members) -> bytes | None:
    return next((raw for name in TIMES if (raw := _said(members, name)) is not None), None)
