"""The pipeline feed: the parts, and which of them is the bottleneck."""

from __future__ import annotations

from typing import Any

from weir_dashboard.live import frames
from weir_dashboard.live.client import Subscription
from weir_dashboard.observer import Observer
from weir_dashboard.store.parts import Part

KEY = "p1"
BUSY = 0.7


def pipeline(parts: list[Part]) -> dict[str, Any]:
    """Return the parts as they stand on the wire, and the slowest by its own figures.

    A part that is not well is the bottleneck; else the busiest, if it is busy at all.
    """
    unwell = [part for part in parts if part.status in {"stalled", "behind"}]
    busiest = sorted(parts, key=lambda part: -(part.busy or 0.0))
    if unwell:
        bottleneck: str | None = unwell[0].name
    elif busiest and (busiest[0].busy or 0.0) >= BUSY:
        bottleneck = busiest[0].name
    else:
        bottleneck = None
    return {"bottleneck": bottleneck, "parts": [_told(part) for part in parts]}


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

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
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
        return frames.frame("pipeline", key=KEY, **pipeline(known))
