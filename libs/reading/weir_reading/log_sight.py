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
from weir.log_left import LogLeft

LOOK_S: Final = 15.0
"""How often to look."""
STALE_MS: Final = 60_000
UNREAD: Final = "what the panes driver has left of its place cannot be read by this release"

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
        self._seen: tuple[int, LogLeft] | None = None
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
        self._seen, self._is_blind = (self._clock.now_ms(), left), False

    def last(self) -> LogLeft | None:
        """Return what was seen last, however long ago; None before the first look."""
        return self._seen[1] if self._seen is not None else None

    def now(self) -> LogLeft | None:
        """Return what the newest look has seen; None if it saw nothing."""
        return None if self._is_blind else self.last()

    def lately(self) -> LogLeft | None:
        """Return what was seen within a minute, whatever the looks since then."""
        if self._seen is None or self._clock.now_ms() - self._seen[0] > STALE_MS:
            return None
        return self._seen[1]

    def _miss(self, why: str, unknown: Exception | None = None) -> None:
        if not self._is_blind:
            log.warning("log_not_watched", error=why, exc_info=unknown)
        self._is_blind = True
