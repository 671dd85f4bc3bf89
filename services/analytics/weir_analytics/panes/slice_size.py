"""How many records a slice has: as many as take as long as it may. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

# Fewer take as long: what a small batch costs is planning (decision 0013).
LEAST_RECORDS: Final = 5_000
# What slices may have after one has failed grows with each by this part of it: they come to the
# size of that one after some twenty, and no bound is so large that it matters.
BOUND_GROWS: Final = 32
# How many times as many records as the last one a slice may have: a first measurement of a fast
# machine may be of a few.
MOST_GROWTH: Final = 4
# What the first one may have, of live counting, which may have been long ago.
FIRST_SLICE_S: Final = 2.0
LARGEST_BOUND: Final = 1 << 30


class Last(NamedTuple):
    """A slice that was counted, or several side by side, each of which a core had.

    Attributes:
        size: How many records each could have.
        done: How many the largest had: the last of a lane has fewer.
        took_s: How long it took.
        events_per_s: How many events the last one of little else had in a second; None: there was
            none. Ticks take a fraction of that.
        bound: How many records one may have after a larger one failed; None: as many as may be.
    """

    size: int
    done: int
    took_s: float
    events_per_s: float | None = None
    bound: int | None = None


NOTHING_KNOWN: Final = Last(LEAST_RECORDS, 0, 0.0)


def live_as_last(per_s: float | None, most: int, beside: int = 2) -> Last:
    """Return live counting as if it were the slice before the first.

    Half of what it does at most, since a slice may count more metrics; for `FIRST_SLICE_S`.

    Args:
        per_s: How many events a second it has done; None if it is not known.
        most: The size that no slice exceeds.
        beside: How many slices share the cores.

    Returns:
        Its size is such that the first slice grows from it to what it may have.
    """
    if per_s is None:
        return NOTHING_KNOWN
    share = per_s / max(2, beside)
    size = round(share * FIRST_SLICE_S / MOST_GROWTH)
    return Last(min(most, size), round(share), 1.0, share)


def measured(last: Last, size: int, done: Sequence[tuple[int, int]], took_s: float) -> Last:
    """Return what is known once slices are counted.

    Args:
        last: What was known before.
        size: How many records each could have.
        done: How many records each had, and how many of them were events.
        took_s: How long they took together.
    """
    records, events = max(done)
    per_s, bound = events / max(took_s, 0.001), last.bound
    if bound is not None:
        bound += bound // BOUND_GROWS
        bound = None if bound > LARGEST_BOUND else bound
    if records >= LEAST_RECORDS // 2 and 2 * events >= records:
        return Last(size, records, took_s, per_s, bound)
    # It had so many at least, however many ticks were among them.
    known = last.events_per_s
    return Last(size, records, took_s, None if known is None else max(known, per_s), bound)


def failed(last: Last, records: int) -> Last:
    """Return what is known once a slice has failed: it may have been too large for its worker.

    The next one is as small as can be. They grow again while they go well, to half of its size in
    some steps and then slowly, or the same size would fail again after every few.

    Args:
        last: What was known before.
        records: How many it had; the least that a slice has are not too many.
    """
    if records <= LEAST_RECORDS:
        return last
    return NOTHING_KNOWN._replace(bound=max(LEAST_RECORDS, records // 2))


def next_size(last: Last, slice_s: float, most: int) -> int:
    """Return how many records the next slice has: as many as take as long as it may.

    At most `MOST_GROWTH` times as many as the last one. Nor more than events would take half as
    long again: the last one may have been of ticks, and events may follow. Nor more than its bound,
    where one has failed.

    Args:
        last: The slice before it.
        slice_s: How long it may take.
        most: How many records a batch has at most: also a slice while nothing is known of events,
            and half of what it may have then.
    """
    wanted = round(last.done / max(last.took_s, 0.001) * slice_s)
    if last.events_per_s is not None:
        most = min(2 * most, round(1.5 * last.events_per_s * slice_s))
    if last.bound is not None:
        most = min(most, last.bound)
    return max(LEAST_RECORDS, min(most, MOST_GROWTH * last.size, wanted))
