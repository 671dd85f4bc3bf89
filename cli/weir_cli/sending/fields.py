"""Named fields, such as the columns of CSV, as an event that ingest takes.

A field becomes a number or a boolean of JSON only where its text is exactly that: what is read
back from the event is what stood in the input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from weir_cli.sending.entries import Entry
from weir_cli.sending.identity import SOURCE, assigned_id

# A zero in front, as of a postal code, or a sign would be lost in a number, and an exponent is
# as likely a part of a name. Fifteen digits are what every double gives back.
_NUMBER: Final = re.compile(r"(?!-0(?:\.0*)?$)-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_MOST_DIGITS: Final = 15
_TRUTHS: Final = frozenset({"true", "false"})
_SERVER: Final = re.compile(
    r"(\d\d)/(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)/(\d{4}):(\d\d:\d\d:\d\d)"
    r"(?: ([+-]\d\d)(\d\d))?",
    re.ASCII,
)
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"

quoted = msgspec.json.encode


class NotUnderstoodError(Exception):
    """An entry is no event; the text says what it must be."""


@dataclass(frozen=True)
class Shape:
    """What makes an event of an entry.

    Attributes:
        name: What the input is called, for ids.
        source: The `source` of events that say none; empty for the usual.
        type: Their `type`; empty for that of the format.
        id: The field with their id; empty for none.
        time: The field with their time.
        subject: The field with their subject.
        texts: Fields that stay text whatever they look like.
        apart: Fields that are not in `data`.
    """

    name: str
    source: str = ""
    type: str = ""
    id: str = ""
    time: str = ""
    subject: str = ""
    texts: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()

    @property
    def chosen(self) -> dict[str, str]:
        """The fields that an option names, by the option."""
        named = {"--id": self.id, "--time": self.time, "--subject": self.subject}
        return {option: field for option, field in named.items() if field}

    def assigned(self, entry: Entry) -> bytes:
        """Return the id of an entry that has none, as JSON."""
        return quoted(assigned_id(self.name, entry.start, entry.raw))


def value_of(text: str) -> bytes:
    """Return a text as the JSON that says exactly the same, else as text."""
    if text in _TRUTHS:
        return text.encode()
    if _NUMBER.fullmatch(text):
        digits = text.lstrip("-").replace(".", "").lstrip("0")
        if len(digits) <= _MOST_DIGITS:
            return text.encode()
    return quoted(text)


def time_of(text: str) -> str:
    """Return a time as ingest reads it: those of web servers are written anew, others as they are.

    A date that is in no calendar stays one, and ingest tells it.
    """
    found = _SERVER.fullmatch(text.strip())
    if found is None:
        return text
    day, month, year, clock, hours, minutes = found.groups()
    zone = f"{hours}:{minutes}" if hours else "Z"
    return f"{year}-{_MONTHS.index(month) // 3 + 1:02}-{day}T{clock}{zone}"


def event_of(entry: Entry, fields: Mapping[str, str], shape: Shape, usual_type: str) -> bytes:
    """Return the event of an entry that has named fields; empty ones are left out.

    Args:
        entry: Where it stands.
        fields: Its fields.
        shape: What the caller chose.
        usual_type: The `type` of the format.

    Raises:
        NotUnderstoodError: If the field with its time is empty: it would count as of now.
    """
    time = fields.get(shape.time, "") if shape.time else ""
    if shape.time and not time.strip():
        msg = f'an event must have a time in "{shape.time}", got none'
        raise NotUnderstoodError(msg)
    data = {
        name: quoted(text) if name in shape.texts else value_of(text)
        for name, text in fields.items()
        if (text or name in shape.texts) and name not in shape.apart
    }
    own_id = fields.get(shape.id, "") if shape.id else ""
    subject = fields.get(shape.subject, "") if shape.subject else ""
    members = {
        "id": quoted(own_id) if own_id else shape.assigned(entry),
        "source": quoted(shape.source or SOURCE),
        "type": quoted(shape.type or usual_type),
        "time": quoted(time_of(time)) if time else b"",
        "subject": quoted(subject) if subject else b"",
        "data": object_of(data),
    }
    return object_of({name: raw for name, raw in members.items() if raw})


def object_of(members: Mapping[str, bytes]) -> bytes:
    """Return an object of JSON whose members are JSON already."""
    return b"{%b}" % b",".join(b"%b:%b" % (quoted(name), raw) for name, raw in members.items())
