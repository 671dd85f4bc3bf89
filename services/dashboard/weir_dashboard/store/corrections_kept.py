"""The newest corrections of every metric, within bounds. Pure.

So much of each metric, so much in all: what is too much goes from the tenant with the most,
the oldest of its metric with the most, so that late events of one tenant push out nobody
else's. They come from both ends: new ones as they are published, and older ones from a topic
that is read backwards, which make no room for themselves where newer ones went.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec import Raw
from msgspec.structs import replace
from weir.corrections import CorrectionRecord, added
from weir.series import OTHER

MOST_OF_A_METRIC = 2_000
MOST = 50_000

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


class KeptCorrections:
    """Corrections by tenant and metric, the newest of each; of copies the first."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, deque[Kept]]] = {}
        self._sizes: Counter[str] = Counter()
        self._keys: set[str] = set()
        self._cut: set[Place] = set()
        self._stands: Counter[Place] = Counter()
        self._made: dict[Place, tuple[CorrectionRecord, ...]] = {}

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._keys)

    def newest(self, tenant: str, metric: str | None = None, *, after: int = -1) -> list[Kept]:
        """Return a tenant's corrections, the newest first; what shards did to `*` as one.

        Args:
            tenant: Whose.
            metric: Only of this one.
            after: Only those beyond this offset.
        """
        found = [
            one
            for name, kept in self._of.get(tenant, {}).items()
            if metric in (None, name)
            for one in kept
            if one.seq > after
        ]
        return added_up(sorted(found, key=lambda one: -one.seq))

    def stand(self, tenant: str, metric: str) -> int:
        """Return a number that changes with what is kept of a metric; 0 if nothing ever was."""
        return self._stands[tenant, metric]

    def of_metric(self, tenant: str, metric: str) -> Sequence[CorrectionRecord]:
        """Return what `newest` does of one metric, made once: every answer of it asks."""
        place = (tenant, metric)
        made = self._made.get(place)
        if made is None and self._stands[place]:
            made = tuple(one.record for one in self.newest(tenant, metric))
            self._made[place] = made
        return made or ()

    def add(self, one: Kept) -> bool:
        """Keep one that is newer than all; return whether it is, and no copy."""
        if one.record.key in self._keys:
            return False
        kept = self._put(one)
        kept.append(one)
        if len(kept) > MOST_OF_A_METRIC:
            self._drop(*_place_of(one))
        elif len(self) > MOST:
            self._drop_of_most()
        return True

    def add_older(self, one: Kept) -> bool:
        """Keep one that is older than all of its metric, if there is room; return whether.

        There is none where newer ones went, nor for a tenant that has no less than the others.
        """
        place = _place_of(one)
        if one.record.key in self._keys:
            self._put_first(one)
            return True
        if place in self._cut or len(self._kept(place)) >= MOST_OF_A_METRIC:
            return False
        if len(self) >= MOST:
            if self._sizes[place[0]] + 1 >= max(self._sizes.values()):
                return False
            self._drop_of_most()
        self._put(one).appendleft(one)
        return True

    def _kept(self, place: Place) -> deque[Kept]:
        return self._of.get(place[0], {}).get(place[1], deque())

    def _put(self, one: Kept) -> deque[Kept]:
        """Count one in, and return where it belongs."""
        tenant, metric = place = _place_of(one)
        self._keys.add(one.record.key)
        self._sizes[tenant] += 1
        self._touch(place)
        return self._of.setdefault(tenant, {}).setdefault(metric, deque())

    def _put_first(self, first: Kept) -> None:
        """Put the first of copies in the place of a later one."""
        kept = self._kept(_place_of(first))
        others = [one for one in kept if one.record.key != first.record.key]
        kept.clear()
        kept.extend([first, *others])
        self._touch(_place_of(first))

    def _touch(self, place: Place) -> None:
        self._stands[place] += 1
        self._made.pop(place, None)

    def _drop_of_most(self) -> None:
        tenant = max(self._sizes, key=self._sizes.__getitem__)
        of_tenant = self._of[tenant]
        self._drop(tenant, max(of_tenant, key=lambda metric: len(of_tenant[metric])))

    def _drop(self, tenant: str, metric: str) -> None:
        self._keys.discard(self._of[tenant][metric].popleft().record.key)
        self._sizes[tenant] -= 1
        self._cut.add((tenant, metric))
        self._touch((tenant, metric))


def _place_of(one: Kept) -> Place:
    return one.record.tenant, one.record.metric


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
    told = max(one, other, key=lambda record: (record.sources_exact, record.sources_known))
    was, now = added(one.was, other.was), added(one.now, other.now)
    return replace(told, was=was, now=now, texts=Raw(b"[]"))  # of texts none is known of both


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
