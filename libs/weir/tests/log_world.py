"""A partition whose segments are deleted while a reader counts it, second by second, and who looks.

A thousand records come in a second, and a segment has a hundred thousand. What is told is what
`LogLook.left` tells of such a log, every quarter of a minute; what is lost is what the deletion of
a segment takes that was not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from weir.log_left import LogLeft, PartitionLog, log_left, with_lane
from weir.log_place import LogPlace
from weir.log_race import Race, pursuits
from weir.log_start import LogStarts
from weir.retention import Retention

PER_S = 1_000
SEGMENT = 100_000
HELD = 1_300_000
"""What a log by size, or by age, holds at least."""
AHEAD = 300_000
"""By how much a reader begins above the oldest record."""
BEGUN_MS = 1_800_000_000_000
BY_SIZE = Retention(None, 10**9)
BY_AGE = Retention(HELD // PER_S * 1000, None)
BOTH = Retention(BY_AGE.ms, BY_SIZE.bytes)


@dataclass(frozen=True)
class Life:
    """What was told of a reader, and when it lost something.

    Attributes:
        told: By the second of a look, what it told; up to the loss.
        lost_s: The second in which a record was deleted that it had not counted; None: none was.
    """

    told: dict[int, LogLeft]
    lost_s: int | None

    @property
    def warned_s(self) -> list[int]:
        """When the looks that warned were."""
        return [s for s, left in self.told.items() if left.is_short]

    @property
    def ahead_s(self) -> int | None:
        """How long before the loss it was warned of, at every look from then on; None: never."""
        since = None
        for s, left in reversed(self.told.items()):
            if not left.is_short:
                break
            since = s
        return None if self.lost_s is None or since is None else self.lost_s - since


@dataclass
class World:
    """A log.

    Attributes:
        retention: By what it is deleted.
        checked_s: How often what is to be deleted is looked for.
        is_live: Whether the reader is live counting; otherwise it is a lane.
        rest: How many records a lane has to count; None: not known.
        comes: How many records come in a second, by the second; by day it were a thousand.
    """

    retention: Retention = BY_SIZE
    checked_s: int = 1
    is_live: bool = False
    rest: int | None = None
    comes: Callable[[int], int] = lambda _s: PER_S

    def lives(self, per_s: Callable[[int], int], *, lasts_s: int = 3_600) -> Life:
        """Let the reader count for some time, or until it has lost something.

        Args:
            per_s: How many records it counts in a second, by the second.
            lasts_s: For how long.
        """
        self._race, self._starts = Race(), LogStarts()
        oldest = first = SEGMENT
        position, told, end = first + AHEAD, dict[int, LogLeft](), first + HELD
        for s in range(lasts_s):
            end += self.comes(s) if s else 0
            while s % self.checked_s == 0 and end - oldest - SEGMENT >= HELD:
                oldest += SEGMENT
            if oldest > position:
                return Life(told, s)
            if s % 15 == 0:
                told[s] = self._told(s, oldest, position, end)
            position = min(end, position + per_s(s))
        return Life(told, None)

    def _told(self, s: int, oldest: int, position: int, end: int) -> LogLeft:
        now_ms, at_ms = BEGUN_MS + s * 1000, s * 1000

        def came_ms(offset: int) -> int:
            return now_ms - (end - offset) * 1000 // PER_S

        start = self._starts.see(0, oldest, end, at_ms, self.retention)
        log = PartitionLog(0, oldest, came_ms(oldest), end, position, None, float(PER_S), start)
        reader = [replace(log, position_ms=came_ms(position))]
        if self.is_live:
            return log_left(reader, self.retention, now_ms)
        live = [replace(log, position=end)]
        left = log_left(live, self.retention, now_ms)
        rest = None if self.rest is None else max(0, self.rest - (position - SEGMENT - AHEAD))
        places = {0: LogPlace(end, lane=position, rest=rest)}
        lost = self._race.overtaken(pursuits(reader, self.retention, now_ms), places, at_ms)
        return left if lost is None else with_lane(left, lost, is_needed=True)
