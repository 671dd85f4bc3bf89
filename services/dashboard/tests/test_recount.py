"""What the batch records say after a loss: how far, and until when nothing is said."""

from __future__ import annotations

from typing import Any

import pytest
from weir import names
from weir.batches import BatchRecord, LaneProgress, Opening, encode
from weir.clock import SystemClock
from weir_local.waiting import wait_until
from weir_reading.batches import Batches, Recount

LOST_MS = 1_000_000


class Stream:
    """Batch records told one by one, without a store."""

    def __init__(self) -> None:
        self.batches = Batches(None, SystemClock())  # type: ignore[arg-type]
        self._rev = 0

    def open(self, epoch: int, reason: str, at_ms: int = LOST_MS) -> Batches:
        """Tell that an epoch begins."""
        self._rev = 0
        opening = Opening(epoch=epoch, reason=reason, at_ms=at_ms)
        self.batches._take(encode(opening), (epoch, 0))
        return self.batches

    def count(self, through_ms: int, *lanes: LaneProgress) -> Batches:
        """Tell that a batch was counted, with lanes beside it."""
        self._rev += 1
        record = BatchRecord(
            epoch=self.batches.epoch,
            batch=self._rev - 1,
            rev=self._rev,
            shards=1,
            from_offsets={},
            to_offsets={},
            processed_through_ms=through_ms,
            at_ms=through_ms,
            lanes=list(lanes),
        )
        self.batches._take(encode(record), (self.batches.epoch, self._rev))
        return self.batches


def rebuild(at: int, until_ms: int = 900_000) -> LaneProgress:
    """Return a lane of a hundred records that counts lost shards again."""
    return LaneProgress(
        lane=7, kind="rebuild", vid=None, shard=None, at=at, of=100, until_ms=until_ms
    )


class TestRecount:
    def test_it_ends_when_no_lane_is_left(self) -> None:
        """From the loss on nothing is said of what was, until all lanes are done."""
        stream = Stream()
        stream.open(1, "start")
        stream.count(900_000)
        batches = stream.open(2, "lost")
        assert batches.recount == Recount(900_000)
        assert stream.count(900_100, rebuild(0)).recount == Recount(900_000, 0.0)
        assert stream.count(900_200, rebuild(75)).recount == Recount(900_000, 0.75)
        assert batches.rebuilding[0].to_ms == 900_000
        assert stream.count(900_300).recount is None
        assert batches.rebuilding == ()

    def test_a_store_that_comes_back_older_says_nothing(self) -> None:
        """What it holds was more a moment ago: no count goes back within an epoch."""
        stream = Stream()
        stream.open(1, "start")
        for through_ms in (100, 200, 300):
            stream.count(through_ms)
        stream.batches._lose(stream.batches.processed_through_ms)
        stream._rev = 0
        assert stream.count(100).recount == Recount(300)
        assert stream.count(200).recount == Recount(300)
        stream.open(2, "behind")
        assert stream.count(400).recount is None

    def test_several_lanes_are_one_recount(self) -> None:
        """Up to the newest that is left; a done one is no longer told."""
        stream = Stream()
        stream.open(2, "lost")
        recount = stream.count(5, rebuild(50, 400), rebuild(0, 300)).recount

        assert recount == Recount(400, 0.25)

    def test_what_clients_dated_ahead_is_incomplete_meanwhile(self) -> None:
        """An event may lie in a pane that starts up to 23 hours after it was received."""
        stream = Stream()
        batches = stream.open(2, "lost")
        stream.count(900_000, rebuild(0, 800_000))
        assert batches.incomplete_before_ms == 800_000 + 23 * 3_600_000
        stream.count(900_100)
        assert batches.incomplete_before_ms == 0

    def test_a_version_that_is_filled_is_no_recount(self) -> None:
        """What was there is there."""
        lane = LaneProgress(lane=7, kind="backfill", vid=3, shard=None, at=1, of=2)
        stream = Stream()
        stream.open(1, "start")

        assert stream.count(900_000, lane).recount is None

    def test_who_was_not_there_before_takes_the_instant_of_the_loss(self) -> None:
        """A dashboard started meanwhile does not show half the counts as all of them."""
        assert Stream().open(2, "lost").recount == Recount(LOST_MS)

    def test_another_loss_does_not_end_it_sooner(self) -> None:
        """Lost again, or restarted, while counting again: nothing is said until a record does."""
        stream = Stream()
        stream.open(1, "start")
        stream.count(900_000)
        stream.open(2, "lost")
        stream.count(900_100, rebuild(10))
        assert stream.open(3, "lost").recount == Recount(900_100)
        stream.count(900_200, rebuild(20))
        assert stream.open(4, "rewind").recount == Recount(900_200)
        assert stream.count(900_300, rebuild(30)).recount == Recount(900_000, 0.3)

    @pytest.mark.parametrize("reason", ["start", "behind", "rewind"])
    def test_nothing_lost_is_no_recount(self, reason: str) -> None:
        """Another epoch alone makes only processed-through unknown, until its first batch."""
        stream = Stream()
        stream.open(1, "start")
        stream.count(900_000)
        batches = stream.open(2, reason)
        assert (batches.recount, batches.processed_through_ms) == (None, None)
        assert stream.count(7).processed_through_ms == 7

    @pytest.mark.kafka
    @pytest.mark.redis
    def test_a_lost_stream_is_seen_before_the_driver_says_so(
        self, running: Any, engine: Any
    ) -> None:
        """From an emptied store no zero is read, even while nothing counts."""
        engine.commit(ticks=1)
        batches = running.dashboard.context.batches
        assert batches.processed_through_ms == engine.through_ms
        running.redis.delete(names.BATCHES)
        wait_until(lambda: batches.recount is not None, timeout_s=10, what="the loss seen")
        assert batches.processed_through_ms is None
        assert batches.recount.to_ms == engine.through_ms
