"""The ledger as the API answers with it; what it means is in `weir_reading/ledger.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from weir.batches import BatchRecord
from weir.definitions.history import Definition
from weir.problems import ProblemError, Reason, echo
from weir_reading.accounts import MINUTE_S
from weir_reading.ledger import MINUTE_MS, Minute, batch_sum, read_minutes
from weir_reading.use import UseMinute, read_use

from weir_dashboard.api.flow_models import BatchCheck, Ledger, LedgerMinute
from weir_dashboard.api.read_models import MetricLedger, MetricMinute
from weir_dashboard.api.status import fresh_of
from weir_dashboard.context import Context, Here, Who

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
    starts = _starts(here, minutes, to_ms)
    panes, shards = here.queries.panes, here.catalog.shards
    found = await read_minutes(panes, here.batches.records, starts, shards, caller.tenant)
    items = [_told(one, through_ms) for one in found]
    return Ledger(items=items, batches=check(list(here.batches.records)), fresh=fresh_of(here))


@router.get("/metrics/{name}/ledger")
async def metric_ledger(
    name: str,
    here: Here,
    caller: Who,
    minutes: Annotated[int, Query(ge=1, le=1440)] = 60,
    to_ms: Annotated[int | None, Query(ge=0)] = None,
    version: Annotated[int | None, Query(ge=1)] = None,
) -> MetricLedger:
    """Return what a version of a metric did with all counted events, newest minute first.

    `version`: which; without it the newest. Of one that is not counted any more `not_matched`
    is not told: it was not there for all of the last minutes.
    """
    asked = _version(here, caller.tenant, name, version)
    panes, shards = here.queries.panes, here.catalog.shards
    starts = _starts(here, minutes, to_ms)
    found = await read_use(panes, starts, shards, caller.tenant, asked.vid)
    activation = here.catalog.folded.activations.get(asked.vid)
    is_over = activation is not None and activation.finish is not None
    whole_ms = None if is_over else here.catalog.activated_ms.get(asked.vid)
    items = [_use_told(one, here.batches.processed_through_ms, whole_ms) for one in found]
    return MetricLedger(name=name, version=asked.version, items=items)


def _version(here: Context, tenant: str, name: str, number: int | None) -> Definition:
    folded = here.catalog.folded
    newest = folded.get(tenant, "metric", name)
    if newest is None:
        msg = f'there is no metric "{echo(name)}"; see /api/v1/metrics for those there are'
        raise ProblemError(404, Reason.METRIC_UNKNOWN, msg)
    if number is None:
        return newest
    for one in folded.history(tenant, "metric", name):
        if one.version == number and not one.deleted:
            return one
    msg = (
        f'metric "{echo(name)}" has versions up to {newest.version}, got {number}; '
        f"see /api/v1/definitions/metric/{echo(name)}/history"
    )
    raise ProblemError(404, Reason.METRIC_UNKNOWN, msg)


def _starts(here: Context, minutes: int, to_ms: int | None) -> range:
    """Return the beginnings of the newest minutes that were asked for, in seconds."""
    through_ms = here.batches.processed_through_ms
    newest_ms = through_ms if through_ms is not None else here.clock.now_ms()
    last_s = min(newest_ms, to_ms if to_ms is not None else newest_ms) // MINUTE_MS * MINUTE_S
    return range(last_s, last_s - minutes * MINUTE_S, -MINUTE_S)


def _use_told(one: UseMinute, through_ms: int | None, whole_ms: int | None) -> MetricMinute:
    return MetricMinute(
        minute_ms=one.minute_ms,
        counted=one.counted,
        used=one.used,
        not_matched=one.not_matched if whole_ms is not None and one.minute_ms >= whole_ms else None,
        value_quarantined=one.value_quarantined,
        pane_not_kept=one.pane_not_kept,
        open=through_ms is None or through_ms < one.minute_ms + MINUTE_MS,
    )


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
