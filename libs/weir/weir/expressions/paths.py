"""Paths: where in an event a value is read, such as `data.cart.total`.

A path begins with an attribute of the envelope or with `data`. Names are case
sensitive. A name that is not a plain word is written in double quotes:
`data."user-agent"`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

DATA: Final = "data"
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
MAX_NAME_CHARACTERS: Final = 128
# Quotes and backslashes have a meaning in Spark's variant paths, control characters in logs.
_BANNED: Final = re.compile(r"""['"\\\[\]\x00-\x1f\x7f]""")
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """The names from the top of the event to the value."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        """Return the path as it is written in an expression."""
        return ".".join(p if _PLAIN.fullmatch(p) else f'"{p}"' for p in self.parts)

    @property
    def in_data(self) -> bool:
        """Whether the value is the client's own, and so may be of any JSON type."""
        return self.parts[0] == DATA

    def read(self, event: Mapping[str, Any]) -> Any:
        """Return the JSON value at the path, None if there is none.

        Args:
            event: A decoded record of `weir.events`.
        """
        if self.parts == (TIME,):
            return _time_ms(event.get(TIME_MEMBER))
        found: Any = event
        for name in self.parts:
            if not isinstance(found, dict):
                return None
            found = found.get(name)
        return found


def _time_ms(member: Any) -> int | None:
    """Return the number in a `weirms`; None if it is none, as in a record without one."""
    try:
        return int(member)
    except (TypeError, ValueError):
        return None


def fault_of(parts: tuple[str, ...]) -> tuple[str, str] | None:
    """Return what a path must be and how to mend it, or None if it may be read."""
    head = parts[0]
    if head == DATA and len(parts) == 1:
        return "a member of data", "name the member: data.amount"
    if head != DATA and head not in TEXT_ATTRIBUTES and head != TIME:
        return "an attribute or a path below data", f"write {Path((DATA, *parts))}"
    if head != DATA and len(parts) > 1:
        return f"{head} alone", f"{head} has no members; the client's own data is below data"
    if len(parts) > MAX_PARTS:
        return f"at most {MAX_PARTS - 1} names below data", "read a value less deep"
    for name in parts:
        if not name or len(name) > MAX_NAME_CHARACTERS or _BANNED.search(name):
            return (
                f"names of 1 to {MAX_NAME_CHARACTERS} characters without quotes, brackets, "
                "backslashes and control characters",
                "such a member cannot be read; rename it where the event is made",
            )
    return None
