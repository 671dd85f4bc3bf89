"""What could not be used: the newest records of `weir.quarantine`, with their reason.

Read from the topic on demand, from its end backwards; nothing of it is kept here. Of what one
version cannot use a part is copied alone, so each answer says how many more there were.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from weir.definitions.history import Definition
from weir.problems import ProblemError, Reason

from weir_dashboard.api.flow_models import Copied, Quarantined, QuarantinePage, QuarantineSummary
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.store import left_out
from weir_dashboard.store.quarantine import Record

router = APIRouter(tags=["flow"])


@router.get("/quarantine")
async def list_quarantine(
    here: Here,
    caller: Who,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    reason: Annotated[str | None, Query(max_length=64)] = None,
) -> QuarantinePage:
    """List the newest quarantined records; without their bytes, which need `tail`."""
    found = await here.quarantine.newest(caller.tenant, limit, reason)
    return QuarantinePage(
        items=[_told(here, caller, record) for record in found.records],
        left_out=[_copied(here, caller, one) for one in found.copied if one.left_out],
        whole=found.whole,
    )


@router.get("/quarantine/summary")
async def sum_up_quarantine(
    here: Here,
    caller: Who,
    metric: Annotated[str | None, Query(max_length=200)] = None,
) -> QuarantineSummary:
    """Tell by version and partition how many events are copied, and how many more are not.

    `metric`: only what versions of it could not use.
    """
    found = await here.quarantine.sums(caller.tenant)
    told = [_copied(here, caller, one) for one in found.copied]
    items = [one for one in told if metric in (None, one.metric)]
    return QuarantineSummary(
        items=items,
        copies=sum(one.copies for one in items),
        left_out=sum(one.left_out for one in items),
        whole=found.whole,
    )


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
    return _told(here, caller, found)


def says_left_out(one: left_out.Copied, version: Definition | None) -> str | None:
    """Return in words what has no copy, and what to do; None if everything has one.

    Args:
        one: Of which copies.
        version: That could not use the events; None if nobody could, or it is not known.
    """
    if not one.left_out:
        return None
    vid, partition = one.place
    where = "" if partition is None else f" in partition {partition}"
    if vid is None:
        return (
            f"up to {one.left_out:,} more records like these{where} are not kept as copies; the "
            "ledger counts all. A replay takes copies only: what has none must be sent again"
        )
    who = f"the version with id {vid}"
    if version is not None:
        who = f"version {version.version} of {version.name}"
    return (
        f"up to {one.left_out:,} more events that {who} could not use{where} are not kept as "
        "copies; the ledger counts all. The metric's next version counts all of them again from "
        "the log, as far as that reaches back"
    )


def _is_erased(here: Context, caller: Caller, record: Record) -> bool:
    """Tell whether a record is about somebody who was erased, as far as it can be read.

    Of bytes without a `subject` nobody can tell: what names somebody in them is covered by the
    topic's retention.
    """
    gone = here.erased.subjects(caller.tenant)
    return gone is not None and any(map(gone.is_one, record.subjects))


def _version(here: Context, caller: Caller, vid: int | None) -> Definition | None:
    """Return the version of a metric that a copy names; None if it names none of the tenant's."""
    found = None if vid is None else here.catalog.folded.by_vid(vid)
    is_theirs = found is not None and (found.tenant, found.kind) == (caller.tenant, "metric")
    return found if is_theirs else None


def _copied(here: Context, caller: Caller, one: left_out.Copied) -> Copied:
    vid, partition = one.place
    version = _version(here, caller, vid)
    return Copied(
        version=vid,
        metric=version.name if version is not None else None,
        metric_version=version.version if version is not None else None,
        partition=partition,
        copies=one.copies,
        left_out=one.left_out,
        message=says_left_out(one, version),
    )


def _told(here: Context, caller: Caller, record: Record) -> Quarantined:
    version = _version(here, caller, record.version)
    return Quarantined(
        id=f"{record.partition}-{record.offset}",
        at_ms=record.at_ms,
        reason=record.reason,
        source=record.source,
        origin=record.origin,
        version=record.version,
        metric=version.name if version is not None else None,
        metric_version=version.version if version is not None else None,
        bytes=record.bytes,
        left_out=record.left_out,
        text=record.text,
        replayed_ms=record.replayed_ms,
    )
