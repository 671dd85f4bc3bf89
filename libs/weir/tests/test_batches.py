"""Batch records survive the way through JSON, in the shape that readers were told."""

import json

import msgspec
import pytest
from weir import batches
from weir.batches import (
    BatchRecord,
    LaneProgress,
    LedgerRow,
    Opening,
    decode,
    encode,
    entry_id,
    parse_id,
)
from weir.changed import PaneSpan
from weir.formats import NewerFormatError

RECORD = BatchRecord(
    epoch=12,
    batch=87,
    rev=88,
    shards=2,
    from_offsets={0: 10},
    to_offsets={0: 20, 11: 5},
    processed_through_ms=1_700_000_000_000,
    at_ms=1_700_000_000_250,
    received=15,
    ledger=[LedgerRow(tenant="default", source="web", minute_ms=60_000, counted=15)],
    changed=[(7, 60, 1_700_000_040, 1)],
    activations=[7],
    fates=[(0, 12, "quarantined", "too_deep", [("hits", "value_missing")])],
    outbox={0: 5},
)


def test_a_record_comes_back_as_it_went() -> None:
    """Decoding an encoded record gives an equal record."""
    assert decode(encode(RECORD)) == RECORD


def test_the_members_have_their_documented_names() -> None:
    """The JSON says `from` and `to`, with partitions as text."""
    members = json.loads(encode(RECORD))

    assert members["from"] == {"0": 10}
    assert members["to"] == {"0": 20, "11": 5}
    assert members["v"] == 1
    assert members["changed"] == [[7, 60, 1_700_000_040, 1]]


class TestSpans:
    """Panes of which too many changed to be listed."""

    SPANS = msgspec.structs.replace(RECORD, v=2, spans=[PaneSpan(7, 60, 0, 6_000)])

    def test_a_record_with_spans_is_of_a_version_of_its_own(self) -> None:
        """Whoever made it: a reader that knows no spans would take the list for all."""
        text = encode(msgspec.structs.replace(self.SPANS, v=1))

        assert decode(text) == self.SPANS
        members = json.loads(text)
        assert (members["v"], members["spans"]) == (2, [[7, 60, 0, 6_000]])

    def test_who_knows_none_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As the first release would be; a record without spans is read there as before."""
        monkeypatch.setattr(batches, "VERSION", 1)
        with pytest.raises(NewerFormatError, match="batch record must be of format version 1 or"):
            decode(json.dumps(json.loads(encode(RECORD)) | {"v": 2}).encode())
        assert decode(encode(RECORD)) == RECORD

    def test_what_changed_is_told_with_shards_together(self) -> None:
        """The list and the spans."""
        found = self.SPANS.changes()

        assert found.listed == {(7, 60, 1_700_000_040)}
        assert found.spans == {(7, 60): PaneSpan(7, 60, 0, 6_000)}


class TestLanes:
    """Versions of which too many are filled for an entry each."""

    ONE = LaneProgress(5, "backfill", 7, None, 40, 100)
    MANY = LaneProgress(6, "backfill", 8, None, 40, 100, vids=(9, 10))

    def test_who_knows_no_lane_of_many_is_refused(self) -> None:
        """It would take the others for filled."""
        told = msgspec.structs.replace(RECORD, lanes=[self.ONE, self.MANY])

        assert decode(encode(told)) == msgspec.structs.replace(told, v=2)
        assert json.loads(encode(msgspec.structs.replace(RECORD, lanes=[self.ONE])))["v"] == 1

    def test_a_lane_fills_each_of_its_versions(self) -> None:
        """However they are told."""
        rebuild = LaneProgress(4, "rebuild", None, 0, 40, 100)
        lanes = (rebuild, self.ONE, self.MANY)

        assert [one.filled() for one in lanes] == [(), (7,), (8, 9, 10)]
        for one in lanes:
            assert [vid for vid in range(12) if one.fills(vid)] == list(one.filled())


def test_an_opening_is_told_from_a_batch() -> None:
    """An opening entry decodes to an opening, and says so in its JSON."""
    opening = Opening(epoch=12, reason="rewind", at_ms=5)

    assert decode(encode(opening)) == opening
    assert json.loads(encode(opening))["opening"] is True


def test_a_newer_writer_is_understood() -> None:
    """Members that this release does not know are ignored."""
    members = json.loads(encode(RECORD)) | {"later": 1}

    assert decode(json.dumps(members).encode()) == RECORD


def test_ids_order_by_epoch_then_revision() -> None:
    """Stream ids turn into pairs that compare as the stream orders them."""
    assert parse_id(entry_id(12, 88)) == (12, 88)
    assert parse_id(b"12-88") < parse_id("13-0")


@pytest.mark.parametrize("text", ["", "12", "a-b"])
def test_an_id_that_is_none_is_refused(text: str) -> None:
    """A text that is not two numbers is refused."""
    with pytest.raises(ValueError, match="invalid literal"):
        parse_id(text)
