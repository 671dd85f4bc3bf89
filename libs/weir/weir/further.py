"""Further members of a row: what only metrics that ask for it keep.

A row without any has none of this, in memory as in its packed form: a metric that asks
for none of it costs nothing. Packed, little-endian, between the numbers and the sketches
of a row (`weir/rows.py`)::

    members 1 byte   spread, last, top, theta; other bits are kept
    spread  8 bytes  a double
    last   32 bytes  event time (ms, signed), value (a double), identity
    top    12 bytes  how many texts, length of the sketch; then the sketch
    theta   1 byte   lgK, 4 bytes length, then the sketch
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from weir.formats import NewerFormatError
from weir.frequent import Texts, merge_top
from weir.sets import Theta, merge_theta

_SPREAD: Final = 1
_LAST: Final = 2
_TOP: Final = 4
_THETA: Final = 8
_KNOWN: Final = _SPREAD | _LAST | _TOP | _THETA


class Last(NamedTuple):
    """The newest value; of two with one event time that of the greater identity.

    Attributes:
        time_ms: Event time.
        identity: Digest of the event's identity, 16 bytes.
        value: The value.
    """

    time_ms: int
    identity: bytes
    value: float


class Moments(NamedTuple):
    """What a standard deviation is computed from.

    Attributes:
        n: How many values.
        sum: Their sum.
        spread: Sum of their squared distances from their mean.
    """

    n: int
    sum: float
    spread: float


@dataclass(slots=True)
class Further:
    """The further members of a row; each None where nobody asks for it.

    Attributes:
        spread: Sum of the squared distances of the values from their mean.
        last: The newest value.
        top: Sketch of frequent texts (`weir/frequent.py`).
        theta: Sketch of the set of texts (`weir/sets.py`).
    """

    spread: float | None = None
    last: Last | None = None
    top: Texts | None = None
    theta: Theta | None = None


def merge_moments(parts: Iterable[Moments]) -> Moments:
    """Return the moments of all values together; there must be at least one part.

    The distances within the parts, and those of the parts' means from the mean of all:
    Chan, Golub and LeVeque (1979), "Updating formulae and a pairwise algorithm for
    computing sample variances", equation 1.5. No large squares are subtracted, so a small
    spread around a large mean is not lost.
    """
    parts = list(parts)
    n, total = sum(part.n for part in parts), sum(part.sum for part in parts)
    mean = total / n
    spread = sum(part.spread + part.n * (part.sum / part.n - mean) ** 2 for part in parts)
    return Moments(n, total, spread)


def merge_further(parts: Iterable[Further], spread: float | None) -> Further:
    """Return the further members of rows that are merged.

    Args:
        parts: Those of the rows that have any.
        spread: That of all rows together: it takes their counts and sums, too.
    """
    parts = list(parts)
    return Further(
        spread,
        max((part.last for part in parts if part.last is not None), default=None),
        merge_top(part.top for part in parts),
        merge_theta(part.theta for part in parts),
    )


# ── the packed form ─────────────────────────────────────────────────────────

_DOUBLE: Final = struct.Struct("<d")
_NEWEST: Final = struct.Struct("<qd16s")
_COUNTED: Final = struct.Struct("<QI")
_SIZED: Final = struct.Struct("<BI")


def pack_further(further: Further) -> bytes:
    """Return the packed form."""
    members, packed = 0, b""
    if further.spread is not None:
        members |= _SPREAD
        packed += _DOUBLE.pack(further.spread)
    if further.last is not None:
        members |= _LAST
        time_ms, identity, value = further.last
        packed += _NEWEST.pack(time_ms, value, identity)
    if further.top is not None:
        members |= _TOP
        events, sketch = further.top
        packed += _COUNTED.pack(events, len(sketch)) + sketch
    if further.theta is not None:
        members |= _THETA
        lg_k, sketch = further.theta
        packed += _SIZED.pack(lg_k, len(sketch)) + sketch
    return bytes((members,)) + packed


def unpack_further(packed: bytes, at: int) -> tuple[Further, int]:
    """Return the further members of a packed row, and where they end.

    Args:
        packed: The row.
        at: Where they begin.

    Raises:
        NewerFormatError: If there are members that this release does not know.
        struct.error, IndexError: If the row is cut short.
    """
    members, at = packed[at], at + 1
    if members & ~_KNOWN:
        msg = (
            f"further members of a packed row must be known, got {members:#04x}; "
            "read it with the release that wrote it"
        )
        raise NewerFormatError(msg)
    found = Further()
    if members & _SPREAD:
        (found.spread,) = _DOUBLE.unpack_from(packed, at)
        at += _DOUBLE.size
    if members & _LAST:
        time_ms, value, identity = _NEWEST.unpack_from(packed, at)
        found.last = Last(time_ms, identity, value)
        at += _NEWEST.size
    if members & _TOP:
        events, length = _COUNTED.unpack_from(packed, at)
        sketch, at = _sketch(packed, at + _COUNTED.size, length)
        found.top = Texts(events, sketch)
    if members & _THETA:
        lg_k, length = _SIZED.unpack_from(packed, at)
        sketch, at = _sketch(packed, at + _SIZED.size, length)
        found.theta = Theta(lg_k, sketch)
    return found, at


def _sketch(packed: bytes, at: int, length: int) -> tuple[bytes, int]:
    found = packed[at : at + length]
    if len(found) < length:
        msg = f"a sketch of {length} bytes is cut to {len(found)}"
        raise struct.error(msg)
    return found, at + length
