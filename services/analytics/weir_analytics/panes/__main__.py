"""Run the panes job: `python -m weir_analytics.panes`.

Exit codes: 0 stopped as told; 2 bad settings; 3 fenced, a newer driver has taken over;
4 the state belongs to another log, or to a newer release, a human must decide; 70 a part of
the process died. A supervisor restarts it with back-off after 3 and 70.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable

import structlog
from weir import names
from weir.clock import SystemClock
from weir_service import logs
from weir_service.settings import EXIT_SETTINGS, read

from weir_analytics.jobs.quarantine_watch import QuarantineWatch
from weir_analytics.panes.driver import EXIT_BROKEN, Driver
from weir_analytics.panes.former import FormerError, delete_former
from weir_analytics.panes.heartbeat import Heartbeat
from weir_analytics.panes.log_watch import LogWatch
from weir_analytics.panes.ops import Figures, OpsServer
from weir_analytics.panes.session import open_session
from weir_analytics.panes.ticks import Ticker
from weir_analytics.panes.vitals import Vitals
from weir_analytics.settings import Settings

LOG = structlog.get_logger()


def main() -> int:
    """Read the settings, start the parts, count until told to stop."""
    logs.configure()
    # Py4J tells of each error of the JVM once more; the driver tells what it means.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    settings = read(Settings)
    if settings is None:
        return EXIT_SETTINGS
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    LOG.info("settings", **settings.told())
    return _run(settings)


def _run(settings: Settings) -> int:
    clock, vitals, figures = SystemClock(), Vitals(), Figures()
    stop, quiet = threading.Event(), threading.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: stop.set())
    ops = OpsServer((settings.host, settings.ops_port), vitals, figures)
    heartbeat = Heartbeat(settings, clock)
    ticker = Ticker(settings.kafka, clock, tick_s=settings.tick_ms / 1000, topic=names.EVENTS)
    threads = [
        _thread("heartbeat", lambda: heartbeat.run(vitals, quiet), vitals),
        _thread("ops", ops.run, vitals),
    ]
    try:
        if settings.in_pods:
            delete_former(settings, clock, stop)
    except FormerError as error:
        LOG.critical("former_executors_not_deleted", error=str(error))
        return EXIT_BROKEN
    with open_session(settings) as spark:
        driver = Driver(settings, spark, vitals, figures, ticker, clock, stop)
        driver.warm_up()
        threads.append(_thread("ticks", lambda: ticker.run(quiet, vitals.see), vitals))
        watch = LogWatch(settings.kafka, clock)
        threads.append(_thread("log_watch", lambda: watch.run(vitals, quiet), vitals))
        copies = QuarantineWatch(settings.kafka, clock)
        threads.append(_thread("quarantine_watch", lambda: copies.run(vitals, quiet), vitals))
        code = driver.run()
        LOG.info("stopped", code=code)
        quiet.set()
        ops.close()
    for thread in threads:
        thread.join(timeout=3)
    return code


def _thread(name: str, work: Callable[[], None], vitals: Vitals) -> threading.Thread:
    """Start a thread whose death ends the process: half a driver is worse than none."""

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            vitals.failed = name
            LOG.critical("thread_died", thread=name, error=repr(error)[:300], exc_info=error)
            os._exit(EXIT_BROKEN)

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    return thread


if __name__ == "__main__":
    sys.exit(main())
