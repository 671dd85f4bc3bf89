"""Tries a metric on the newest events, before it is stored.

It is the reference evaluator of `weir.expressions`, the meaning that the engine must
equal; so what is shown here is what will be counted.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter
from weir import names
from weir.definitions.check import check
from weir.definitions.metric import Metric
from weir.expressions import NotMatched, Quarantined, Used, use
from weir.problems import ProblemError, Reason
from weir.series import decode_series, fit

from weir_dashboard.api.models import Preview, PreviewEvent, PreviewQuery
from weir_dashboard.context import Here, Who
from weir_dashboard.store.redis import newest_entries

TAIL_ENTRIES = 1_000
router = APIRouter(tags=["definitions"])


@router.post("/preview")
async def preview(body: PreviewQuery, here: Here, caller: Who) -> Preview:
    """Return what a metric makes of each of the newest events of the live tail."""
    metric = check(None, None, body.text).model
    if not isinstance(metric, Metric):
        msg = f"only a metric can be tried on events, got a {metric.kind}"
        raise ProblemError(422, Reason.DEFINITION_INVALID, msg)
    entries = await newest_entries(here.redis, names.tail_key(caller.tenant), TAIL_ENTRIES)
    sampled: list[dict[str, Any]] = []
    for _, fields in entries:
        sampled.extend(reversed(json.loads(fields.get(b"e", b"[]"))))
        if len(sampled) >= body.last:
            break
    tried = [try_one(metric, event) for event in sampled[: body.last]]
    return Preview(
        seen=len(tried),
        matched=sum(one.matched for one in tried),
        refused=sum(one.matched and one.reason is not None for one in tried),
        events=tried,
    )


def try_one(metric: Metric, sampled: dict[str, Any]) -> PreviewEvent:
    """Return what a metric makes of one event of the tail."""
    told = PreviewEvent(
        id=str(sampled.get("id", "")),
        type=str(sampled.get("type", "")),
        time_ms=sampled.get("time_ms"),
        matched=False,
    )
    if sampled.get("reason"):
        return told.model_copy(update={"reason": str(sampled["reason"])})
    if sampled.get("cut"):
        return told.model_copy(update={"reason": "the tail kept only 8 KB of this event"})
    outcome = use(metric, _event(sampled))
    if isinstance(outcome, NotMatched):
        return told
    if isinstance(outcome, Quarantined):
        return told.model_copy(update={"matched": True, "reason": outcome.reason.value})
    series = _named(metric, outcome)
    return told.model_copy(update={"matched": True, "value": outcome.value, "series": series})


def _event(sampled: dict[str, Any]) -> dict[str, Any]:
    event: dict[str, Any] = {
        name: sampled[name] for name in ("id", "type", "source", "weirsource") if name in sampled
    }
    if sampled.get("subject") is not None:
        event["subject"] = sampled["subject"]
    if sampled.get("data"):
        event["data"] = json.loads(sampled["data"])
    return event


def _named(metric: Metric, outcome: Used) -> dict[str, str | None]:
    values = fit(decode_series(outcome.series), len(metric.by))
    return dict(zip(metric.dimension_names, values, strict=True))
