"""Messages that are due, by channel, and there by alert: each alert has an order of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from weir.alerts.records import Notification

# (tenant, channel)
Place = tuple[str, str]
# (tenant, id of the notification, channel)
DueKey = tuple[str, str, str]


class Due(NamedTuple):
    """A message that some channel has not confirmed.

    Attributes:
        notification: What it says.
        since_ms: When it was written, by the writer's clock.
    """

    notification: Notification
    since_ms: int


class Backlog(Mapping[DueKey, Due]):
    """What is sent until its outcome is known, oldest first."""

    def __init__(self) -> None:
        self._due: dict[DueKey, Due] = {}
        self._lines: dict[Place, dict[str, dict[DueKey, Due]]] = {}

    def __getitem__(self, key: DueKey) -> Due:
        return self._due[key]

    def __iter__(self) -> Iterator[DueKey]:
        return iter(self._due)

    def __len__(self) -> int:
        return len(self._due)

    def put(self, key: DueKey, due: Due) -> None:
        """Add a message; one that is there keeps its place."""
        self._due[key] = due
        line = self._lines.setdefault((key[0], key[2]), {})
        line.setdefault(due.notification.dedup_key, {})[key] = due

    def settle(self, key: DueKey) -> None:
        """Take a message out; its outcome is known."""
        due = self._due.pop(key, None)
        if due is None:
            return
        place, alert = (key[0], key[2]), due.notification.dedup_key
        line = self._lines[place]
        del line[alert][key]
        if not line[alert]:
            del line[alert]
        if not line:
            del self._lines[place]

    def places(self) -> Collection[Place]:
        """Return the channels that something is due for."""
        return self._lines.keys()

    def heads(self, place: Place) -> Iterator[tuple[DueKey, Due]]:
        """Return the oldest message of each alert on a channel: those that may be sent now.

        What comes after it in its alert waits for its outcome.
        """
        for alert in self._lines.get(place, {}).values():
            yield next(iter(alert.items()))
