"""The pipeline feed: the parts, and which of them is the bottleneck."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from weir_reading.parts import Part

from weir_dashboard.live import frames
from weir_dashboard.live.client import Subscription
from weir_dashboard.observer import Observer

KEY = "p1"
BUSY = 0.7


class Warnings(NamedTuple):
    """What is about to be deleted, and what to do; None: nothing.

    Attributes:
        log: Of what is not counted yet.
        quarantine: Of what no replay has looked into.
    """

    log: str | None = None
    quarantine: str | None = None


def bottleneck_of(parts: list[Part]) -> str | None:
    """Return the slowest part by its own figures, or None if nothing holds up the flow.

    A part that is not well comes first; else the busiest, if it is busy at all.
    """
    unwell = [part for part in parts if part.status in {"stalled", "behind"}]
    if unwell:
        return unwell[0].name
    busiest = max(parts, key=lambda part: part.busy or 0.0, default=None)
    return busiest.name if busiest is not None and (busiest.busy or 0.0) >= BUSY else None


def _told(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "instance": part.instance,
        "status": part.status,
        "since_ms": part.at_ms,
        "busy": part.busy,
        "in": part.flow,
        "lag_ms": part.lag_ms,
    }


class Pipelines:
    """All pipeline subscriptions; the same frame goes to everybody."""

    def __init__(self, observer: Observer, warnings: Callable[[], Warnings]) -> None:
        self._observer, self._warnings = observer, warnings
        self._subscriptions: set[Subscription] = set()

    def join(self, subscription: Subscription) -> None:
        """Let a subscription follow the pipeline."""
        self._subscriptions.add(subscription)
        subscription.client.socket.write(self._frame())

    def leave(self, subscription: Subscription) -> None:
        """Let a subscription follow nothing any more."""
        self._subscriptions.discard(subscription)

    def beat(self, now_s: float) -> None:
        """Send the present state to all."""
        if not self._subscriptions:
            return
        body = self._frame()
        for subscription in self._subscriptions:
            client = subscription.client
            if client.hz > 0 and client.can_take(now_s):
                client.socket.write(body)

    def _frame(self) -> bytes:
        known = sorted(self._observer.parts.known.values(), key=lambda p: (p.name, p.instance))
        told, warnings = [_told(part) for part in known], self._warnings()
        return frames.frame(
            "pipeline",
            key=KEY,
            bottleneck=bottleneck_of(known),
            log_warning=warnings.log,
            quarantine_warning=warnings.quarantine,
            parts=told,
        )
