"""The Spark form of each function of the language.

Operands that must be literals come as plain values, the others as columns. Each form
names each of its operands once: what names one twice doubles the plan at every level
of a tree. None can raise, whatever an event holds, and what is no finite number is null.
Regular expressions are ours, none a user's, and none has a choice that it could take
back over a long text. What Spark has nothing like is done by a Python worker, in Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType
from weir.expressions.functions import COALESCE, GREATEST, LEAST, TO_TEXT
from weir.expressions.texts import NUMBER, REST
from weir.expressions.times import DAY_MS, FIXED_MS, HOUR_MS, ISO, MAX_DIGITS, MINUTE_MS
from weir.expressions.urls import SCHEME

from weir_analytics.panes import arrow_functions

_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER: Final = _UPPER.lower()
# The last `@` ends the user: what follows it has none.
_HOST: Final = (
    rf"^(?:{SCHEME})?//(?:[^/?#]*@)?(?=[^/?#@]*(?:[/?#]|\z))"
    r"(\[[^/?#@\]]+\]|[^/?#@:\[][^/?#@:]*)"
)
_PATH: Final = rf"^(?:{SCHEME})?(?://[^/?#]*)?([^?#]*)"
_QUERY: Final = r"^[^?#]*\?([^#]*)"


def finite(number: Column) -> Column:
    """Turn what is not finite into null, naming the operand once.

    The remainder by infinity is the number itself if it is finite, else NaN.
    """
    return F.nanvl(F.try_mod(number, F.lit(float("inf"))), F.lit(None).cast("double"))


def quoted(text: str) -> str:
    r"""Return the regex that matches a text and nothing else, whatever stands in it.

    An `\E` in the text would end the quotation: it is said between two of them.
    """
    return "\\Q" + text.replace("\\E", r"\E\\E\Q") + "\\E"


# ── text ────────────────────────────────────────────────────────────────────


def _lower(text: Column) -> Column:
    return F.translate(text, _UPPER, _LOWER)


def _trimmed(trim: Callable[..., Column]) -> Callable[..., Column]:
    def of(text: Column, characters: str = " ") -> Column:
        return trim(text, F.lit(characters))

    return of


def _padded(pad: Callable[..., Column]) -> Callable[..., Column]:
    def of(text: Column, length: float, filler: str = " ") -> Column:
        return pad(text, int(length), filler)

    return of


def _substr(text: Column, start: float, length: float = REST) -> Column:
    return F.substring(text, int(start), int(length))


def _right(text: Column, length: float) -> Column:
    return F.substring(text, -int(length), int(length))


def _replace(text: Column, wanted: str, by: str) -> Column:
    return F.replace(text, F.lit(wanted), F.lit(by))


def _split_part(text: Column, separator: str, place: float) -> Column:
    return F.split_part(text, F.lit(separator), F.lit(int(place)))


def _whole_match(text: Column, pattern: str) -> Column:
    """Return a text if it is as a pattern says from end to end, else the empty text."""
    return F.regexp_extract(text, rf"^(?:{pattern})\z", 0)


def _first_match(text: Column, pattern: str) -> Column:
    """Return the group of the first match, null if there is none."""
    return F.get(F.regexp_extract_all(text, F.lit(pattern), F.lit(1)), 0)


def _to_number(text: Column) -> Column:
    return finite(_whole_match(text, NUMBER).try_cast("double") + F.lit(0.0))


def _url_query(text: Column, name: str) -> Column:
    pairs = F.concat(F.lit("&"), _first_match(text, _QUERY))
    return _first_match(pairs, f"&{quoted(name)}=([^&]*)")


def _by_worker(name: str) -> Callable[[Column], Column]:
    """Return the form of a function to text that only the language itself can do."""

    def of(values: pa.Array) -> pa.Array:
        return arrow_functions.FUNCTIONS[name](values)

    of.__name__ = name  # as a plan shows it
    make_udf: Any = arrow_udf  # its stubs know type hints only by a third argument
    found: Callable[[Column], Column] = make_udf(of, StringType())
    return found


# ── numbers ─────────────────────────────────────────────────────────────────


def _rounded(number: Column, digits: float = 0.0) -> Column:
    return F.bround(number, int(digits)) if digits else F.rint(number)


def _of_finite(function: Callable[..., Column]) -> Callable[..., Column]:
    def of(*numbers: Column) -> Column:
        return finite(function(*numbers))

    return of


# ── time: doubles hold every whole number that stands here ──────────────────


def _to_time(text: Column) -> Column:
    return F.unix_millis(_whole_match(text, ISO).try_cast("timestamp")).cast("double")


def _whole_ms(ms: Column) -> Column:
    """Return whole milliseconds, null beyond the digits that a time has."""
    digits = F.floor(ms).try_cast(f"decimal({MAX_DIGITS},0)")
    return digits.cast("bigint").cast("double")


def _days(ms: Column) -> Column:
    return F.floor(F.try_divide(_whole_ms(ms), F.lit(float(DAY_MS)))).try_cast("int")


def _of_date(part: Callable[[Column], Column]) -> Callable[[Column], Column]:
    def of(ms: Column) -> Column:
        return part(F.date_from_unix_date(_days(ms))).cast("double")

    return of


def _day_of_week(ms: Column) -> Column:
    return F.pmod(_days(ms) + F.lit(3), F.lit(7)).cast("double") + F.lit(1.0)


def _within(length_ms: int, unit_ms: int) -> Callable[[Column], Column]:
    def of(ms: Column) -> Column:
        left = F.pmod(_whole_ms(ms), F.lit(float(length_ms)))
        return F.floor(F.try_divide(left, F.lit(float(unit_ms)))).cast("double")

    return of


def _date_trunc(unit: str, ms: Column) -> Column:
    if unit not in FIXED_MS:
        return F.unix_date(F.trunc(F.date_from_unix_date(_days(ms)), unit)) * F.lit(float(DAY_MS))
    length, start = (F.lit(float(number)) for number in FIXED_MS[unit])
    return F.floor(F.try_divide(_whole_ms(ms) - start, length)).cast("double") * length + start


FUNCTIONS: Final[dict[str, Callable[..., Column]]] = {
    "lower": _lower,
    "upper": lambda text: F.translate(text, _LOWER, _UPPER),
    "trim": _trimmed(F.trim),
    "ltrim": _trimmed(F.ltrim),
    "rtrim": _trimmed(F.rtrim),
    "lpad": _padded(F.lpad),
    "rpad": _padded(F.rpad),
    "substr": _substr,
    "left": lambda text, length: F.substring(text, 1, int(length)),
    "right": _right,
    "concat": F.concat,
    "replace": _replace,
    "split_part": _split_part,
    "url_host": lambda text: _lower(_first_match(text, _HOST)),
    "url_path": lambda text: F.regexp_extract(text, _PATH, 1),
    "url_query": _url_query,
    **{name: _by_worker(name) for name in ("ua_browser", "ua_os", "ua_device", TO_TEXT)},
    "length": lambda text: F.char_length(text).cast("double"),
    "position": lambda text, wanted: F.position(wanted, text).cast("double"),
    "to_number": _to_number,
    "to_time": _to_time,
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "contains": F.contains,
    "abs": F.abs,
    "sign": F.signum,
    "round": _rounded,
    "floor": lambda number: F.floor(number).cast("double"),
    "ceil": lambda number: F.ceil(number).cast("double"),
    "sqrt": _of_finite(F.sqrt),
    "exp": _of_finite(F.exp),
    "ln": _of_finite(F.ln),
    "log10": _of_finite(F.log10),
    "power": _of_finite(F.pow),
    "year": _of_date(F.year),
    "month": _of_date(F.month),
    "day": _of_date(F.day),
    "day_of_week": _day_of_week,
    "hour": _within(DAY_MS, HOUR_MS),
    "minute": _within(HOUR_MS, MINUTE_MS),
    "date_trunc": _date_trunc,
    COALESCE: F.coalesce,
    LEAST: F.least,
    GREATEST: F.greatest,
}
"""The Spark form of every function but those that are other nodes of the tree."""
