"""The two HTTP servers of one process, and its end: SIGTERM stops both cleanly."""

from __future__ import annotations

import asyncio
import signal

import structlog
import uvicorn
from weir_service.probes import Server, serve_probes

from weir_ingest.app import Service
from weir_ingest.connection import limited
from weir_ingest.settings import Settings

_GRACE_S = 6
_KEEP_ALIVE_S = 75
_BACKLOG = 2048
_MAX_HEAD_BYTES = 65_536

_log = structlog.get_logger()


async def serve(settings: Settings) -> None:
    """Run ingest until SIGTERM or SIGINT."""
    service = Service(settings)
    main = _server(service, settings)
    ops, probed = serve_probes(service.ops, settings.host, settings.ops_port)
    service.start()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _stop, service, main)
    _log.info("started", **settings.told())
    await main.serve()
    await service.stop()
    ops.stop()
    await probed


def _server(service: Service, settings: Settings) -> Server:
    return Server(
        uvicorn.Config(
            service,
            host=settings.host,
            port=settings.port,
            http=limited(settings.body_timeout_s, settings.max_connections_per_address),
            h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_GRACE_S,
            backlog=_BACKLOG,
        )
    )


def _stop(service: Service, main: Server) -> None:
    """Take no new connection; what is open gets its answer first."""
    _log.info("stopping")
    service.stopping = True
    main.stop()
