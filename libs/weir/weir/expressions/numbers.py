"""Numbers of JSON: read as doubles, written as the one text that names them.

`by` and `distinct` turn a number into text. Two numbers get the same text only
if they are equal, however they were spelled: `1`, `1.0` and `1e0` are all `1`.
"""

from __future__ import annotations

import math
from typing import Any


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
    Any other is the shortest text that reads back to the same double: plain from
    1e-4 up to 1e16, else as `1.5e-7`, `1e+16` written `1e16`, without a `.0`.
    """
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return None
    text = repr(value + 0.0)
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.removesuffix(".0")
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
