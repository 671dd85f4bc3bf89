"""The ledger: for each received minute, what became of every event.

What the panes say is held against what the batch records say was read of the log:
two accounts, kept by different code, of the same events.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from weir.batches import BatchRecord

from weir_dashboard.api.models import BatchCheck, Ledger, LedgerMinute
from weir_dashboard.api.status import fresh_of
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.store.accounts import LEDGER_VID, MINUTE_S, read_accounts

MINUTE_MS = MINUTE_S * 1000
DISPOSITIONS = ("counted", "duplicate", "quarantined", "beyond_horizon", "erased")
Counts = dict[str, int]
router = APIRouter(tags=["flow"])


@router.get("/ledger")
async def ledger(
    here: Here,
    caller: Who,
    minutes: Annotated[int, Query(ge=1, le=1440)] = 60,
    to_ms: Annotated[int | None, Query(ge=0)] = None,
) -> Ledger:
    """Return the account of the newest minutes, the newest first."""
    through_ms = here.batches.processed_through_ms
    newest_ms = through_ms if through_ms is not None else here.clock.now_ms()
    last_s = min(newest_ms, to_ms if to_ms is not None else newest_ms) // MINUTE_MS * MINUTE_S
    starts = range(last_s - (minutes - 1) * MINUTE_S, last_s + 1, MINUTE_S)
    stored = await _stored(here, starts, caller.tenant)
    read = _read_of_log(here, caller.tenant)
    items = [
        _minute(start_s * 1000, stored.get(start_s * 1000, {}), read, through_ms)
        for start_s in reversed(starts)
    ]
    return Ledger(items=items, batches=check(list(here.batches.records)), fresh=fresh_of(here))


def check(records: list[BatchRecord]) -> BatchCheck:
    """Return whether each batch accounts for every record of its range of the log."""
    read = events = ticks = 0
    for record in records:
        for partition, end in record.to_offsets.items():
            read += end - record.from_offsets.get(partition, 0)
        ticks += record.ticks
        events += sum(_total(row) for row in _rows(record))
    return BatchCheck(
        records=read,
        events=events,
        ticks=ticks,
        batches=len(records),
        difference=read - events - ticks,
    )


async def _stored(here: Context, starts: range, tenant: str) -> dict[int, dict[str, Counts]]:
    """Return what the panes hold: by minute, by source, by disposition."""
    found: dict[int, dict[str, Counts]] = {}
    accounts = await read_accounts(
        here.queries.panes, LEDGER_VID, starts, here.catalog.shards, tenant
    )
    for account in accounts:
        _, source, disposition = account.values
        sources = found.setdefault(account.minute_ms, {})
        counts = sources.setdefault(source, dict.fromkeys(DISPOSITIONS, 0))
        counts[disposition] = counts.get(disposition, 0) + account.n
    return found


def _read_of_log(here: Context, tenant: str) -> dict[int, int]:
    """Return what the batch records say was received, for minutes that they cover whole."""
    found: dict[int, int] = {}
    records = list(here.batches.records)
    for record in records:
        for row in record.ledger:
            if row.tenant == tenant:
                total = _total({name: getattr(row, name) for name in DISPOSITIONS})
                found[row.minute_ms] = found.get(row.minute_ms, 0) + total
    return {minute_ms: found.get(minute_ms, 0) for minute_ms in covered(records)}


def covered(records: Sequence[BatchRecord]) -> range:
    """Return the minutes whose every received event is in some records, in epoch milliseconds.

    The first minute of the records may have begun before them, unless the log begins
    with them.
    """
    if not records:
        return range(0)
    first = records[0]
    if any(first.from_offsets.values()):
        begin_ms = first.processed_through_ms // MINUTE_MS * MINUTE_MS + MINUTE_MS
    else:
        begin_ms = min(
            (row.minute_ms for record in records for row in record.ledger),
            default=first.processed_through_ms // MINUTE_MS * MINUTE_MS,
        )
    return range(begin_ms, records[-1].processed_through_ms + 1, MINUTE_MS)


def _minute(
    minute_ms: int, sources: dict[str, Counts], read: dict[int, int], through_ms: int | None
) -> LedgerMinute:
    counts = {name: sum(c.get(name, 0) for c in sources.values()) for name in DISPOSITIONS}
    received = read.get(minute_ms)
    is_open = through_ms is None or through_ms < minute_ms + MINUTE_MS
    return LedgerMinute(
        minute_ms=minute_ms,
        received=received,
        difference=None if received is None else received - sum(counts.values()),
        open=is_open,
        sources=sources,
        **counts,
    )


def _rows(record: BatchRecord) -> list[Counts]:
    return [{name: getattr(row, name) for name in DISPOSITIONS} for row in record.ledger]


def _total(counts: Counts) -> int:
    return sum(counts[name] for name in DISPOSITIONS)
