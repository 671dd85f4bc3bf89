"""How long the log still holds what is not counted yet: pure arithmetic.

Kafka deletes a record by age (`retention.ms` after its segment was closed) or by size
(`retention.bytes` of a partition), whichever comes first. By age the deadline of the first
record that is not counted is known. By size it depends on what will come: it is told at the
rate of the last day, from how many records lie between those that are deleted and the one that
is next.

Both tell when a reader that stands still is overtaken. One that counts the past, such as a
backfill, begins near the end that is deleted and moves away from it: it is in danger only
if it is slower than that end, or stands still, which `weir.log_race` finds out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from weir.log_start import LogStart
from weir.retention import Retention

SHORT_SHARE: Final = 0.25
"""Of the time that the log keeps events: with less left, what is not counted is soon lost."""


@dataclass(frozen=True)
class PartitionLog:
    """One partition, and how far a reader has come in it.

    Attributes:
        partition: Its number.
        oldest: Offset of the oldest record that is there.
        oldest_ms: When that was appended; None in an empty partition, or if Kafka does not say.
        end: The offset that the next record will get.
        position: The first record that the reader has not counted.
        position_ms: R of the last one that it has; None if it has counted nothing.
        per_s: Records appended in a second, over the last day.
        start: Where deletion by size is; None: where the oldest record is.
    """

    partition: int
    oldest: int
    oldest_ms: int | None
    end: int
    position: int
    position_ms: int | None
    per_s: float
    start: LogStart | None = None

    def anew(self) -> PartitionLog:
        """Return it as it is to a reader whose place it does not reach: nothing is counted.

        It was made anew.
        """
        if self.position <= self.end:
            return self
        return replace(self, position=self.oldest, position_ms=None)

    @property
    def deleted(self) -> float:
        """Up to where deletion by size has come."""
        return self.oldest if self.start is None else self.start.offset


@dataclass(frozen=True)
class FirstLost:
    """What one reader loses first.

    Attributes:
        partition: Where.
        ms: For how long the record is kept. Below 0: for so long it could have been deleted, and
            is still there, since Kafka deletes whole segments, once the newest record of one is
            too old. 0 if it is gone.
        is_gone: Whether records are gone that were not counted.
    """

    partition: int
    ms: int
    is_gone: bool = False


@dataclass(frozen=True)
class LogLeft:
    """The partition whose uncounted records are deleted first.

    Attributes:
        partition: Which; None if nothing is ever deleted.
        ms: For how long its first uncounted record is kept; 0 if some are gone, or may be at any
            time; None: for ever.
        kept_ms: How long a record is kept that is appended now; None: for ever.
        oldest_ms: When the oldest record of the log was appended; None if it is empty.
        waiting: How many records that are there the reader has not counted; None: not known.
        needed_ms: As `ms`, but without backfills of what is not served yet: what one of them
            lacks stood in no number before.
        is_gone: Whether records of that partition are gone that were not counted.
        is_lane: Whether it is what a backfill or a rebuild has still to count.
        are_both_short: Whether live counting and a lane are both short; this tells of one of them.
    """

    partition: int | None = None
    ms: int | None = None
    kept_ms: int | None = None
    oldest_ms: int | None = None
    waiting: int | None = None
    needed_ms: int | None = None
    is_gone: bool = False
    is_lane: bool = False
    are_both_short: bool = False

    @property
    def is_short(self) -> bool:
        """Whether what is not counted is soon lost, or is."""
        if self.is_gone:
            return True  # where records are kept for ever, too: somebody has deleted some
        if self.ms is None or self.kept_ms is None:
            return False
        return self.ms < SHORT_SHARE * self.kept_ms


def log_told(left: LogLeft | None) -> dict[str, int | bool | None]:
    """Return what a heartbeat says of the log; nothing before it was looked at."""
    if left is None:
        return {}
    return {
        "log_left_ms": left.ms,
        "log_left_needed_ms": left.needed_ms,
        "log_left_partition": left.partition,
        "log_left_gone": left.is_gone,
        "log_left_lane": left.is_lane,
        "log_left_both": left.are_both_short,
        "log_kept_ms": left.kept_ms,
        "log_oldest_ms": left.oldest_ms,
    }


def read_log_told(detail: Mapping[str, Any] | None) -> LogLeft | None:
    """Return what a heartbeat says of the log; None if it says nothing."""
    if detail is None or "log_left_ms" not in detail:
        return None
    return LogLeft(
        partition=detail.get("log_left_partition"),
        ms=detail.get("log_left_ms"),
        kept_ms=detail.get("log_kept_ms"),
        oldest_ms=detail.get("log_oldest_ms"),
        # An earlier release tells one figure of all.
        needed_ms=detail.get("log_left_needed_ms", detail["log_left_ms"]),
        is_gone=bool(detail.get("log_left_gone")),
        is_lane=bool(detail.get("log_left_lane")),
        are_both_short=bool(detail.get("log_left_both")),
    )


def quarantine_told(left: LogLeft | None) -> dict[str, int | None]:
    """Return what a heartbeat says of quarantine; nothing before it was read once."""
    if left is None:
        return {}
    return {"quarantine_left_ms": left.ms, "quarantine_kept_ms": left.kept_ms}


def read_quarantine_told(detail: Mapping[str, Any] | None) -> LogLeft | None:
    """Return what a heartbeat says of quarantine; None if it says nothing."""
    if detail is None or "quarantine_left_ms" not in detail:
        return None
    return LogLeft(ms=detail["quarantine_left_ms"], kept_ms=detail.get("quarantine_kept_ms"))


def left_after(left: LogLeft, passed_ms: int) -> LogLeft:
    """Return what is left some time after a look, if nobody has counted since."""

    def less(ms: int | None) -> int | None:
        return None if ms is None else max(0, ms - passed_ms)

    return replace(left, ms=less(left.ms), needed_ms=less(left.needed_ms))


def used_share(left: LogLeft) -> float:
    """Return what has passed of the time until a number lacks a record for good, 0 to 1."""
    if left.needed_ms is None:
        return 0.0
    # By size, what is next may be kept for longer than what comes now.
    return max(0.0, 1 - left.needed_ms / left.kept_ms) if left.kept_ms else 1.0


def log_left(partitions: Iterable[PartitionLog], retention: Retention, now_ms: int) -> LogLeft:
    """Return what the reader loses first if it stands still and all else goes on as today."""
    logs = list(partitions)
    first = first_lost(logs, retention, now_ms)
    left = None if first is None else max(0, first.ms)
    kept = (kept_ms(one, retention) for one in logs)
    ages = (one.oldest_ms for one in logs)
    return LogLeft(
        partition=first.partition if first else None,
        ms=left,
        kept_ms=min((ms for ms in kept if ms is not None), default=None),
        oldest_ms=min((ms for ms in ages if ms is not None), default=None),
        waiting=sum(map(_waiting, logs)),
        needed_ms=left,
        is_gone=first is not None and first.is_gone,
    )


def first_lost(
    partitions: Iterable[PartitionLog], retention: Retention, now_ms: int
) -> FirstLost | None:
    """Return what the reader loses first, what is gone before all else; None: nothing, ever."""
    found = ((one, left_ms(one, retention, now_ms)) for one in partitions)
    return soonest(
        FirstLost(one.partition, ms, is_gone(one)) for one, ms in found if ms is not None
    )


def soonest(lost: Iterable[FirstLost]) -> FirstLost | None:
    """Return what is lost first, what is gone before all else; None: nothing."""
    return min(lost, key=lambda one: (not one.is_gone, one.ms, one.partition), default=None)


def with_lane(live: LogLeft, lane: FirstLost, *, is_needed: bool) -> LogLeft:
    """Return what is lost first where a lane loses something, too.

    A lane without any time left hides no live counting that runs short: it may stand there for
    days, and what live counting has still to lose can be saved.

    Args:
        live: What live counting loses first.
        lane: What the lane does, and when; see `weir.log_race`.
        is_needed: Whether numbers have held what the lane counts.
    """
    of_lane = replace(
        live,
        partition=lane.partition,
        ms=lane.ms,
        needed_ms=lane.ms if is_needed else live.needed_ms,
        is_gone=lane.is_gone,
        is_lane=True,
    )
    are_both_short = live.is_short and of_lane.is_short
    live_ms = math.inf if live.ms is None else live.ms
    if (not live.is_gone, live_ms) <= (not lane.is_gone, lane.ms):
        return replace(live, are_both_short=are_both_short)
    if live.is_short and lane.ms <= 0:
        return replace(live, needed_ms=of_lane.needed_ms, are_both_short=are_both_short)
    return replace(of_lane, are_both_short=are_both_short)


def is_gone(log: PartitionLog) -> bool:
    """Tell whether records are gone that were not counted; not of a log that was made anew."""
    return log.position < log.oldest


def _waiting(log: PartitionLog) -> int:
    """Return how many records of a partition are not counted; of one that was made anew, all."""
    first = log.oldest if log.position > log.end else max(log.position, log.oldest)
    return log.end - first


def left_ms(log: PartitionLog, retention: Retention, now_ms: int) -> int | None:
    """Return for how long the first uncounted record is kept; None: for ever.

    Below 0: for so long it could have been deleted, and is still there; 0: it is not.

    At the end of the log that is the record that comes next. Of a log that ends before the
    reader's place nothing is counted: it was made anew.
    """
    log = log.anew()
    if is_gone(log):
        return 0
    ahead = ahead_of_deletion(log, retention)
    times = (age_left_ms(log, retention, now_ms), _passed_ms(log, ahead))
    return min((ms for ms in times if ms is not None), default=None)


def age_left_ms(log: PartitionLog, retention: Retention, now_ms: int) -> int | None:
    """Return for how long a record that is there is kept by its age; as `left_ms`."""
    if retention.ms is None:
        return None
    if log.position == log.end:
        return retention.ms
    since_ms = log.position_ms if log.position_ms is not None else log.oldest_ms
    return retention.ms - (max(0, now_ms - since_ms) if since_ms is not None else 0)


def ahead_of_deletion(log: PartitionLog, retention: Retention) -> float | None:
    """Return how many records more are deleted by size first; None while there is room."""
    return log.position - log.deleted if _is_full(log, retention) else None


def kept_ms(log: PartitionLog, retention: Retention) -> int | None:
    """Return how long a record is kept that is appended now; None: for ever."""
    by_size = _passed_ms(log, log.end - log.deleted) if _is_full(log, retention) else None
    return min((ms for ms in (retention.ms, by_size) if ms is not None), default=None)


def _is_full(log: PartitionLog, retention: Retention) -> bool:
    # What holds nothing, or too little, was emptied: by hand, or since all was too old.
    if log.start is not None and log.start.is_emptied:
        return False
    is_cut = 0 < log.oldest < log.end
    return is_cut and log.per_s > 0 and retention.may_be_full(log.end - log.oldest)


def _passed_ms(log: PartitionLog, records: float | None) -> int | None:
    """Return when so many records more have come; None: never."""
    return None if records is None else int(records / log.per_s * 1000)
