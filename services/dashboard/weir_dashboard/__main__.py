"""Runs the dashboard: `python -m weir_dashboard`."""

from __future__ import annotations

import asyncio
import signal
import sys

import structlog
import uvicorn
import uvloop
from weir.clock import SystemClock
from weir_service import logs
from weir_service.probes import Server, probes, serve_probes
from weir_service.settings import EXIT_SETTINGS, read

from weir_dashboard.app import api, build
from weir_dashboard.live.socket import live_protocol
from weir_dashboard.running import Dashboard
from weir_dashboard.settings import Settings

GRACE_S = 5

log = structlog.get_logger()


def main() -> int:
    """Serve until SIGTERM; return the exit status."""
    logs.configure()
    settings = read(Settings)
    if settings is None:
        return EXIT_SETTINGS
    log.info("starting", **settings.told())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(settings))
    return 0


async def serve(settings: Settings) -> None:
    """Serve both ports until the process is told to stop."""
    dashboard = build(settings, SystemClock())
    public = public_server(dashboard)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, public.stop)
    ops, probed = serve_probes(probes(dashboard.not_ready), settings.host, settings.ops_port)
    try:
        await public.serve()
    finally:
        ops.stop()
        await probed
    log.info("stopped")


def public_server(dashboard: Dashboard) -> Server:
    """Return the server of API, live socket and pages."""
    settings = dashboard.context.settings
    return Server(
        uvicorn.Config(
            api(dashboard),
            host=settings.host,
            port=settings.port,
            # With httptools, uvicorn drops the body of a request with `Upgrade: h2c`.
            http="h11",
            ws=live_protocol(dashboard.hub, settings.allowed_origins),
            timeout_graceful_shutdown=GRACE_S,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
