"""The dashboard service: start reading here.

    weir.definitions ─▶ follower ─▶ catalog ─▶ keys, metrics, boards
    Redis batches ────▶ batches ──▶ hub ─────▶ live sockets
    Redis panes ──────▶ queries ──▶ /query, feeds of the hub, backtests
    weir.alerts ◀─────▶ alerts ───▶ /alerts, /rules, /channels; acknowledgements, tests
    weir.corrections ─▶ corrections ▶ /corrections
    heartbeats ───────▶ parts ────▶ observer ▶ freshness, on every answer
    weir.events ──────▶ log ──────▶ /status: for how long it still holds what is not counted

A request passes the guard (credential, origin, scope table), then one of the routers
below. A socket is handed over by uvicorn to `live.socket` and never sees the guard:
it says hello itself. To add a route: a function in `api/`, a row in `auth/scopes.py`.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, FastAPI
from weir import names
from weir.clock import Clock
from weir_reading.appender import Appender
from weir_reading.batches import Batches
from weir_reading.follower import Follower
from weir_reading.log_look import GroupPlaces, LogLook
from weir_reading.panes import Panes
from weir_reading.parts import Parts
from weir_service.last_used import LastUsed
from weir_service.redis import connect

import weir_dashboard
from weir_dashboard import instruments
from weir_dashboard.api import (
    alert_actions,
    alerts,
    channels,
    corrections,
    definition_apply,
    definition_changes,
    definition_plan,
    definitions,
    discovery,
    docs,
    jobs,
    keys,
    lateness,
    ledger,
    metrics,
    preview,
    problems,
    quarantine,
    query,
    rule_preview,
    session,
    status,
)
from weir_dashboard.api.alert_answers import Answers
from weir_dashboard.api.models import Problem
from weir_dashboard.auth.callers import KeyRing
from weir_dashboard.auth.guard import Guard
from weir_dashboard.auth.scopes import API
from weir_dashboard.auth.sessions import Sessions
from weir_dashboard.change_quota import ChangeQuota
from weir_dashboard.context import Context
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.definitions.writer import TIMEOUT_S, Writer
from weir_dashboard.erased import Erased
from weir_dashboard.holding import quarantine_seen
from weir_dashboard.live.alerts import AlertFeeds
from weir_dashboard.live.conversation import Conversation
from weir_dashboard.live.corrections import CorrectionFeeds
from weir_dashboard.live.feeds import Feeds
from weir_dashboard.live.hub import Hub
from weir_dashboard.live.pipeline import Warnings
from weir_dashboard.live.tail import Tails
from weir_dashboard.log_kept import LogKept
from weir_dashboard.observer import Observer
from weir_dashboard.queries import Queries
from weir_dashboard.running import Dashboard, running
from weir_dashboard.settings import Settings
from weir_dashboard.store.alerts import Alerts
from weir_dashboard.store.corrections import Corrections
from weir_dashboard.store.quarantine import Quarantine
from weir_dashboard.turns import Turns
from weir_dashboard.web import Pages

ROUTERS = (
    session.router,
    keys.router,
    definition_changes.router,
    definition_plan.router,
    definition_apply.router,
    definitions.router,
    query.router,
    metrics.router,
    alerts.router,
    alert_actions.router,
    channels.router,
    ledger.router,
    corrections.router,
    lateness.router,
    quarantine.router,
    jobs.router,
    preview.router,
    rule_preview.router,
    discovery.router,
    status.router,
    docs.router,
)


def build(settings: Settings, clock: Clock) -> Dashboard:
    """Put the service together; nothing runs yet."""
    redis = connect(settings.redis_url, settings.redis_password)
    catalog = Catalog()
    follower = Follower(settings.kafka, clock, names.DEFINITIONS, catalog.take)
    appender = Appender(settings.kafka, names.DEFINITIONS, timeout_s=TIMEOUT_S)
    quota = ChangeQuota(settings.changes_per_hour, clock)
    writer = Writer(appender, follower, catalog, clock, quota)
    last_used = LastUsed(redis, clock)
    key_ring = KeyRing(catalog, settings.hash_key, clock, last_used.note)
    sessions = Sessions(redis, key_ring, settings.session_hours)

    batches = Batches(redis, clock)
    version = weir_dashboard.__version__
    parts = Parts(redis, clock, "dashboard", instance=settings.instance, version=version)
    observer = Observer(batches, parts, follower, clock)
    panes = Panes(
        redis, batches, cache_bytes=settings.cache_bytes, query_bytes=settings.query_bytes
    )
    instruments.panes_kept.set_function(lambda: panes.bytes_kept)
    late = Corrections(settings.kafka, clock)
    queries = Queries(redis, catalog, observer, clock, panes, late)

    erased = Erased(catalog, settings.hash_key)
    feeds, tails = Feeds(clock), Tails(redis, erased.subjects)
    told = Alerts(settings.kafka, clock, quota)
    context: Context
    alert_feeds = AlertFeeds(
        told.listing,
        lambda tenant: Answers(context, tenant).alert,
        told.follower.caught_up.is_set,
    )
    told.listen(alert_feeds.on_alerts)
    late_feeds = CorrectionFeeds(
        late, lambda kept: corrections.told(context, kept), late.follower.caught_up.is_set
    )
    late.listen(late_feeds.on_corrections)
    conversation = Conversation(
        keys=key_ring,
        sessions=sessions,
        ask=queries.ask,
        feeds=feeds,
        tails=tails,
        alerts=alert_feeds,
        corrections=late_feeds,
        is_ready=follower.caught_up.is_set,
    )
    hub = Hub(
        observer=observer,
        feeds=feeds,
        tails=tails,
        alerts=alert_feeds,
        corrections=late_feeds,
        conversation=conversation,
        max_sockets=settings.max_sockets,
        newer=lambda: context.newer_met,
        warnings=lambda: Warnings(
            context.log.held().warning,
            quarantine_seen(parts.named("panes"), clock.now_ms()).warning,
        ),
    )
    observer.watch(lambda: feeds)
    batches.listen(catalog.follow)
    batches.listen(queries.on_batch)
    batches.listen(hub.on_batch)
    catalog.listen(hub.on_definitions)

    look, places = LogLook(settings.kafka, clock), GroupPlaces(settings.kafka)
    context = Context(
        settings, clock, redis, catalog, writer, batches, parts, observer, key_ring, last_used,
        sessions, queries, Turns(), Quarantine(settings.kafka, clock),
        told, late, erased, LogKept(look, places, parts, batches, clock),
        quota, settings.hash_key,
    )  # fmt: skip
    return Dashboard(context, follower, appender, hub, feeds)


def routed(**options: Any) -> FastAPI:
    """Return the web application with its routes and nothing behind them."""
    app = FastAPI(
        title="Weir",
        version=weir_dashboard.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        **options,
    )
    routes = APIRouter(prefix=API, responses={"default": {"model": Problem}})
    for router in ROUTERS:
        routes.include_router(router)
    app.include_router(routes)
    problems.install(app)
    return app


def api(dashboard: Dashboard) -> FastAPI:
    """Return the web application: the API behind the guard, the pages for the rest."""
    context = dashboard.context
    app = routed(lifespan=lambda _: running(dashboard))
    app.state.context = context
    if context.settings.web_dir is not None:
        app.mount("/", Pages(context.settings.web_dir))
    app.add_middleware(
        Guard,
        keys=context.keys,
        sessions=context.sessions,
        origins=context.settings.allowed_origins,
        is_ready=dashboard.follower.caught_up.is_set,
        quota_of=context.change_quota.fields,
    )
    return app
