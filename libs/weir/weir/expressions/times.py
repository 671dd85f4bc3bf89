"""What the functions on time mean: UTC, the Gregorian calendar also before 1582, no clock.

A time is a number of milliseconds since the epoch, as the attribute `time` is. Beyond
10^15 on either side, some 30,000 years, every function is null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000
MAX_DIGITS: Final = 15
"""A time has at most so many digits."""

MONDAY_MS: Final = -3 * DAY_MS
"""The start of a week; the epoch was a Thursday."""

FIXED_MS: Final = {
    "second": (SECOND_MS, 0),
    "minute": (MINUTE_MS, 0),
    "hour": (HOUR_MS, 0),
    "day": (DAY_MS, 0),
    "week": (7 * DAY_MS, MONDAY_MS),
}
"""Units of one length -> it, and the start of one of them."""

_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
UNITS: Final = (*FIXED_MS, *_MONTHS)

ISO: Final = (
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})"
    r"(?::([0-9]{2})(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:?[0-9]{2})?)?)?"
)
"""What `to_time` reads, as a pattern that Python and Java understand alike."""

_MAX_OFFSET_MINUTES: Final = 18 * 60
_DAYS_OF_400_YEARS: Final = 146_097


def to_time(text: str) -> float | None:
    """Return the time that a text in the form of ISO 8601 says, None if it says none.

    `2026-01-31`, `2026-01-31T12:30:00.5Z`, `2026-01-31 12:30:00+02:00`; what says no zone is
    in UTC. A zone follows seconds. Of a fraction milliseconds count.
    """
    found = re.fullmatch(ISO, text)
    if found is None:
        return None
    year_, month_, day_, hour_, minute_, second_ = (int(part or 0) for part in found.groups()[:6])
    offset = _offset_minutes(found[8] or "Z")
    if not 1 <= month_ <= 12 or not 1 <= day_ <= _days_in(year_, month_):
        return None
    if hour_ > 23 or minute_ > 59 or second_ > 59 or offset is None:
        return None
    milliseconds = int(((found[7] or "") + "000")[:3])
    ms = _days_of(year_, month_, day_) * DAY_MS + hour_ * HOUR_MS + minute_ * MINUTE_MS
    return float(ms + second_ * SECOND_MS + milliseconds - offset * MINUTE_MS)


def _offset_minutes(zone: str) -> int | None:
    if zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    total = hours * 60 + minutes
    if minutes > 59 or total > _MAX_OFFSET_MINUTES:
        return None
    return -total if zone[0] == "-" else total


def date_trunc(unit: str, ms: float) -> float | None:
    """Return the start of the second, minute, hour, day, week, month, quarter or year."""
    whole = _whole(ms)
    if whole is None:
        return None
    if unit in FIXED_MS:
        length, start = FIXED_MS[unit]
        return float((whole - start) // length * length + start)
    months = _MONTHS[unit]
    year_, month_, _day = _date(whole // DAY_MS)
    return float(_days_of(year_, (month_ - 1) // months * months + 1, 1) * DAY_MS)


def _whole(ms: float) -> int | None:
    whole = math.floor(ms)
    return whole if abs(whole) < 10**MAX_DIGITS else None


def _of_whole(read: Callable[[int], int]) -> Callable[[float], float | None]:
    def of(ms: float) -> float | None:
        whole = _whole(ms)
        return None if whole is None else float(read(whole))

    return of


year: Final = _of_whole(lambda ms: _date(ms // DAY_MS)[0])
month: Final = _of_whole(lambda ms: _date(ms // DAY_MS)[1])
day: Final = _of_whole(lambda ms: _date(ms // DAY_MS)[2])
day_of_week: Final = _of_whole(lambda ms: (ms // DAY_MS + 3) % 7 + 1)
hour: Final = _of_whole(lambda ms: ms // HOUR_MS % 24)
minute: Final = _of_whole(lambda ms: ms // MINUTE_MS % 60)


# ── the calendar: Python's own ends at the year 9999 ────────────────────────


def _is_leap(year_: int) -> bool:
    return year_ % 4 == 0 and (year_ % 100 != 0 or year_ % 400 == 0)


def _days_in(year_: int, month_: int) -> int:
    if month_ == 2:
        return 29 if _is_leap(year_) else 28
    return 30 if month_ in (4, 6, 9, 11) else 31


def _days_before(year_: int) -> int:
    """Return the days from the start of year 0 to that of a year from 0 on."""
    past = year_ - 1
    leap = past // 4 - past // 100 + past // 400 + 1 if year_ > 0 else 0
    return 365 * year_ + leap


def _days_of(year_: int, month_: int, day_: int) -> int:
    """Return the days from the epoch to a date; the calendar repeats after 400 years."""
    cycles, within = divmod(year_, 400)
    days = cycles * _DAYS_OF_400_YEARS + _days_before(within)
    days += sum(_days_in(within, before) for before in range(1, month_)) + day_ - 1
    return days - _days_before(1970)


def _date(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a number of days since the epoch."""
    cycles, left = divmod(days + _days_before(1970), _DAYS_OF_400_YEARS)
    within = left // 366
    while _days_before(within + 1) <= left:
        within += 1
    left -= _days_before(within)
    month_ = 1
    while left >= _days_in(within, month_):
        left -= _days_in(within, month_)
        month_ += 1
    return cycles * 400 + within, month_, left + 1
