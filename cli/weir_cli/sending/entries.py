"""An input cut into entries, each with its exact place: the same ones in whatever pieces it comes.

Offsets are bytes of the decompressed input. What stands here decides what is sent again after an
interruption, so it depends on the bytes behind a point alone, and on no buffer's size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

MOST_BYTES: Final = 4_000_000
"""The longest entry. Ingest takes bodies of 5 MiB, and an event above 1 MB it quarantines."""
TOO_LONG: Final = f"an entry must have at most {MOST_BYTES:,} bytes"
REST: Final = "the line must begin here, but its beginning was sent when it had no end yet"


@dataclass(frozen=True, slots=True)
class Point:
    """A place between two bytes of an input.

    Attributes:
        offset: How many bytes are before it.
        line: The number, from 1, of the line with the byte behind it.
        is_within: That line has begun before it.
    """

    offset: int = 0
    line: int = 1
    is_within: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """A line, or a row of CSV.

    Attributes:
        start: Offset of its first byte.
        line: Number of its first line.
        raw: Its bytes without the last line break.
        after: Where the next one begins.
        why: Why it cannot be used, whatever it says; empty if nothing is against it.
        is_cut: The input ended before the entry did, as far as one can tell.
    """

    start: int
    line: int
    raw: bytes
    after: Point
    why: str = ""
    is_cut: bool = False

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing in it."""
        return not self.why and not self.raw.strip()


class Cutter(Protocol):
    """Cuts an input that comes in pieces."""

    def feed(self, piece: bytes) -> list[Entry]:
        """Return the entries that a piece completes."""
        ...

    def end(self) -> list[Entry]:
        """Return what is left once all pieces have come."""
        ...


class LineCutter:
    """Cuts at line feeds; blank lines come as entries, too."""

    def __init__(self, at: Point) -> None:
        """Begin at a point, from which on pieces will come."""
        self._offset, self._line = at.offset, at.line
        self._is_rest = at.is_within
        self._rest = b""
        self._dropped = 0

    def feed(self, piece: bytes) -> list[Entry]:
        """Return the lines that a piece completes."""
        *whole, self._rest = (self._rest + piece).split(b"\n")
        found = [self._entry(raw, ending=1) for raw in whole]
        if self._dropped or len(self._rest) > MOST_BYTES:
            # A line without an end must not fill the memory: only its length counts by now.
            self._dropped += len(self._rest)
            self._rest = b""
        return found

    def end(self) -> list[Entry]:
        """Return the last line, if it has no line feed."""
        rest, self._rest = self._rest, b""
        return [self._entry(rest, ending=0)] if rest or self._dropped else []

    def _entry(self, raw: bytes, *, ending: int) -> Entry:
        start, line = self._offset, self._line
        length = self._dropped + len(raw)
        why = TOO_LONG if length > MOST_BYTES else ""
        if self._is_rest and (why or raw.strip()):
            why = REST
        self._offset += length + ending
        self._line += ending
        self._is_rest, self._dropped = not ending, 0
        after = Point(self._offset, self._line, is_within=not ending)
        return Entry(start, line, b"" if why else raw, after, why, is_cut=not ending)
