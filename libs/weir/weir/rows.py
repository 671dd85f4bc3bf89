"""Rows: what one pane holds of one series, and how it is packed for Redis.

A row is a sum of parts, merged in any order and any grouping. Counts, minima and
maxima are exact, and so are sums of whole numbers while the sum of their magnitudes
stays below 2^53; sums of other numbers are as exact as adding doubles is. Sketches
keep their bounds (`weir/sketches.py`).

The packed form, version 1, little-endian::

    flags   1 byte   version (2 bits), bytes of n (2: 1, 2, 4, 8), value, hll, kll, more
    layout  1 byte   with a value: how sum, min and max are written
    n       1 to 8 bytes
    numbers          sum, min, max; one number where all are equal, two where min = max
    hll     2 bytes length, then the sketch
    kll              the sketch: the rest of the row

Each number is written in the fewest bytes that give the same double back: whole, in
hundredths or in millionths as an integer, else as a float. The bit `more` is kept for
further members (spread, last value, set and top sketches); this version refuses it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from weir.sketches import compact_hll, compact_kll, merge_hll, merge_kll

VERSION: Final = 1
_VERSION_BITS: Final = VERSION << 6
_VALUE: Final = 8
_HLL: Final = 4
_KLL: Final = 2
_MORE: Final = 1


@dataclass(slots=True)
class Row:
    """Totals of one series over one pane, or over any merge of panes.

    Attributes:
        n: How many events.
        sum: Sum of their values; None, like `min` and `max`, where a metric has none.
        min: Smallest value.
        max: Largest value.
        hll: Sketch of the distinct values; None where there is none.
        kll: Sketch of the distribution of values; None where there is none.
    """

    n: int
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    hll: bytes | None = None
    kll: bytes | None = None


def part(
    n: int,
    numbers: tuple[float | None, float | None, float | None],
    hll: bytes | None,
    kll: bytes | None,
) -> Row:
    """Return a row from what the engine counted; empty sketches become None.

    Args:
        n: How many events.
        numbers: Sum, minimum and maximum of the values, or three times None.
        hll: What `hll_sketch_agg` returned, or None.
        kll: What `kll_sketch_agg_double` returned, or None.
    """
    return Row(n, *numbers, compact_hll(hll), compact_kll(kll))


def merge(one: Row, other: Row) -> Row:
    """Return the totals of two rows together."""
    hll = one.hll if other.hll is None else merge_hll((one.hll, other.hll))
    kll = one.kll if other.kll is None else merge_kll((one.kll, other.kll))
    n = one.n + other.n
    if one.sum is None or one.min is None or one.max is None:
        return Row(n, other.sum, other.min, other.max, hll, kll)
    if other.sum is None or other.min is None or other.max is None:
        return Row(n, one.sum, one.min, one.max, hll, kll)
    low = one.min if one.min <= other.min else other.min
    high = one.max if one.max >= other.max else other.max
    return Row(n, one.sum + other.sum, low, high, hll, kll)


def merge_all(rows: Iterable[Row]) -> Row:
    """Return the totals of some rows; sketches are opened once, not once a pair."""
    rows = list(rows)
    sums = [row.sum for row in rows if row.sum is not None]
    lows = [row.min for row in rows if row.min is not None]
    highs = [row.max for row in rows if row.max is not None]
    return Row(
        sum(row.n for row in rows),
        math.fsum(sums) if sums else None,
        min(lows, default=None),
        max(highs, default=None),
        merge_hll(row.hll for row in rows),
        merge_kll(row.kll for row in rows),
    )


def merge_packed(stored: bytes | None, added: Row) -> bytes:
    """Return the packed row of a pane after a part: the writer's step for each row."""
    return encode(added if stored is None else merge(decode(stored), added))


# ── the packed form ─────────────────────────────────────────────────────────


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
_HLL_LENGTH: Final = struct.Struct("<H")
_FLOAT: Final = struct.Struct("<f")


def encode(row: Row) -> bytes:
    """Return the packed form of a row.

    Raises:
        struct.error: If a sketch of distinct values is over 65,535 bytes; at Weir's
            size none is over 4,200.
    """
    n = row.n
    width = 0 if n < 0x100 else 1 if n < 0x10000 else 2 if n < 0x100000000 else 3
    flags = _VERSION_BITS | width << 4
    if row.hll is not None:
        flags |= _HLL
    if row.kll is not None:
        flags |= _KLL
    if row.sum is None or row.min is None or row.max is None:
        packed = _COUNTS[width].pack(flags, n)
    else:
        packed = _with_value(flags | _VALUE, n, (row.sum, row.min, row.max))
    if row.hll is not None:
        packed += _HLL_LENGTH.pack(len(row.hll)) + row.hll
    return packed if row.kll is None else packed + row.kll


def _with_value(flags: int, n: int, numbers: tuple[float, float, float]) -> bytes:
    total, low, high = numbers
    of_sum = _kind(total, total)
    first = _KINDS[of_sum].write(total)
    layouts = _LAYOUTS[flags >> 4 & 3]
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


def decode(packed: bytes) -> Row:
    """Return the row of a packed form.

    Raises:
        ValueError: If the form is of a version, or has members, that this release does
            not know; or if it is cut short.
    """
    flags = packed[0] if packed else 0
    if flags & 0xC0 != _VERSION_BITS or flags & _MORE:
        msg = (
            f"packed row must be of version {VERSION} without further members, "
            f"got flags {flags:#04x}; read it with the release that wrote it"
        )
        raise ValueError(msg)
    try:
        row, size = _decoded(packed, flags)
        if flags & _HLL:
            (length,) = _HLL_LENGTH.unpack_from(packed, size)
            size += _HLL_LENGTH.size
            row.hll = packed[size : size + length]
            size += length
        if flags & _KLL:
            row.kll = packed[size:]
    except (struct.error, IndexError) as error:
        msg = f"packed row must be whole, got {len(packed)} bytes with flags {flags:#04x}"
        raise ValueError(msg) from error
    return row


def _decoded(packed: bytes, flags: int) -> tuple[Row, int]:
    """Return the row without its sketches, and how many bytes it takes."""
    width = flags >> 4 & 3
    if not flags & _VALUE:
        count = _COUNTS[width]
        return Row(count.unpack_from(packed)[1]), count.size
    layout = _LAYOUTS[width][packed[1]]
    if layout is None:
        msg = f"packed row must have a layout of version {VERSION}, got {packed[1]}"
        raise ValueError(msg)
    unpacked = layout.struct.unpack_from(packed)
    n, total = unpacked[2], unpacked[3] / layout.sum_scale
    if layout.numbers == 1:
        return Row(n, total, total, total), layout.struct.size
    low = unpacked[4] / layout.ends_scale
    high = low if layout.numbers == 2 else unpacked[5] / layout.ends_scale
    return Row(n, total, low, high), layout.struct.size
