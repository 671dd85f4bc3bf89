"""Runs the dashboard: `python -m weir_dashboard`."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import structlog
import uvicorn
import uvloop
from pydantic import ValidationError
from weir.clock import SystemClock

from weir_dashboard import log as logs
from weir_dashboard.app import api, build
from weir_dashboard.live.socket import live_protocol
from weir_dashboard.ops import ops_app
from weir_dashboard.running import Dashboard
from weir_dashboard.settings import Settings

GRACE_S = 5

log = structlog.get_logger()


def main() -> int:
    """Serve until SIGTERM; return the exit status."""
    logs.configure()
    try:
        settings = Settings()  # type: ignore[call-arg]  # read from the environment
    except ValidationError as error:
        log.error("settings_refused", error=str(error))
        return 2
    log.info("starting", **_told(settings))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(start(settings))


async def start(settings: Settings) -> int:
    """Put the service together and serve; return the exit status."""
    try:
        dashboard = build(settings, SystemClock())
    except ValueError as error:
        log.error("settings_refused", error=str(error))
        return 2
    await serve(dashboard)
    return 0


async def serve(dashboard: Dashboard) -> None:
    """Serve both ports until the process is told to stop."""
    public, ops = public_server(dashboard), ops_server(dashboard)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, public.stop)
    beside = asyncio.create_task(ops.serve())
    try:
        await public.serve()
    finally:
        ops.stop()
        await beside
    log.info("stopped")


class Server(uvicorn.Server):
    """A uvicorn server that leaves the signals to `serve`, which has two of them."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Capture none."""
        return nullcontext()

    def stop(self) -> None:
        """Stop serving."""
        self.should_exit = True


def public_server(dashboard: Dashboard) -> Server:
    """Return the server of API, live socket and pages."""
    settings = dashboard.context.settings
    return Server(
        uvicorn.Config(
            api(dashboard),
            port=settings.port,
            ws=live_protocol(dashboard.hub, settings.allowed_origins),
            timeout_graceful_shutdown=GRACE_S,
            **_shared(settings),
        )
    )


def ops_server(dashboard: Dashboard) -> Server:
    """Return the server of the ops port."""
    settings = dashboard.context.settings
    return Server(
        uvicorn.Config(
            ops_app(dashboard.is_ready),
            port=settings.ops_port,
            ws="none",
            lifespan="off",
            **_shared(settings),
        )
    )


def _told(settings: Settings) -> dict[str, Any]:
    """Return the settings with the credentials of addresses hidden."""
    told = settings.model_dump(mode="json")
    return {**told, "redis_url": re.sub(r"//[^@/]*@", "//***@", settings.redis_url)}


def _shared(settings: Settings) -> dict[str, Any]:
    # h11: with httptools, uvicorn drops the body of a request with `Upgrade: h2c`.
    return {
        "host": settings.host,
        "http": "h11",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
    }


if __name__ == "__main__":
    sys.exit(main())
