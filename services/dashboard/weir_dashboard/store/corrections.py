"""The newest corrections of every metric, kept up from `weir.corrections`.

The topic is read from some way before its end, and followed. What is kept is bounded: so
much of each metric, so much in all, the oldest of the metric with the most going first,
so that late events of one tenant push out nobody else's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog
from msgspec.structs import replace
from weir import names
from weir.clock import Clock
from weir.corrections import CorrectionRecord, added, decode
from weir.formats import Newer, NewerFormatError
from weir.kafka import Kafka
from weir.series import OTHER
from weir_reading.follower import Follower, Record

READ_BACK = 50_000
MOST_OF_A_METRIC = 2_000
MOST = 50_000

log = structlog.get_logger()
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """A correction and its place in the topic.

    Attributes:
        seq: Its offset.
        record: What it says.
    """

    seq: int
    record: CorrectionRecord


class Corrections:
    """Corrections by tenant and metric, the newest of each.

    Attributes:
        follower: Reads them.
        newer: What a newer release wrote.
    """

    def __init__(self, kafka: Kafka, clock: Clock) -> None:
        self.follower = Follower(kafka, clock, names.CORRECTIONS, self.take, newest=READ_BACK)
        self.newer = Newer()
        self._kept: dict[Place, deque[Kept]] = {}
        self._keys: set[str] = set()
        self._made: dict[Place, tuple[tuple[int, int], tuple[CorrectionRecord, ...]]] = {}
        self._listeners: list[Callable[[set[str]], None]] = []

    @property
    def seq(self) -> int:
        """The offset of the newest record; -1 before the first."""
        return self.follower.next_offset - 1

    def listen(self, listener: Callable[[set[str]], None]) -> None:
        """Call `listener` with the tenants that have new ones, after each reading."""
        self._listeners.append(listener)

    def newest(self, tenant: str, metric: str | None = None, *, after: int = -1) -> list[Kept]:
        """Return a tenant's corrections, the newest first; what shards did to `*` as one.

        Args:
            tenant: Whose.
            metric: Only of this one.
            after: Only those beyond this offset.
        """
        found = [
            one
            for (owner, name), kept in self._kept.items()
            if owner == tenant and metric in (None, name)
            for one in kept
            if one.seq > after
        ]
        return added_up(sorted(found, key=lambda one: -one.seq))

    def newest_seq(self, tenant: str, metric: str) -> int | None:
        """Return the place of a metric's newest correction; None if none is known."""
        kept = self._kept.get((tenant, metric))
        return kept[-1].seq if kept else None

    def of_metric(self, tenant: str, metric: str) -> Sequence[CorrectionRecord]:
        """Return what `newest` does of one metric, made once: every answer of it asks."""
        place = (tenant, metric)
        kept = self._kept.get(place)
        if not kept:
            return ()
        stand = (kept[-1].seq, len(kept))
        made = self._made.get(place)
        if made is None or made[0] != stand:
            made = (stand, tuple(one.record for one in self.newest(tenant, metric)))
            self._made[place] = made
        return made[1]

    def take(self, records: list[Record]) -> None:
        """Take the next records of the topic; of copies the first is kept."""
        tenants: set[str] = set()
        for record in records:
            try:
                correction = decode(record.value)
            except NewerFormatError as error:
                self.newer.meet(error.message)
                continue
            except ValueError as error:
                log.error("correction_unreadable", offset=record.offset, error=str(error))
                continue
            if correction.key not in self._keys:
                self._keep(Kept(record.offset, correction))
                tenants.add(correction.tenant)
        for listener in self._listeners if tenants else ():
            listener(tenants)

    def _keep(self, one: Kept) -> None:
        place = (one.record.tenant, one.record.metric)
        kept = self._kept.setdefault(place, deque())
        kept.append(one)
        self._keys.add(one.record.key)
        if len(kept) > MOST_OF_A_METRIC:
            self._drop(kept)
        elif len(self._keys) > MOST:
            self._drop(max(self._kept.values(), key=len))

    def _drop(self, kept: deque[Kept]) -> None:
        self._keys.discard(kept.popleft().record.key)


def added_up(kept: Iterable[Kept]) -> list[Kept]:
    """Make one of what a batch changed in the rows `*` of a pane: each shard has one.

    Pure; the newest of them has the place of all.
    """
    found: dict[tuple[object, ...], Kept] = {}
    for one in kept:
        record = one.record
        row = (_place(record, record.res_s), None if record.series == OTHER else record.key)
        first = found.get(row)
        found[row] = one if first is None else Kept(first.seq, _both(first.record, record))
    return list(found.values())


def _both(one: CorrectionRecord, other: CorrectionRecord) -> CorrectionRecord:
    """Return a change of two rows; who sent late events is told by the pane, so by either."""
    told = one if one.sources_known else other
    return replace(told, was=added(one.was, other.was), now=added(one.now, other.now))


def finest(kept: Sequence[Kept]) -> list[Kept]:
    """Leave out what says again, of a longer pane, what one says of a shorter pane in it.

    An event changes a pane of every resolution that still keeps its time: the shortest
    of them tells where it belongs. Pure; keeps the order.
    """
    covered: set[tuple[object, ...]] = set()
    lengths = sorted({one.record.res_s for one in kept})
    for one in kept:
        covered.update(
            _around(one.record, [res_s for res_s in lengths if res_s > one.record.res_s])
        )
    return [one for one in kept if _place(one.record, one.record.res_s) not in covered]


def _around(record: CorrectionRecord, lengths: Iterable[int]) -> Iterable[tuple[object, ...]]:
    return (_place(record, res_s) for res_s in lengths)


def _place(record: CorrectionRecord, res_s: int) -> tuple[object, ...]:
    start_s = record.start_s - record.start_s % res_s
    return (record.epoch, record.batch, record.vid, record.series, res_s, start_s)
