"""Run the alerts job: `python -m weir_analytics.alerts`.

Exit codes: 0 stopped as told; 2 bad settings; 3 fenced, a later job has taken over; 70 it
could not go on. A supervisor restarts it with back-off after 3 and 70.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AbstractContextManager, nullcontext

import structlog
import uvicorn
import uvloop
from confluent_kafka import KafkaException
from pydantic import ValidationError
from weir.clock import SystemClock

from weir_analytics.alerts.app import Alerts, FencedError
from weir_analytics.alerts.ops import ops_app
from weir_analytics.alerts.settings import Settings
from weir_analytics.log import configure

EXIT_SETTINGS = 2
EXIT_FENCED = 3
EXIT_BROKEN = 70
log = structlog.get_logger()


def main() -> int:
    """Work until told to stop; return the exit code."""
    configure()
    try:
        settings = Settings()  # type: ignore[call-arg]  # from the environment
    except ValidationError as error:
        for one in error.errors():
            log.error("bad_setting", name=f"WEIR_ALERTS_{one['loc'][0]}".upper(), why=one["msg"])
        return EXIT_SETTINGS
    log.info("settings", **settings.model_dump(mode="json", exclude={"redis_url"}))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(settings))


async def _run(settings: Settings) -> int:
    alerts = Alerts(settings, SystemClock())
    ops = _Ops(
        uvicorn.Config(
            ops_app(alerts.is_alive, alerts.ready.is_set),
            host=settings.host,
            port=settings.ops_port,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
        )
    )
    serving, working = asyncio.create_task(ops.serve()), asyncio.create_task(alerts.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, working.cancel)
    try:
        await working
        code = 0
    except asyncio.CancelledError:
        code = 0
    except FencedError:
        log.warning("fenced")
        code = EXIT_FENCED
    except (KafkaException, TimeoutError) as error:
        log.error("cannot_go_on", error=str(error))
        code = EXIT_BROKEN
    ops.should_exit = True
    await serving
    log.info("stopped", code=code)
    return code


class _Ops(uvicorn.Server):
    """A server that leaves signals to `_run`."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]
        """Capture none."""
        return nullcontext()


if __name__ == "__main__":
    sys.exit(main())
