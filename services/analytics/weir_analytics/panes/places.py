"""What stands at the fixed places of many records at once: as `weir.event.placed` says of one."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from weir.event import DIGEST_AT, DIGEST_END, TIME_AT, TIME_END, VALUE_PREFIX

from weir_analytics.panes.decode import END

Longs = npt.NDArray[np.int64]

_BETWEEN: Final = b'","weirms":"'
_NO_DIGIT: Final = 255
# Of each place the least byte there, and how much greater it may be; of the sign `,` between
# `+` and `-`, too. Digits of the identity are looked up, so here they may be anything.
_LEAST: Final = np.frombuffer(
    b"".join((VALUE_PREFIX, b"0" * (DIGEST_END - DIGEST_AT), _BETWEEN, b"+", b"0" * 15)), np.uint8
)
_SPAN: Final = np.zeros(TIME_END, np.uint8)
_SPAN[TIME_AT] = ord("-") - ord("+")
_SPAN[TIME_AT + 1 :] = 9
_SPAN[DIGEST_AT:DIGEST_END] = 255
_POWERS: Final = 10 ** np.arange(TIME_END - TIME_AT - 2, -1, -1, dtype=np.int64)
_HEX: Final = np.full(256, _NO_DIGIT, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16, dtype=np.uint8)


class Places(NamedTuple):
    """What was found, an array an attribute.

    Attributes:
        found: Of each value whether identity and time stand at their places, and it is whole.
        identity: 16 bytes of those that have one, null else.
        times_ms: Event time of those that have one.
    """

    found: npt.NDArray[np.bool_]
    identity: pa.Array
    times_ms: Longs


def places_of(values: Sequence[bytes | None], may_be: Sequence[bool] | None = None) -> Places:
    """Return which values are those of events.

    Args:
        values: The values.
        may_be: Whether a record's header says that it is one; None: of all.
    """
    if may_be is not None or None in values:
        asked = zip(values, [True] * len(values) if may_be is None else may_be, strict=True)
        values = [value if ok and value is not None else b"" for value, ok in asked]
    chosen: Any = values  # none is None any more
    heads = heads_of(chosen)
    digits = _HEX.take(heads[:, DIGEST_AT:DIGEST_END])
    wrong = heads - _LEAST > _SPAN  # what is less than the least is a great number so
    no_digit, no_sign = digits == _NO_DIGIT, heads[:, TIME_AT] == ord(",")
    found = np.ones(len(chosen), np.bool_)
    if wrong.any() or no_digit.any() or no_sign.any():  # else no row is looked at by itself
        found = ~(wrong.any(axis=1) | no_digit.any(axis=1) | no_sign)
    at = np.flatnonzero(found)
    placed = chosen if len(at) == len(chosen) else [chosen[n] for n in at.tolist()]
    whole = np.fromiter(map(itemgetter(-1), placed), np.uint8, len(placed)) == ord(END)
    if not whole.all():
        found[at[~whole]] = False
        at = at[whole]
    if len(at) < len(chosen):
        digits = digits[at]
    identities: npt.NDArray[np.uint8] = (digits[:, 0::2] << np.uint8(4)) | digits[:, 1::2]
    return Places(found, _binaries(found, identities), _times_ms(heads))


def heads_of(values: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """Return the fixed places of some values, a row each; zeros behind what is shorter."""
    return np.array(values, f"S{TIME_END}").view(np.uint8).reshape(-1, TIME_END)


def times_ms_of(values: Sequence[bytes]) -> Longs:
    """Return what stands at the place of event time: a sign and 15 digits, in milliseconds."""
    return _times_ms(heads_of(values))


def _times_ms(heads: npt.NDArray[np.uint8]) -> Longs:
    digits = heads[:, TIME_AT + 1 :].astype(np.int64) - ord("0")
    found = digits @ _POWERS
    return np.where(heads[:, TIME_AT] == ord("-"), -found, found)


def identities_of(values: Sequence[bytes]) -> npt.NDArray[np.uint64]:
    """Return both halves of the identities of events."""
    digits = np.ascontiguousarray(heads_of(values)[:, DIGEST_AT:DIGEST_END]).tobytes().decode()
    return np.frombuffer(bytes.fromhex(digits), ">u8").reshape(-1, 2).astype(np.uint64)


def _binaries(found: npt.NDArray[np.bool_], rows: npt.NDArray[np.uint8]) -> pa.Array:
    """Return the rows as binary values at the places that are found, null at the others."""
    offsets = np.zeros(len(found) + 1, np.int32)
    offsets[1:] = np.cumsum(found, dtype=np.int32) * (DIGEST_END - DIGEST_AT) // 2
    validity = pa.array(found).buffers()[1]
    data = np.ascontiguousarray(rows).tobytes()
    return pa.Array.from_buffers(
        pa.binary(), len(found), [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
