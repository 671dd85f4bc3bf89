"""Tells when the machine's clock was set back while a stream runs.

Spark sleeps between two batches until the wall clock shows the next multiple of the trigger
(`ProcessingTimeExecutor`, `SystemClock.waitTillTime`). Set back by an hour in between, it
counts nothing for an hour. A stream that is begun anew asks the clock anew.
"""

from __future__ import annotations

from typing import Final

from weir.clock import Clock

MOST_BACK_S: Final = 1.0
"""A step of so much back makes nobody wait for much longer than usual."""


class WallClock:
    """The wall clock beside the steady one, from look to look."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead_s = self._read_s()

    def back_s(self) -> float:
        """Return by how many seconds the clock was set back since the last look; 0 if it was not.

        What a time server does little by little is no step.
        """
        before_s, self._ahead_s = self._ahead_s, self._read_s()
        return max(0.0, before_s - self._ahead_s)

    def _read_s(self) -> float:
        """Return the wall clock less the steady one, in seconds."""
        return self._clock.now_ms() / 1000 - self._clock.monotonic_s()
