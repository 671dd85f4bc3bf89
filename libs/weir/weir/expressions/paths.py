"""Paths: where in an event a value is read, such as `data.cart.total` or `data.items[0].price`.

A path begins with an attribute of the envelope, with `data`, or with `extension` for an
attribute that CloudEvents does not name itself. Names are case sensitive. A name
that is not a plain word is written in double quotes: `data."user-agent"`. Elements of
arrays are counted from 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

DATA: Final = "data"
EXTENSION: Final = "extension"
"""Stands before the name of an extension attribute: `extension.traceparent`.

Alone any slip, such as `status` for `data.status`, would be the name of one, which no
event has: the metric would be accepted and count nothing.
"""
TIME: Final = "time"
TIME_MEMBER: Final = "weirms"
"""Where a record has its corrected event time: milliseconds as signed digits."""

TEXT_ATTRIBUTES: Final = frozenset(
    (
        *("id", "source", "type", "subject", "weirsource", "datacontenttype", "dataschema"),
        *("partitionkey", "timesrc", "clienttime", "sentat", "arrivedat"),
        *("ingestproto", "requestid"),
    )
)
"""Attributes that an expression may read as text; `time` is a number of milliseconds."""

MAX_PARTS: Final = 9
TOO_MANY_PARTS: Final = f"at most {MAX_PARTS - 1} names below data", "read a value less deep"
"""What a path of more must be, and how to mend it."""
MAX_NAME_CHARACTERS: Final = 128
# Quotes and backslashes have a meaning in Spark's variant paths, control characters in logs.
_BANNED: Final = re.compile(r"""['"\\\[\]\x00-\x1f\x7f]""")
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EXTENSION: Final = re.compile(r"[a-z0-9]+")
_NO_EXTENSIONS: Final = TEXT_ATTRIBUTES | {TIME, DATA, "specversion"}
_OWN: Final = "weir"
_ELEMENT: Final = re.compile(r"\[[0-9]+\]")
MAX_ELEMENT: Final = 9_999


def element(at: int) -> str:
    """Return the part of a path that stands for an element of an array; no name has brackets."""
    return f"[{at}]"


def element_at(part: str) -> int | None:
    """Return which element a part of a path stands for, None if it is a name."""
    return int(part[1:-1]) if _ELEMENT.fullmatch(part) else None


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """The names from the top of the event to the value, and `[n]` for an element of an array."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        """Return the path as it is written in an expression."""
        return "".join(_written(part) for part in self.parts)[1:]

    @property
    def name(self) -> str:
        """The last name, with the elements that follow it: `tags[0]` of `data.tags[0]`."""
        at = next(
            (at for at in reversed(range(len(self.parts))) if element_at(self.parts[at]) is None), 0
        )
        return "".join(self.parts[at:])

    @property
    def in_data(self) -> bool:
        """Whether the value is a part of the client's own data."""
        return self.parts[0] == DATA

    @property
    def is_extension(self) -> bool:
        """Whether the value is that of an extension attribute."""
        return self.parts[0] == EXTENSION

    def read(self, event: Mapping[str, Any]) -> Any:
        """Return the JSON value at the path, None if there is none.

        Args:
            event: A decoded record of `weir.events`.
        """
        if self.parts == (TIME,):
            return _time_ms(event.get(TIME_MEMBER))
        found: Any = event
        for part in self.parts[1:] if self.is_extension else self.parts:
            found = _below(found, part)
        return attribute_text(found) if self.parts[0] in TEXT_ATTRIBUTES else found


def _written(part: str) -> str:
    if element_at(part) is not None:
        return part
    return f".{part}" if _PLAIN.fullmatch(part) else f'."{part}"'


def _below(found: Any, part: str) -> Any:
    at = element_at(part)
    if at is None:
        return found.get(part) if isinstance(found, dict) else None
    return found[at] if isinstance(found, list) and at < len(found) else None


def attribute_text(value: Any) -> Any:
    """Return what stands for an attribute that is text: CloudEvents allows numbers there."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


def _time_ms(member: Any) -> int | None:
    """Return the number in a `weirms`; None if it is none, as in a record without one."""
    try:
        return int(member)
    except (TypeError, ValueError):
        return None


def fault_of(parts: tuple[str, ...]) -> tuple[str, str] | None:
    """Return what a path must be and how to mend it, or None if it may be read."""
    head = parts[0]
    if head == EXTENSION:
        return _fault_of_extension(parts)
    if head == DATA and len(parts) == 1:
        return "a member of data", "name the member: data.amount"
    if head != DATA and head not in TEXT_ATTRIBUTES and head != TIME:
        if len(parts) >= MAX_PARTS:
            return TOO_MANY_PARTS
        unread = _unread(parts)
        if unread is not None:
            return unread
        mend = f"write {Path((DATA, *parts))}"
        if len(parts) == 1 and is_extension(head):
            mend += f", or {Path((EXTENSION, head))} for an extension attribute"
        return "an attribute or a path below data", mend
    if head != DATA and len(parts) > 1:
        return f"{head} alone", f"{head} has no members; the client's own data is below data"
    if head == DATA and element_at(parts[1]) is not None:
        return "a member of data", "name the array: data.items[0]"
    if len(parts) > MAX_PARTS:
        return TOO_MANY_PARTS
    return _unread(parts)


def _unread(parts: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the fault of the first name that cannot be read, None if each can."""
    return next(filter(None, map(fault_of_name, filter(_is_name, parts))), None)


def is_extension(name: str) -> bool:
    """Tell whether a member of an event is an extension attribute that may be read."""
    return (
        name not in _NO_EXTENSIONS
        and not name.startswith(_OWN)
        and len(name) <= MAX_NAME_CHARACTERS
        and _EXTENSION.fullmatch(name) is not None
    )


def _fault_of_extension(parts: tuple[str, ...]) -> tuple[str, str] | None:
    name = parts[1] if len(parts) > 1 else ""
    if len(parts) == 2 and is_extension(name):
        return None
    lowered = name.lower()
    if not name:
        mend = "name it: extension.traceparent"
    elif name in TEXT_ATTRIBUTES or name == TIME:
        mend = f"{name} is no extension; write {name}"
    elif name.startswith(_OWN):
        mend = "names that begin with weir are not taken from clients; read a member of data"
    elif len(parts) > 2 and is_extension(name):
        mend = f"{Path(parts[:2])} has no members; the client's own data is below data"
    elif lowered != name and is_extension(lowered):
        mend = f"write {Path((EXTENSION, lowered))}: ingest stores names in lower case"
    else:
        mend = "a member of the client's own data is below data"
    return "an extension attribute, named with a-z and 0-9", mend


def fault_of_name(name: str) -> tuple[str, str] | None:
    """Return what a name in a path must be and how to mend it, or None if it may be read."""
    if name and len(name) <= MAX_NAME_CHARACTERS and not _BANNED.search(name):
        return None
    return (
        f"names of 1 to {MAX_NAME_CHARACTERS} characters without quotes, brackets, "
        "backslashes and control characters",
        "such a member cannot be read; rename it where the event is made",
    )


def _is_name(part: str) -> bool:
    return element_at(part) is None
