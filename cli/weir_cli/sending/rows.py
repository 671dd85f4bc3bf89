"""CSV cut into rows, each with its exact place; a quoted field may go over several lines.

Strict: what is no CSV is not guessed at. A quote that is never closed would swallow all that
follows, so where a row is at fault its first line alone is given up, and the next line is read
as the beginning of a row.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from weir_cli.sending.entries import MOST_BYTES, Entry, LineCutter, Point

UNCLOSED: Final = f"a quoted field must be closed within {MOST_BYTES:,} bytes"
UNENDED: Final = "a quoted field must be closed before the input ends"
NOT_UTF8: Final = "a row must be UTF-8"


@dataclass(frozen=True, slots=True)
class Row(Entry):
    """A row of CSV.

    Attributes:
        fields: Its fields; empty where the row is at fault.
    """

    fields: tuple[str, ...] = ()


class RowCutter:
    """Cuts at the line feeds that end a row; blank lines between rows come as entries, too."""

    def __init__(self, at: Point, delimiter: str) -> None:
        """Begin at a point between two rows."""
        csv.field_size_limit(MOST_BYTES)
        self._lines = LineCutter(at)
        self._delimiter = delimiter
        self._open: list[Entry] = []

    def feed(self, piece: bytes) -> list[Entry]:
        """Return the rows that a piece completes."""
        return self._rows(self._lines.feed(piece))

    def end(self) -> list[Entry]:
        """Return the last row, if it has no line feed, or what is left of one that is open."""
        rows = self._rows(self._lines.end())
        if self._open:
            first, last = self._open[0], self._open[-1]
            rows.append(Entry(first.start, first.line, b"", last.after, UNENDED, is_cut=True))
        return rows

    def _rows(self, lines: Iterable[Entry]) -> list[Entry]:
        found, left = list[Entry](), deque(lines)
        while left:
            line = left.popleft()
            if line.why and not self._open:
                found.append(line)
                continue
            self._open.append(line)
            if not line.why and self._is_open(line.raw):
                length = line.after.offset - self._open[0].start
                row = self._fault(UNCLOSED) if length > MOST_BYTES else None
            else:
                row = self._fault(UNCLOSED) if line.why else self._row()
            if row is not None:
                found.append(row)
                taken = 1 if row.why else len(self._open)
                # What is given up is the first line: the others may be rows of their own.
                left.extendleft(reversed(self._open[taken:]))
                self._open.clear()
        return found

    def _is_open(self, raw: bytes) -> bool:
        return is_open(raw, self._delimiter.encode(), inside=len(self._open) > 1)

    def _fault(self, why: str) -> Entry:
        return replace(self._open[0], raw=b"", why=why)

    def _row(self) -> Entry:
        first, last = self._open[0], self._open[-1]
        raw = b"\n".join(line.raw for line in self._open)
        if not raw.strip():
            return first
        try:
            fields = fields_of(raw, self._delimiter)
        except UnicodeDecodeError:
            return self._fault(NOT_UTF8)
        except csv.Error as error:
            return self._fault(f"a row must be CSV: {error}")
        return Row(first.start, first.line, raw, last.after, is_cut=last.is_cut, fields=fields)


def fields_of(raw: bytes, delimiter: str) -> tuple[str, ...]:
    """Return the fields of a whole row.

    Raises:
        UnicodeDecodeError: If it is not UTF-8.
        csv.Error: If it is not CSV.
    """
    (fields,) = csv.reader([raw.decode("utf-8")], delimiter=delimiter, strict=True)
    return tuple(fields)


def is_open(raw: bytes, delimiter: bytes, *, inside: bool) -> bool:
    """Tell whether a line ends within a quoted field.

    What is wrong with it is for `fields_of` to tell.

    Args:
        raw: The line.
        delimiter: What stands between fields.
        inside: The line begins within one.
    """
    at = 0
    while True:
        if not inside and raw[at : at + 1] != b'"':
            at = raw.find(delimiter, at) + 1
            if not at:
                return False
            continue
        at = _closed(raw, at if inside else at + 1)
        if at < 0:
            return True
        if raw[at : at + 1] != delimiter:
            return False
        at, inside = at + 1, False


def _closed(raw: bytes, at: int) -> int:
    """Return where the text behind a quoted field begins; -1 if the field goes on."""
    while (quote := raw.find(b'"', at)) >= 0:
        if raw[quote + 1 : quote + 2] != b'"':
            return quote + 1
        at = quote + 2
    return -1
