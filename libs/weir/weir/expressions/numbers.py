"""Numbers of JSON: read as doubles, written as the one text that names them.

`by` and `distinct` turn a number into text. Two numbers get the same text only
if they are equal, however they were spelled: `1`, `1.0` and `1e0` are all `1`.
"""

from __future__ import annotations

import math
from typing import Any, Final

LEAST_NORMAL: Final = 2.2250738585072014e-308
"""Below it doubles lose digits, and Java and Python write them differently."""


def as_double(value: Any) -> float | None:
    """Return a JSON number as a finite double; None of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    # Adding zero turns -0.0, which compares equal but is written otherwise, into 0.0.
    return number + 0.0 if math.isfinite(number) else None


def number_text(value: int | float) -> str | None:
    """Return the text of a JSON number, None if it is not finite.

    A whole number without fraction or exponent keeps its digits, however many.
    So does any other whole one below 2^63. The rest is the shortest text that reads
    back to the same double: `0.25`, and beyond 2^63 or below 1e-4 `1.5e19`, `2e-7`.
    What is too small for a normal double is `0`.
    """
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return None
    if value.is_integer() and abs(value) < 2.0**63:
        return str(int(value))
    if abs(value) < LEAST_NORMAL:
        return "0"
    text = repr(value)
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def scalar_text(value: Any) -> str | None:
    """Return a JSON string, number or boolean as text, None of null.

    Raises:
        TypeError: If it is an object, an array or not a finite number.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    text = number_text(value) if isinstance(value, int | float) else None
    if text is None:
        msg = f"must be a string, a finite number, a boolean or null, got {type(value).__name__}"
        raise TypeError(msg)
    return text
