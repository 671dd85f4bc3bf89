"""What routes work with: the parts of the service, put together in `app`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request
from redis.asyncio import Redis
from weir.clock import Clock
from weir_reading.batches import Batches
from weir_reading.parts import Parts
from weir_service.last_used import LastUsed

from weir_dashboard.auth.callers import Caller, KeyRing, unauthorized
from weir_dashboard.auth.sessions import Sessions
from weir_dashboard.change_quota import ChangeQuota
from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.definitions.writer import Writer
from weir_dashboard.erased import Erased
from weir_dashboard.log_kept import LogKept
from weir_dashboard.observer import Observer
from weir_dashboard.queries import Queries
from weir_dashboard.settings import Settings
from weir_dashboard.store.alerts import Alerts
from weir_dashboard.store.corrections import Corrections
from weir_dashboard.store.quarantine import Quarantine
from weir_dashboard.turns import Turns


@dataclass(frozen=True)
class Context:
    """The parts of the service."""

    settings: Settings
    clock: Clock
    redis: Redis
    catalog: Catalog
    writer: Writer
    batches: Batches
    parts: Parts
    observer: Observer
    keys: KeyRing
    last_used: LastUsed
    sessions: Sessions
    queries: Queries
    turns: Turns
    quarantine: Quarantine
    alerts: Alerts
    corrections: Corrections
    erased: Erased
    log: LogKept
    change_quota: ChangeQuota
    hash_key: bytes

    @property
    def newer(self) -> str | None:
        """Why something cannot be read that a newer release wrote; None while nothing was met."""
        return next(iter(self.newer_met), None)

    @property
    def newer_met(self) -> tuple[str, ...]:
        """The same of everything that was met, in the words of each who met it."""
        readers = (self.catalog.folded, self.batches, self.queries.panes, self.alerts)
        found = (one.newer.why for one in (*readers, self.corrections))
        return tuple(why for why in found if why is not None)


def context(request: Request) -> Context:
    """Return the parts of the service that serves a request."""
    return cast("Context", request.app.state.context)


def anyone(request: Request) -> Caller | None:
    """Return who is calling, or None for nobody; the guard has looked."""
    return cast("Caller | None", request.scope["state"].get("caller"))


def caller(request: Request) -> Caller:
    """Return who is calling.

    Raises:
        ProblemError: 401 if the guard found nobody.
    """
    found = anyone(request)
    if found is None:
        raise unauthorized()
    return found


Here = Annotated[Context, Depends(context)]
Who = Annotated[Caller, Depends(caller)]
Anyone = Annotated[Caller | None, Depends(anyone)]
