"""Corrections as the API tells them: what late events changed in panes that were final."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Query
from weir.corrections import CorrectionRecord, Figures
from weir.definitions.metric import Metric
from weir.series import OTHER, decode_series, fit

from weir_dashboard.api.models import Page
from weir_dashboard.api.read_models import (
    Correction,
    CorrectionSource,
    Estimate,
    RowFigures,
    TextChange,
)
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.store.corrections_kept import Kept, finest

router = APIRouter(tags=["flow"])


@router.get("/corrections")
async def list_corrections(
    here: Here,
    caller: Who,
    metric: Annotated[str | None, Query(max_length=64)] = None,
    source: Annotated[str | None, Query(max_length=256)] = None,
    resolution_ms: Annotated[int | None, Query(ge=1)] = None,
    late_ms: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Page[Correction]:
    """List what late events changed in final panes, the newest first.

    Of the newest 2,000 records of a metric. An event that changed panes of several
    resolutions is told with the shortest, or with that of `resolution_ms`. `source`: only
    those that it may have caused; `late_ms`: only those at least this late.
    """
    here.corrections.newer.check()
    kept = here.corrections.newest(caller.tenant, metric)
    if resolution_ms is None:
        kept = finest(kept)
    found = [one for one in kept if _is_asked(one.record, source, resolution_ms, late_ms)]
    return Page(items=list(told(here, found[:limit])))


def _is_asked(
    record: CorrectionRecord, source: str | None, resolution_ms: int | None, late_ms: int
) -> bool:
    return (
        resolution_ms in (None, record.res_s * 1000)
        and record.late_ms >= late_ms
        and (source is None or any(source == name for name, _n in record.sources))
    )


def told(here: Context, kept: Iterable[Kept]) -> Iterable[Correction]:
    """Return corrections as they stand on the wire; no series and no text names who was erased."""
    for one in kept:
        gone = here.erased.subjects(one.record.tenant, since_vid=one.record.vid)
        if gone is not None and gone.are_named_by(one.record.series):
            continue
        definition = here.catalog.folded.by_vid(one.record.vid)
        model = definition.metric if definition is not None else None
        texts = [
            TextChange(text=text, was=_estimate(was), now=_estimate(now))
            for text, was, now in one.record.moved
            if gone is None or not gone.is_one(text)
        ]
        yield _told(one, model, texts)


def _estimate(bounded: tuple[float, float, float]) -> Estimate:
    value, low, high = bounded
    return Estimate(value=value, low=low, high=high)


def _told(one: Kept, model: Metric | None, texts: list[TextChange]) -> Correction:
    record = one.record
    return Correction(
        seq=one.seq,
        metric=record.metric,
        version=record.version,
        t_ms=(record.start_s + record.res_s) * 1000,
        resolution_ms=record.res_s * 1000,
        by=_dimensions(record.series, model),
        other=record.series == OTHER,
        was=_figures(record.was),
        now=_figures(record.now),
        events=record.events,
        late_ms=record.late_ms,
        received_ms=record.received_ms,
        final_ms=record.final_ms,
        sources=[CorrectionSource(source=name, events=n) for name, n in record.sources],
        sources_known=record.sources_known,
        sources_exact=record.sources_exact,
        texts=texts,
    )


def _dimensions(series: str, model: Metric | None) -> dict[str, str | None]:
    if series == OTHER or model is None:
        return {}
    return dict(zip(model.dimension_names, fit(decode_series(series), len(model.by)), strict=True))


def _figures(row: Figures | None) -> RowFigures | None:
    if row is None:
        return None
    last = None if row.last is None else row.last.value
    return RowFigures(
        count=row.n,
        sum=row.sum,
        min=row.min,
        max=row.max,
        stddev=row.stddev,
        last=last,
        estimates={name: _estimate(one) for name, one in (row.estimates or {}).items()},
    )
