"""The log gone through twice for an audit, beside what retention takes of it meanwhile.

Retention goes on while the log is read. What it has taken of what was still to be read is noticed
where offsets are missing; only then is the log's start asked for, at times, as a transaction leaves
holes, too. It costs the panes and minutes that may lack something of it, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from confluent_kafka import Message
from weir.clock import Clock

from weir_analytics.jobs.log_records import LogRecord, Passage
from weir_analytics.jobs.reach import overtaken
from weir_analytics.jobs.sample import PaneAt
from weir_analytics.jobs.task import Progress, RefusedError
from weir_analytics.jobs.walk import Walk
from weir_analytics.panes.log_offsets import LogOffsets

# Between two looks at the log's start, each of which asks a broker; unless so much is missing.
LOOK_EVERY_S: Final = 60.0
MOST_GAPS: Final = 1_000


class Recounting(Protocol):
    """What counts panes again in two passages of the log."""

    def look_for(self, records: Iterable[LogRecord]) -> None:
        """Take records of the first time through."""
        ...

    def count(self, records: Iterable[LogRecord]) -> None:
        """Take records of the second time through, which are the same in the same order."""
        ...

    def leave_out(self, panes: Collection[PaneAt]) -> None:
        """Count some panes no further."""
        ...


@dataclass
class Recounted:
    """Panes that are counted again.

    Attributes:
        by: What counts them.
        held: Those that it still counts.
        ends: By pane, partition -> offset: it was looked at when all before it was counted.
        margin_ms: How long before such a pane the log is read.
        overtaken: Those of which retention took something before it was read.
    """

    by: Recounting
    held: Mapping[PaneAt, Any]
    ends: Mapping[PaneAt, Mapping[int, int]]
    margin_ms: int
    overtaken: set[PaneAt] = field(default_factory=set)

    def lose(self, gone: Collection[PaneAt]) -> None:
        """Leave some panes out: retention took something of them."""
        self.overtaken.update(pane for pane in gone if pane in self.held)
        self.by.leave_out(gone)


class Reading:
    """Both times through a range of the log."""

    def __init__(
        self,
        log: LogOffsets,
        walks: Sequence[Walk],
        bounds: tuple[Mapping[int, int], Mapping[int, int]],
        recounted: Sequence[Recounted],
    ) -> None:
        """Begin with nothing read.

        Args:
            log: Whose start tells what retention took.
            walks: Two over the same range.
            bounds: Partition -> first offset of the range, and the offset behind its last.
            recounted: What is counted again.
        """
        self._log, self._walks, self._recounted = log, walks, recounted
        begin, self._end = bounds
        self._passages = Passage(begin), Passage(begin)
        self._look_at_s = 0.0

    @property
    def progress(self) -> Progress:
        """Return how many records were read, of both times through."""
        found = [walk.progress for walk in self._walks]
        return Progress(sum(p.at for p in found), sum(p.of for p in found) or 1)

    def step(self, clock: Clock, is_over: Callable[[], bool]) -> bool:
        """Read on until `is_over`; return whether all that decides was read, both times.

        That is nothing more once nothing is held: for the largest panes there may be no room.

        Raises:
            KafkaException: If the log does not answer.
            RefusedError: If retention took something of everything that is counted again.
        """
        takes = self._look_for, self._count
        for walk, passage, take in zip(self._walks, self._passages, takes, strict=True):
            is_done = walk.each(take, lambda: is_over() or not self._holds)
            if is_done:
                passage.end(self._end)
            is_due = is_done or clock.monotonic_s() >= self._look_at_s
            if passage.gaps and (is_due or len(passage.gaps) >= MOST_GAPS):
                self._look_at_s = clock.monotonic_s() + LOOK_EVERY_S
                self._leave_out(passage)
            if not self._holds:
                return True
            if not is_done:
                return False
        return True

    def lose_before(self, whole_ms: int) -> None:
        """Leave out what the log has not had whole since before it was read.

        Args:
            whole_ms: From when on it has all of a pane.

        Raises:
            RefusedError: If nothing is left.
        """
        for one in self._recounted:
            one.lose([pane for pane in one.held if 1000 * pane.start_s < whole_ms])
        self._check_left()

    def close(self) -> None:
        """Close the connections."""
        for walk in self._walks:
            walk.close()

    @property
    def _holds(self) -> bool:
        return any(one.held for one in self._recounted)

    def _look_for(self, messages: Sequence[Message]) -> None:
        records = list(self._passages[0].records(messages))
        for one in self._recounted:
            one.by.look_for(records)

    def _count(self, messages: Sequence[Message]) -> None:
        records = list(self._passages[1].records(messages))
        for one in self._recounted:
            one.by.count(records)

    def _leave_out(self, passage: Passage) -> None:
        """Leave out what lacks something that retention took."""
        low = self._log.start()
        lost = [gap for gap in passage.gaps if low.get(gap.partition, 0) > gap.start]
        passage.gaps.clear()
        for one in self._recounted if lost else ():
            one.lose(list(overtaken(lost, one.ends, one.margin_ms)))
        self._check_left()

    def _check_left(self) -> None:
        lost = sum(len(one.overtaken) for one in self._recounted)
        if lost and not self._holds:
            msg = (
                f"the log must hold some of the sample until it is read, but retention has taken "
                f"something of all its {lost} panes; ask again, with a shorter last"
            )
            raise RefusedError(msg)
