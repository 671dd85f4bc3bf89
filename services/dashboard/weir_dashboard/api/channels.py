"""Channels: how each is, and a test of it with what really came of it."""

from __future__ import annotations

import uuid

from fastapi import APIRouter
from httpx import URL, InvalidURL
from weir.alerts.records import Trial
from weir.definitions.channel import Channel
from weir.definitions.history import Definition
from weir.problems import ProblemError, Reason

from weir_dashboard.api import alert_models as told
from weir_dashboard.api.alert_answers import rule_of
from weir_dashboard.api.models import Page
from weir_dashboard.auth.callers import Caller
from weir_dashboard.context import Context, Here, Who

ANSWER_S = 40.0
"""Longer than the alerts job takes to begin a test, and then waits for any receiver."""
router = APIRouter(tags=["channels"])


@router.get("/channels")
async def list_channels(here: Here, caller: Who) -> Page[told.Channel]:
    """List channels by name, each with what came of its newest message."""
    used = _used(here, caller)
    found = here.catalog.folded.current(caller.tenant, "channel")
    models = ((one, one.readable) for one in found)
    return Page(
        items=[
            _told(here, one, model, used.get(one.name, []))
            for one, model in models
            if isinstance(model, Channel)
        ]
    )


@router.post("/channels/{name}/test")
async def test_channel(name: str, here: Here, caller: Who) -> told.ChannelTest:
    """Send a test message, and tell what the receiver answered.

    The alerts job sends it, which alone has the secrets; asked and answered in `weir.alerts`.
    """
    if here.catalog.folded.get(caller.tenant, "channel", name) is None:
        raise ProblemError(404, Reason.NOT_FOUND, "there is no such channel")
    trial = Trial(
        tenant=caller.tenant,
        id=f"test_{uuid.uuid4().hex}",
        channel=name,
        by=caller.name,
        at_ms=here.clock.now_ms(),
    )
    await here.alerts.say(trial)
    answer = await here.alerts.answer(trial.id, ANSWER_S)
    if answer is None:
        msg = f"the alerts job did not answer within {ANSWER_S:g} s; see whether it runs"
        raise ProblemError(503, Reason.NOT_AVAILABLE, msg, retry_after_s=5)
    if answer.barred:
        raise ProblemError(422, Reason.URL_NOT_ALLOWED, answer.why)
    return told.ChannelTest(
        outcome=answer.outcome,
        status=answer.status,
        why=answer.why or None,
        took_ms=answer.took_ms,
        at_ms=answer.at_ms,
    )


def _used(here: Context, caller: Caller) -> dict[str, list[str]]:
    """Return the rules that name each channel."""
    used: dict[str, list[str]] = {}
    for version in here.catalog.folded.current(caller.tenant, "rule"):
        rule = rule_of(version)
        for channel in rule.route.channels if rule is not None else ():
            used.setdefault(channel, []).append(version.name)
    return used


def _told(here: Context, version: Definition, model: Channel, rules: list[str]) -> told.Channel:
    channels = here.alerts.listing.channels
    now = channels.standing(version.tenant, version.name)
    return told.Channel(
        name=version.name,
        version=version.version,
        way="apprise" if model.webhook is None else "webhook",
        host=None if model.webhook is None else _host(model.webhook.url),
        follow=model.follow,
        rules=rules,
        outcome=now.outcome or None,
        at_ms=now.at_ms or None,
        status=now.status,
        why=now.why or None,
        took_ms=now.took_ms if now.outcome else None,
        failing_ms=now.failing_ms,
        waiting=channels.waiting(version.tenant, version.name),
    )


def _host(url: str) -> str | None:
    """Return the host of an address: its path may be a secret in all but name."""
    try:
        return URL(url).host or None if url.startswith("http") else None
    except InvalidURL:
        return None
