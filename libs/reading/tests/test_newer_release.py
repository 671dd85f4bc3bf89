"""What a newer release has written is not taken for what it is not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from structlog.testing import capture_logs
from weir import names
from weir.batches import BatchRecord, Opening, encode
from weir.clock import SystemClock
from weir.commit import Mark
from weir.definitions.records import DriverStart, start_record
from weir.formats import NewerFormatError
from weir_reading import panes as panes_module
from weir_reading.batches import Batches
from weir_reading.catalog import Catalog
from weir_reading.follower import Record
from weir_reading.panes import PaneId, Panes

NOBODY: Any = None
PANE = PaneId(1, 10, 0, 0)


def record(rev: int, epoch: int = 3) -> BatchRecord:
    """Return the record of a batch."""
    return BatchRecord(
        epoch=epoch,
        batch=rev - 1,
        rev=rev,
        shards=1,
        from_offsets={0: rev},
        to_offsets={0: rev + 1},
        processed_through_ms=rev * 1_000,
        at_ms=rev * 1_000,
    )


def newer(text: bytes) -> bytes:
    """Return a text as a newer release would have written it."""
    return json.dumps(json.loads(text) | {"v": 3}).encode()


class TestBatches:
    @pytest.fixture
    def batches(self) -> Batches:
        """Return what has followed one record."""
        found = Batches(NOBODY, SystemClock())
        found._take(encode(record(1)), (3, 1))
        return found

    def test_nothing_moves_by_a_newer_record(self, batches: Batches) -> None:
        """The revision stays, so that freshness says since when; the reason is logged once."""
        with capture_logs() as logs:
            for rev in (2, 3):
                batches._take(newer(encode(record(rev))), (3, rev))

        assert (batches.rev, batches.processed_through_ms) == (1, 1_000)
        assert [log["event"] for log in logs] == ["batch_record_unreadable"]
        with pytest.raises(NewerFormatError, match="batch record must be of format version 2"):
            batches.newer.check()

    @pytest.mark.parametrize("entry", [record(4), Opening(epoch=5, reason="start")])
    def test_it_is_over_with_the_next_that_can_be_read(
        self, batches: Batches, entry: BatchRecord | Opening
    ) -> None:
        """The older release counts again."""
        batches._take(newer(encode(record(2))), (3, 2))
        batches._take(encode(entry), (entry.epoch, 4))

        batches.newer.check()

    def test_what_is_no_record_is_no_newer_one(self, batches: Batches) -> None:
        """Somebody else wrote it; each is logged."""
        with capture_logs() as logs:
            for _ in range(2):
                batches._take(b'{"v":1}', (3, 2))

        assert [log["event"] for log in logs] == ["batch_record_unreadable"] * 2
        batches.newer.check()


class TestPanes:
    @pytest.fixture
    def batches(self) -> Batches:
        """Return what has followed one record."""
        found = Batches(NOBODY, SystemClock())
        found._take(encode(record(1)), (3, 1))
        return found

    @pytest.fixture
    def panes(self, batches: Batches) -> Panes:
        """Return a reader of panes."""
        return Panes(NOBODY, batches, cache_bytes=1_000, query_bytes=10**9)

    def hold(
        self, monkeypatch: pytest.MonkeyPatch, mark: bytes, rows: dict[bytes, bytes] | None = None
    ) -> None:
        """Have the store hold a pane and its shard's mark."""

        async def sizes(*_: object) -> list[int]:
            return [1]

        async def hashes(*_: object) -> tuple[list[dict[bytes, bytes]], list[bytes]]:
            return [rows or {}], [mark]

        monkeypatch.setattr(panes_module, "hash_sizes", sizes)
        monkeypatch.setattr(panes_module, "read_hashes_then", hashes)

    def mark(self) -> bytes:
        """Return the mark of a shard that has counted the record."""
        found = Mark(epoch=3, batch=0, topic_id="t", end={0: 2}, shards=1)
        return json.dumps({name: getattr(found, name) for name in found.__struct_fields__}).encode()

    def test_nothing_is_read_while_a_newer_release_counts(
        self, batches: Batches, panes: Panes
    ) -> None:
        """Not even what is kept: it may not be so any more."""
        batches._take(newer(encode(record(2))), (3, 2))
        with pytest.raises(NewerFormatError, match="batch record must be"):
            asyncio.run(panes.read([]))

    def test_a_newer_mark(self, panes: Panes, monkeypatch: pytest.MonkeyPatch) -> None:
        """Who reads is refused, and the reason is kept until a mark can be read."""
        self.hold(monkeypatch, newer(self.mark()))
        with pytest.raises(NewerFormatError, match="mark must be of format version 1 or below"):
            asyncio.run(panes.read([PANE]))
        assert (panes.newer.why or "").startswith("mark must be")

        self.hold(monkeypatch, self.mark(), {b"\x00\x01": b"\x40\x07"})
        assert asyncio.run(panes.read([PANE]))[PANE][b"\x00\x01"].n == 7
        assert panes.newer.why is None

    def test_a_newer_row(self, panes: Panes, monkeypatch: pytest.MonkeyPatch) -> None:
        """One row is enough: a total without it would be too small."""
        self.hold(monkeypatch, self.mark(), {b"\x00\x01": b"\x40\x07", b"\x00\x02": b"\x80\x07"})
        with pytest.raises(NewerFormatError, match="packed row must be of format version 1 or"):
            asyncio.run(panes.read([PANE]))


def test_the_number_of_shards_is_not_known_by_newer_definitions() -> None:
    """A start record of a newer release may have said another."""
    catalog = Catalog()
    first = start_record(DriverStart("a", 4, "start"), at_ms=0)
    catalog.take([Record(0, first.key, first.value, 0)])
    assert catalog.shards == 4

    catalog.take([Record(1, first.key, newer(first.value), 0)])
    with pytest.raises(NewerFormatError, match=f"^record 1 of {names.DEFINITIONS} must be of"):
        assert catalog.shards
