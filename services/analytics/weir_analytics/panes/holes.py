"""Holes: records below the end of the log that reading it did not bring (I13).

Offsets of `weir.events` follow one another: its producers use no transactions, and it is not
compacted. A task that meets a hole ends before anything is committed, and the driver begins
again: the range is read once more. A hole that stays is lost, like what retention took: it
is told with place and count, panes that it may touch are incomplete, and counting goes on.

The same holds of what is read before a range, where a dedup state is made again: a repeat of
a record that did not come would be counted twice.

What became of a hole is kept by the process: the next one tries anew, and tells it again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import structlog
from weir.commit import Offsets

LOG = structlog.get_logger()

TRIES: Final = 3
MOST_TOLD: Final = 1_000
"""Of so many holes an error tells; the others are met again once these are given up."""
_SAID: Final = "offsets must follow one another, got none of"
_PLACE: Final = r"partition (\d+) from (\d+) to (\d+)"
_TOLD: Final = re.compile(rf"HoleError: {_SAID} {_PLACE}(?:, {_PLACE})*; the range is read again")


class Hole(NamedTuple):
    """Offsets of a partition without a record.

    Attributes:
        partition: Where.
        first: The first one.
        last: The last one.
    """

    partition: int
    first: int
    last: int


class HoleError(Exception):
    """Records were missing; nothing of their range may be recorded before that is told.

    Attributes:
        holes: Where, of many the first ones.
    """

    def __init__(self, holes: Sequence[Hole]) -> None:
        self.holes = tuple(holes[:MOST_TOLD])
        places = ", ".join(f"partition {p} from {a} to {b}" for p, a, b in self.holes)
        super().__init__(f"{_SAID} {places}; the range is read again")


class OvertakenError(Exception):
    """Retention took what a lane was still to count again, and readers do not know of it yet.

    Attributes:
        incomplete_before_ms: Panes that start earlier may lack events for good.
    """

    def __init__(self, lane: int, incomplete_before_ms: int) -> None:
        self.incomplete_before_ms = incomplete_before_ms
        super().__init__(
            f"a start record must say that panes before {incomplete_before_ms} ms are incomplete, "
            f"since the log no longer has all of lane {lane}; the lane goes on after it"
        )


class Reading:
    """What a task has read of its range, and what it has not."""

    def __init__(self, start: Offsets, end: Offsets) -> None:
        self._start, self._end = start, end
        self._next: dict[int, int] = {}
        self._holes: list[Hole] = []

    def take(self, partition: int, offsets: npt.NDArray[np.int64]) -> None:
        """Take note of the next records of a partition."""
        at = self._next.get(partition, self._start.get(partition, 0))
        before = np.concatenate(([at - 1], offsets[:-1]))
        for n in np.flatnonzero(offsets - before > 1):
            self._holes.append(Hole(partition, int(before[n]) + 1, int(offsets[n]) - 1))
        self._next[partition] = int(offsets[-1]) + 1

    def holes(self, *, all_partitions: bool) -> list[Hole]:
        """Return what is missing now that all was read.

        Args:
            all_partitions: Whether all were this task's; else those that it saw records of.
        """
        found = list(self._holes)
        for partition in self._end if all_partitions else self._next:
            at = self._next.get(partition, self._start.get(partition, 0))
            if at < self._end[partition]:
                found.append(Hole(partition, at, self._end[partition] - 1))
        return found


def beyond(holes: Iterable[Hole], known: Iterable[Hole]) -> list[Hole]:
    """Return what of some holes lies in none of those that are known."""
    ordered = sorted(known)
    found: list[Hole] = []
    for partition, first, last in holes:
        at = first
        for one in ordered:
            if one.partition == partition and at <= one.last and one.first <= last:
                if at < one.first:
                    found.append(Hole(partition, at, one.first - 1))
                at = one.last + 1
        if at <= last:
            found.append(Hole(partition, at, last))
    return found


def check_read(
    holes: Iterable[Hole],
    known: Iterable[Hole],
    first_offsets: Callable[[Collection[int]], Offsets],
) -> None:
    """Do nothing if every hole is known to be lost, or was taken by retention.

    Retention takes the beginning of the log, also of a range that is being read. Who is behind
    it is told elsewhere; it is no hole.

    Args:
        holes: What was not read.
        known: What is known and told.
        first_offsets: Returns what some partitions begin with now; asked only if need be.

    Raises:
        HoleError: If there is another one.
    """
    if missing := beyond(holes, known):
        missing = beyond(missing, taken(first_offsets({hole.partition for hole in missing})))
    if missing:
        raise HoleError(missing)


def last_record(partition: int, end: int, known: Iterable[Hole]) -> int:
    """Return the offset of the last record before `end`, with the holes that are known."""
    last = end - 1
    for one in sorted(known, reverse=True):
        if one.partition == partition and one.first <= last <= one.last:
            last = one.first - 1
    return last


def taken(first: Offsets) -> list[Hole]:
    """Return what retention has taken, as holes."""
    return [Hole(partition, 0, offset - 1) for partition, offset in first.items() if offset]


def up_to(holes: Iterable[Hole], end: Offsets) -> tuple[Hole, ...]:
    """Return the holes that a range up to some offsets may meet: those in it, and before it.

    How far before it a dedup state is read back from is known only where that is done.
    """
    return tuple(one for one in holes if one.first < end.get(one.partition, 0))


class Met:
    """What of the log a process has found to be lost, after its start.

    Attributes:
        lost: The holes that it has given up.
        lacks_ms: Panes that start earlier lack what retention took from lanes; 0: none.
    """

    def __init__(self) -> None:
        self.lost: tuple[Hole, ...] = ()
        self.lacks_ms = 0
        self._tries: Counter[Hole] = Counter()

    def take(self, error: BaseException, missing: Sequence[Hole] = ()) -> bool:
        """Take note of what an error tells to be lost; return whether any of it is given up.

        A hole that the driver itself raises was found after the commit: no reading fills it.

        Args:
            error: The error.
            missing: The records that are missing by it.
        """
        if isinstance(error, OvertakenError):
            self.lacks_ms = max(self.lacks_ms, error.incomplete_before_ms)
            return True
        before = len(self.lost)
        holes = beyond(missing, self.lost)
        if holes:
            LOG.warning("offset_hole", holes=len(holes), **holes[0]._asdict())
        for hole in holes:
            self._tries[hole] += 1
            if self._tries[hole] >= TRIES or isinstance(error, HoleError):
                self.lost = (*self.lost, hole)
                del self._tries[hole]
                LOG.error("log_lost", count=hole.last - hole.first + 1, **hole._asdict())
        return len(self.lost) > before


def holes_in(line: str) -> tuple[Hole, ...]:
    """Return the holes that a line names, if it is what a `HoleError` says, and nothing else."""
    if _TOLD.fullmatch(line) is None:
        return ()
    return tuple(Hole(*map(int, place)) for place in re.findall(_PLACE, line))
