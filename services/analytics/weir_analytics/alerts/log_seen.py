"""How much of the time has passed until the log deletes what is not counted, seen by this job.

The rule on it must speak while nobody counts and Redis takes or tells nothing, which is when it
matters most: so it is no heartbeat that is believed first, but Kafka that is asked.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from weir.clock import Clock
from weir.log_left import LogLeft, used_share
from weir.log_place import LogPlace
from weir_reading.log_sight import LOOK_S, LogSight


class Places(Protocol):
    """How far counting is."""

    def read(self) -> dict[int, LogPlace] | None:
        """Return it by partition; None: it cannot be read."""
        ...


class Look(Protocol):
    """Looks at the log."""

    def left(self, places: dict[int, LogPlace], /) -> LogLeft:
        """Return for how long it holds what is not counted."""
        ...


class LogSeen:
    """Looks every 15 s, on a thread, since a Kafka that is away is waited for."""

    def __init__(self, look: Look, places: Places, clock: Clock) -> None:
        self._look, self._places = look, places
        self._sight = LogSight(self._left, clock)

    def used(self) -> float | None:
        """Return how much has passed of it, 0 to 1; None where nobody could look for a minute."""
        left = self._sight.lately()
        return None if left is None else used_share(left)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Look once."""
        self._sight.once()

    def _left(self) -> LogLeft | None:
        places = self._places.read()
        return None if places is None else self._look.left(places)
