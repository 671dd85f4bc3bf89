"""When each line of the log happens again: pure arithmetic on times.

One pass over the log lasts an hour. The first pass lies in the hour before the
start, so that charts begin with a line; the next ones follow it, live. A line of a
pass has the same id whenever it is sent, so that a feeder that was killed may send
its last batch again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PASS_MS = 3_600_000
# The log was taken in one minute of each hour; between these bursts nothing happened.
LONGEST_GAP_MS = 2_000


def squeeze(times_ms: Sequence[int], length_ms: int = PASS_MS) -> list[int]:
    """Return the times as offsets in `[0, length_ms)` with the long gaps cut.

    Order and proportions within a burst stay. Lines of the same second are spread
    over it, since the log knows no milliseconds.
    """
    offsets, at_ms = [], 0
    for index, time_ms in enumerate(times_ms):
        if index:
            at_ms += min(time_ms - times_ms[index - 1], LONGEST_GAP_MS)
        offsets.append(at_ms)
    spread = _spread(offsets)
    scale = length_ms / (spread[-1] + 1) if spread else 0.0
    return [int(offset * scale) for offset in spread]


def _spread(offsets: Sequence[int]) -> list[int]:
    spread: list[int] = []
    for index, offset in enumerate(offsets):
        first = bisect_left(offsets, offset)
        same = bisect_left(offsets, offset + 1) - first
        spread.append(offset + 1000 * (index - first) // same)
    return spread


@dataclass(frozen=True)
class Cursor:
    """How far the feeder has sent: everything before line `line` of pass `round`."""

    round: int = 0
    line: int = 0


@dataclass(frozen=True)
class Due:
    """A line whose time has come.

    Attributes:
        round: Which pass over the log, from 0.
        line: Which line of the log, from 0.
        time_ms: When it happens, epoch milliseconds.
    """

    round: int
    line: int
    time_ms: int


@dataclass(frozen=True)
class Schedule:
    """The times of all passes.

    Attributes:
        started_ms: When the feeder was started for the first time: the end of pass 0.
        offsets_ms: Time of each line within a pass, ascending.
        pass_ms: How long a pass is.
    """

    started_ms: int
    offsets_ms: Sequence[int]
    pass_ms: int = PASS_MS

    def due(self, cursor: Cursor, now_ms: int, most: int) -> list[Due]:
        """Return the next lines, at most `most`, that happen at or before now."""
        return list(self._after(cursor, now_ms, most))

    def after(self, cursor: Cursor, sent: int) -> Cursor:
        """Return where one is after sending `sent` lines more."""
        rounds, line = divmod(cursor.line + sent, len(self.offsets_ms))
        return Cursor(cursor.round + rounds, line)

    def not_before(self, cursor: Cursor, oldest_ms: int) -> Cursor:
        """Return the cursor, moved on over lines older than `oldest_ms`.

        A feeder that was away for a night goes on with the last hour.
        """
        begin_ms = self.started_ms - self.pass_ms
        rounds, within_ms = divmod(max(0, oldest_ms - begin_ms), self.pass_ms)
        moved = Cursor(rounds, bisect_left(self.offsets_ms, within_ms))
        return max(cursor, moved, key=lambda c: (c.round, c.line))

    def _after(self, cursor: Cursor, now_ms: int, most: int) -> Iterator[Due]:
        for _ in range(most):
            if cursor.line == len(self.offsets_ms):
                cursor = Cursor(cursor.round + 1, 0)
            time_ms = (
                self.started_ms + (cursor.round - 1) * self.pass_ms + self.offsets_ms[cursor.line]
            )
            if time_ms > now_ms:
                return
            yield Due(cursor.round, cursor.line, time_ms)
            cursor = Cursor(cursor.round, cursor.line + 1)
