"""How far it is, as one line on a terminal that changes; nothing where there is none."""

from __future__ import annotations

import sys
from typing import Final

from weir.clock import Clock

from weir_cli.telling import complain, printable, put

EVERY_S: Final = 0.2


class Line:
    """The line. What else is told goes through it, so that the two do not mix."""

    def __init__(self, clock: Clock) -> None:
        """Take a clock."""
        self._clock = clock
        self._is_live = sys.stderr.isatty()
        self._next_s = clock.monotonic_s()
        self._start_s = self._next_s
        self._is_shown = False

    def show(self, label: str, sent: int, share: float | None) -> None:
        """Tell how far it is, five times a second at most.

        Args:
            label: What people call the input.
            sent: How many events ingest has answered.
            share: How much of the input is read; None if that is not known.
        """
        now_s = self._clock.monotonic_s()
        if not self._is_live or now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        self._is_shown = True
        put(sys.stderr, f"\r\x1b[K{printable(text_of(label, sent, share, now_s - self._start_s))}")

    def tell(self, text: str) -> None:
        """Tell something else, on a line of its own."""
        self.end()
        complain(text)

    def end(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._is_shown = False
            put(sys.stderr, "\r\x1b[K")


def text_of(label: str, sent: int, share: float | None, length_s: float) -> str:
    """Return how far it is, in words."""
    rate = f", {sent / length_s:,.0f} a second" if length_s > 0 else ""
    part = "" if share is None else f", {share:.0%}"
    return f"{label}: {sent:,} sent{rate}{part}"
