"""Which message of a channel is sent next, and when: decided here, sent by the outbox.

Each alert has an order and pauses of its own, so that a message that its receiver cannot
take holds up no other alert. A receiver that is away is another matter: where nothing
answers, or one alert after the other fails, it is called by one at a time, with a pause of
the whole channel after each try that fails.

    a try fails             its alert pauses for a second, then for twice as long each time
    … without an answer     and so does the channel
    … the fourth alert in a row, each answered      the channel pauses for a second
    a message is taken, or refused for good         the channel goes on
    a message is a day old                          it is given up, tried or not

Two alerts of one series are not under way at once: while nothing fails, a receiver is told
of them in their order, too.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from weir.alerts.due import Due, DueKey
from weir.alerts.records import Notification

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
FAILED_IN_ROW: Final = 4
"""As many alerts, one after the other, and it is the receiver that fails."""
GIVE_UP_MS: Final = 86_400_000
LOOK_EVERY_S: Final = 60.0
"""How often all heads are looked through for those that are too old."""
MOST_OLD: Final = 100
"""That many are given up at a time, so that what may be sent does not wait for all of them."""

Head = tuple[DueKey, Due]
_Subject = tuple[str, frozenset[tuple[str, str | None]]]


@dataclass(frozen=True, slots=True)
class _Failed:
    """A message whose tries failed so far.

    Attributes:
        tries: How often it was sent.
        from_s: When it may be sent again, on the monotonic clock.
    """

    tries: int
    from_s: float


class Line:
    """What one channel is doing.

    Attributes:
        is_away: Whether its receiver is taken to be away.
    """

    def __init__(self) -> None:
        self.is_away = False
        self._under_way: dict[str, _Subject] = {}
        self._failed: dict[str, _Failed] = {}
        self._in_row: set[str] = set()
        self._unanswered = 0
        self._from_s = 0.0
        self._look_from_s = 0.0

    def too_old(self, heads: Iterable[Head], now_s: float, now_ms: int) -> list[Head]:
        """Return messages to give up without another try; none before it is time to look again.

        What was not tried yet goes first, so a receiver that is away is never called with
        most of what waits: no try that fails would end those.

        Args:
            heads: The oldest message of each alert.
            now_s: The monotonic clock.
            now_ms: The clock that says since when they are due.
        """
        if now_s < self._look_from_s:
            return []
        old = (
            head
            for head in heads
            if is_too_old(head[1], now_ms) and _alert(head) not in self._under_way
        )
        found = list(islice(old, MOST_OLD))
        if len(found) < MOST_OLD:
            self._look_from_s = now_s + LOOK_EVERY_S
        return found

    def next(self, heads: Iterable[Head], now_s: float, at_once: int) -> Head | None:
        """Return the message that may be sent now, and take it for under way.

        Those that were not tried yet go first, so that none that fails comes before them.

        Args:
            heads: The oldest message of each alert, oldest first.
            now_s: The monotonic clock.
            at_once: How many the channel may send at a time.
        """
        if now_s < self._from_s or not self._has_room(at_once):
            return None
        again, since_s = None, math.inf
        for head in self._free(heads):
            failed = self._failed.get(_alert(head))
            if failed is None:
                return self._begun(head)
            if failed.from_s <= now_s and failed.from_s < since_s:
                again, since_s = head, failed.from_s
        return None if again is None else self._begun(again)

    def wait_s(self, heads: Iterable[Head], now_s: float, at_once: int) -> float | None:
        """Return how long nothing can be sent; None: until something comes or has ended."""
        if not self._has_room(at_once):
            return None
        if now_s < self._from_s:
            return self._from_s - now_s
        free = (self._failed.get(_alert(head)) for head in self._free(heads))
        from_s = [failed.from_s if failed else now_s for failed in free]
        return max(0.0, min(from_s) - now_s) if from_s else None

    def tries(self, alert: str) -> int:
        """Return how often the message of an alert was sent and failed."""
        failed = self._failed.get(alert)
        return 0 if failed is None else failed.tries

    def failed(self, alert: str, now_s: float, *, answered: bool) -> None:
        """Take note that a message is to be sent again."""
        self._under_way.pop(alert, None)
        tries = self.tries(alert) + 1
        self._failed[alert] = _Failed(tries, now_s + pause_s(tries))
        self._in_row.add(alert)
        self.is_away = not answered or len(self._in_row) >= FAILED_IN_ROW
        if self.is_away and now_s >= self._from_s:
            # Those that were under way together are one failure of the receiver.
            self._unanswered = 0 if answered else self._unanswered + 1
            self._from_s = now_s + pause_s(self._unanswered)

    def ended(self, alert: str, *, answered: bool) -> None:
        """Take note that the outcome of a message stands."""
        self._under_way.pop(alert, None)
        self._failed.pop(alert, None)
        if answered:
            self.is_away, self._unanswered, self._from_s = False, 0, 0.0
            self._in_row.clear()

    def _has_room(self, at_once: int) -> bool:
        return len(self._under_way) < (1 if self.is_away else at_once)

    def _free(self, heads: Iterable[Head]) -> Iterator[Head]:
        """Return what nothing of the same series is under way of."""
        busy = set(self._under_way.values())
        return (head for head in heads if _subject(head[1].notification) not in busy)

    def _begun(self, head: Head) -> Head:
        self._under_way[_alert(head)] = _subject(head[1].notification)
        return head


def is_too_old(due: Due, now_ms: int) -> bool:
    """Tell whether a message has waited for so long that nobody needs it any more."""
    return now_ms - due.since_ms > GIVE_UP_MS


def _alert(head: Head) -> str:
    return head[1].notification.dedup_key


def _subject(note: Notification) -> _Subject:
    return note.rule, frozenset(note.labels.items())


def pause_s(tries: int) -> float:
    """Return how long to pause after some failures; never twice the same, lest all try at once."""
    # Beyond that exponent it is the longest anyhow.
    doubled = min(max(tries, 1), 30) - 1
    longest = min(FIRST_PAUSE_S * 2.0**doubled, LONGEST_PAUSE_S)
    return longest * (0.5 + random.random())  # noqa: S311  no secret
