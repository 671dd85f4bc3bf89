"""Files and standard input, read once from the start or from a place; gzip is decompressed.

What flows, such as a pipe, is told apart from a file: it may be quiet for a while, and nothing of
it can be read a second time.
"""

from __future__ import annotations

import os
import select
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from weir_cli.exits import UsageError
from weir_cli.files import STDIN
from weir_cli.sending.guessing import Beginning

HEAD_BYTES: Final = 65_536
PIECE_BYTES: Final = 262_144
QUIET_S: Final = 0.1
_GZIP: Final = b"\x1f\x8b"


class InputBrokenError(Exception):
    """An input cannot be read to its end; what was read before stands."""


class Span(NamedTuple):
    """Some bytes of an input.

    Attributes:
        start: Offset of the first.
        length: How many.
    """

    start: int
    length: int


class Input:
    """One input, open."""

    def __init__(self, path: Path) -> None:
        """Open it and read how it begins.

        Args:
            path: The file; `-` for standard input.

        Raises:
            UsageError: If it cannot be read.
        """
        self.label = "standard input" if path == STDIN else str(path)
        self._read_bytes = 0
        try:
            self._fd = sys.stdin.fileno() if path == STDIN else os.open(path, os.O_RDONLY)
            status = os.fstat(self._fd)
            self.is_file = stat.S_ISREG(status.st_mode)
            self._size = status.st_size
            first = self._first_bytes()
            self._is_gzip = first.startswith(_GZIP)
            self._pieces = self._decoded(first)
            self.beginning = self._begin()
        except (OSError, ValueError, InputBrokenError) as error:
            why = getattr(error, "strerror", None) or str(error)
            msg = f"{self.label} must be a file that can be read: {why}"
            raise UsageError(msg) from None

    @property
    def share(self) -> float | None:
        """How much of it is read; None of what flows."""
        return min(1.0, self._read_bytes / self._size) if self.is_file and self._size else None

    def close(self) -> None:
        """Close a file."""
        if self._fd > 2:
            os.close(self._fd)

    def at(self, offset: int, spans: tuple[Span, ...]) -> list[bytes]:
        """Go to a place; return what some spans before it hold, as far as the input has them.

        Args:
            offset: Where `pieces` is to begin.
            spans: Parts of what is before; in order, and not beyond it.

        Raises:
            InputBrokenError: If it cannot be read so far.
        """
        if self.is_file and not self._is_gzip:
            found = [os.pread(self._fd, span.length, span.start) for span in spans]
            self._read_bytes = os.lseek(self._fd, min(offset, self._size), os.SEEK_SET)
            self._pieces = self._raw()
            return found
        parts, at = [bytearray() for _ in spans], 0
        while at < offset and (piece := next(self._pieces, None)) is not None:
            left = piece[: offset - at]
            for span, part in zip(spans, parts, strict=True):
                part += left[max(0, span.start - at) : max(0, span.start + span.length - at)]
            at += len(left)
            if len(left) < len(piece):
                self._pieces = _before(piece[len(left) :], self._pieces)
        return [bytes(part) for part in parts]

    def pieces(self) -> Iterator[bytes]:
        """Yield what follows; an empty piece says that nothing has come for a moment.

        Raises:
            InputBrokenError: If it cannot be read to its end.
        """
        yield from self._pieces

    def _begin(self) -> Beginning:
        """Read how it begins; of what flows no more than its first line, which may be all."""
        head, is_whole = b"", True
        for piece in self._pieces:
            head += piece
            if len(head) >= HEAD_BYTES or (not self.is_file and b"\n" in head):
                is_whole = False
                break
        self._pieces = _before(head, self._pieces)
        return Beginning(self.label, head, is_whole)

    def _first_bytes(self) -> bytes:
        """Read until it is seen whether it is compressed."""
        first = b""
        while len(first) < len(_GZIP) and (piece := os.read(self._fd, PIECE_BYTES)):
            first += piece
        self._read_bytes += len(first)
        return first

    def _decoded(self, first: bytes) -> Iterator[bytes]:
        if not self._is_gzip:
            yield from (piece for piece in (first,) if piece)
            yield from self._raw()
            return
        unpacked = Gunzip(self.label)
        yield from unpacked.feed(first)
        for piece in self._raw():
            yield from unpacked.feed(piece) if piece else (piece,)
        unpacked.end()

    def _raw(self) -> Iterator[bytes]:
        while True:
            if not self.is_file and not select.select([self._fd], [], [], QUIET_S)[0]:
                yield b""
                continue
            try:
                piece = os.read(self._fd, PIECE_BYTES)
            except OSError as error:
                msg = f"{self.label} must be readable to its end: {error.strerror}"
                raise InputBrokenError(msg) from None
            if not piece:
                return
            self._read_bytes += len(piece)
            yield piece


class Gunzip:
    """Decompresses gzip, also of several members, in pieces of bounded size."""

    def __init__(self, label: str) -> None:
        """Begin; the label is what people call the input."""
        self._label = label
        self._member: zlib._Decompress | None = None

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield what a piece comes to.

        Raises:
            InputBrokenError: If it is no gzip.
        """
        while piece:
            if self._member is None:
                # Some writers fill the last block with zeros.
                piece = piece.lstrip(b"\0")
                if not piece:
                    return
                self._member = zlib.decompressobj(wbits=31)
            try:
                found = self._member.decompress(piece, PIECE_BYTES)
            except zlib.error as error:
                msg = f"{self._label} must be gzip to its end: {error}"
                raise InputBrokenError(msg) from None
            if self._member.eof:
                piece, self._member = self._member.unused_data, None
            else:
                piece = self._member.unconsumed_tail
            if found:
                yield found

    def end(self) -> None:
        """Check that nothing is missing.

        Raises:
            InputBrokenError: If the last member has no end.
        """
        if self._member is not None:
            msg = f"{self._label} must be gzip to its end, got one that breaks off"
            raise InputBrokenError(msg)


def _before(piece: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a piece before others."""
    if piece:
        yield piece
    yield from rest
