"""Lanes that count the past, and retention behind them: whether they are overtaken. Pure.

A lane begins near the end of the log that is deleted, and moves away from it: it is in danger
only if it is slower than deletion, or stands still. By age that shows in the time that its next
record has left. By size that time says little: it rises while a segment is not full, and falls by
all of a segment at once. So there the lane's pace is held against that of deletion, in offsets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from weir.log_left import (
    FirstLost,
    PartitionLog,
    age_left_ms,
    ahead_of_deletion,
    is_gone,
    soonest,
)
from weir.log_place import LogPlace
from weir.retention import Retention

STILL_MS: Final = 60_000
"""For so long a lane is looked at before anything is told of it; so long it has to stand still."""
PACE_MS: Final = 300_000
"""How fast it is, is seen over so long: it counts slice by slice, with pauses between them."""


@dataclass(frozen=True)
class Pursuit:
    """How near deletion is to what a lane counts next in a partition.

    Attributes:
        partition: Where.
        by_age_ms: For how long that is kept by its age; below 0: for so long it could have been
            deleted; None: for ever.
        ahead: By how many records it is ahead of deletion by size, below 0 once it could be
            deleted; None: nothing is deleted by size.
        deleted_per_s: How many are deleted in a second.
        is_gone: Whether it is deleted.
    """

    partition: int
    by_age_ms: int | None = None
    ahead: float | None = None
    deleted_per_s: float = 0.0
    is_gone: bool = False

    @property
    def still_ms(self) -> int | None:
        """For how long it is kept if the lane stands still; None: for ever."""
        times = (self.by_age_ms, self.reached_ms(0.0))
        return min((ms for ms in times if ms is not None), default=None)

    def reached_ms(self, per_s: float) -> int | None:
        """Return when deletion by size reaches a lane; None: never.

        Args:
            per_s: How many records the lane moves on in a second.
        """
        nearer_per_s = self.deleted_per_s - per_s
        if self.ahead is None or nearer_per_s <= 0:
            return None
        return int(self.ahead / nearer_per_s * 1000)


def pursuits(
    partitions: Iterable[PartitionLog], retention: Retention, now_ms: int
) -> list[Pursuit]:
    """Return how near deletion is to lanes, in each partition that ever loses anything."""
    found = (_pursuit(one.anew(), retention, now_ms) for one in partitions)
    return [one for one in found if one.is_gone or one.still_ms is not None]


def _pursuit(log: PartitionLog, retention: Retention, now_ms: int) -> Pursuit:
    start = log.start
    per_s = log.per_s if start is None or start.per_s is None else start.per_s
    return Pursuit(
        partition=log.partition,
        by_age_ms=age_left_ms(log, retention, now_ms),
        ahead=ahead_of_deletion(log, retention),
        deleted_per_s=per_s,
        is_gone=is_gone(log),
    )


@dataclass(frozen=True)
class _Look:
    """What was seen of a lane in a partition.

    Attributes:
        at_ms: When.
        by_age_ms: See `Pursuit`.
        first: What it counts next.
        here: How many records lanes have still to count in this partition; None: not known.
        rest: The same of all partitions.
        left_out: Whether it has no turn coming.
    """

    at_ms: int
    by_age_ms: int | None
    first: int
    here: int | None
    rest: int | None
    left_out: bool


class Race:
    """Lanes, and retention behind them: who is faster in each partition, by the last minutes."""

    def __init__(self) -> None:
        self._looks: dict[int, deque[_Look]] = {}
        # Where a lane waited its turn at the last look.
        self._waiting: set[int] = set()

    def overtaken(
        self, near: Iterable[Pursuit], places: Mapping[int, LogPlace], at_ms: int
    ) -> FirstLost | None:
        """Return where a lane is overtaken first if all goes on so, and when; None: they get away.

        Each partition is looked at: what is next in one may only wait its turn, while what is kept
        longer in another has none. What is gone is lost at once.

        Args:
            near: How near deletion is to lanes.
            places: How far they are.
            at_ms: The present, by a clock that never steps: a pace is measured by it.
        """
        first = {p: one.lane for p, one in places.items() if one.lane is not None}
        rests = [rest for p in first if (rest := places[p].rest) is not None]
        rest = sum(rests) if len(rests) == len(first) else None
        before, self._looks = self._looks, {}
        waited, self._waiting = self._waiting, set()
        found: list[FirstLost] = []
        for one in near:
            p, place = one.partition, places[one.partition]
            looks = self._looks[p] = before.get(p, deque())
            now = _Look(at_ms, one.by_age_ms, first[p], place.rest, rest, place.left_out)
            _look(looks, now, waited=p in waited)
            if one.is_gone:
                found.append(FirstLost(p, 0, is_gone=True))
            elif _waits(_minute(looks), one.still_ms):
                self._waiting.add(p)
            elif (ms := _overtaken_ms(looks, one)) is not None:
                found.append(FirstLost(p, ms))
        return soonest(found)


def _look(looks: deque[_Look], now: _Look, *, waited: bool) -> None:
    """Add a look; those of another reader, and what is too old, are forgotten.

    So is that one stood still before its turn came: it tells nothing of its pace.
    """
    if looks and (_is_another(looks[-1], now) or (waited and now.first > looks[-1].first)):
        looks.clear()
    looks.append(now)
    while len(looks) > 1 and looks[1].at_ms <= now.at_ms - PACE_MS:
        looks.popleft()


def _is_another(last: _Look, now: _Look) -> bool:
    """Tell whether it went back, or moved on and its time ran out as it does for nobody.

    For one that stands still it does where a clock is set anew: that tells nothing of its pace.
    """
    if now.first <= last.first:
        return now.first < last.first
    if last.by_age_ms is None or now.by_age_ms is None:
        return last.by_age_ms != now.by_age_ms
    return last.by_age_ms - now.by_age_ms > 2 * (now.at_ms - last.at_ms)


def _minute(looks: Sequence[_Look]) -> Sequence[_Look]:
    """Return the looks of the last minute; none before there are as many."""
    before_ms = looks[-1].at_ms - STILL_MS
    if looks[0].at_ms > before_ms:
        return ()
    return [*(one for one, after in pairwise(looks) if after.at_ms > before_ms), looks[-1]]


def _overtaken_ms(looks: Sequence[_Look], near: Pursuit) -> int | None:
    """Return when a lane is overtaken if it goes on so; None: it gets away.

    Until it has been looked at for a minute it is taken to get away, and so is one that will have
    counted all before.
    """
    minute = _minute(looks)
    if not minute:
        return None
    is_still = minute[0].first == looks[-1].first
    by_age_ms, seen = (near.by_age_ms, minute) if is_still else (_too_old_ms(looks), looks)
    times = (
        _unless_done(by_age_ms, seen),
        _unless_done(near.reached_ms(_per_s(looks)), looks),
    )
    return min((max(0, ms) for ms in times if ms is not None), default=None)


def _per_s(looks: Sequence[_Look]) -> float:
    """Return how many records a lane has moved on in a second."""
    return (looks[-1].first - looks[0].first) / (looks[-1].at_ms - looks[0].at_ms) * 1000


def _too_old_ms(looks: Sequence[_Look]) -> int | None:
    """Return when what a lane that moves counts next is too old; None: it gets away."""
    first_ms, left_ms = looks[0].by_age_ms, looks[-1].by_age_ms
    if first_ms is None or left_ms is None or first_ms < left_ms:
        return None
    if left_ms <= 0:
        return 0
    fallen_ms, passed_ms = first_ms - left_ms, looks[-1].at_ms - looks[0].at_ms
    return left_ms * passed_ms // fallen_ms if fallen_ms else None


def _unless_done(ms: int | None, looks: Sequence[_Look]) -> int | None:
    """Return the time until a lane is overtaken; None if all of it is counted before."""
    if ms is None or looks[-1].left_out:
        return ms
    ends_ms = _ends_ms(looks[-1].here, [one.here for one in looks], looks)
    return None if ends_ms is not None and 0 < ends_ms < ms else ms


def _waits(minute: Sequence[_Look], still_ms: int | None) -> bool:
    """Tell whether one stands still while others are counted, so fast that its turn comes in time.

    A rebuild counts the newest hours first, so its oldest lane stands still for as long as all of
    it takes. Where what is next may go at any time nothing can be foreseen: it waits.
    """
    # One that waited all the while, and failed just now, is soon tried again.
    if not minute or minute[0].first != minute[-1].first or all(one.left_out for one in minute):
        return False
    ends_ms = _ends_ms(minute[-1].rest, [one.rest for one in minute], minute)
    return ends_ms is not None and (still_ms is None or still_ms <= 0 or ends_ms < still_ms)


def _ends_ms(rest: int | None, rests: Sequence[int | None], looks: Sequence[_Look]) -> float | None:
    """Return when what is left is counted; None: that is not known, or nothing of it is."""
    known = [one for one in rests if one is not None]
    # What a new lane adds takes nothing from how fast they are counted.
    fell = sum(max(0, before - now) for before, now in pairwise(known))
    if rest is None or not fell:
        return None
    return rest * (looks[-1].at_ms - looks[0].at_ms) / fell
