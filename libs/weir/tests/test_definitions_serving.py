"""Which versions of a metric serve its panes."""

from __future__ import annotations

from weir.definitions.fold import Definitions
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
from weir.definitions.serving import serving

TEXT = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}\n"


class Life:
    """A metric that is edited, and what a driver says of its versions."""

    def __init__(self) -> None:
        self.fold = Definitions()
        self.number = 0
        self.fence = self.add(start_record(DriverStart("a", 1, "start"), at_ms=0))

    def add(self, record: NewRecord) -> int:
        """Append a record."""
        change = self.fold.apply(self.fold.next_offset, record.key, record.value)
        assert change is not None
        assert change.applied, change.note
        return change.offset

    def edit(self, text: str = TEXT) -> int:
        """Make a version; nobody counts it."""
        vid = self.add(put_record(self._based(), text))
        self.number += 1
        return vid

    def delete(self) -> None:
        """Delete the metric."""
        self.add(delete_record(self._based()))
        self.number += 1

    def start(self, vid: int, *, after: int | None = None, fills: bool = False) -> int:
        """Let a version be counted."""
        record = Counting(vid, "acme", "m", 1, {0: 0}, after=after, fills=fills)
        self.add(activation_record(record, op="start", fence=self.fence, at_ms=0))
        return vid

    def take_over(self, vid: int, after: int | None) -> None:
        """Let a version serve that was filled."""
        taken = TakeOver(vid, after, {0: 9}, None)
        self.add(takeover_record(taken, fence=self.fence, at_ms=0))

    def serving(self) -> list[int]:
        """Return the versions that serve."""
        return [one.vid for one in serving(self.fold, "acme", "m")]

    def _based(self) -> Edit:
        return Edit("acme", "metric", "m", self.number or None, "test", 0)


class TestServing:
    def test_the_newest_and_those_it_follows(self) -> None:
        """An edit takes over, and leaves earlier panes to the version before."""
        life = Life()
        first = life.start(life.edit())
        assert life.serving() == [first]
        second = life.start(life.edit(), after=first)
        assert life.serving() == [second, first]

    def test_an_edit_changes_nothing_until_it_has_taken_over(self) -> None:
        """While it is filled from the log, and if it is given up: the one before serves."""
        life = Life()
        first = life.start(life.edit())
        life.start(life.edit(), after=first, fills=True)
        third = life.start(life.edit(), after=first, fills=True)
        life.edit()
        assert life.serving() == [first]
        life.take_over(third, first)
        assert life.serving() == [third, first]

    def test_nobody_has_begun_to_count_it(self) -> None:
        """No version serves: neither of one that only waits, nor of one that is not there."""
        life = Life()
        assert life.serving() == []
        life.start(life.edit(), fills=True)
        assert life.serving() == []

    def test_who_asks_says_what_serving_is(self) -> None:
        """A reader may not have come to a takeover yet; the chain behind it is the same."""
        life = Life()
        first = life.start(life.edit())
        second = life.start(life.edit(), after=first, fills=True)
        life.take_over(second, first)

        def vids(before: int) -> list[int]:
            found = serving(life.fold, "acme", "m", serves=lambda one: one.vid < before)
            return [one.vid for one in found]

        assert vids(second) == [first]
        assert vids(second + 1) == [second, first]
        assert vids(0) == []

    def test_one_that_waits_has_left_nothing_to_others_yet(self) -> None:
        """Who takes it for the newest is told of it alone, whomever it will follow."""
        life = Life()
        first = life.start(life.edit())
        waiting = life.start(life.edit(), after=first, fills=True)
        found = serving(life.fold, "acme", "m", serves=lambda _: True)

        assert [one.vid for one in found] == [waiting]

    def test_a_deletion_ends_the_metric_s_life(self) -> None:
        """Its versions serve no more, also where the driver took one for a predecessor."""
        life = Life()
        old = life.start(life.edit())
        life.delete()
        assert life.serving() == []
        life.edit()
        new = life.start(life.edit(), after=old)
        assert life.serving() == [new]

    def test_one_that_this_release_cannot_read_is_named_too(self) -> None:
        """What that means is for who asks to say."""
        life = Life()
        first = life.start(life.edit())
        later = life.start(life.edit("kind: metric\nof: a later release\n"), after=first)
        assert life.serving() == [later, first]

    def test_records_that_go_round_end(self) -> None:
        """A record decides whom a version follows, and any producer may write one."""
        life = Life()
        first, second = life.edit(), life.edit()
        life.start(first, after=second)
        life.start(second, after=first)
        assert life.serving() == [second, first]
