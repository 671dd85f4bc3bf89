"""The two HTTP servers of one process, and its end: SIGTERM stops both cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import structlog
import uvicorn

from weir_ingest.app import Service
from weir_ingest.connection import limited
from weir_ingest.settings import Settings

_GRACE_S = 6
_KEEP_ALIVE_S = 75
_BACKLOG = 2048
_MAX_HEAD_BYTES = 65_536

_log = structlog.get_logger()


class _Server(uvicorn.Server):
    """A server whose end is somebody else's decision: two of them share the signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def _server(app: Any, host: str, port: int, **more: Any) -> _Server:
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        backlog=_BACKLOG,
        **more,
    )
    return _Server(config)


async def serve(settings: Settings) -> None:
    """Run ingest until SIGTERM or SIGINT."""
    service = Service(settings)
    protocol = limited(settings.body_timeout_s, settings.max_connections_per_address)
    main = _server(
        service,
        settings.host,
        settings.port,
        http=protocol,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
    )
    ops = _server(service.ops, settings.host, settings.ops_port, http="h11")
    service.start()
    runs = [asyncio.create_task(server.serve()) for server in (main, ops)]
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, service, main)
    _log.info("started", **_shown(settings))
    await runs[0]
    await service.stop()
    ops.should_exit = True
    await runs[1]


def _stop(service: Service, main: uvicorn.Server) -> None:
    """Take no new connection; what is open gets its answer first."""
    _log.info("stopping")
    service.stopping = True
    main.should_exit = True


def _shown(settings: Settings) -> dict[str, Any]:
    """Return the settings for the log. Secrets are in none of the fields."""
    shown = settings.model_dump(mode="json")
    shown["redis_url"] = settings.redis_url.rpartition("@")[2]
    return shown
