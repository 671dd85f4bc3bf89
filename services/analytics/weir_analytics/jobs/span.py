"""How far back an audit reaches, found in the log, one question at a time.

An old part of the log may answer slowly, as from a store of old segments, and live counting waits
for each answer. So these are generators: whoever asks may end a slice behind every question.

What is found holds for one attempt. Whoever begins anew, as after a crash, finds it anew: by then
the log has grown, and from the old beginning to its new end may be more than may be read.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaException
from weir.audited import Bound
from weir.definitions.history import Horizons
from weir.definitions.job import Audit
from weir.horizons import horizons_of, longest_ms

from weir_analytics.jobs.reach import Margins, Search, margins, reach_of
from weir_analytics.jobs.sample import draw_places, shares
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.log_offsets import LogOffsets

# What retention may take away while an audit that nobody watches reads all of the log.
RETAINED_MS: Final = 6 * 3_600_000
# Instants of events, each a read of the log in a slice of its own.
MOST_OF_EVENTS: Final = 16
# Of what may be read one part in so many is left for what comes until it is read.
SPARE: Final = 20


@dataclass(frozen=True)
class Known:
    """What decides besides the log.

    Attributes:
        to_ms: Received time counted so far.
        now_ms: The present.
        incomplete_before_ms: Panes that start earlier are not served whole.
        horizons: By which the log is counted, the first ones first.
    """

    to_ms: int
    now_ms: int
    incomplete_before_ms: int
    horizons: tuple[Horizons, ...]

    @classmethod
    def of(cls, cycle: Cycle) -> Known:
        """Return what a driver knows."""
        fold = cycle.stores.definitions.fold
        start = fold.start()
        return cls(
            to_ms=cycle.through_ms,
            now_ms=cycle.clock.now_ms(),
            incomplete_before_ms=start.incomplete_before_ms if start else 0,
            horizons=horizons_of(fold, cycle.footing.events_id),
        )

    @property
    def margins(self) -> Margins:
        """How long before a pane, and before a minute of the ledger, the log is read."""
        return margins(longest_ms(self.horizons))


@dataclass(frozen=True)
class Span:
    """What an audit looks at.

    Attributes:
        from_ms: From when on panes are drawn.
        to_ms: Up to when.
        bound: Why from no earlier instant.
        begin_ms: Received time before which nothing may be read; 0: all may be.
        whole_ms: From when on the log, and what is served, had all of a pane.
        margins: How long before a pane, and before a minute, the log is read.
        starts_ms: From when on instants are drawn, equally many from each.
        places: Of events whose instants are in the sample, too: partition and offset.
        end: Where the log ended, by partition.
    """

    from_ms: int
    to_ms: int
    bound: Bound
    begin_ms: int
    whole_ms: int
    margins: Margins
    starts_ms: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    end: Mapping[int, int]

    @property
    def has_panes(self) -> bool:
        """Whether there is anything of which panes could be drawn."""
        return self.from_ms < self.to_ms

    @property
    def since_ms(self) -> int:
        """Panes that start earlier are not looked at."""
        return max(self.whole_ms, self.begin_ms and self.begin_ms + self.margins.pane_ms)

    @property
    def minutes_since_ms(self) -> int:
        """Minutes of the ledger that begin earlier are not looked at."""
        return max(self.whole_ms, self.begin_ms and self.begin_ms + self.margins.minute_ms)


def find_span(
    log: LogOffsets, wanted: Audit, seed: int, known: Known
) -> Generator[None, None, Span]:
    """Find what an audit looks at.

    Raises:
        KafkaException: If the log does not answer.
    """
    low, high = log.ends()
    yield
    whole_ms = yield from whole_from(log, low, high, known)
    drawn_ms, begin_ms = whole_ms, 0
    if wanted.recent is not None and whole_ms:
        # Retention goes on while the log is read. What is left out here was not left out
        # while it was younger.
        drawn_ms += min(RETAINED_MS, max(0, known.to_ms - whole_ms) // 4)
    if wanted.most_records is not None:
        most = wanted.most_records - wanted.most_records // SPARE
        begin_ms = yield from begin_within(log, most, (low, high), known.to_ms)
    before = known.margins
    reach = reach_of(known.to_ms - wanted.last, drawn_ms, begin_ms, before.pane_ms, known.to_ms)
    starts_ms = yield from _starts(log, wanted, reach.from_ms, known.to_ms, high)
    places: list[tuple[int, int]] = []
    if reach.from_ms < known.to_ms:
        of_events = shares(min(wanted.sample // 2, MOST_OF_EVENTS), len(starts_ms))
        for way, (start_ms, count) in enumerate(zip(starts_ms, of_events, strict=True)):
            begin = {p: max(n, low[p]) for p, n in log.at(start_ms, high).items()}
            places += draw_places(seed + way, begin, high, count)
            yield
    return Span(
        from_ms=reach.from_ms,
        to_ms=known.to_ms,
        bound=reach.bound,
        begin_ms=begin_ms,
        whole_ms=whole_ms,
        margins=before,
        starts_ms=starts_ms,
        places=tuple(places),
        end=high,
    )


def whole_from(
    log: LogOffsets, low: Mapping[int, int], high: Mapping[int, int], known: Known
) -> Generator[None, None, int]:
    """Find the event time from which the log, and what is served, has all of a pane.

    Raises:
        KafkaException: If the log does not answer.
    """
    whole_ms, horizon_ms = known.incomplete_before_ms, longest_ms(known.horizons, low)
    for partition, offset in low.items():
        if offset:
            start = {partition: offset}
            left_ms = log.complete_from_ms(start, high, horizon_ms, known.now_ms)
            whole_ms = max(whole_ms, left_ms)
            yield
    return whole_ms


def begin_within(
    log: LogOffsets, most: int, ends: tuple[Mapping[int, int], Mapping[int, int]], now_ms: int
) -> Generator[None, None, int]:
    """Find from when on the log has received at most so many records; 0 if it has no more.

    Where it does not say, more came than may be read: it is not asked about older parts then.

    Args:
        log: The log.
        most: How many.
        ends: By partition, its first offset that is there, 0 if it is not told, and where it is
            read to.
        now_ms: Since when next to nothing of that has come.

    Raises:
        KafkaException: If the log does not answer at all.
    """
    low, high = ends
    if sum(high[p] - low.get(p, 0) for p in high) <= most:
        return 0
    search = Search(most, now_ms)
    while (at_ms := search.next_ms) is not None:
        search.told(at_ms, _received_since(log, at_ms, ends, is_known=search.near_ms < now_ms))
        yield
    return search.near_ms


def _received_since(
    log: LogOffsets,
    at_ms: int,
    ends: tuple[Mapping[int, int], Mapping[int, int]],
    *,
    is_known: bool,
) -> int | None:
    """Return how many records came at or after an instant; None: it does not say."""
    low, high = ends
    try:
        return sum(high[p] - max(n, low.get(p, 0)) for p, n in log.at(at_ms, high).items())
    except KafkaException:
        if is_known:
            return None
        raise


def _starts(
    log: LogOffsets, wanted: Audit, from_ms: int, to_ms: int, high: Mapping[int, int]
) -> Generator[None, None, tuple[int, ...]]:
    """Find from when on instants are drawn, equally many from each.

    The second half is drawn of what the log holds: by the clock few of 400 days would lie
    where anything happened. Events that are older than the log are met by their places.
    """
    if wanted.recent is None:
        return (from_ms,)
    try:
        oldest_ms = log.oldest_ms(high)
    except KafkaException:
        oldest_ms = 0
    yield
    return max(from_ms, to_ms - wanted.recent), max(from_ms, min(oldest_ms, to_ms))
