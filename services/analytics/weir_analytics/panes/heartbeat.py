"""The heartbeat: the state of the job in Redis, every second, for the dashboard.

It has its own thread and its own connection, so it goes on while Spark is stuck
and says so.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from importlib.metadata import version

import redis
import structlog
from weir import names
from weir.clock import Clock
from weir.log_left import log_told, quarantine_told

from weir_analytics.panes.own import Own, measure
from weir_analytics.panes.shard_wire import open_client
from weir_analytics.panes.vitals import Vitals
from weir_analytics.settings import Settings

LOG = structlog.get_logger()
BEAT_S = 1.0
TIMEOUT_S = 2.0
EXPIRES_S = 15
# Looking for the processes of a tree looks at all of the machine.
MEASURE_EVERY_S = 10.0
VERSION = version("weir-analytics")


class Heartbeat:
    """Writes the state of this process to Redis every second."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._redis = open_client(settings, TIMEOUT_S)
        self._key = names.part_key("panes", settings.instance)
        self._clock, self._stalled_ms = clock, settings.stalled_ms
        self._settings, self._measure_at_s = settings, 0.0

    def run(self, vitals: Vitals, stop: threading.Event) -> None:
        """Beat until told to stop, then take the sign away; an absent Redis is waited for."""
        while not stop.is_set():
            self._try(lambda: self._redis.set(self._key, self.text(vitals), ex=EXPIRES_S))
            stop.wait(BEAT_S)
        self._try(lambda: self._redis.delete(self._key))

    def text(self, vitals: Vitals) -> str:
        """Return the heartbeat of docs/interfaces.md, section 5."""
        now_ms = self._clock.now_ms()
        through_ms = vitals.processed_through_ms
        return json.dumps(
            {
                "at_ms": now_ms,
                "version": VERSION,
                "status": vitals.status(self._clock.monotonic_s(), now_ms, self._stalled_ms),
                "busy": round(vitals.busy, 3),
                "in": round(vitals.received_per_s, 1),
                "lag_ms": max(0, now_ms - through_ms) if through_ms else None,
                "detail": {
                    "processed_through_ms": through_ms or None,
                    "doing": vitals.doing,
                    "trouble": vitals.trouble,
                    "lag_records": vitals.lag_records,
                    "epoch": vitals.epoch,
                    "rev": vitals.rev,
                    "held_by": vitals.holding,
                    "clock_ahead_ms": vitals.clock_ahead_ms,
                    "capacity_per_s": _rounded(vitals.capacity_per_s),
                    "rss_bytes": self._measured(vitals).rss_bytes,
                    **log_told(vitals.log_left),
                    **quarantine_told(vitals.quarantine_left),
                },
            }
        )

    def _measured(self, vitals: Vitals) -> Own:
        """Return what the job takes of its machine, measured every few seconds."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._measure_at_s:
            self._measure_at_s = now_s + MEASURE_EVERY_S
            vitals.own = measure(self._settings)
        return vitals.own

    @staticmethod
    def _try(write: Callable[[], object]) -> None:
        try:
            write()
        except redis.RedisError as error:
            LOG.warning("heartbeat_not_written", error=type(error).__name__)


def _rounded(number: float | None) -> int | None:
    return None if number is None else round(number)
