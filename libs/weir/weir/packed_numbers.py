"""Packed numbers: a count, and perhaps a sum, a minimum and a maximum, in few bytes.

The first part of a packed row (`weir/rows.py`), little-endian: the flags, with a value a
layout byte, the count in 1, 2, 4 or 8 bytes, then one to three numbers. Each is written in
the fewest bytes that give the same double back: whole, in hundredths or in millionths as
an integer, else as a float.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

VALUE: Final = 8
"""The flag of a row with sum, minimum and maximum."""

Numbers = tuple[float, float, float]


def pack_count(flags: int, n: int) -> bytes:
    """Return the flags, with the width of the count in them, and the count.

    Args:
        flags: Everything but the width and `VALUE`.
        n: How many events.
    """
    width = 0 if n < 0x100 else 1 if n < 0x10000 else 2 if n < 0x100000000 else 3
    return _COUNTS[width].pack(flags | width << 4, n)


def pack_numbers(flags: int, n: int, total: float, low: float, high: float) -> bytes:
    """Return the flags, with width and `VALUE` in them, the count, and the numbers.

    Args:
        flags: Everything but the width and `VALUE`.
        n: How many events.
        total: Their sum.
        low: The minimum.
        high: The maximum.
    """
    width = 0 if n < 0x100 else 1 if n < 0x10000 else 2 if n < 0x100000000 else 3
    flags |= width << 4 | VALUE
    of_sum = _kind(total, total)
    first = _KINDS[of_sum].write(total)
    layouts = _LAYOUTS[width]
    if low == high == total:
        at = _EQUAL + 8 * of_sum
        return layouts[at].struct.pack(flags, at, n, first)  # type: ignore[union-attr]  # all kinds exist
    of_ends = _kind(low, high)
    write = _KINDS[of_ends].write
    if low == high:
        at = _CONSTANT + 8 * of_sum + of_ends
        return layouts[at].struct.pack(flags, at, n, first, write(low))  # type: ignore[union-attr]
    at = 8 * of_sum + of_ends
    return layouts[at].struct.pack(flags, at, n, first, write(low), write(high))  # type: ignore[union-attr]


def unpack(packed: bytes) -> tuple[int, Numbers | None, int]:
    """Return the count, the numbers, and how many bytes both take.

    Raises:
        ValueError: If the layout byte stands for nothing.
        struct.error: If the bytes are too few.
    """
    flags = packed[0]
    width = flags >> 4 & 3
    if not flags & VALUE:
        count = _COUNTS[width]
        return count.unpack_from(packed)[1], None, count.size
    layout = _LAYOUTS[width][packed[1]]
    if layout is None:
        msg = f"packed row must have a layout of version 1, got {packed[1]}"
        raise ValueError(msg)
    unpacked = layout.struct.unpack_from(packed)
    n, total = unpacked[2], unpacked[3] / layout.sum_scale
    if layout.numbers == 1:
        return n, (total, total, total), layout.struct.size
    low = unpacked[4] / layout.ends_scale
    high = low if layout.numbers == 2 else unpacked[5] / layout.ends_scale
    return n, (total, low, high), layout.struct.size


class _Kind(NamedTuple):
    """One way to write a number: its struct code, and what it is multiplied by."""

    code: str
    scale: float

    def write(self, number: float) -> float | int:
        """Return what the struct packs for a number that this kind can hold."""
        return number if self.code in "fd" else round(number * self.scale)


_KINDS: Final = (
    _Kind("b", 1.0),
    _Kind("h", 1.0),
    _Kind("i", 1.0),
    _Kind("i", 100.0),
    _Kind("i", 1e6),
    _Kind("f", 1.0),
    _Kind("d", 1.0),
)
_BYTE, _SHORT, _INT, _HUNDREDTHS, _MILLIONTHS, _SINGLE, _DOUBLE = range(len(_KINDS))
_WIDTHS: Final = "BHIQ"
# The layout byte: from 0 three numbers, from 64 two (min = max), from 128 one (all
# equal, as with n = 1); to it comes 8 x the kind of the sum + the kind of min and max.
_CONSTANT: Final = 64
_EQUAL: Final = 128


class _Layout(NamedTuple):
    """How the numbers behind one layout byte are packed."""

    struct: struct.Struct
    numbers: int
    sum_scale: float
    ends_scale: float


def _layout(width: str, at: int) -> _Layout | None:
    of_sum, of_ends, numbers = at % 64 // 8, at % 8, 3 - at // 64
    if max(of_sum, of_ends) >= len(_KINDS) or numbers < 1 or (numbers == 1 and of_ends):
        return None
    codes = _KINDS[of_sum].code + _KINDS[of_ends].code * (numbers - 1)
    packed = struct.Struct(f"<BB{width}{codes}")
    return _Layout(packed, numbers, _KINDS[of_sum].scale, _KINDS[of_ends].scale)


_LAYOUTS: Final = tuple(tuple(_layout(width, at) for at in range(256)) for width in _WIDTHS)
_COUNTS: Final = tuple(struct.Struct(f"<B{width}") for width in _WIDTHS)
_FLOAT: Final = struct.Struct("<f")


def _kind(low: float, high: float) -> int:
    """Return the shortest way to write two numbers so that both read back as they are."""
    if low >= -2147483648.0 and high <= 2147483647.0:
        if low.is_integer() and high.is_integer():
            if low >= -128.0 and high <= 127.0:
                return _BYTE
            return _SHORT if low >= -32768.0 and high <= 32767.0 else _INT
        if low >= -21474836.0 and high <= 21474836.0 and _is_in(100.0, low, high):
            return _HUNDREDTHS
        if low >= -2147.0 and high <= 2147.0 and _is_in(1e6, low, high):
            return _MILLIONTHS
    return _SINGLE if _is_single(low) and _is_single(high) else _DOUBLE


def _is_in(scale: float, low: float, high: float) -> bool:
    return round(low * scale) / scale == low and round(high * scale) / scale == high


def _is_single(number: float) -> bool:
    return abs(number) < 3e38 and _FLOAT.unpack(_FLOAT.pack(number))[0] == number
