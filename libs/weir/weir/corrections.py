"""Records of `weir.corrections`: what late events changed in panes that were final.

One record a series of a pane that a batch changed. A batch that is replayed sends its
corrections again under the same keys, so readers keep the first of a key.

For every pane and series, from when its pane was final and its version served: the
first final value plus all corrections is the value now. Counts and sums add; of
minimum and maximum, the newest correction has the value now.

A series lies in one shard, but each shard has a row `*` of a pane. A record is of the row
of one shard, since a crash may leave the outbox of one and not of another: records of both
in one would be another record when it is sent again. Readers that show `*` add them up.

Only the shape and its JSON live here. Unknown members are ignored and members added
later have defaults, so that readers of two releases live together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from weir.formats import checked
from weir.frequent import Moved
from weir.further import Further, Last
from weir.query.estimates import estimates_of
from weir.rows import Row, merge
from weir.series import OTHER
from weir.sketches import Bounded

VERSION: Final = 1
NO_TEXTS: Final = msgspec.Raw(b"[]")


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a record tells of a row: its exact members, and what its sketches say.

    Attributes:
        n: How many events.
        sum, min, max: Of their values; None where a metric has none.
        spread: Sum of the squared distances of the values from their mean; None where the
            metric has no `stddev`.
        last: The newest value; None where the metric has no `last`.
        estimates: What its sketches say, by aggregate (`p99`, `distinct`, `theta`), with the
            ends of each; None where the metric has none, and of rows of two shards together.
    """

    n: int
    sum: float | None = None
    min: float | None = None
    max: float | None = None
    spread: float | None = None
    last: Last | None = None
    estimates: dict[str, Bounded] | None = None

    @classmethod
    def of(cls, row: Row, sketched: Iterable[str] = ()) -> Figures:
        """Return the exact members of a row, and what its sketches say of some aggregates."""
        further = row.further or Further()
        estimates = estimates_of(row, sketched) or None
        return cls(row.n, row.sum, row.min, row.max, further.spread, further.last, estimates)

    def row(self) -> Row:
        """Return the row that has the exact members and no other."""
        further = Further(self.spread, self.last)
        return Row(
            self.n,
            self.sum,
            self.min,
            self.max,
            further=None if further == Further() else further,
        )

    @property
    def stddev(self) -> float | None:
        """The standard deviation, of a population; None where it is not known."""
        if self.spread is None or not self.n:
            return None
        return math.sqrt(self.spread / self.n)


def added(one: Figures | None, other: Figures | None) -> Figures | None:
    """Return the members of two rows taken as one; None is a row that does not exist."""
    if one is None or other is None:
        return one or other
    return Figures.of(merge(one.row(), other.row()))


class CorrectionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch changed in one series of a final pane.

    Attributes:
        v: Version of this format.
        epoch: The life of the state that the batch belongs to.
        batch: Its number.
        tenant: Whose metric it is.
        metric: The metric's name.
        version: Of the definition.
        vid: Of the version.
        res_s: Length of the pane.
        start_s: Where it starts.
        series: Series text; `*` is the row of all series beyond `max_series`.
        was: The row before; None if there was none.
        now: The row after; None if it was merged into the row `*`.
        received_ms: When the last of the late events had come: the newest R of the batch, or
            the end of the last received minute that has one of them, if that is earlier.
        final_ms: When the pane was final: its end plus the allowed lateness.
        sources: (source, events): who sent the late events that the row gained in this batch,
            if `sources_exact`. Else possible sources: who sent late events of the metric's types
            that belong into this span of time, in this batch. Not which of them matched its
            `where` or belong to this series: where there is one source, it is the one.
        sources_known: Whether `sources` is complete. False for what an earlier batch
            left unsent, and where a batch brought too many groups of late events.
        sources_exact: Whether `sources` are of this row; of `*`, of all shards that tell one. False
            in a record of a release before it was told, of a row that became part of `*`, and
            where a batch brought too many groups of late events of the tenant.
        shard: Whose row it is; 0 in a record of a release before it was told.
        texts: How often texts of the late events came before and now, of a few of them, not
            decoded: a dashboard keeps thousands of records, and tells few.
    """

    v: int = VERSION
    epoch: int
    batch: int
    tenant: str
    metric: str
    version: int
    vid: int
    res_s: int
    start_s: int
    series: str
    was: Figures | None
    now: Figures | None
    received_ms: int
    final_ms: int
    sources: list[tuple[str, int]] = msgspec.field(default_factory=list)
    sources_known: bool = True
    sources_exact: bool = False
    shard: int = 0
    texts: msgspec.Raw = NO_TEXTS

    @property
    def moved(self) -> list[Moved]:
        """How often texts of the late events came before and now; see `texts_moved`."""
        return decode_texts(self.texts)

    @property
    def key(self) -> str:
        """The key that says which records are copies of each other.

        It names the shard only where it must: a key is the same in a record that was sent
        before an upgrade and again after it.
        """
        place = (self.epoch, self.batch, self.vid, self.res_s, self.start_s)
        row = f"{OTHER}/{self.shard}" if self.series == OTHER and self.shard else self.series
        return f"{'/'.join(map(str, place))}/{row}"

    @property
    def late_ms(self) -> int:
        """How long after the pane's end its late events had come."""
        return self.received_ms - (self.start_s + self.res_s) * 1000

    @property
    def events(self) -> int:
        """How many events the series gained; negative if it was merged into `*`."""
        return (self.now.n if self.now else 0) - (self.was.n if self.was else 0)


_TEXTS = msgspec.json.Decoder(list[Moved])
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(CorrectionRecord)


def raw_texts(texts: Sequence[Moved]) -> msgspec.Raw:
    """Return what a record keeps of changed texts."""
    return msgspec.Raw(_ENCODER.encode(texts)) if texts else NO_TEXTS


def decode_texts(raw: msgspec.Raw) -> list[Moved]:
    """Return the changed texts that `raw_texts` was told.

    Raises:
        ValueError: If it is none of this format.
    """
    return _TEXTS.decode(raw)


def encode(record: CorrectionRecord) -> bytes:
    """Return a record's value."""
    return _ENCODER.encode(record)


def decode(value: bytes) -> CorrectionRecord:
    """Return the record of a value.

    Raises:
        NewerFormatError: If a newer release wrote it.
        ValueError: If it is not one of this format.
    """
    record = _DECODER.decode(checked(value, "correction", VERSION))
    decode_texts(record.texts)  # what is wrong with them is found now, and not when they are told
    # As it is decoded it is a part of the whole value, and would keep that.
    return msgspec.structs.replace(record, texts=record.texts.copy())
