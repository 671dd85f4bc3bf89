"""When an event happened: reading times, and correcting the client's clock.

Times are milliseconds since the epoch, UTC. Nothing here reads a clock: the
arrival comes in as an argument. The rules are those of INGEST 2.2; what clients
send as numbers is read by its magnitude (RELIABILITY 4 row 17).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from weir.problems import Reason, echo
from weir.refusal import ItemRefusedError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_MS = -62_135_596_800_000  # 0001-01-01T00:00:00Z
_MAX_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z

SKEW_TOLERANCE_MS = 2_000
LEAD_TOLERANCE_MS = 5_000
LEAD_LIMIT_MS = 23 * 3_600_000
"""The largest lead over the arrival that an event keeps."""

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(?::(\d\d))?(?:[.,](\d+))?)?"
    r"\s?([Zz]|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
# ≥ 1e17 nanoseconds, ≥ 1e14 microseconds, ≥ 1e11 milliseconds, else seconds.
_UNITS = ((1e17, 1e-6), (1e14, 1e-3), (1e11, 1.0), (0.0, 1e3))
_IMPLAUSIBLE = 1e20


class TimeInvalidError(ItemRefusedError):
    """A time that cannot be read."""

    def __init__(self, message: str) -> None:
        super().__init__(Reason.TIME_INVALID, message)


class TimeSource(StrEnum):
    """Where an event's time was taken from (`timesrc`)."""

    CLIENT = "client"
    SKEW = "skew"
    ARRIVED = "arrived"
    CLAMPED = "clamped"


@dataclass(frozen=True, slots=True)
class Clocks:
    """The times that one event came with, in epoch milliseconds.

    Attributes:
        client_ms: When the client says it happened.
        sent_ms: When the client says it sent it.
        arrived_ms: When its request began to arrive here.
        server: The client is a server library: its clock is kept right, and a
            sent time long ago means a retry, not a slow clock.
    """

    client_ms: int | None
    sent_ms: int | None
    arrived_ms: int
    server: bool = False


def parse_time(value: str | float) -> int:
    """Return a time that a client sent, in epoch milliseconds.

    Takes RFC 3339 (a missing zone is UTC, a missing time is midnight, a leap
    second is the second after it) and epoch numbers, also as text, whose unit
    follows from their magnitude.

    Raises:
        TimeInvalidError: If it is no instant between the years 1 and 9999.
    """
    if isinstance(value, str):
        text = value.strip()
        time_ms = _parse_number(float(text)) if _NUMBER.fullmatch(text) else _parse_text(text)
    else:
        time_ms = _parse_number(value)
    if not _MIN_MS <= time_ms <= _MAX_MS:
        message = "time must be between the years 1 and 9999"
        raise TimeInvalidError(message)
    return time_ms


def _parse_text(text: str) -> int:
    match = _RFC3339.fullmatch(text)
    if match is None:
        message = f'time must be RFC 3339 such as "2026-03-01T10:00:00Z", got "{echo(text)}"'
        raise TimeInvalidError(message)
    day, minute, second, fraction, zone = match.groups()
    leap = second == "60"
    plain = (
        f"{day}T{minute or '00:00'}:{'59' if leap else second or '00'}"
        f".{(fraction or '0')[:6]:0<6}{(zone or 'Z').upper()}"
    )
    try:
        at = datetime.fromisoformat(plain)
    except ValueError as error:
        message = f'time must exist in the calendar, got "{echo(text)}"; {error}'
        raise TimeInvalidError(message) from None
    return (at - _EPOCH) // timedelta(milliseconds=1) + (1000 if leap else 0)


def _parse_number(value: float) -> int:
    size = abs(value)
    if not size < _IMPLAUSIBLE:
        message = f"time must be a plausible epoch number, got {value!r}"
        raise TimeInvalidError(message)
    factor = next(factor for least, factor in _UNITS if size >= least)
    return round(value * factor)


def format_time(time_ms: int) -> str:
    """Return an instant as RFC 3339 in UTC with milliseconds."""
    at = _EPOCH + timedelta(milliseconds=time_ms)
    return f"{at.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def is_same_text(said: str, written: str) -> bool:
    """Say whether a time is written as it was said, milliseconds of zero aside."""
    return said == written or (said[-1:] == "Z" and f"{said[:-1]}.000Z" == written)


def correct(clocks: Clocks) -> tuple[int, TimeSource]:
    """Return when the event happened, and where that time was taken from.

    An event dated before its arrival keeps its time at any age. One dated up to
    5 s ahead is set to the arrival, one more than 23 h ahead is clamped to it;
    between the two lies an honest clock in a wrong zone, and it stays.
    """
    arrived_ms = clocks.arrived_ms
    if clocks.client_ms is None:
        return arrived_ms, TimeSource.ARRIVED
    time_ms, source = clocks.client_ms, TimeSource.CLIENT
    if clocks.sent_ms is not None:
        skew_ms = clocks.sent_ms - arrived_ms
        ahead, behind = skew_ms > SKEW_TOLERANCE_MS, skew_ms < -SKEW_TOLERANCE_MS
        if ahead or (behind and not clocks.server):
            time_ms, source = time_ms - skew_ms, TimeSource.SKEW
    lead_ms = time_ms - arrived_ms
    if lead_ms > LEAD_LIMIT_MS:
        return arrived_ms, TimeSource.CLAMPED
    if 0 < lead_ms <= LEAD_TOLERANCE_MS:
        return arrived_ms, source
    return max(time_ms, _MIN_MS), source
