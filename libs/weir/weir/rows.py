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
    more             further members, where there are any (`weir/further.py`)
    hll     2 bytes length, then the sketch
    kll              the sketch: the rest of the row

The numbers are written in as few bytes as give them back (`weir/packed_numbers.py`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from weir.formats import check
from weir.further import (
    Further,
    Moments,
    merge_further,
    merge_moments,
    pack_further,
    unpack_further,
)
from weir.packed_numbers import pack_count, pack_numbers, unpack
from weir.sketches import compact_hll, compact_kll, merge_hll, merge_kll

VERSION: Final = 1
_VERSION_BITS: Final = VERSION << 6
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
        further: What few metrics ask for; None where nothing of it is kept.
    """

    n: int
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    hll: bytes | None = None
    kll: bytes | None = None
    further: Further | None = None


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
    further = None if one.further is other.further is None else _further((one, other))
    n = one.n + other.n
    if one.sum is None or one.min is None or one.max is None:
        return Row(n, other.sum, other.min, other.max, hll, kll, further)
    if other.sum is None or other.min is None or other.max is None:
        return Row(n, one.sum, one.min, one.max, hll, kll, further)
    low = one.min if one.min <= other.min else other.min
    high = one.max if one.max >= other.max else other.max
    return Row(n, one.sum + other.sum, low, high, hll, kll, further)


def merge_all(rows: Iterable[Row]) -> Row:
    """Return the totals of some rows; sketches are opened once, not once a pair."""
    rows = list(rows)
    if len(rows) == 2:
        return merge(*rows)
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
        _further(rows),
    )


def _further(rows: Sequence[Row]) -> Further | None:
    found = [row.further for row in rows if row.further is not None]
    return merge_further(found, _spread(rows)) if found else None


def _spread(rows: Iterable[Row]) -> float | None:
    """Return the spread of all values of some rows; None where that of some is not known."""
    parts = []
    for row in rows:
        if row.sum is None:
            continue
        if row.further is None or row.further.spread is None:
            return None
        parts.append(Moments(row.n, row.sum, row.further.spread))
    return merge_moments(parts).spread if parts else None


def merge_packed(stored: bytes | None, added: Row) -> bytes:
    """Return the packed row of a pane after a part: the writer's step for each row."""
    return encode(added if stored is None else merge(decode(stored), added))


# ── the packed form ─────────────────────────────────────────────────────────

_HLL_LENGTH: Final = struct.Struct("<H")


def encode(row: Row) -> bytes:
    """Return the packed form of a row.

    Raises:
        struct.error: If a sketch of distinct values is over 65,535 bytes; at the largest
            size that a metric can ask for none is over 32,900.
    """
    flags = _VERSION_BITS
    if row.hll is not None:
        flags |= _HLL
    if row.kll is not None:
        flags |= _KLL
    if row.further is not None:
        flags |= _MORE
    if row.sum is None or row.min is None or row.max is None:
        packed = pack_count(flags, row.n)
    else:
        packed = pack_numbers(flags, row.n, row.sum, row.min, row.max)
    if row.further is not None:
        packed += pack_further(row.further)
    if row.hll is not None:
        packed += _HLL_LENGTH.pack(len(row.hll)) + row.hll
    return packed if row.kll is None else packed + row.kll


def decode(packed: bytes) -> Row:
    """Return the row of a packed form.

    Raises:
        NewerFormatError: If the form is of a version, or has members, that this release
            does not know.
        ValueError: If it is none, or is cut short.
    """
    flags = packed[0] if packed else 0
    if flags & 0xC0 != _VERSION_BITS:
        check("packed row", flags >> 6, VERSION)
        msg = f"packed row must be of version {VERSION}, got flags {flags:#04x}"
        raise ValueError(msg)
    try:
        n, numbers, size = unpack(packed)
        row = Row(n) if numbers is None else Row(n, *numbers)
        if flags & _MORE:
            row.further, size = unpack_further(packed, size)
        if flags & _HLL:
            (length,) = _HLL_LENGTH.unpack_from(packed, size)
            size += _HLL_LENGTH.size
            row.hll = packed[size : size + length]
            size += length
    except (struct.error, IndexError) as error:
        msg = f"packed row must be whole, got {len(packed)} bytes with flags {flags:#04x}"
        raise ValueError(msg) from error
    if flags & _KLL:
        row.kll = packed[size:]
    return row
