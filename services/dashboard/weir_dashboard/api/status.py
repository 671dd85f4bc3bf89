"""How the parts are and how fresh the numbers are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from fastapi import APIRouter
from weir.dedup_gap import dedup_gap
from weir_reading import parts

from weir_dashboard.api.flow_models import (
    DedupGap,
    Holding,
    Lag,
    LogHeld,
    Part,
    Pipeline,
    QuarantineHeld,
    Status,
)
from weir_dashboard.api.models import Fresh
from weir_dashboard.context import Context, Here
from weir_dashboard.freshness import STALE_MS
from weir_dashboard.freshness import Fresh as Freshness
from weir_dashboard.holding import Holding as Held
from weir_dashboard.holding import Said, holding, newest_of, quarantine_seen
from weir_dashboard.live.pipeline import bottleneck_of

router = APIRouter(tags=["flow"])


@router.get("/status")
async def status(here: Here) -> Status:
    """Return each part: running, ready, lag, memory; and freshness.

    Kafka and Redis write no heartbeat: `at_ms` is when they last answered this dashboard,
    and what only they know is null.
    """
    now_ms, fresh = here.clock.now_ms(), here.observer.fresh()
    panes = newest_of(here.parts.named("panes"), now_ms)
    detail = panes.detail if panes is not None else None
    why = held(here, now_ms, fresh)
    through_ms = fresh.processed_through_ms
    gap = dedup_gap(here.catalog.folded, now_ms)
    return Status(
        now_ms=now_ms,
        epoch=here.batches.epoch,
        rev=here.batches.rev,
        fresh=Fresh.model_validate(fresh.body()),
        holding=Holding.model_validate(asdict(why)) if why is not None else None,
        lag=Lag(
            # Without a driver what lies behind where the last one was, ticks among it.
            records=detail.get("lag_records") if detail else here.log.waiting(),
            ms=max(0, now_ms - through_ms) if through_ms is not None else None,
        ),
        log=LogHeld.model_validate(asdict(here.log.held())),
        quarantine=QuarantineHeld.model_validate(
            asdict(quarantine_seen(here.parts.named("panes"), now_ms))
        ),
        dedup_gap=DedupGap.model_validate(asdict(gap)) if gap is not None else None,
        parts=_parts(here, here.observer.servers()),
    )


@router.get("/pipeline")
async def pipeline(here: Here) -> Pipeline:
    """Return the flow: the parts and which of them is the bottleneck."""
    known = list(here.parts.known.values())
    return Pipeline(bottleneck=bottleneck_of(known), parts=_parts(here), fresh=fresh_of(here))


def held(here: Context, now_ms: int, fresh: Freshness) -> Held | None:
    """Return what holds the numbers back; None if nothing does."""
    panes = newest_of(here.parts.named("panes"), now_ms)
    return holding(fresh, _said(here, panes, now_ms))


def _said(here: Context, panes: parts.Part | None, now_ms: int) -> Said:
    lanes = here.batches.newest.lanes if here.batches.newest is not None else []
    under_way = [lane for lane in lanes if lane.at < lane.of]
    whys = (lane.waits_for for lane in under_way if lane.kind == "rebuild")
    return Said(
        now_ms=now_ms,
        panes=panes.detail if panes is not None else None,
        busy=panes.busy if panes is not None else None,
        in_per_s=panes.flow if panes is not None else None,
        refused=here.parts.refused is not None,
        lanes=tuple(lane.kind for lane in under_way if lane.waits_for is None),
        waits=next(filter(None, whys), None),
        newer=here.newer,
    )


def fresh_of(here: Context) -> Fresh:
    """Return freshness as answers carry it."""
    return Fresh.model_validate(here.observer.fresh().body())


def _parts(here: Context, servers: Sequence[parts.Part] = ()) -> list[Part]:
    now_ms = here.clock.now_ms()
    told = (*here.parts.known.values(), *servers)
    known = sorted(told, key=lambda part: (part.name, part.instance))
    return [_told(part, now_ms) for part in known]


def _told(part: parts.Part, now_ms: int) -> Part:
    running = now_ms - part.at_ms < STALE_MS
    rss = part.detail.get("rss_bytes")
    return Part.model_validate(
        {
            "name": part.name,
            "instance": part.instance,
            "running": running,
            "ready": running and part.status not in {"starting", "stalled"},
            "status": part.status,
            "at_ms": part.at_ms,
            "since_ms": part.at_ms,
            "busy": part.busy,
            "in": part.flow,
            "lag_ms": part.lag_ms,
            "version": part.version,
            "rss_bytes": rss if isinstance(rss, int) else None,
            "detail": {k: v for k, v in part.detail.items() if k != parts.OF_TENANTS},
        }
    )
