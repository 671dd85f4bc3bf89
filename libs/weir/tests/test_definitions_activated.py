"""What is asked of all versions with each batch is what looking at each of them would say."""

from __future__ import annotations

from copy import copy
from random import Random
from typing import Literal

import pytest
from weir.commit import Offsets, not_after
from weir.definitions.activated import Activated, Stops
from weir.definitions.fold import Definitions
from weir.definitions.history import Activation
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    TakeOver,
    activation_record,
    delete_record,
    put_record,
    start_record,
    takeover_record,
)
from weir.definitions.serving import is_in_life, life_of

TEXT = "kind: metric\nname: {}\nevents: {{type: t}}\nkeep: {{10s: 1h}}\n"
LOGS = ("", "log", "another log")


class Drawn:
    """Metrics of two tenants, and drivers that say anything of their versions, also at random."""

    def __init__(self, seed: int) -> None:
        self.drawing = Random(seed)  # noqa: S311  drawn to be repeated
        self.fold = Definitions()
        self.numbers: dict[tuple[str, str], int] = {}
        self.vids: list[int] = []
        self.add(start_record(DriverStart("a", 1, "start"), at_ms=0))

    def add(self, record: NewRecord) -> int:
        """Append a record."""
        change = self.fold.apply(self.fold.next_offset, *record)
        assert change is not None
        return change.offset

    def place(self) -> dict[int, int]:
        """Return a place of the log; few, so that they meet."""
        partitions = self.drawing.sample(range(3), self.drawing.randint(0, 3))
        return {p: self.drawing.randint(0, 6) for p in partitions}

    def step(self) -> None:
        """Append one record or another."""
        tenant, name = self.drawing.choice(("acme", "zeta")), self.drawing.choice("mn")
        what = self.drawing.choice(("edit", "edit", "delete", "start", "start", "stop", "take"))
        if what in ("edit", "delete"):
            number = self.numbers.get((tenant, name))
            edit = Edit(tenant, "metric", name, number, "test", 0)
            self.numbers[tenant, name] = (number or 0) + 1
            if what == "edit":
                self.vids.append(self.add(put_record(edit, TEXT.format(name))))
            else:
                self.add(delete_record(edit))
        elif self.vids:
            vid, after = self.drawing.choice(self.vids), self.drawing.choice([None, *self.vids])
            if what == "take":
                self.add(
                    takeover_record(TakeOver(vid, after, self.place(), None), fence=0, at_ms=0)
                )
                return
            fills, log = self.drawing.random() < 0.7, self.drawing.choice(LOGS)
            said = Counting(
                vid, tenant, name, 1, self.place(), after=after, fills=fills, topic_id=log
            )
            op: Literal["start", "stop"] = "start" if what == "start" else "stop"
            self.add(activation_record(said, op=op, fence=0, at_ms=0))


def check(fold: Definitions, drawn: Drawn) -> None:
    """Compare with what looking at each version says."""
    found, every = fold.activated, fold.activations
    assert found.on == {vid: one for vid, one in every.items() if one.finish is None}
    serving = [one for one in every.values() if one.serves and one.after is not None]
    assert found.followed == {one.after: one for one in serving}
    for place in [drawn.place() for _ in range(5)]:
        begun = [vid for vid, one in every.items() if one.begin == place]
        assert found.begun_at(place) == sorted(begun)
        taken = [
            vid for vid, one in every.items() if one.takeover and one.takeover.offsets == place
        ]
        assert found.taken_at(place) == sorted(taken)
        for log in LOGS:
            behind = {
                vid for vid, one in every.items() if one.is_of(log) and _is_behind(one, place)
            }
            stopped = {vid for vid, one in every.items() if one.is_of(log)} - found.on.keys()
            assert behind <= found.stopped_behind(log, place) <= stopped
    for tenant, name in (("acme", "m"), ("zeta", "n")):
        life = life_of(fold, tenant, name)
        assert {vid for vid in every if is_in_life(fold, tenant, name, vid)} == life.keys() & every
        assert {one.name for one in every.values() if one.tenant == tenant} <= found.names.get(
            tenant, set()
        )


def _is_behind(one: Activation, place: Offsets) -> bool:
    return one.finish is not None and not not_after(one.finish, place)


@pytest.mark.parametrize("seed", range(60))
def test_each_record_is_taken_note_of(seed: int) -> None:
    """Whatever drivers say in whatever order; a fork goes its own way."""
    drawn = Drawn(seed)
    for _ in range(40):
        drawn.step()
        check(drawn.fold, drawn)
    twin, known = drawn.fold.fork(), copy(drawn.fold.activated)
    assert twin.activated == known == drawn.fold.activated
    fold, drawn.fold = drawn.fold, twin
    for _ in range(10):
        drawn.step()
    check(twin, drawn)
    assert fold.activated == known
    check(fold, drawn)


def one(vid: int, finish: Offsets | None, *, after: int | None = None) -> Activation:
    """Return a version of a metric that serves."""
    return Activation(vid, "acme", "m", 1, vid, {0: vid}, finish, after, None, from_start=False)


class TestStops:
    def test_of_many_only_those_behind_a_place_are_found(self) -> None:
        """Where each lies behind the one before, as drivers say it: both sides of the edge."""
        stops = Stops()
        for vid in range(1_000):
            stops.add(vid, {0: vid, 1: 2 * vid})

        assert stops.behind({0: 990, 1: 1_980}) == list(range(991, 1_000))
        assert stops.behind({0: 990, 1: 1_979}) == list(range(990, 1_000))
        assert stops.behind({0: 999, 1: 1_998}) == []
        assert stops.behind({0: 5_000}) == list(range(1, 1_000))

    def test_a_log_that_went_back_hides_nobody(self) -> None:
        """A driver that lost its checkpoint says it of places before those of others."""
        stops = Stops()
        for vid, finish in enumerate(({0: 10}, {0: 50}, {0: 20}, {1: 7}, {0: 60})):
            stops.add(vid, finish)

        assert {1, 4} <= set(stops.behind({0: 20, 1: 7}))
        assert stops.behind({0: 50, 1: 7}) == [4]
        assert stops.behind({0: 60}) == [3, 4]

    def test_no_place_is_held_twice(self) -> None:
        """The furthest is one of two that are held anyway, where one lies behind the other."""
        stops, places = Stops(), [{0: 10, 1: 4}, {0: 20, 1: 4}, {0: 15}, {0: 20, 1: 9}]
        for vid, finish in enumerate(places):
            stops.add(vid, finish)

        first, second, _, last = places
        held = zip(stops.upto, (first, second, second, last), strict=True)
        assert all(upto is place for upto, place in held)


class TestActivated:
    def test_the_last_of_several_that_follow_one_is_its_follower(self) -> None:
        """In the order in which they began, whatever is said of them later."""
        found = Activated()
        for each in (one(1, None), one(2, None, after=1), one(3, None, after=1)):
            found.note(each)
        assert found.followed[1].vid == 3
        found.note(one(2, {0: 9}, after=1))
        assert found.followed[1].vid == 3
        found.note(one(3, {0: 9}, after=2))
        assert {vid: by.vid for vid, by in found.followed.items()} == {1: 2, 2: 3}

    def test_one_that_begins_anew_is_on(self) -> None:
        """Its stop of before says nothing of it any more."""
        found = Activated()
        for each in (one(1, None), one(1, {0: 9})):
            found.note(each)
        assert (found.on, found.stopped_behind("log", {})) == ({}, {1})
        found.note(one(1, None))
        assert (set(found.on), found.stopped_behind("log", {})) == ({1}, set())
