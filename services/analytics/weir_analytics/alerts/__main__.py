"""Run the alerts job: `python -m weir_analytics.alerts`.

Exit codes: 0 stopped as told; 2 bad settings; 3 fenced, a later job has taken over; 4 a newer
release has written what this one cannot read; 70 it could not go on. A supervisor restarts it
with back-off after 3 and 70.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import structlog
import uvloop
from confluent_kafka import KafkaException
from weir.clock import SystemClock
from weir.formats import NewerFormatError
from weir_service import logs
from weir_service.probes import probes, serve_probes
from weir_service.settings import EXIT_SETTINGS, read

from weir_analytics.alerts.app import Alerts, FencedError
from weir_analytics.alerts.settings import Settings

EXIT_FENCED = 3
EXIT_FOREIGN = 4
EXIT_BROKEN = 70
log = structlog.get_logger()


def main() -> int:
    """Work until told to stop; return the exit code."""
    logs.configure()
    settings = read(Settings)
    if settings is None:
        return EXIT_SETTINGS
    log.info("settings", **settings.told())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_run(settings))


async def _run(settings: Settings) -> int:
    alerts = Alerts(settings, SystemClock())
    app = probes(alerts.not_ready, not_alive=alerts.not_alive)
    ops, probed = serve_probes(app, settings.host, settings.ops_port)
    working = asyncio.create_task(alerts.run())
    loop = asyncio.get_running_loop()

    def stop() -> None:
        log.info("stopping")
        working.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await working
        code = 0
    except asyncio.CancelledError:
        code = 0
    except FencedError:
        log.warning("fenced")
        code = EXIT_FENCED
    except NewerFormatError as error:
        log.error("newer_release", why=str(error))
        code = EXIT_FOREIGN
    except (KafkaException, TimeoutError) as error:
        log.error("cannot_go_on", error=str(error))
        code = EXIT_BROKEN
    ops.stop()
    await probed
    log.info("stopped", code=code)
    return code


if __name__ == "__main__":
    sys.exit(main())
