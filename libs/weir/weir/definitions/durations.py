"""Lengths of time as people write them: `10s`, `1m30s`, `24h`, `90d`; inside, milliseconds."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer

from weir.definitions.faults import fault

UNITS_MS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART: Final = re.compile(r"(\d{1,9})(ms|[smhdw])")
_WEEK_MS: Final = 7 * UNITS_MS["d"]


def parse_duration_ms(text: str) -> int:
    """Return a length in milliseconds.

    Raises:
        ValueError: If it is no length, such as `10` or `1.5h`.
    """
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        msg = f'duration must be written like 10s, 5m, 24h or 90d, got "{text[:64]}"'
        raise ValueError(msg)
    return sum(int(n) * (_WEEK_MS if unit == "w" else UNITS_MS[unit]) for n, unit in parts)


def format_duration(length_ms: int) -> str:
    """Return a length as it is written, in as few units as say it exactly."""
    if length_ms == 0:
        return "0s"
    text, rest = "", length_ms
    for unit, unit_ms in UNITS_MS.items():
        count, rest = divmod(rest, unit_ms)
        text += f"{count}{unit}" if count else ""
    return text


def _validated(value: Any) -> int:
    try:
        return parse_duration_ms(value)
    except (TypeError, ValueError):
        raise fault(required="a duration", mend="write it like 10s, 5m, 24h or 90d") from None


DurationMs = Annotated[
    int, BeforeValidator(_validated), PlainSerializer(format_duration, return_type=str)
]
"""A field written as a duration and held as milliseconds."""
