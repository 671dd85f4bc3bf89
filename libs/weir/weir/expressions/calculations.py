"""What the functions on numbers mean: operands are finite, and a result is too, or it is null."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

_INT64: Final = (-(2**63), 2**63 - 1)
# Holds every digit of every double.
_EXACT: Final = Context(prec=800, rounding=ROUND_HALF_EVEN)


def sign(number: float) -> float:
    """Return -1, 0 or 1."""
    return float((number > 0) - (number < 0))


def rounded(number: float, digits: float = 0) -> float:
    """Return the nearest number with so many decimal digits; of two, the one whose last is even.

    It goes by the digits that one sees: 2.675 is in the middle between 2.67 and 2.68,
    though the double is a little less.
    """
    if digits == 0:
        return float(round(number))
    unit = Decimal(1).scaleb(-int(digits))
    return float(Decimal(repr(number)).quantize(unit, context=_EXACT))


def floor(number: float) -> float:
    """Return the greatest whole number that is not greater."""
    return _within(math.floor(number))


def ceil(number: float) -> float:
    """Return the least whole number that is not less."""
    return _within(math.ceil(number))


def _within(number: int) -> float:
    # A 64-bit integer, as Spark's: beyond it the nearest one.
    return float(min(max(number, _INT64[0]), _INT64[1]))


def sqrt(number: float) -> float | None:
    """Return the square root; None of a negative number."""
    return _computed(math.sqrt, number)


def exp(number: float) -> float | None:
    """Return e to a power."""
    return _computed(math.exp, number)


def ln(number: float) -> float | None:
    """Return the natural logarithm; None of what is not positive."""
    return _computed(math.log, number)


def log10(number: float) -> float | None:
    """Return the logarithm to base 10; None of what is not positive."""
    return _computed(math.log10, number)


def power(base: float, exponent: float) -> float | None:
    """Return a number to a power; None of a negative one to a broken power."""
    return _computed(math.pow, base, exponent)


def _computed(function: Callable[..., float], *operands: float) -> float | None:
    try:
        result = function(*operands)
    except (OverflowError, ValueError):
        return None
    return result if math.isfinite(result) else None
