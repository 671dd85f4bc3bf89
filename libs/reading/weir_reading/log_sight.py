"""What was seen of the log by somebody who looks again and again, and whether that still holds.

Driver, dashboards and the alerts job each look by themselves, since it matters most while the
others are away. Nobody counts by what is seen, so nothing that fails here ends anything: it is
told, once, and looked again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
from confluent_kafka import KafkaException
from weir.clock import Clock
from weir.log_left import LogLeft, left_after

LOOK_S: Final = 15.0
"""How often to look."""
STALE_MS: Final = 60_000
UNREAD: Final = (
    "what the panes driver has left in the group weir-panes must be its place as this release "
    "writes it, got something else; run the newer of both releases as the panes driver and here"
)

log = structlog.get_logger()


class LogSight:
    """One who looks; not to be shared between threads but for what it tells."""

    def __init__(self, look: Callable[[], LogLeft | None], clock: Clock) -> None:
        """Prepare.

        Args:
            look: Looks once; None: how far counting is cannot be read.
            clock: Says how old is what was seen.
        """
        self._look, self._clock = look, clock
        self._seen: tuple[float, LogLeft] | None = None
        self._is_blind = False

    def once(self) -> None:
        """Look once; that nothing can be seen is logged when it begins."""
        try:
            left = self._look()
        except Exception as error:  # noqa: BLE001  numbers and alerts do without it
            is_usual = isinstance(error, KafkaException | TimeoutError)
            self._miss(str(error) or type(error).__name__, None if is_usual else error)
            return
        if left is None:
            self._miss(UNREAD)
            return
        self._seen, self._is_blind = (self._clock.monotonic_s(), left), False

    def last(self) -> LogLeft | None:
        """Return what was seen last, less the time since; None before the first look.

        That is what is left if nobody has counted since, as where Kafka is away.
        """
        if self._seen is None:
            return None
        at_s, left = self._seen
        return left_after(left, self._age_ms(at_s))

    def now(self) -> LogLeft | None:
        """Return what the newest look has seen; None if it saw nothing."""
        return None if self._is_blind or self._seen is None else self._seen[1]

    def lately(self) -> LogLeft | None:
        """Return what was seen within a minute, whatever the looks since then."""
        if self._seen is None:
            return None
        at_s, left = self._seen
        return left if self._age_ms(at_s) <= STALE_MS else None

    def _age_ms(self, at_s: float) -> int:
        return round((self._clock.monotonic_s() - at_s) * 1000)

    def _miss(self, why: str, unknown: Exception | None = None) -> None:
        if not self._is_blind:
            log.warning("log_not_watched", error=why, exc_info=unknown)
        self._is_blind = True
