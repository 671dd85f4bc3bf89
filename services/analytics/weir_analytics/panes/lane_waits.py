"""Lanes that wait: what cannot be counted now is left out for a while, and all else goes on.

An old part of the log may not be readable, or its store may take longer for it than anybody waits;
an old record may end its worker. Live counting and other lanes need none of that. So a lane whose
slice has failed waits, longer each time, and is counted on by a small slice that went through a
trial first, beside live batches: a slice that fails holds the turn, for a minute at worst.

Nothing here reads a clock or does I/O. It outlives a driver's lives; a lane is named by the offset
of its record. What waits is replaced and never changed: live batches tell it meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 300.0
# After one has failed again the thread is for others, so many times as long as that took, together
# with the search for whose failure it is.
OTHERS: Final = 4


class _Wait(NamedTuple):
    """What is known of a lane that waits.

    Attributes:
        times: How often it has failed, one time after the other.
        suspect: How many of these were trials that failed with what may be a version's.
        why: With what.
        until_s: When it is tried again.
    """

    times: int
    suspect: int
    why: str
    until_s: float


class LaneWaits:
    """The lanes that wait, and those whose next slice is to be tried first."""

    def __init__(self) -> None:
        self._waits: dict[int, _Wait] = {}
        self._next_s = 0.0
        self._is_wary = False
        self._trusted: set[int] = set()
        self._to_be_tried: set[int] = set()

    @property
    def whys(self) -> Mapping[int, str]:
        """Return by lane why it waits."""
        return {lane: one.why for lane, one in self._waits.items()}

    def left_out(self, now_s: float) -> Collection[int]:
        """Return the lanes of which nothing is counted now: of those that wait all but one.

        That is one whose time has come, and of these the one that has failed the least: one that
        failed together with others may well be readable.
        """
        due = {
            lane: one
            for lane, one in self._waits.items()
            if one.until_s <= now_s and (one.times == 1 or self._next_s <= now_s)
        }
        chosen = min(due, key=lambda lane: (due[lane].times, due[lane].until_s), default=None)
        return self._waits.keys() - {chosen}

    def is_wary_of(self, lane: int) -> bool:
        """Tell whether a lane's next slice is to be tried first.

        After a slice has failed this is so of every lane until one of its own went well, or nobody
        waits any more: what one cannot read others may not be able to read either.
        """
        return self._is_wary and lane not in self._trusted

    def fail(self, lanes: Collection[int], why: str, now_s: float, took_s: float = 0.0) -> float:
        """Take note that a slice of some lanes failed; return how long they wait.

        One that had gone through its trial says nothing new of others. It may fail each time all
        the same: a trial has one task, copies nothing to quarantine and writes nothing.
        """
        if not all(map(self.is_wary_of, lanes)):
            self._trusted.clear()
        self._is_wary = True
        self.leave_time(now_s, took_s)
        return max((self._wait(lane, why, now_s) for lane in lanes), default=0.0)

    def fail_trial(
        self, lane: int, why: str, now_s: float, took_s: float, *, is_outside: bool = False
    ) -> float:
        """Take note that a slice failed where it was tried; return how long its lane waits.

        Args:
            lane: The lane.
            why: With what.
            now_s: The time, by the clock that never steps back.
            took_s: How long the trial took.
            is_outside: Whether that was of the log, the store or a disk.
        """
        self.leave_time(now_s, took_s)
        pause_s = self._wait(lane, why, now_s)
        if not is_outside:
            one = self._waits[lane]
            self._waits = {**self._waits, lane: one._replace(suspect=one.suspect + 1)}
        return pause_s

    def leave_time(self, now_s: float, took_s: float) -> None:
        """Leave the thread to others for a while, after what has failed and what followed it."""
        self._next_s = max(self._next_s, now_s + OTHERS * took_s)

    def times(self, lane: int) -> int:
        """Return how often a lane has failed, one time after the other."""
        found = self._waits.get(lane)
        return 0 if found is None else found.times

    def suspect(self, lane: int) -> int:
        """Return how many of these were trials that failed with what may be a version's."""
        found = self._waits.get(lane)
        return 0 if found is None else found.suspect

    def go_on(self, lane: int) -> None:
        """Let a lane wait no longer; its next slice is tried first all the same."""
        if lane in self._waits:
            self._to_be_tried.add(lane)
            self._waits = {n: one for n, one in self._waits.items() if n != lane}

    def done(self, lane: int) -> None:
        """Take note that a slice of a lane went well."""
        self.go_on(lane)
        self._to_be_tried.discard(lane)
        self._trusted.add(lane)
        if not self._waits and not self._to_be_tried:
            self._trust_all()

    def keep(self, lanes: Collection[int]) -> None:
        """Forget the lanes that are no more."""
        had = bool(self._waits or self._to_be_tried)
        self._waits = {lane: one for lane, one in self._waits.items() if lane in lanes}
        self._to_be_tried.intersection_update(lanes)
        self._trusted.intersection_update(lanes)
        if had and not self._waits and not self._to_be_tried:
            self._trust_all()

    def _trust_all(self) -> None:
        """Try no slice first any more: what failed was read, or nobody wants it."""
        self._is_wary = False
        self._trusted.clear()

    def _wait(self, lane: int, why: str, now_s: float) -> float:
        times = self.times(lane)
        pause_s: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(times, 30))
        wait = _Wait(times + 1, self.suspect(lane), why, now_s + pause_s)
        self._waits = {**self._waits, lane: wait}
        return pause_s
