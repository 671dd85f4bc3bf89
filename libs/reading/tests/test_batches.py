"""What a reader keeps of batch records for 15 minutes, and what only its listeners get."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
from weir.batches import BatchRecord, LaneProgress, LedgerRow, encode
from weir.changed import PaneSpan
from weir.clock import SystemClock
from weir_reading.batches import Batches

NOBODY: Any = None


def record(rev: int, panes: int = 2) -> BatchRecord:
    """Return the record of a batch that changed some panes."""
    return BatchRecord(
        epoch=3,
        batch=rev - 1,
        rev=rev,
        shards=1,
        from_offsets={0: rev},
        to_offsets={0: rev + 1},
        processed_through_ms=rev * 1_000,
        at_ms=rev * 1_000,
        ledger=[LedgerRow("shop", "web", 0, 1)],
        changed=[(100_000 + rev, 60, 60 * n, 0) for n in range(panes)],
        spans=[PaneSpan(7, 60, 0, 6_000)],
        lanes=[LaneProgress(5, "backfill", vid, None, rev, 9_000) for vid in range(panes)],
        fates=[(0, rev, "counted", None, [])],
        outbox={0: 5},
    )


class TestKept:
    @pytest.mark.parametrize("listens", [True, False])
    def test_changed_panes_are_let_go_of_once_they_were_told(self, listens: bool) -> None:
        """Also those that were read before anybody listened; ledger and ranges stay."""
        batches, told = Batches(NOBODY, SystemClock()), list[BatchRecord]()
        if listens:
            batches.listen(told.append)
        for rev in (1, 2):
            batches._take(encode(record(rev)), (3, rev))
        batches.listen(told.append)

        for kept in batches.records:
            assert (kept.changed, kept.spans, kept.fates) == ([], [], [])
            assert kept.ledger == record(kept.rev).ledger
            assert kept.to_offsets == record(kept.rev).to_offsets
        assert [(one.rev, len(one.changed), len(one.spans), len(one.fates)) for one in told] == (
            [(1, 2, 1, 1), (2, 2, 1, 1)] if listens else []
        )

    def test_the_newest_has_its_lanes(self) -> None:
        """Nobody asks where they were before."""
        batches = Batches(NOBODY, SystemClock())
        for rev in (1, 2, 3):
            batches._take(encode(record(rev)), (3, rev))

        assert [len(kept.lanes) for kept in batches.records] == [0, 0, 2]
        assert batches.newest is not None
        assert batches.newest.lanes == record(3).lanes

    def test_a_quarter_of_an_hour_takes_a_megabyte_or_two(self) -> None:
        """However many panes changed in it: a thousand a second were 100 MB, and ended readers."""
        batches = Batches(NOBODY, SystemClock())
        texts = [(encode(record(rev, panes=1_000)), (3, rev)) for rev in range(1, 301)]
        gc.collect()
        tracemalloc.start()
        try:
            for text in texts:
                batches._take(*text)
            gc.collect()
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert len(batches.records) == 300
        assert kept < 1_000_000
