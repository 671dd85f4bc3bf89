"""What drivers said of versions, kept by what is asked of all of them with each batch.

No version is forgotten: a hundred metrics that are counted again each day for an erasure are
36,500 after a year, of which a hundred are counted. Who went through all of them with each
batch would take longer month by month, so each record that changes one is taken note of here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.commit import Offsets, furthest, not_after
from weir.definitions.history import Activation


@dataclass
class Stops:
    """Where versions have stopped to be counted, in the order in which that was said.

    Drivers say it at the end of a batch, so mostly each stop lies behind the one before. Where
    it does not, as in a log that was read back to before it, more is found than was asked for.

    Attributes:
        vids: The versions, one as often as it has stopped.
        upto: The furthest place, partition by partition, at which any of the first ones has.
    """

    vids: list[int] = field(default_factory=list)
    upto: list[Offsets] = field(default_factory=list)

    def add(self, vid: int, finish: Offsets) -> None:
        """Take note of one more."""
        last = self.upto[-1] if self.upto else {}
        # Mostly one of the two, which is held anyway.
        if not_after(last, finish):
            last = finish
        elif not not_after(finish, last):
            last = furthest([last, finish])
        self.vids.append(vid)
        self.upto.append(last)

    def behind(self, at: Offsets) -> list[int]:
        """Return all that stopped behind a place in any partition, maybe with some others."""
        return self.vids[bisect_left(self.upto, 1, key=lambda one: not not_after(one, at)) :]

    def __copy__(self) -> Stops:
        """Return another one that knows the same."""
        return Stops([*self.vids], [*self.upto])


@dataclass
class Activated:
    """From where to where each version is counted; nobody but the fold changes it.

    Attributes:
        all: By version, stopped ones included, in the order in which they began.
        on: Those that are still counted.
        followed: By version, the one that has taken over from it and serves.
        names: By tenant, the names of metrics of which a version has begun.
    """

    all: dict[int, Activation] = field(default_factory=dict)
    on: dict[int, Activation] = field(default_factory=dict)
    followed: dict[int, Activation] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    _stops: dict[str, Stops] = field(default_factory=dict)
    # By the sum of the offsets: of few others, and all partitions of each would be much to hold.
    _begun: dict[int, tuple[int, ...]] = field(default_factory=dict)
    _taken: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def note(self, now: Activation) -> None:
        """Take note of what was said of a version."""
        before = self.all.get(now.vid)
        self.all[now.vid] = now
        self._follow(before, now)
        if now.finish is None:
            self.on[now.vid] = now
        else:
            self.on.pop(now.vid, None)
            self._stops.setdefault(now.topic_id, Stops()).add(now.vid, now.finish)
        self.names.setdefault(now.tenant, set()).add(now.name)
        if before is None or before.begin != now.begin:
            _note(self._begun, now.begin, now.vid)
        if now.takeover is not None and (before is None or before.takeover != now.takeover):
            _note(self._taken, now.takeover.offsets, now.vid)

    def stopped_behind(self, topic_id: str, at: Offsets) -> set[int]:
        """Return the versions that stopped behind a place of a log in any partition.

        Maybe with some others: where each has stopped stands in `all`.
        """
        known = (self._stops[one] for one in {"", topic_id} if one in self._stops)
        found = (self.all[vid] for stops in known for vid in stops.behind(at))
        return {one.vid for one in found if one.finish is not None and one.is_of(topic_id)}

    def begun_at(self, place: Offsets) -> list[int]:
        """Return the versions that are counted from a place on."""
        found = self._begun.get(sum(place.values()), ())
        return sorted(vid for vid in set(found) if self.all[vid].begin == place)

    def taken_at(self, place: Offsets) -> list[int]:
        """Return the versions that serve from a place on, once a lane has filled them."""
        found = self._taken.get(sum(place.values()), ())
        taken = {vid: self.all[vid].takeover for vid in set(found)}
        return sorted(vid for vid, one in taken.items() if one and one.offsets == place)

    def __copy__(self) -> Activated:
        """Return another one that knows the same."""
        return Activated(
            dict(self.all),
            dict(self.on),
            dict(self.followed),
            {tenant: {*names} for tenant, names in self.names.items()},
            {topic_id: stops.__copy__() for topic_id, stops in self._stops.items()},
            dict(self._begun),
            dict(self._taken),
        )

    def _follow(self, before: Activation | None, now: Activation) -> None:
        was, after = _served_after(before), _served_after(now)
        if was is None and after is None:
            return
        known = self.followed.get(after) if after is not None else None
        if after is not None and was in (None, after) and (known is None or known.vid == now.vid):
            self.followed[after] = now
            return
        # Several that follow one, or one that follows another than before: no driver says so.
        everybody = ((_served_after(one), one) for one in self.all.values())
        self.followed = {vid: one for vid, one in everybody if vid is not None}


def _served_after(one: Activation | None) -> int | None:
    """Return the version from which one has taken over; None: it serves not, or follows nobody."""
    return one.after if one is not None and one.serves else None


def _note(places: dict[int, tuple[int, ...]], place: Mapping[int, int], vid: int) -> None:
    key = sum(place.values())
    places[key] = (*places.get(key, ()), vid)
