"""What could not be used: the newest records of `weir.quarantine`, with their reason.

Read from the topic on demand, from its end backwards; nothing of it is kept here.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from weir.problems import ProblemError, Reason

from weir_dashboard.api.flow_models import Quarantined
from weir_dashboard.api.models import Page
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.store.quarantine import Record

router = APIRouter(tags=["flow"])


@router.get("/quarantine")
async def list_quarantine(
    here: Here,
    caller: Who,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    reason: Annotated[str | None, Query(max_length=64)] = None,
) -> Page[Quarantined]:
    """List the newest quarantined records; without their bytes, which need `tail`."""
    found = await here.quarantine.newest(caller.tenant, limit, reason)
    return Page(items=[_told(record) for record in found])


@router.get("/quarantine/{id}")
async def open_quarantined(
    here: Here,
    caller: Who,
    id: Annotated[str, Path(pattern=r"^\d{1,9}-\d{1,18}$")],  # noqa: A002  the API's word
) -> Quarantined:
    """Return one quarantined record with its bytes as text."""
    partition, _, offset = id.partition("-")
    found = await here.quarantine.one(caller.tenant, int(partition), int(offset))
    if found is None or _is_erased(here, caller, found):
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such record")
    return _told(found)


def _is_erased(here: Context, caller: Caller, record: Record) -> bool:
    """Tell whether a record is about somebody who was erased, as far as it can be read.

    Of bytes without a `subject` nobody can tell: what names somebody in them is covered by the
    topic's retention.
    """
    gone = here.erased.subjects(caller.tenant)
    return gone is not None and any(map(gone.is_one, record.subjects))


def _told(record: Record) -> Quarantined:
    return Quarantined(
        id=f"{record.partition}-{record.offset}",
        at_ms=record.at_ms,
        reason=record.reason,
        source=record.source,
        origin=record.origin,
        version=record.version,
        bytes=record.bytes,
        text=record.text,
        replayed_ms=record.replayed_ms,
    )
