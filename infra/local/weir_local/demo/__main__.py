"""Run the feeder until SIGTERM: `python -m weir_local.demo`.

Settings: `WEIR_INGEST_URL`, `WEIR_API_KEY`, and `WEIR_FEEDER_STATE`, the file in which
it remembers how far it got.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import threading
from collections.abc import MutableMapping
from pathlib import Path

import structlog
from weir.clock import SystemClock

from weir_local.client import ApiClient, ApiError
from weir_local.demo.accesslog import read_log
from weir_local.demo.feeder import MachineSamples, Progress, WebRequests
from weir_local.demo.schedule import Schedule, squeeze
from weir_local.repository import ACCESS_LOG

EVERY_S = 1.0
REPORT_EVERY = 60
# Short, so that samples go on being taken, and SIGTERM is seen, while ingest is away. What
# is not sent in one turn is sent in a later one, with the same ids.
PATIENCE_S = 0.5
# Ingest itself gives up on Kafka after 5 s.
ANSWER_S = 8.0


def main() -> int:
    """Feed until told to stop; return the exit code."""
    structlog.configure(
        processors=[structlog.processors.TimeStamper(fmt="iso", key="at"), _as_json]
    )
    log = structlog.get_logger()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    clock = SystemClock()
    client = ApiClient(
        os.environ["WEIR_INGEST_URL"],
        os.environ["WEIR_API_KEY"],
        patience_s=PATIENCE_S,
        timeout_s=ANSWER_S,
    )
    requests = read_log(ACCESS_LOG)
    progress = Progress.read(Path(os.environ["WEIR_FEEDER_STATE"]), clock.now_ms())
    schedule = Schedule(progress.started_ms, squeeze([r.time_ms for r in requests]))
    web = WebRequests(requests, schedule, progress)
    machine = MachineSamples(secrets.token_hex(4))
    sent = 0
    try:
        for turn in range(sys.maxsize):
            machine.take(clock)
            try:
                machine.send(client)
                sent += web.send(client, clock.now_ms(), stop.is_set)
            except TimeoutError as error:
                log.warning("ingest_away", error=str(error), samples=len(machine.waiting))
            if turn % REPORT_EVERY == 0:
                log.info("feeding", web_requests=sent, retries=client.retries)
            if stop.wait(EVERY_S):
                break
    except ApiError as error:
        log.error("refused", error=str(error))
        return 1
    finally:
        client.close()
    return 0


def _as_json(_logger: object, _method: str, fields: MutableMapping[str, object]) -> str:
    return json.dumps(dict(fields))


if __name__ == "__main__":
    sys.exit(main())
