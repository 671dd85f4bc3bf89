"""Which version of a metric readers show, also of a log that was made anew."""

from __future__ import annotations

import pytest
from weir.batches import BatchRecord
from weir.commit import Offsets
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    NewRecord,
    TakeOver,
    activation_record,
    put_record,
    start_record,
    takeover_record,
)
from weir_reading.catalog import Catalog
from weir_reading.follower import Record
from weir_reading.served import served

TEXT = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}\n"
FAR: Offsets = {0: 1_000_000, 1: 900_000}


class World:
    """What a reader knows of one metric, without servers."""

    def __init__(self, log: str | None = "A") -> None:
        self.catalog = Catalog()
        self.log = log or ""
        self.epoch = self.fence = self.start(log)

    def start(
        self, log: str | None, epoch: int | None = None, cut_short: Offsets | None = None
    ) -> int:
        """Let a driver start, by which an epoch goes on, or one begins; return its fence."""
        start = DriverStart("a", 1, "start", epoch=epoch, events_id=log, cut_short=cut_short)
        return self.take(start_record(start, at_ms=0))

    def adopt(self, log: str = "B") -> None:
        """Let a driver go on with a log that was made anew."""
        self.start("A", epoch=self.epoch)
        self.log, self.fence = log, self.start(log)
        self.epoch = self.fence

    def edit(self, *, after: int | None = None, fills: bool = True) -> int:
        """Make a version, and let it be counted."""
        based_on = self.catalog.folded.version("acme", "metric", "m")
        vid = self.take(put_record(Edit("acme", "metric", "m", based_on, "x", 0), TEXT))
        begun = Counting(
            vid, "acme", "m", (based_on or 0) + 1, {0: 1}, after, None, not fills, fills, self.log
        )
        self.take(activation_record(begun, op="start", fence=self.fence, at_ms=0))
        return vid

    def take_over(self, vid: int, after: int | None, offsets: Offsets = FAR) -> None:
        """Let a version take over from somewhere in the log on."""
        cut = {10: 0} if after is not None else None
        taken = TakeOver(vid, after, offsets, cut, topic_id=self.log)
        self.take(takeover_record(taken, fence=self.fence, at_ms=0))

    def take(self, record: NewRecord) -> int:
        """Let the reader read a record; return its offset."""
        offset = self.catalog.folded.next_offset
        self.catalog.take([Record(offset, record.key, record.value, 0)])
        return offset

    def batch(self, end: Offsets, epoch: int | None = None) -> None:
        """Let a batch be recorded."""
        self.catalog.follow(batch(end, self.epoch if epoch is None else epoch))

    def restarted(self) -> None:
        """Let the reader begin anew: it knows the records of both logs, and no batch."""
        catalog, self.catalog = self.catalog, Catalog()
        self.catalog.folded = catalog.folded

    def shown(self) -> list[tuple[int, bool]]:
        """Return the versions that are read, the newest first, and whether they rebuild."""
        found = served(self.catalog, "acme", "m")
        assert found is not None
        return [(one.vid, one.rebuilding) for one in reversed(found.versions)]


def batch(end: Offsets, epoch: int) -> BatchRecord:
    """Return the record of a batch that ends somewhere."""
    return BatchRecord(
        epoch=epoch,
        batch=0,
        rev=1,
        shards=1,
        from_offsets={},
        to_offsets=dict(end),
        processed_through_ms=0,
        at_ms=0,
    )


class TestALogMadeAnew:
    def test_what_had_taken_over_serves(self) -> None:
        """For a reader that was there, and for one that begins while the new log is small."""
        world = World()
        only = world.edit()
        world.take_over(only, None)
        assert world.shown() == [(only, False)]
        world.batch({0: 999_999, 1: 900_000})
        assert world.shown() == [(only, True)], "no batch has come to it yet"
        world.batch(FAR)
        world.adopt()
        for _ in range(2):
            assert world.shown() == [(only, False)]
            world.batch({0: 5})
            assert world.shown() == [(only, False)]
            world.restarted()

    def test_the_version_that_is_counted_is_shown(self) -> None:
        """The one before it, which counted from the start, is counted no more: zeros."""
        world = World()
        first = world.edit(fills=False)
        second = world.edit(after=first)
        world.take_over(second, first)
        world.adopt()
        world.restarted()
        world.batch({0: 5})
        assert [vid for vid, _ in world.shown()] == [second, first]

    @pytest.mark.parametrize("batch_first", [False, True], ids=["start first", "batch first"])
    def test_a_later_takeover_waits_for_its_batch(self, batch_first: bool) -> None:
        """Where counting was in the old log says nothing of where it is in this one."""
        world = World()
        first = world.edit(fills=False)
        world.batch(FAR)
        if batch_first:  # its stream is another one than that of the definitions
            world.batch({0: 3}, epoch=world.catalog.folded.next_offset + 1)
        world.adopt()
        world.batch({0: 5})
        assert world.catalog.reached == {0: 5}
        second = world.edit(after=first)
        world.take_over(second, first, {0: 7})
        assert world.shown() == [(first, False)]
        world.batch({0: 7})
        assert world.shown() == [(second, False), (first, False)]

    def test_a_batch_of_the_old_log_says_nothing(self) -> None:
        """A reader that begins reads the records of the last minutes, of both."""
        world = World()
        before = world.epoch
        world.adopt()
        world.batch(FAR, epoch=before)
        assert world.catalog.reached is None
        world.batch({0: 5})
        assert world.catalog.reached == {0: 5}


class TestALogCutShort:
    @pytest.mark.parametrize("restarts", [False, True])
    def test_what_had_taken_over_serves(self, restarts: bool) -> None:
        """From the first batch on: what was said of the offsets that are gone stands at the end."""
        world = World()
        first = world.edit(fills=False)
        second = world.edit(after=first)
        world.take_over(second, first)
        world.batch(FAR)
        world.epoch = world.fence = world.start("A", cut_short={0: 70, 1: 60})
        if restarts:
            world.restarted()
        world.batch({0: 71, 1: 60})
        assert world.catalog.reached == {0: 71, 1: 60}
        assert [vid for vid, _ in world.shown()] == [second, first]

    def test_a_later_takeover_waits_for_its_batch(self) -> None:
        """Also where counting had come further before."""
        world = World()
        first = world.edit(fills=False)
        world.batch(FAR)
        world.epoch = world.fence = world.start("A", cut_short={0: 70})
        world.batch({0: 71})
        second = world.edit(after=first)
        world.take_over(second, first, {0: 80})
        assert world.shown() == [(first, False)]


class TestTheSameLog:
    def test_an_epoch_after_the_other_counts_on(self) -> None:
        """What a batch has reached stays reached when the state was lost."""
        world = World()
        only = world.edit()
        world.take_over(only, None)
        world.batch(FAR)
        world.epoch = world.fence = world.start("A")
        world.batch({0: 999_000, 1: 1})
        assert world.catalog.reached == FAR
        assert world.shown() == [(only, False)]

    def test_nobody_said_which_log_it_is(self) -> None:
        """A driver of an older release: then its offsets are of the log that is counted."""
        world = World(None)
        only = world.edit()
        world.take_over(only, None, {0: 7})
        world.batch({0: 5})
        world.epoch = world.fence = world.start("A", epoch=world.epoch)
        for reached, rebuilds in ((6, True), (7, False)):
            world.batch({0: reached})
            assert world.shown() == [(only, rebuilds)]
