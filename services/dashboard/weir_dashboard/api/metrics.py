"""Metrics, their series, and boards, as pages list them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from weir.audited import bound_of
from weir.definitions.check import check
from weir.definitions.history import Definition
from weir.definitions.in_force import refusal
from weir.definitions.jobs import Compared, ComparedNothing, audits_of, withdrawn_by
from weir.definitions.metric import Metric as MetricModel
from weir.problems import ProblemError, Reason, echo
from weir.series import OTHER, decode_series, fit
from weir_reading.served import shown

from weir_dashboard.api.definitions import change_of, lanes_of, waiting_for
from weir_dashboard.api.models import Page
from weir_dashboard.api.read_models import (
    Board,
    Filling,
    Metric,
    MetricDetail,
    NamedSeries,
    NotCompared,
    Verified,
    Waiting,
)
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who

MAX_SERIES = 500
router = APIRouter(tags=["read"])


@router.get("/metrics")
async def list_metrics(here: Here, caller: Who) -> Page[Metric]:
    """List the tenant's metrics by name."""
    found = here.catalog.folded.current(caller.tenant, "metric")
    names = [version.name for version in found]
    told = [await _told(here, _shown(here, caller, name)) for name in names]
    return Page(items=[Metric.model_validate(one) for one in told])


@router.get("/metrics/{name}")
async def get_metric(name: str, here: Here, caller: Who) -> MetricDetail:
    """Return a metric with its versions."""
    version = _shown(here, caller, name)
    model = _model(version)
    history = here.catalog.folded.history(caller.tenant, "metric", name)
    return MetricDetail.model_validate(
        {
            **await _told(here, version),
            "lateness_ms": model.lateness_ms,
            "keep_ms": {str(res): kept for res, kept in model.keep_ms.items()},
            "versions": [change_of(edit) for edit in history],
            **_audits(here, version),
            "filling": _filling(here, caller, name, version),
            "waiting": _waiting(here, caller, name, version),
        }
    )


@router.get("/series")
async def list_series(
    here: Here,
    caller: Who,
    metric: Annotated[str, Query(max_length=64)],
    limit: Annotated[int, Query(ge=1, le=MAX_SERIES)] = 100,
) -> Page[NamedSeries]:
    """List the sets of dimension values that a metric has seen."""
    version = _shown(here, caller, metric)
    model = _model(version)
    texts = sorted(await _series_texts(here, version))
    return Page(items=[_named(model, text) for text in texts[:limit]])


@router.get("/boards")
async def list_boards(here: Here, caller: Who) -> Page[Board]:
    """List the tenant's boards by name; edited as definitions."""
    items = []
    for version in here.catalog.folded.current(caller.tenant, "board"):
        board = version.model.canonical()
        items.append(
            Board(
                name=version.name,
                title=board["title"] or version.name,
                version=version.version,
                tiles=board["tiles"],
            )
        )
    return Page(items=items)


def _audits(here: Context, shown: Definition) -> dict[str, Verified | NotCompared | None]:
    """Return what the newest audit says that compared a metric, and those since that did not."""
    compared, since = audits_of(here.catalog.folded, shown.tenant, shown.name)
    return {
        "verified": None if compared is None else _verified(here, shown, compared),
        "not_compared": _not_compared(since) if since else None,
    }


def _verified(here: Context, shown: Definition, compared: Compared) -> Verified:
    told, outcome = compared.told, compared.report.outcome
    return Verified(
        job=compared.job.definition.name,
        ok=told["verified"],
        at_ms=compared.report.at_ms,
        from_ms=outcome["from_ms"],
        to_ms=outcome["to_ms"],
        bounded_by=bound_of(outcome),
        version=told["version"],
        panes=told["panes"],
        left_out=told.get("left_out", 0),
        overtaken=told.get("overtaken", 0),
        series=told["series"],
        events=told.get("events", 0),
        rev=told["rev"],
        withdrawn_by=withdrawn_by(told, shown.vid, here.batches.epoch),
    )


def _not_compared(audits: Sequence[ComparedNothing]) -> NotCompared:
    newest = audits[0]
    return NotCompared(
        job=newest.job.definition.name,
        at_ms=newest.report.at_ms,
        why=newest.why,
        bounded_by=bound_of(newest.report.outcome),
        since_ms=min(one.report.at_ms for one in audits),
        audits=len(audits),
    )


def _filling(here: Context, caller: Caller, name: str, shown: Definition) -> Filling | None:
    """Return how far the newest version's history is counted; None once it serves."""
    version = here.catalog.folded.get(caller.tenant, "metric", name)
    activation = here.catalog.activation(version.vid) if version is not None else None
    if version is None or activation is None:
        return None
    lanes = lanes_of(here, version)
    if version.vid == shown.vid and not lanes and activation.serves:
        return None
    return Filling(
        version=version.version,
        instead=shown.version if shown.vid != version.vid else None,
        at=sum(lane.at for lane in lanes),
        of=sum(lane.of for lane in lanes),
    )


def _waiting(here: Context, caller: Caller, name: str, shown: Definition) -> Waiting | None:
    """Return what keeps the newest version from serving; None if nothing does."""
    version = here.catalog.folded.get(caller.tenant, "metric", name)
    if version is None:
        return None
    if (why := waiting_for(here, version)) is not None:
        instead = shown.version if shown.vid != version.vid else None
        return Waiting(version=version.version, instead=instead, why=why)
    newest = here.catalog.folded.history(caller.tenant, "metric", name)[0]
    if (problem := refusal(newest)) is not None:
        return Waiting(version=newest.version, instead=shown.version, why=problem.message)
    return None


def _model(version: Definition) -> MetricModel:
    """Return what a stored metric means.

    Raises:
        ProblemError: 501 if a later release wrote it.
    """
    if version.metric is None:
        msg = f"metric {version.name} was written by a later release; read it with that one"
        raise ProblemError(501, Reason.NOT_AVAILABLE, msg)
    return version.metric


def _shown(here: Context, caller: Caller, name: str) -> Definition:
    """Return the version of a metric that answers queries."""
    version = shown(here.catalog, caller.tenant, name)
    if version is None:
        msg = f'there is no metric "{echo(name)}"; see /api/v1/metrics for those there are'
        raise ProblemError(404, Reason.METRIC_UNKNOWN, msg)
    return version


def metric_shown(here: Context, caller: Caller, name: str) -> MetricModel:
    """Return a metric as the version that answers queries means it.

    Raises:
        ProblemError: 404 if there is none, 501 if a later release wrote it.
    """
    return _model(_shown(here, caller, name))


def metric_drafted(text: str, only: str) -> MetricModel:
    """Return a metric that is not stored.

    Args:
        text: Its definition.
        only: What it is wanted for, behind "only a metric".

    Raises:
        ProblemError: 422 if the definition is wrong, or of another kind.
    """
    model = check(None, None, text).model
    if not isinstance(model, MetricModel):
        msg = f"only a metric {only}, got a {model.kind}"
        raise ProblemError(422, Reason.DEFINITION_INVALID, msg)
    return model


async def _told(here: Context, version: Definition) -> dict[str, Any]:
    model = _model(version)
    texts = await _series_texts(here, version)
    return {
        "name": version.name,
        "version": version.version,
        "unit": model.unit or None,
        "by": list(model.dimension_names),
        "aggregates": list(model.aggregates),
        "resolution_ms": model.resolution_ms,
        "series": len(texts - {OTHER}),
        "capped": OTHER in texts,
        "active": here.catalog.activation(version.vid) is not None,
    }


async def _series_texts(here: Context, version: Definition) -> set[str]:
    found: set[str] = set()
    for shard in range(here.catalog.shards):
        found.update(await here.queries.panes.all_names(version.vid, shard))
    return found


def _named(model: MetricModel, text: str) -> NamedSeries:
    if text == OTHER:
        return NamedSeries(by={}, other=True)
    values = fit(decode_series(text), len(model.by))
    return NamedSeries(by=dict(zip(model.dimension_names, values, strict=True)))
