"""What is sent here, and where to send it."""

from __future__ import annotations

from fastapi import APIRouter
from weir_reading.accounts import MINUTE_S, TYPES_VID, Account, read_accounts

from weir_dashboard.api.flow_models import IngestAddress, SeenType
from weir_dashboard.api.models import Page
from weir_dashboard.context import Here, Who

MINUTES = 60
router = APIRouter(tags=["discovery"])


@router.get("/discovery/types")
async def types(here: Here, caller: Who) -> Page[SeenType]:
    """List the event types received in the last hour, the most frequent first."""
    through_ms = here.batches.processed_through_ms or here.clock.now_ms()
    last_s = through_ms // 1000 // MINUTE_S * MINUTE_S
    minutes = range(last_s - (MINUTES - 1) * MINUTE_S, last_s + 1, MINUTE_S)
    found = await read_accounts(
        here.queries.panes, TYPES_VID, minutes, here.catalog.shards, caller.tenant
    )
    by_type: dict[str, list[Account]] = {}
    for account in found:
        by_type.setdefault(account.values[2], []).append(account)
    items = [
        SeenType(
            type=name,
            sources=sorted({account.values[1] for account in seen}),
            count=sum(account.n for account in seen),
            last_minute_ms=max(account.minute_ms for account in seen),
        )
        for name, seen in by_type.items()
    ]
    return Page(items=sorted(items, key=lambda seen: (-seen.count, seen.type)))


@router.get("/discovery/ingest")
async def ingest(here: Here) -> IngestAddress:
    """Return where clients of this installation send events."""
    url = here.settings.ingest_url.rstrip("/")
    return IngestAddress(url=url, events_url=f"{url}/v1/events")
