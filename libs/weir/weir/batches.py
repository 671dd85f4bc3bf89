"""Batch records: what the driver tells every reader about one committed batch.

They stand in one Redis stream, one entry a batch, `<epoch>-<revision>`. A reader
that follows the stream knows, without asking anything else, which panes changed,
what became of the events and how far time has been counted. An epoch begins
with an opening entry, revision 0; whoever sees one takes a snapshot.

Only shapes and their JSON live here. Unknown members are ignored and members
added later have defaults, so that readers of two releases live together. A record with
spans, or with a lane of many versions, is of a version of its own: what was there before does
not say all in it, and who knows neither would show numbers of before as those of now.
"""

from __future__ import annotations

from typing import Final

import msgspec

from weir.changed import ChangedPanes, PaneSpan
from weir.formats import check

VERSION: Final = 2
"""The newest that is read: of records with spans, or with lanes that fill many versions. All
others are of the first."""
FIELD: Final = b"r"
KEPT_MS: Final = 15 * 60 * 1000


class LedgerRow(msgspec.Struct, frozen=True):
    """What became of the events that one source sent within one received minute."""

    tenant: str
    source: str
    minute_ms: int
    counted: int = 0
    duplicate: int = 0
    quarantined: int = 0
    beyond_horizon: int = 0
    erased: int = 0


class LaneProgress(msgspec.Struct, frozen=True):
    """How far a backfill or rebuild has come.

    Attributes:
        lane: Its name: the offset of its record in `weir.definitions`.
        kind: `backfill` or `rebuild`.
        vid: The version that is filled; None for a rebuild.
        shard: The shard that is rebuilt; None for several, and for a backfill.
        at: Records of the log done.
        of: Records of the log in all.
        until_ms: Its records were received before this instant.
        waits_for: Why nothing of it is counted now; None: it goes on.
        vids: The versions that it fills besides, where they are too many for an entry each.
    """

    lane: int
    kind: str
    vid: int | None
    shard: int | None
    at: int
    of: int
    until_ms: int = 0
    waits_for: str | None = None
    vids: tuple[int, ...] = ()

    def fills(self, vid: int) -> bool:
        """Tell whether it fills a version."""
        return vid == self.vid or vid in self.vids

    def filled(self) -> tuple[int, ...]:
        """Return the versions that it fills."""
        return self.vids if self.vid is None else (self.vid, *self.vids)


class BatchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One committed batch.

    Attributes:
        v: Version of this format; `encode` knows which.
        epoch: The life of the state that it belongs to.
        batch: Spark's number of the batch.
        rev: The revision, `batch` + 1.
        shards: Over how many shards the series are spread.
        from_offsets: Where the batch began, by partition (`from` in JSON).
        to_offsets: Where it ended, exclusive (`to` in JSON).
        processed_through_ms: Received time up to which all events are counted.
        received_to_ms: Received time up to which some may be: the greatest of all that was
            counted, in whichever partition. None in a record of a release before it was told.
        at_ms: When the driver wrote the record, by its own clock.
        held_by: The partition that holds processed-through, else None.
        received: Records of the range that are no ticks.
        ticks: Records of the range that are ticks.
        ledger: What became of the received events.
        changed: `(vid, res_s, start_s, shard)` of panes that changed: of all, but for spans.
        spans: Panes that may have changed, where there are too many to be listed.
        lanes: Backfills and rebuilds under way.
        takeovers: Versions that serve from this revision on.
        activations: Versions counted from the end of this batch on.
        fates: `(partition, offset, disposition, reason, [(metric, code)])` of
            the events that the live tail sampled.
        outbox: By shard, the last outbox entry that this record contains.
    """

    v: int = 1
    epoch: int
    batch: int
    rev: int
    shards: int
    from_offsets: dict[int, int] = msgspec.field(name="from")
    to_offsets: dict[int, int] = msgspec.field(name="to")
    processed_through_ms: int
    received_to_ms: int | None = None
    at_ms: int
    held_by: int | None = None
    received: int = 0
    ticks: int = 0
    ledger: list[LedgerRow] = msgspec.field(default_factory=list)
    changed: list[tuple[int, int, int, int]] = msgspec.field(default_factory=list)
    spans: list[PaneSpan] = msgspec.field(default_factory=list)
    lanes: list[LaneProgress] = msgspec.field(default_factory=list)
    takeovers: list[int] = msgspec.field(default_factory=list)
    activations: list[int] = msgspec.field(default_factory=list)
    fates: list[tuple[int, int, str, str | None, list[tuple[str, str]]]] = msgspec.field(
        default_factory=list
    )
    outbox: dict[int, int] = msgspec.field(default_factory=dict)

    def changes(self) -> ChangedPanes:
        """Return what changed, shards together."""
        return ChangedPanes(((vid, res, at) for vid, res, at, _ in self.changed), self.spans)


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The first entry of an epoch: everything seen before is void.

    Attributes:
        v: Version of this format.
        opening: Always true; tells an opening from a batch.
        epoch: The epoch that begins.
        reason: Why: `start`, `lost`, `behind` or `rewind`.
        at_ms: When the driver wrote it, by its own clock.
    """

    v: int = 1
    opening: bool = True
    epoch: int
    reason: str
    at_ms: int = 0


class _Peek(msgspec.Struct):
    v: int = 1
    opening: bool = False


_ENCODER = msgspec.json.Encoder()
_PEEK = msgspec.json.Decoder(_Peek)
_BATCH = msgspec.json.Decoder(BatchRecord)
_OPENING = msgspec.json.Decoder(Opening)


def encode(entry: BatchRecord | Opening) -> bytes:
    """Return an entry as the JSON that the stream holds, in the first version that can say it."""
    if isinstance(entry, BatchRecord) and (entry.spans or any(one.vids for one in entry.lanes)):
        entry = msgspec.structs.replace(entry, v=VERSION)
    return _ENCODER.encode(entry)


def decode(text: bytes) -> BatchRecord | Opening:
    """Return the entry that a JSON text of the stream holds.

    Raises:
        NewerFormatError: If a newer release wrote it.
        ValueError: If the text is not an entry of this format.
    """
    first = _PEEK.decode(text)
    check("batch record", first.v, VERSION)
    return _OPENING.decode(text) if first.opening else _BATCH.decode(text)


def entry_id(epoch: int, rev: int) -> str:
    """Return the id that an entry has in the stream."""
    return f"{epoch}-{rev}"


def parse_id(text: str | bytes) -> tuple[int, int]:
    """Return epoch and revision of a stream id.

    Raises:
        ValueError: If the text is not two numbers with a hyphen between them.
    """
    epoch, _, rev = (text.decode() if isinstance(text, bytes) else text).partition("-")
    return int(epoch), int(rev)
