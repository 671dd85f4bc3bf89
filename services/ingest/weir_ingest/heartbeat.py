"""The heartbeat: each second one key in Redis says that this process lives, and how busy it is."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import names
from weir.clock import Clock

EVERY_S = 1.0
_EXPIRES_S = 15
_log = structlog.get_logger()


class Heartbeat:
    """Writes the heartbeat until cancelled. Redis away is logged once and never harms."""

    def __init__(
        self, redis: Redis, instance: str, clock: Clock, state: Callable[[], dict[str, Any]]
    ) -> None:
        """Prepare it.

        Args:
            redis: Where it is written.
            instance: Name of this process.
            clock: Tells the time of a beat.
            state: Returns `status`, `events` (accepted since the start), `lag_ms`, `detail`.
        """
        self._redis = redis
        self._key = names.part_key("ingest", instance)
        self._clock = clock
        self._state = state
        self._version = version("weir-ingest")

    async def run(self) -> None:
        """Beat."""
        at_s, cpu_s, events, well = self._clock.monotonic_s(), time.process_time(), 0, True
        while True:
            await asyncio.sleep(EVERY_S)
            now_s, now_cpu_s, state = self._clock.monotonic_s(), time.process_time(), self._state()
            span_s = max(now_s - at_s, 1e-3)
            beat = {
                "at_ms": self._clock.now_ms(),
                "version": self._version,
                "status": state["status"],
                "busy": round((now_cpu_s - cpu_s) / span_s, 3),
                "in": round((state["events"] - events) / span_s, 1),
                "lag_ms": state["lag_ms"],
                "detail": state["detail"],
            }
            at_s, cpu_s, events = now_s, now_cpu_s, state["events"]
            try:
                await self._redis.set(self._key, json.dumps(beat), ex=_EXPIRES_S)
            except (RedisError, OSError, TimeoutError) as error:
                if well:
                    _log.warning("heartbeat_unwritten", error=repr(error))
                well = False
            else:
                well = True
