"""How late each source's events are, so that an allowed lateness can be chosen from data."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import reduce
from operator import add
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from weir.definitions.metric import Metric
from weir.lateness import EDGES_MS, OFFERED_MS, Lateness
from weir_reading.accounts import HOUR_S, LatenessFound, read_lateness, read_lateness_of

from weir_dashboard.api.definition_models import LatenessQuery
from weir_dashboard.api.metrics import metric_drafted, metric_shown
from weir_dashboard.api.read_models import LatenessTold, LateShare, SourceLateness
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.turns import while_there

router = APIRouter(tags=["flow"])


@router.get("/lateness")
async def lateness(
    request: Request,
    here: Here,
    caller: Who,
    hours: Annotated[int, Query(ge=1, le=192)] = 24,
    metric: Annotated[str | None, Query(max_length=64)] = None,
) -> LatenessTold:
    """Return how late counted events were, by source: R minus event time.

    `late` says exactly how many came later than each length: the most that would have been late
    with that `allowed_lateness`, whatever the panes. Between two lengths it is at most what
    came later than the shorter. `p50_ms`, `p99_ms` and `max_ms` are the lengths at or above
    the true value; null: more than 100 days. With `metric` only events of its types and
    sources; `where` is not asked.
    """
    counted = None if metric is None else metric_shown(here, caller, metric)
    return await _answered(request, here, caller, _lateness(here, caller.tenant, hours, counted))


@router.post("/lateness")
async def lateness_of_draft(
    request: Request, body: LatenessQuery, here: Here, caller: Who
) -> LatenessTold:
    """Return the same of the events that a metric would look at, before it is stored."""
    metric = metric_drafted(body.text, "allows lateness")
    work = _lateness(here, caller.tenant, body.hours, metric)
    return await _answered(request, here, caller, work)


async def _answered(
    request: Request, here: Context, caller: Caller, work: Coroutine[Any, Any, LatenessTold]
) -> LatenessTold:
    """Return what is told, in one of the caller's turns."""
    return await while_there(request, here.turns.take(caller.session or caller.key_id, work))


async def _lateness(here: Context, tenant: str, hours: int, metric: Metric | None) -> LatenessTold:
    through_ms = here.batches.processed_through_ms or here.clock.now_ms()
    last_s = through_ms // 1000 // HOUR_S * HOUR_S
    starts = range(last_s - (hours - 1) * HOUR_S, last_s + 1, HOUR_S)
    place, pool = (here.queries.panes, starts, here.catalog.shards, tenant), here.turns.pool
    if metric is None:
        found = LatenessFound(await read_lateness(*place, pool))
    else:
        found = await read_lateness_of(*place, metric.events, pool)
    whole = reduce(add, found.sources.values(), Lateness({}))
    longest_ms = _longest_ms(metric)
    return LatenessTold(
        from_ms=starts[0] * 1000,
        to_ms=through_ms,
        allowed_ms=None if metric is None else metric.lateness_ms,
        longest_ms=longest_ms,
        untyped=found.untyped,
        all=_told(None, whole, longest_ms),
        sources=[_told(source, one, longest_ms) for source, one in found.sources.items()],
    )


def _longest_ms(metric: Metric | None) -> int:
    """Return the longest length that may be suggested: no pane may go before it is final."""
    kept_ms = max(OFFERED_MS) if metric is None else min(metric.keep_ms.values())
    return max(edge for edge in OFFERED_MS if edge <= kept_ms)


def _told(source: str | None, late: Lateness, longest_ms: int) -> SourceLateness:
    shares = []
    for than_ms in EDGES_MS:
        n = late.later_than(than_ms)
        shares.append(LateShare(than_ms=than_ms, events=n, share=n / max(1, late.events)))
    return SourceLateness(
        source=source,
        events=late.events,
        late=shares,
        p50_ms=late.at_most_ms(0.5),
        p99_ms=late.at_most_ms(0.99),
        max_ms=late.at_most_ms(1.0),
        suggested_ms=late.suggested_ms(longest_ms),
    )
