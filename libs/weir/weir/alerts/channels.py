"""How channels are: what came of their last message, since when they fail, what waits.

Folded from the same records as alerts.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Final

from weir.alerts.records import Attempt, Delivery, Look, Record

MAX_ANSWERS: Final = 1_000
"""Answers to tests that are kept for whoever asked."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one channel is.

    Attributes:
        outcome: Of the newest message or test: `delivered refused given_up failed`; empty
            before any.
        at_ms: When that was.
        status, why, took_ms: What came of it.
        failing_ms: Since when nothing has been delivered although it was tried; None if
            the newest was.
    """

    outcome: str = ""
    at_ms: int = 0
    status: int | None = None
    why: str = ""
    took_ms: int = 0
    failing_ms: int | None = None


class Channels:
    """All channels of all tenants."""

    def __init__(self) -> None:
        self._standing: dict[tuple[str, str], Standing] = {}
        self._due: dict[tuple[str, str], set[str]] = {}
        self._answers: OrderedDict[str, Delivery] = OrderedDict()

    def standing(self, tenant: str, channel: str) -> Standing:
        """Return how a channel is."""
        return self._standing.get((tenant, channel), Standing())

    def waiting(self, tenant: str, channel: str) -> int:
        """Return how many messages wait for their outcome."""
        return len(self._due.get((tenant, channel), ()))

    def answer(self, number: str) -> Delivery | None:
        """Return what came of a message or test that was sent lately, by its id."""
        return self._answers.get(number)

    def take(self, record: Record | None) -> None:
        """Fold one record in."""
        if isinstance(record, Look):
            for message in record.messages:
                for channel in message.channels:
                    due = self._due.setdefault((record.tenant, channel), set())
                    due.add(message.notification.id)
        elif isinstance(record, Attempt | Delivery):
            self._came_of(record)

    def _came_of(self, record: Attempt | Delivery) -> None:
        place = record.tenant, record.channel
        outcome = "failed"
        if isinstance(record, Delivery):
            outcome = record.outcome
            self._due.get(place, set()).discard(record.id)
            self._answers[record.id] = record
            if len(self._answers) > MAX_ANSWERS:
                self._answers.popitem(last=False)
        before = self._standing.get(place, Standing())
        since_ms = record.at_ms if before.failing_ms is None else before.failing_ms
        self._standing[place] = replace(
            before,
            outcome=outcome,
            at_ms=record.at_ms,
            status=record.status,
            why=record.why,
            took_ms=record.took_ms,
            failing_ms=None if outcome == "delivered" else since_ms,
        )
