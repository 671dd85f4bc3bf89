"""Where deletion by size is in a log, and how fast it goes on: pure, by what some looks have seen.

Kafka deletes whole segments once a partition is larger than `retention.bytes` without its first
one. So its first offset stands still for as long as a segment takes to come, and then moves by all
of it at once; and as a broker looks for what to delete every few minutes, by several. By its pace,
over some segments, deletion moves as evenly as records come.

A move that takes more than it leaves, and a segment beside it, is none of that, nor is one that
leaves less than is kept: what lies there was deleted by hand, or was too old after a long pause, or
retention was lowered. Of what comes then nothing goes by size before as much is there as deletion
by size has left before; where it was not seen to delete, before it does.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from weir.retention import Retention

STEPS: Final = 8
"""So many moves of the first offset are remembered: a pace over few depends on when was looked."""
FEWEST: Final = 3
"""By fewer no pace is told: a look may come some time after a segment has gone."""


@dataclass(frozen=True)
class LogStart:
    """Where deletion by size is in a partition.

    Attributes:
        offset: Up to which record it has come by its pace; that one may still be there, as its
            segment goes as a whole.
        per_s: Records deleted in a second, over the last segments; None: too few were seen to go.
        is_emptied: Whether something else has deleted records, and there is room again: deletion by
            size is far from here.
    """

    offset: float
    per_s: float | None = None
    is_emptied: bool = False


@dataclass(frozen=True)
class _Step:
    """The first offset has moved: seen when, to where, by how much, how far from the end."""

    at_ms: int
    oldest: int
    moved: int
    held: int


class LogStarts:
    """The first offsets of a log's partitions, as they were seen to move."""

    def __init__(self) -> None:
        self._oldest: dict[int, int] = {}
        self._steps: dict[int, deque[_Step]] = {}
        # Where something else has deleted records last: as many fit as deletion by size has left
        # before, at least; None: it was not seen to delete.
        self._emptied: dict[int, int | None] = {}

    def see(
        self, partition: int, oldest: int, end: int, at_ms: int, retention: Retention
    ) -> LogStart:
        """Take in what a look has found in a partition; return where deletion is.

        Args:
            partition: Its number.
            oldest: Offset of the oldest record that is there.
            end: The offset that the next record will get.
            at_ms: The present, by a clock that never steps: a pace is measured by it.
            retention: By what its records are deleted.
        """
        before = self._oldest.get(partition, oldest)
        self._oldest[partition] = oldest
        steps = self._steps.setdefault(partition, deque(maxlen=STEPS))
        if oldest < before:
            steps.clear()  # another log
            self._emptied.pop(partition, None)
        elif oldest > before and not retention.may_have_taken(oldest - before, end - oldest):
            # No deletion by size: the fewest that it leaves would be these few.
            known = self._emptied.get(partition)
            self._emptied[partition] = min((one.held for one in steps), default=known)
            steps.clear()
        elif oldest > before:
            steps.append(_Step(at_ms, oldest, oldest - before, end - oldest))
            self._emptied.pop(partition, None)
        is_emptied = self._has_room(partition, end - oldest)
        return LogStart(_reached(steps, oldest, end), _per_s(steps, at_ms), is_emptied)

    def _has_room(self, partition: int, held: int) -> bool:
        if partition not in self._emptied:
            return False
        fits = self._emptied[partition]
        return fits is None or held < fits


def _reached(steps: deque[_Step], oldest: int, end: int) -> float:
    """Return how far deletion is: as many records from the end as are left when a segment goes.

    That is the fewest that were, since a look may come long after it. What has not been deleted
    long after it was due is not: retention may just have been raised.
    """
    if not steps:
        return oldest
    held = min(step.held for step in steps)
    return max(oldest, min(end - held, oldest + steps[-1].moved))


def _per_s(steps: deque[_Step], at_ms: int) -> float | None:
    if len(steps) < FEWEST:
        return None
    first, last = steps[0], steps[-1]
    if last.at_ms <= first.at_ms:
        return None
    gone = last.oldest - first.oldest
    by_steps = gone / (last.at_ms - first.at_ms)
    # No segment has gone since, so it has become slower, if that is long ago.
    at_most = (gone + last.moved) / (at_ms - first.at_ms)
    return 1000 * min(by_steps, at_most)
