"""Time comes in from outside: the only place in Weir that reads a clock.

Code that needs "now" takes a `Clock`; tests hand in a `ManualClock`. What an
event or an observation means never depends on a clock at all.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, UTC; may step."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds since some fixed point; never steps back."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()


class ManualClock:
    """A clock that a test moves by hand."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_s = 0.0

    def now_ms(self) -> int:
        """Return the time last set, in milliseconds since the epoch."""
        return self._now_ms

    def monotonic_s(self) -> float:
        """Return the seconds moved so far."""
        return self._monotonic_s

    def advance(self, ms: int) -> None:
        """Move both readings forward by `ms` milliseconds."""
        self._now_ms += ms
        self._monotonic_s += ms / 1000

    def step(self, ms: int) -> None:
        """Set the time by `ms` milliseconds, forward or back; the steady reading stays."""
        self._now_ms += ms
