"""Tries a metric on the newest events, before it is stored.

It is the reference evaluator of `weir.expressions`, the meaning that the engine must
equal; so what is shown here is what will be counted.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter
from weir import names
from weir.definitions.metric import Metric
from weir.expressions import NotMatched, Quarantined, Used, use
from weir.expressions.paths import TEXT_ATTRIBUTES, TIME_MEMBER, is_extension
from weir.series import decode_series, fit
from weir_reading.redis import newest_entries

from weir_dashboard.api.definition_models import Preview, PreviewEvent, PreviewQuery
from weir_dashboard.api.metrics import metric_drafted
from weir_dashboard.context import Here, Who

router = APIRouter(tags=["definitions"])


@router.post("/preview")
async def preview(body: PreviewQuery, here: Here, caller: Who) -> Preview:
    """Return what a metric makes of each of the newest events of the live tail."""
    metric = metric_drafted(body.text, "can be tried on events")
    # An entry has one event at least, and up to half a second of them.
    entries = await newest_entries(here.redis, names.tail_key(caller.tenant), body.last)
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
    if sampled.get("cut") and not sampled.get("base64"):
        return told.model_copy(update={"reason": "the tail kept only 8 KB of this event"})
    outcome = use(metric, _event(sampled))
    if isinstance(outcome, NotMatched):
        return told
    if isinstance(outcome, Quarantined):
        return told.model_copy(update={"matched": True, "reason": outcome.reason.value})
    series = _named(metric, outcome)
    return told.model_copy(update={"matched": True, "value": outcome.value, "series": series})


def _event(sampled: dict[str, Any]) -> dict[str, Any]:
    """Return an event of the tail as the record of the log that it was taken from."""
    event: dict[str, Any] = {
        name: value
        for name, value in (sampled.get("attributes") or {}).items()
        if name in TEXT_ATTRIBUTES or is_extension(name)
    }
    for name in ("id", "type", "source", "weirsource", "subject"):
        if sampled.get(name) is not None:
            event[name] = sampled[name]
    if sampled.get("time_ms") is not None:
        event[TIME_MEMBER] = str(sampled["time_ms"])
    # Bytes are kept beside `data`, where no expression reads.
    if sampled.get("data") and not sampled.get("base64"):
        event["data"] = json.loads(sampled["data"])
    return event


def _named(metric: Metric, outcome: Used) -> dict[str, str | None]:
    values = fit(decode_series(outcome.series), len(metric.by))
    return dict(zip(metric.dimension_names, values, strict=True))
