"""The ledger: for each received minute, what became of every event.

What the panes say is held against what the batch records say was read of the log: two
accounts, kept by different code, of the same events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weir.batches import BatchRecord

from weir_reading.accounts import LEDGER_VID, MINUTE_S, read_accounts
from weir_reading.panes import Panes

MINUTE_MS = MINUTE_S * 1000
DISPOSITIONS = ("counted", "duplicate", "quarantined", "beyond_horizon", "erased")
Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class BatchSum:
    """What the batch records say of their ranges of the log.

    Attributes:
        records: Records that were read.
        events, ticks: What they were.
        batches: In how many batches.
    """

    records: int
    events: int
    ticks: int
    batches: int

    @property
    def difference(self) -> int:
        """Records that no batch accounts for."""
        return self.records - self.events - self.ticks


@dataclass(frozen=True, slots=True)
class Minute:
    """One received minute of a tenant.

    Attributes:
        minute_ms: When it begins.
        received: What the batch records say was read; None where they do not cover it.
        sources: What the panes hold: by source, by disposition.
    """

    minute_ms: int
    received: int | None
    sources: Mapping[str, Counts] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """What the panes hold of all sources, by disposition."""
        held = self.sources.values()
        return {name: sum(one.get(name, 0) for one in held) for name in DISPOSITIONS}

    @property
    def difference(self) -> int | None:
        """Events that one account has and the other has not; None where that is not known."""
        return None if self.received is None else self.received - sum(self.counts.values())


async def read_minutes(
    panes: Panes,
    records: Sequence[BatchRecord],
    starts_s: Iterable[int],
    shards: int,
    tenant: str,
) -> list[Minute]:
    """Return the account of some minutes, in their order.

    Args:
        panes: The store.
        records: Of the batches, as they stood before the store is read.
        starts_s: Beginnings of the minutes, in seconds.
        shards: Over how many shards the store spreads series.
        tenant: Whose.
    """
    starts = list(starts_s)
    read = received_by_minute(records, tenant)
    stored: dict[int, dict[str, Counts]] = {}
    for account in await read_accounts(panes, LEDGER_VID, starts, shards, tenant):
        _, source, disposition = account.values
        sources = stored.setdefault(account.minute_ms, {})
        counts = sources.setdefault(source, dict.fromkeys(DISPOSITIONS, 0))
        counts[disposition] = counts.get(disposition, 0) + account.n
    begun = [start_s * 1000 for start_s in starts]
    return [Minute(at_ms, read.get(at_ms), stored.get(at_ms, {})) for at_ms in begun]


def batch_sum(records: Sequence[BatchRecord]) -> BatchSum:
    """Return whether each batch accounts for every record of its range of the log."""
    read = sum(
        end - record.from_offsets.get(partition, 0)
        for record in records
        for partition, end in record.to_offsets.items()
    )
    rows = [row for record in records for row in record.ledger]
    events = sum(getattr(row, name) for row in rows for name in DISPOSITIONS)
    return BatchSum(read, events, sum(record.ticks for record in records), len(records))


def received_by_minute(records: Sequence[BatchRecord], tenant: str) -> dict[int, int]:
    """Return how many events of a tenant were read, for minutes that the records cover whole."""
    found: dict[int, int] = {}
    for record in records:
        for row in record.ledger:
            if row.tenant == tenant:
                total = sum(getattr(row, name) for name in DISPOSITIONS)
                found[row.minute_ms] = found.get(row.minute_ms, 0) + total
    return {minute_ms: found.get(minute_ms, 0) for minute_ms in covered(records)}


def covered(records: Sequence[BatchRecord]) -> range:
    """Return the minutes whose every received event is in some records, in epoch milliseconds.

    What was received in a minute that the first record, or one before it, has counted some of
    may lie before the records: partitions are not equally far. If the log begins with them
    nothing does.
    """
    if not records:
        return range(0)
    first = records[0]
    if any(first.from_offsets.values()):
        begin_ms = _counted_to_ms(first) // MINUTE_MS * MINUTE_MS + MINUTE_MS
    else:
        begin_ms = min(
            (row.minute_ms for record in records for row in record.ledger),
            default=first.processed_through_ms // MINUTE_MS * MINUTE_MS,
        )
    return range(begin_ms, records[-1].processed_through_ms + 1, MINUTE_MS)


def _counted_to_ms(record: BatchRecord) -> int:
    """Return a received time that nothing up to the end of a record is behind."""
    if record.received_to_ms is not None:
        return record.received_to_ms
    # A release before did not tell it: nothing is received after it was counted, as far as
    # the clocks of driver and broker agree.
    minutes = (row.minute_ms for row in record.ledger)
    return max(record.processed_through_ms, record.at_ms, *minutes)
