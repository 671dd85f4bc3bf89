"""What people do about alerts: take them on, silence them."""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field
from weir.alerts.listing import Alert
from weir.alerts.records import Acknowledgement
from weir.definitions.check import check
from weir.definitions.durations import DurationMs, format_duration
from weir.definitions.history import Definition
from weir.definitions.silence import Silence, instant_text
from weir.problems import ProblemError, Reason

from weir_dashboard.api import alert_models as told
from weir_dashboard.api.alert_answers import Answers
from weir_dashboard.api.models import Page, Sent
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who
from weir_dashboard.definitions.writer import Expected

DAY_MS = 86_400_000
LONGEST_ACK_MS = 7 * DAY_MS
LONGEST_SILENCE_MS = 366 * DAY_MS
_LETTERS = string.ascii_lowercase + string.digits
router = APIRouter(tags=["alerts"])

Length = Annotated[DurationMs, Field(json_schema_extra={"type": "string", "example": "4h"})]
Where = Annotated[
    list[list[Any]] | Annotated[str, Field(max_length=4_096)],
    Field(description="What labels must be, as text or as `[[name, operator, value]]`."),
]


class AcknowledgementAsked(Sent):
    """For how long somebody takes an alert on, and what they say."""

    length: Length = Field(default=14_400_000, alias="for")
    note: Annotated[str, Field(max_length=1_000)] = ""


class SilenceWanted(Sent):
    """Which alerts: of a rule, with labels, or both."""

    rule: Annotated[str, Field(max_length=64)] | None = None
    where: Where = ""


class SilenceAsked(SilenceWanted):
    """Which alerts are to be silent, for how long, and why."""

    length: Length = Field(alias="for")
    reason: Annotated[str, Field(max_length=1_000)] = ""


@router.post("/alerts/{id}/acknowledgement")
async def acknowledge(
    id: str,  # noqa: A002  the path's
    body: AcknowledgementAsked,
    here: Here,
    caller: Who,
) -> told.AlertDetail:
    """Take an alert on: it is not told again until the time is over, or the alert."""
    alert = _firing(here, caller, id)
    if not 0 < body.length <= LONGEST_ACK_MS:
        msg = f"an alert can be taken on for at most 7d, got {format_duration(body.length)}"
        raise ProblemError(422, Reason.REQUEST_INVALID, msg)
    record = _record(here, caller, alert, body)
    await here.alerts.say(record)
    return _detail(here, caller, id)


@router.delete("/alerts/{id}/acknowledgement")
async def give_back(id: str, here: Here, caller: Who) -> told.AlertDetail:  # noqa: A002
    """Give an alert back: it is told again as often as its rule says."""
    alert = _firing(here, caller, id)
    if alert.taken_on is not None:
        await here.alerts.say(_record(here, caller, alert, None))
    return _detail(here, caller, id)


@router.get("/silences")
async def list_silences(here: Here, caller: Who) -> Page[told.Silence]:
    """List silences that are in force, and those that ended within a day, newest first."""
    answers = Answers(here, caller.tenant)
    since_ms = answers.through_ms - DAY_MS
    items = [
        _told(answers, version, model, ended_ms)
        for version, ended_ms in _versions(here, caller, since_ms)
        if isinstance(model := version.readable, Silence) and model.until > since_ms
    ]
    return Page(items=sorted(items, key=lambda one: -one.at_ms))


@router.post("/silences/preview")
async def preview_silence(body: SilenceWanted, here: Here, caller: Who) -> told.SilencePreview:
    """Tell which alerts a silence would hide now, and how many began within a day."""
    answers = Answers(here, caller.tenant)
    silence = _checked(body, "preview", answers.through_ms + DAY_MS)
    hidden = [one for one in answers.alerts if answers.hidden_by(one, [silence])]
    since_ms = answers.through_ms - DAY_MS
    return told.SilencePreview(
        now=[answers.alert(one) for one in hidden if one.is_open][:100],
        firing=sum(one.is_open for one in hidden),
        day=sum(one.since_ms > since_ms for one in hidden),
    )


@router.post("/silences", status_code=201)
async def make_silence(body: SilenceAsked, here: Here, caller: Who) -> told.Silence:
    """Silence alerts from now on; what already fires is still told its end."""
    if not 0 < body.length <= LONGEST_SILENCE_MS:
        msg = f"a silence must end within a year, got {format_duration(body.length)}"
        raise ProblemError(422, Reason.REQUEST_INVALID, msg)
    name = "s_" + "".join(secrets.choice(_LETTERS) for _ in range(8))
    silence = _checked(body, name, here.clock.now_ms() + body.length, body.reason)
    place = caller.tenant, "silence", name
    text = json.dumps(silence.canonical(), ensure_ascii=False)
    version = await here.writer.put(place, text, by=caller.name, expected=Expected(absent=True))
    return _told(Answers(here, caller.tenant), version, silence)


@router.delete("/silences/{name}")
async def end_silence(name: str, here: Here, caller: Who) -> told.Silence:
    """End a silence: what still fires is told now."""
    place = caller.tenant, "silence", name
    version = here.catalog.folded.get(*place)
    model = version.readable if version is not None else None
    if version is None or not isinstance(model, Silence):
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such silence")
    expected = Expected(version=version.version)
    deletion = await here.writer.delete(place, by=caller.name, expected=expected)
    answers = Answers(here, caller.tenant)
    return _told(answers, version, model, deletion.at_ms)


def _firing(here: Context, caller: Caller, alert_id: str) -> Alert:
    alert = here.alerts.listing.alert(caller.tenant, alert_id)
    if alert is None:
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such alert")
    if not alert.is_open:
        msg = f"the alert has {alert.state} already; there is nothing to take on"
        raise ProblemError(409, Reason.ALREADY_ENDED, msg)
    return alert


def _record(
    here: Context, caller: Caller, alert: Alert, asked: AcknowledgementAsked | None
) -> Acknowledgement:
    now_ms = here.clock.now_ms()
    return Acknowledgement(
        tenant=caller.tenant,
        alert=alert.id,
        op="delete" if asked is None else "put",
        by=caller.name,
        note="" if asked is None else asked.note,
        until_ms=0 if asked is None else now_ms + asked.length,
        at_ms=now_ms,
    )


def _detail(here: Context, caller: Caller, alert_id: str) -> told.AlertDetail:
    alert = here.alerts.listing.alert(caller.tenant, alert_id)
    if alert is None:
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such alert")
    return Answers(here, caller.tenant).detail(alert)


def _checked(body: SilenceWanted, name: str, until_ms: int, reason: str = "") -> Silence:
    """Return the silence that a request asks for.

    Raises:
        ProblemError: 422 with the places that are wrong.
    """
    given = {
        "rule": body.rule,
        "where": body.where or [],
        "until": instant_text(until_ms),
        "reason": reason,
    }
    model = check("silence", name, given).model
    if not isinstance(model, Silence):
        msg = f"a silence must be asked for, got a {model.kind}"
        raise TypeError(msg)
    return model


def _versions(
    here: Context, caller: Caller, since_ms: int
) -> Iterator[tuple[Definition, int | None]]:
    """Yield silences as last written, and when somebody ended them: None, or after `since_ms`."""
    folded = here.catalog.folded
    for version in folded.current(caller.tenant, "silence"):
        yield version, None
    for end in folded.deleted(caller.tenant, "silence"):
        if end.at_ms > since_ms:
            yield folded.history(caller.tenant, "silence", end.name)[1], end.at_ms


def _told(
    answers: Answers, version: Definition, model: Silence, ended_ms: int | None = None
) -> told.Silence:
    alerts, since_ms = answers.alerts, answers.through_ms - DAY_MS
    active = ended_ms is None and model.until > answers.through_ms
    firing = sum(one.is_open and bool(answers.hidden_by(one, [model])) for one in alerts)
    return told.Silence(
        name=model.name,
        rule=model.rule,
        where=[[one.dimension, one.op, one.value] for one in model.where],
        reason=model.reason,
        by=version.by,
        at_ms=version.at_ms,
        until_ms=model.until if ended_ms is None else min(model.until, ended_ms),
        active=active,
        firing=firing if active else 0,
        day=sum(model.name in one.silences and one.since_ms > since_ms for one in alerts),
    )
