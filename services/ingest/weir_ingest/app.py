"""The ingest service: HTTP in, Kafka out. Read this file first.

    client ─▶ Connection (head in time) ─▶ Accept ─▶ EventLog ─▶ weir.events
                                             │  ▲        │
    Keys, Quota (who) ◀─ KeyReader ──────────┘  │        └─▶ Tail, LastUsed ─▶ Redis
               routes, protocols/ (which items) ┘
               weir.admission, weir.mappings (what each item becomes)

`Service` connects the parts and runs them; each has a file of its own. Promises:
2xx only after all in-sync replicas have acknowledged every record of a request;
4xx means that nothing of it is stored; anything else is unknown and safe to send
again with the same ids.
"""

from __future__ import annotations

import asyncio
from typing import Any

import psutil
import structlog
from weir.clock import Clock, SystemClock
from weir_service.last_used import LastUsed
from weir_service.probes import probes
from weir_service.redis import connect

from weir_ingest import protocols
from weir_ingest.accept import Accept, Parts
from weir_ingest.api import build_api
from weir_ingest.body import BodyLimits, Budget
from weir_ingest.event_log import EventLog, LogLimits
from weir_ingest.head import Receive, Scope, Send
from weir_ingest.heartbeat import Heartbeat
from weir_ingest.instruments import Instruments
from weir_ingest.key_reader import KeyReader, Known
from weir_ingest.keys import Keys
from weir_ingest.protocols.batch import BatchLimits
from weir_ingest.quota import Quota
from weir_ingest.routes import wire_of
from weir_ingest.settings import Settings
from weir_ingest.tail import Sampler, Tail

_REDIS_TIMEOUT_S = 1.0
_FLUSH_TIMEOUT_S = 3.0

_log = structlog.get_logger()


class Service:
    """All parts of ingest. Make it inside the event loop that will run it."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self.stopping = False
        self._clock = clock
        self.instruments = Instruments()
        self.keys = Keys(settings.hash_key, clock)
        self.log = EventLog(
            settings.kafka, settings.linger_ms, _log_limits(settings), self.instruments
        )
        self.redis = connect(
            settings.redis_url, settings.redis_password, timeout_s=_REDIS_TIMEOUT_S
        )
        self.tail = Tail(self.redis, Sampler(settings.tail_events_per_s), self.instruments)
        self.last_used = LastUsed(self.redis, clock)
        self.budget = _budget(settings)
        self.quota = Quota(settings.quota_events_per_s)
        self.key_reader = KeyReader(settings.kafka, self._on_keys)
        self.heartbeat = Heartbeat(self.redis, settings.instance, clock, self._state)
        self.accept = Accept(self._parts(settings, clock))
        self.api = build_api(self.accept)
        self.ops = probes(
            self._not_ready, observe=self._observe, registry=self.instruments.registry
        )
        self._process = psutil.Process()
        self._loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []

    def _parts(self, settings: Settings, clock: Clock) -> Parts:
        batch_limits = BatchLimits(settings.max_events, settings.max_batch_events)
        protocols.prepare(batch_limits)
        return Parts(
            keys=self.keys,
            log=self.log,
            tail=self.tail,
            clock=clock,
            instruments=self.instruments,
            budget=self.budget,
            body_limits=BodyLimits(settings.max_body_bytes, settings.body_timeout_s),
            batch_limits=batch_limits,
            max_decoded_bytes=settings.max_decoded_bytes,
            quota=self.quota,
            last_used=self.last_used,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route a request: events at once, the rest through the framework."""
        wire = wire_of(scope["path"], scope["method"])
        if wire is None:
            await self.api(scope, receive, send)
        else:
            await self.accept(wire, scope, receive, send)

    def start(self) -> None:
        """Start what runs beside the requests."""
        self.key_reader.start()
        self._tasks = [
            asyncio.create_task(self.tail.run(), name="tail"),
            asyncio.create_task(self.heartbeat.run(), name="heartbeat"),
            asyncio.create_task(self.last_used.run(), name="last_used"),
        ]

    async def stop(self) -> None:
        """Flush what was taken, then stop; call it when no request is open."""
        self.stopping = True
        unconfirmed = await self.log.close(_FLUSH_TIMEOUT_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self.key_reader.stop)
        await self.redis.aclose()
        _log.info("stopped", unconfirmed_records=unconfirmed)

    def _on_keys(self, known: Known, at_end: bool) -> None:
        self._loop.call_soon_threadsafe(self._take_keys, known, at_end)

    def _take_keys(self, known: Known, at_end: bool) -> None:
        self.keys.replace(known.keys, known.apps)
        self.keys.ready = self.keys.ready or at_end
        self.quota.forget(self._clock.monotonic_s())

    def _not_ready(self) -> str | None:
        if self.stopping:
            return "stopping"
        return None if self.keys.ready else "starting"

    def _observe(self) -> None:
        self.instruments.in_flight.set(self.budget.used_bytes)
        self.instruments.unacknowledged.set(self.log.unacknowledged)
        self.instruments.keys.set(len(self.keys))
        self.instruments.threads.set(self._process.num_threads())

    def _state(self) -> dict[str, Any]:
        """Return what the heartbeat says."""
        status = self._not_ready() or ("stalled" if self.log.is_stuck else "ok")
        return {
            "status": "stalled" if status == "stopping" else status,
            "events": self.instruments.events_accepted,
            "lag_ms": self.log.oldest_age_ms,
            "detail": {
                "unacknowledged": self.log.unacknowledged,
                "in_flight_bytes": self.budget.used_bytes,
                "allowed_per_s": self.quota.in_all(self.keys.tenants),
                "received_ms": self.instruments.received_ms,
                "rss_bytes": self._process.memory_info().rss,
            },
        }


def _budget(settings: Settings) -> Budget:
    """Return the budget: half of it for one tenant, but always room for one largest body."""
    most = settings.max_in_flight_bytes
    return Budget(most, max(most // 2, min(most, settings.max_decoded_bytes)))


def _log_limits(settings: Settings) -> LogLimits:
    return LogLimits(
        settings.max_queued_records, settings.max_queued_bytes, settings.delivery_timeout_s
    )
