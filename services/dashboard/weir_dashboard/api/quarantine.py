"""What could not be used: the newest records of `weir.quarantine`, with their reason.

Read from the topic on demand, from its end backwards; nothing of it is kept here.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, cast

from confluent_kafka import Message
from fastapi import APIRouter, Path, Query
from weir import names
from weir.problems import ProblemError, Reason

from weir_dashboard.api.models import Page, Quarantined
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Here, Who
from weir_dashboard.store.quarantine import read_newest, read_one

TEXT_BYTES = 65_536
router = APIRouter(tags=["flow"])


@router.get("/quarantine")
async def list_quarantine(
    here: Here,
    caller: Who,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    reason: Annotated[str | None, Query(max_length=64)] = None,
) -> Page[Quarantined]:
    """List the newest quarantined records; without their bytes, which need `tail`."""
    bootstrap = here.settings.kafka_bootstrap
    messages = await asyncio.to_thread(read_newest, bootstrap)
    items = [told for message in messages if (told := _told(message, caller, text=False))]
    wanted = [item for item in items if reason in (None, item.reason)]
    return Page(items=wanted[:limit])


@router.get("/quarantine/{id}")
async def open_quarantined(
    here: Here,
    caller: Who,
    id: Annotated[str, Path(pattern=r"^\d{1,9}-\d{1,18}$")],  # noqa: A002  the API's word
) -> Quarantined:
    """Return one quarantined record with its bytes as text."""
    partition, _, offset = id.partition("-")
    bootstrap = here.settings.kafka_bootstrap
    message = await asyncio.to_thread(read_one, bootstrap, int(partition), int(offset))
    told = _told(message, caller, text=True) if message is not None else None
    if told is None:
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such record")
    return told


def _told(message: Message, caller: Caller, *, text: bool) -> Quarantined | None:
    """Return what is told of a record; None for another tenant's, as if it were not there."""
    found = dict(cast("list[tuple[str, bytes | None]]", message.headers() or []))
    if _text(found.get(names.HEADER_TENANT)) != caller.tenant:
        return None
    value = message.value() or b""
    version = _text(found.get(names.HEADER_VERSION))
    return Quarantined(
        id=f"{message.partition()}-{message.offset()}",
        at_ms=message.timestamp()[1],
        reason=_text(found.get(names.HEADER_REASON)) or "",
        source=_text(found.get(names.HEADER_SOURCE)) or "",
        origin=_text(found.get(names.HEADER_ORIGIN)),
        version=int(version) if version and version.isdigit() else None,
        bytes=len(value),
        text=value[:TEXT_BYTES].decode("utf-8", "replace") if text else None,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")
