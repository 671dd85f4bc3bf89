"""What the functions on text mean; characters are code points, never bytes."""

from __future__ import annotations

import re
from typing import Final

_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
REST: Final = 2**31 - 1
"""The length that `substr` takes when none is given."""

NUMBER: Final = r"[+-]?[0-9]{1,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,4})?"
"""What `to_number` reads, as a pattern that Python and Java understand alike."""


def lower(text: str) -> str:
    """Return a text with A-Z as a-z; nothing else changes, whatever Unicode says."""
    return text.translate(_LOWER)


def upper(text: str) -> str:
    """Return a text with a-z as A-Z."""
    return text.translate(_UPPER)


def trim(text: str, characters: str = " ") -> str:
    """Return a text without some characters at both ends."""
    return text.strip(characters)


def ltrim(text: str, characters: str = " ") -> str:
    """Return a text without some characters at its start."""
    return text.lstrip(characters)


def rtrim(text: str, characters: str = " ") -> str:
    """Return a text without some characters at its end."""
    return text.rstrip(characters)


def lpad(text: str, length: float, filler: str = " ") -> str:
    """Return a text of exactly that length: filled up in front, or cut behind."""
    size = int(length)
    return (filler * size)[: max(size - len(text), 0)] + text[:size]


def rpad(text: str, length: float, filler: str = " ") -> str:
    """Return a text of exactly that length: filled up or cut behind."""
    size = int(length)
    return text[:size] + (filler * size)[: max(size - len(text), 0)]


def substr(text: str, start: float, length: float = REST) -> str:
    """Return a part of a text; the first character is 1."""
    begin = int(start) - 1
    return text[begin : begin + int(length)]


def left(text: str, length: float) -> str:
    """Return the first characters of a text."""
    return text[: int(length)]


def right(text: str, length: float) -> str:
    """Return the last characters of a text."""
    return text[max(len(text) - int(length), 0) :]


def concat(*parts: str) -> str:
    """Return texts joined."""
    return "".join(parts)


def split_part(text: str, separator: str, place: float) -> str:
    """Return one of the parts between separators, counted from 1, or from the end if negative.

    A part that is not there is empty.
    """
    parts, at = text.split(separator), int(place)
    return parts[at - 1 if at > 0 else at] if abs(at) <= len(parts) else ""


def position(text: str, wanted: str) -> float:
    """Return at which character a text holds another for the first time, from 1; 0 if not."""
    return float(text.find(wanted) + 1)


def to_number(text: str) -> float | None:
    """Return the number that a text spells, None if it spells none or one beyond a double."""
    if not re.fullmatch(NUMBER, text):
        return None
    number = float(text) + 0.0
    return number if abs(number) != float("inf") else None
