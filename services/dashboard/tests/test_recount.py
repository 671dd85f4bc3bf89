"""What the batch records say after a loss: how far, and until when nothing is said."""

from __future__ import annotations

from typing import Any

import pytest
from weir import names
from weir.batches import BatchRecord, Opening, encode
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

    def count(self, through_ms: int) -> Batches:
        """Tell that a batch was counted."""
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
        )
        self.batches._take(encode(record), (self.batches.epoch, self._rev))
        return self.batches


class TestRecount:
    def test_it_ends_where_counting_had_been(self) -> None:
        """One millisecond short of it nothing is said yet."""
        stream = Stream()
        stream.open(1, "start")
        stream.count(900_000)
        assert stream.open(2, "lost").recount == Recount(900_000)
        recount = stream.count(800_000).recount
        assert recount is not None
        assert recount.progress == 0.0
        recount = stream.count(899_999).recount
        assert recount is not None
        assert recount.progress == pytest.approx(0.99999)
        assert stream.count(900_000).recount is None

    def test_who_was_not_there_before_takes_the_instant_of_the_loss(self) -> None:
        """A dashboard started meanwhile does not show half the counts as all of them."""
        stream = Stream()
        assert stream.open(2, "lost").recount == Recount(LOST_MS)
        assert stream.count(5).recount == Recount(LOST_MS, from_ms=5, at_ms=5)

    def test_another_loss_does_not_end_it_sooner(self) -> None:
        """Lost again, or restarted, while counting again: the goal stays the same."""
        stream = Stream()
        stream.open(1, "start")
        stream.count(900_000)
        stream.open(2, "lost")
        stream.count(100)
        assert stream.open(3, "lost").recount == Recount(900_000)
        stream.count(50)
        after = stream.open(4, "rewind").recount
        assert after is not None
        assert after.to_ms == 900_000

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
