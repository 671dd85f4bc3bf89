"""The Arrow form of each function of the language.

Operands that must be literals come as plain values, the others as arrays, or as scalars
where no event is read; one of them at least is an array. What is asked of nearly every
event is Arrow's or numpy's; the rest is the language's own function, called once for each
distinct text, or number, of a batch. None can raise, whatever an event holds, as long as the
texts of a batch fit in one array of Arrow, joined too: 2 GiB.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from weir.expressions import Kind, calculations
from weir.expressions import functions as language
from weir.expressions.functions import COALESCE, GREATEST, LEAST, TO_TEXT
from weir.expressions.texts import REST
from weir.expressions.times import DAY_MS, FIXED_MS, HOUR_MS, MAX_DIGITS, MINUTE_MS

Column: TypeAlias = Any
"""An array with a value for each event, or the scalar that stands for all of them."""
_Doubles: TypeAlias = npt.NDArray[np.float64]
_Wholes: TypeAlias = npt.NDArray[np.int64]

TYPES: Final = {Kind.NUMBER: pa.float64(), Kind.TEXT: pa.string(), Kind.BOOL: pa.bool_()}
MAX_SEARCHED: Final = 128
"""How many characters Arrow may look for where a long text can make it slow.

Beyond 2,000 of them RE2's automaton outgrows its memory and takes 40 s for a text of a
megabyte; `replace_substring` compares at each place anew and takes 1 s.
"""
_NO_NUMBER: Final = pa.scalar(None, pa.float64())
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_INT64: Final = (-(2.0**63), 2.0**63)


def finite(number: Column) -> Column:
    """Turn what is not finite into null."""
    return pc.if_else(pc.is_finite(number), number, _NO_NUMBER)


# ── the language's own functions ────────────────────────────────────────────


def by_distinct(values: Column, apply: Callable[[Any], Any], kind: Kind) -> Column:
    """Return what a function makes of texts or numbers, called once for each that a batch has."""
    coded = values.dictionary_encode()
    made = pa.array(map(apply, coded.dictionary.to_pylist()), TYPES[kind])
    return made.take(coded.indices)


def _of_distinct(name: str) -> Callable[..., Column]:
    function = language.FUNCTIONS[name]

    def of(values: Column, *literals: Any) -> Column:
        return by_distinct(values, lambda one: function.apply(one, *literals), function.gives)

    return of


def _of_two_texts(name: str, of_literal: Callable[[Column, str], Column]) -> Callable[..., Column]:
    """Return the form of a function of a text and another, which mostly is a literal."""
    function = language.FUNCTIONS[name]

    def of(text: Column, other: Column) -> Column:
        if isinstance(other, pa.Scalar):
            if not other.is_valid:
                return pa.nulls(len(text), TYPES[function.gives])
            return of_literal(text, other.as_py())
        texts = repeat(text.as_py()) if isinstance(text, pa.Scalar) else text.to_pylist()
        made = [
            None if one is None or two is None else function.apply(one, two)
            for one, two in zip(texts, other.to_pylist(), strict=False)
        ]
        return pa.array(made, TYPES[function.gives])

    return of


# ── text ────────────────────────────────────────────────────────────────────


def _trimmed(trim: Callable[..., Column]) -> Callable[..., Column]:
    def of(text: Column, characters: str = " ") -> Column:
        return trim(text, characters=characters)

    return of


def _substr(text: Column, start: float, length: float = REST) -> Column:
    begin = int(start) - 1
    return pc.utf8_slice_codeunits(text, begin, begin + int(length))


def _left(text: Column, length: float) -> Column:
    return pc.utf8_slice_codeunits(text, 0, int(length))


def _right(text: Column, length: float) -> Column:
    return pc.utf8_slice_codeunits(text, -int(length)) if length else _left(text, 0)


def _concat(*texts: Column) -> Column:
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def _replace(text: Column, wanted: str, by: str) -> Column:
    if len(wanted) > MAX_SEARCHED:
        return by_distinct(text, lambda one: one.replace(wanted, by), Kind.TEXT)
    return pc.replace_substring(text, pattern=wanted, replacement=by)


# ── numbers: to numpy a null is NaN ─────────────────────────────────────────


def doubles(number: Column) -> Any:
    """Return numbers as numpy's, with NaN for null."""
    if isinstance(number, pa.Scalar):
        return np.float64(number.as_py()) if number.is_valid else np.float64("nan")
    return number.to_numpy(zero_copy_only=False)


def numbers(made: _Doubles) -> Column:
    """Return numpy's doubles, none of them infinite, as numbers, with null for NaN."""
    return pa.array(made, pa.float64(), from_pandas=True)


def _of_doubles(function: Callable[[_Doubles], _Doubles]) -> Callable[[Column], Column]:
    def of(number: Column) -> Column:
        return numbers(function(doubles(number)))

    return of


def _of_finite(function: Callable[..., Column]) -> Callable[..., Column]:
    def of(*operands: Column) -> Column:
        return finite(function(*operands))

    return of


def remainder(left: Column, right: Column) -> Column:
    """Return what is left of a division, with the sign of the dividend; null if by zero."""
    with np.errstate(all="ignore"):
        return numbers(np.fmod(doubles(left), doubles(right)))


def _rounded(number: Column, digits: float = 0.0) -> Column:
    """Round by the digits that one sees, which two products of a double cannot always tell.

    Below 2^40 the product with a power of ten is off by less than 2^-13, and the double by
    as much from its digits: what is a thousandth from the middle is rounded as its digits are.
    """
    values = doubles(number)
    if not digits:
        return numbers(np.rint(values))
    scale = 10.0 ** int(digits)
    with np.errstate(all="ignore"):
        scaled = values * scale
        made = np.rint(scaled) / scale
        sure = np.abs(scaled - np.floor(scaled) - 0.5) > 0.001
    doubtful = ~(sure & (np.abs(scaled) < 2.0**40)) & ~np.isnan(values)
    made[doubtful] = [calculations.rounded(one, digits) for one in values[doubtful].tolist()]
    return numbers(made)


# ── time ────────────────────────────────────────────────────────────────────


def _of_whole(read: Callable[[_Wholes], _Wholes]) -> Callable[[Column], Column]:
    """Return the form of a function of whole milliseconds; null beyond the digits of a time."""

    def of(ms: Column) -> Column:
        whole = np.floor(doubles(ms))
        known = np.abs(whole) < 10.0**MAX_DIGITS
        made = read(np.where(known, whole, 0.0).astype(np.int64))
        return pa.array(made.astype(np.float64), pa.float64(), mask=~known)

    return of


def _of_date(read: Callable[[_Wholes], _Wholes]) -> Callable[[Column], Column]:
    return _of_whole(lambda ms: read(ms // DAY_MS))


def _months(days: _Wholes) -> _Wholes:
    """Return the months from the epoch to some days."""
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_days(months: _Wholes) -> _Wholes:
    """Return the days from the epoch to the first of some months."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _date_trunc(unit: str, ms: Column) -> Column:
    if unit in FIXED_MS:
        length, start = FIXED_MS[unit]
        return _of_whole(lambda whole: (whole - start) // length * length + start)(ms)
    months = _MONTHS[unit]
    return _of_date(lambda days: _first_days(_months(days) // months * months) * DAY_MS)(ms)


FUNCTIONS: Final[dict[str, Callable[..., Column]]] = {
    "lower": pc.ascii_lower,
    "upper": pc.ascii_upper,
    "trim": _trimmed(pc.utf8_trim),
    "ltrim": _trimmed(pc.utf8_ltrim),
    "rtrim": _trimmed(pc.utf8_rtrim),
    "substr": _substr,
    "left": _left,
    "right": _right,
    "concat": _concat,
    "replace": _replace,
    **{name: _of_distinct(name) for name in ("lpad", "rpad", "split_part")},
    **{name: _of_distinct(name) for name in ("url_host", "url_path", "url_query")},
    **{name: _of_distinct(name) for name in ("ua_browser", "ua_os", "ua_device")},
    **{name: _of_distinct(name) for name in ("to_number", "to_time")},
    "length": lambda text: pc.cast(pc.utf8_length(text), pa.float64()),
    "position": _of_two_texts("position", _of_distinct("position")),
    "starts_with": _of_two_texts("starts_with", pc.starts_with),
    "ends_with": _of_two_texts("ends_with", pc.ends_with),
    "contains": _of_two_texts("contains", pc.match_substring),
    TO_TEXT: _of_distinct(TO_TEXT),
    "abs": pc.abs,
    "sign": pc.sign,
    "round": _rounded,
    "floor": _of_doubles(lambda number: np.clip(np.floor(number), *_INT64)),
    "ceil": _of_doubles(lambda number: np.clip(np.ceil(number), *_INT64)),
    "sqrt": _of_finite(pc.sqrt),
    # Arrow calls what Python calls, the C library; numpy has its own, with other last digits.
    "exp": _of_finite(pc.exp),
    "ln": _of_finite(pc.ln),
    "log10": _of_finite(pc.log10),
    "power": _of_finite(pc.power),
    "year": _of_date(lambda days: _months(days) // 12 + 1970),
    "month": _of_date(lambda days: _months(days) % 12 + 1),
    "day": _of_date(lambda days: days - _first_days(_months(days)) + 1),
    "day_of_week": _of_date(lambda days: (days + 3) % 7 + 1),
    "hour": _of_whole(lambda ms: ms // HOUR_MS % 24),
    "minute": _of_whole(lambda ms: ms // MINUTE_MS % 60),
    "date_trunc": _date_trunc,
    COALESCE: pc.coalesce,
    LEAST: pc.min_element_wise,
    GREATEST: pc.max_element_wise,
}
"""The Arrow form of every function but those that are other nodes of the tree."""
