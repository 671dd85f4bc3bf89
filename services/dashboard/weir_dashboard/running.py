"""The service while it runs: the followers and the hub, started and stopped together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from weir_reading.appender import Appender
from weir_reading.follower import Follower

from weir_dashboard.context import Context
from weir_dashboard.definitions.bootstrap import store_first_key
from weir_dashboard.live.feeds import Feeds
from weir_dashboard.live.hub import Hub

log = structlog.get_logger()


@dataclass(frozen=True)
class Dashboard:
    """The service, put together and not yet started."""

    context: Context
    follower: Follower
    appender: Appender
    hub: Hub
    feeds: Feeds

    def not_ready(self) -> str | None:
        """Return why nobody should be sent here; None if they should.

        Redis may be away: the service has to say that the numbers are stale.
        """
        known = self.follower.caught_up.is_set()
        return None if known else "definitions have not been read to their end yet"


@asynccontextmanager
async def running(dashboard: Dashboard) -> AsyncIterator[None]:
    """Run the followers and the hub while the service is up."""
    context = dashboard.context
    dashboard.follower.start()
    context.alerts.follower.start()
    context.corrections.follower.start()
    context.log.start()
    work: list[Coroutine[Any, Any, None]] = [
        context.batches.follow(),
        context.last_used.run(),
        context.corrections.read_back(),
        context.parts.follow(lambda: {"sockets": len(dashboard.hub.clients), **context.log.told()}),
        dashboard.hub.run(),
        _first_key(dashboard),
    ]
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        context.log.stop()
        await dashboard.hub.stop()
        context.turns.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await dashboard.follower.stop()
        await context.alerts.stop()
        await context.corrections.follower.stop()
        await dashboard.appender.close()
        await context.redis.aclose()


async def _first_key(dashboard: Dashboard) -> None:
    context = dashboard.context
    await dashboard.follower.caught_up.wait()
    log.info("definitions_read", next_offset=dashboard.follower.next_offset)
    key = context.settings.secret("bootstrap_key")
    await store_first_key(context.catalog, context.writer, key, context.hash_key)
