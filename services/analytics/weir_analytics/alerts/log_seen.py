"""How much of the time has passed until the log deletes what is not counted, seen by this job.

The rule on it must speak while nobody counts and Redis takes or tells nothing, which is when it
matters most: so it is no heartbeat that is believed first, but Kafka that is asked.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

import structlog
from confluent_kafka import KafkaException
from weir.clock import Clock
from weir.log_left import LogLeft, used_share
from weir.log_place import LogPlace

LOOK_S: Final = 15.0
STALE_MS: Final = 60_000
log = structlog.get_logger()


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
        self._look, self._places, self._clock = look, places, clock
        self._seen: tuple[int, float] | None = None
        self._is_blind = False

    def used(self) -> float | None:
        """Return how much has passed of it, 0 to 1; None where nobody could look for a minute."""
        if self._seen is None or self._clock.now_ms() - self._seen[0] > STALE_MS:
            return None
        return self._seen[1]

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        """Look once."""
        try:
            places = self._places.read()
            if places:
                self._seen = self._clock.now_ms(), used_share(self._look.left(places))
            self._is_blind = False
        except (KafkaException, TimeoutError) as error:
            if not self._is_blind:
                log.warning("log_not_watched", error=str(error) or type(error).__name__)
            self._is_blind = True
