"""The ledger as the API answers with it; what it means is in `weir_reading/ledger.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from weir.batches import BatchRecord
from weir_reading.accounts import MINUTE_S
from weir_reading.ledger import MINUTE_MS, Minute, batch_sum, read_minutes

from weir_dashboard.api.models import BatchCheck, Ledger, LedgerMinute
from weir_dashboard.api.status import fresh_of
from weir_dashboard.context import Here, Who

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
    starts = range(last_s, last_s - minutes * MINUTE_S, -MINUTE_S)
    panes, shards = here.queries.panes, here.catalog.shards
    found = await read_minutes(panes, here.batches.records, starts, shards, caller.tenant)
    items = [_told(one, through_ms) for one in found]
    return Ledger(items=items, batches=check(list(here.batches.records)), fresh=fresh_of(here))


def check(records: Sequence[BatchRecord]) -> BatchCheck:
    """Return whether each batch accounts for every record of its range of the log."""
    found = batch_sum(records)
    return BatchCheck(**asdict(found), difference=found.difference)


def _told(minute: Minute, through_ms: int | None) -> LedgerMinute:
    return LedgerMinute(
        minute_ms=minute.minute_ms,
        received=minute.received,
        difference=minute.difference,
        open=through_ms is None or through_ms < minute.minute_ms + MINUTE_MS,
        sources={source: dict(counts) for source, counts in minute.sources.items()},
        **minute.counts,
    )
