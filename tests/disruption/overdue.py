"""What must be in the numbers: each event that was acknowledged before processed-through (I11).

Received is when the broker appended an event, by the broker's clock: before its sender has the
answer. What is not counted yet of a partition came behind all that is, so it is no older than
processed-through. With one clock, then, whatever was answered before processed-through is counted.
Where a broker's clock steps back, received, a running maximum, stands, and processed-through with
it: less is due, and rightly. Where it is ahead, events are received later than they were answered,
by so much at most: so much later they are due. The clocks of Weir's own parts stamp nothing here.

Pure, as `judge.py` is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from account import epoch_ms
from disruption.judge import PaneKey
from equality import PANE_MS
from load import GROUPS

# First event, how many, and the time of all of them as written; see `load.Load.batches`.
Batch = tuple[int, int, str]
# Provisional and final: the log of such a pane is whole, and nothing of it is counted again.
WHOLE = "pf"


class Tally:
    """How many events of a load's first batches lie in each pane, for more and more of them."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        """Begin with none.

        Args:
            batches: In order; there may be more later.
        """
        self._batches = batches
        self._taken, self._events = 0, Counter[PaneKey]()

    def of_first(self, count: int) -> Mapping[PaneKey, int]:
        """Return the events of so many batches, by group and end of the pane in ms."""
        if count < self._taken:  # an epoch may begin behind where the one before it was
            self._taken, self._events = 0, Counter()
        for first, events, time_text in self._batches[self._taken : count]:
            end_ms = epoch_ms(time_text) // PANE_MS * PANE_MS + PANE_MS
            for number in range(first, first + events):
                self._events[f"g{number % GROUPS}", end_ms] += 1
        self._taken = count
        return self._events


class Overdue:
    """What was acknowledged before processed-through and is not counted, answer after answer."""

    def __init__(
        self, batches: Sequence[Batch], answered_ms: Sequence[int], *, ahead_ms: int = 0
    ) -> None:
        """Begin with no answer.

        Args:
            batches: Of the load, in order.
            answered_ms: When each of them was acknowledged, by the sender's clock.
            ahead_ms: By how much a broker's clock may be ahead of that one.
        """
        self._due, self._answered_ms, self._ahead_ms = Tally(batches), answered_ms, ahead_ms
        self._short_in: int | None = None

    def take(
        self, answer: Mapping[str, Any], found: Mapping[PaneKey, int], *, may_fall: bool = False
    ) -> list[str]:
        """Judge one answer.

        Of a pane that is not kept, rebuilding or incomplete nothing is promised but that it says
        so. Where Redis is taken back in time, one answer may have the time of before that and
        panes of after it; the next one has not.

        Args:
            answer: Of the query API.
            found: Its counts, of panes of which one is known.
            may_fall: Whether the fault takes Redis back in time.
        """
        epoch, short = answer["epoch"], self._short(answer, found)
        before, self._short_in = self._short_in, epoch if short else None
        if not short or (may_fall and before != epoch):
            return []
        through_ms = answer["fresh"]["processed_through_ms"]
        key, missing = max(short.items(), key=itemgetter(1))
        return [
            f"{sum(short.values())} events are not counted that were acknowledged before "
            f"processed-through, {through_ms}: of pane {key} {missing}"
        ]

    def _short(self, answer: Mapping[str, Any], found: Mapping[PaneKey, int]) -> dict[PaneKey, int]:
        """Return how many events each pane lacks."""
        through_ms = answer["fresh"]["processed_through_ms"]
        if through_ms is None:  # nothing is promised
            return {}
        count = bisect_left(self._answered_ms, through_ms - self._ahead_ms)
        whole = whole_panes(answer)
        return {
            key: events - found.get(key, 0)
            for key, events in self._due.of_first(count).items()
            if key[1] in whole and found.get(key, 0) < events
        }


def whole_panes(answer: Mapping[str, Any]) -> set[int]:
    """Return the ends of the panes that an answer calls whole.

    All series have the same states. An answer without series tells of none how it is.
    """
    for series in answer["series"]:
        states = zip(answer["t_ms"], series["state"], strict=True)
        return {end_ms for end_ms, state in states if state in WHOLE}
    return set()
