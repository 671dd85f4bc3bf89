"""Alerts as `weir.alerts` tells them, followed from its start."""

from __future__ import annotations

from collections.abc import Callable

from weir import names
from weir.alerts.listing import Alert, Listing
from weir.clock import Clock
from weir_reading.follower import Follower, Record


class Alerts:
    """All alerts of all tenants.

    Attributes:
        listing: What the records say.
        follower: Reads them.
    """

    def __init__(self, bootstrap: str, clock: Clock) -> None:
        self.listing = Listing()
        self.follower = Follower(bootstrap, clock, names.ALERTS, self._take)
        self._listeners: list[Callable[[list[Alert]], None]] = []

    def listen(self, listener: Callable[[list[Alert]], None]) -> None:
        """Call `listener` with the alerts that changed, after each change."""
        self._listeners.append(listener)

    def _take(self, records: list[Record]) -> None:
        changed: dict[str, Alert] = {}
        for record in records:
            changed |= {one.id: one for one in self.listing.apply(record.offset, record.value)}
        if changed:
            for listener in self._listeners:
                listener(list(changed.values()))
