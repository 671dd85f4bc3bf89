"""The alerts job: start reading here.

    weir.definitions ─▶ follower ─▶ catalog ─▶ rules ──┐
    Redis batches ────▶ batches ───────────────────────┤
    Redis panes ──────▶ panes ─────────────────────────┴▶ evaluator ─▶ journal ─▶ weir.alerts
                                                                          │
    clock, parts, log ▶ signals ──▶ itself ────────────────────▶ ┘        │
    weir.alerts ──────▶ journal.fold ─▶ what is known of series ◀─────────┤
                                        what is due ─▶ outbox ─▶ channels ┘
                        that rules are evaluated ─▶ heartbeats ─▶ channels

Nothing is told before it stands in `weir.alerts`, and nothing is known but what stands
there: a job that is ended goes on from the fold. Of two jobs the later one writes, by the
fence of its start record; the other one ends when it sees that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from importlib.metadata import version
from itertools import islice
from typing import Any

import psutil
import structlog
from prometheus_client import Gauge
from weir import metrics, names
from weir.clock import Clock
from weir.definitions.records import DriverStart, start_record
from weir_reading.batches import Batches
from weir_reading.catalog import Catalog
from weir_reading.follower import Follower
from weir_reading.log_look import GroupPlaces, LogLook
from weir_reading.panes import Panes
from weir_reading.parts import OF_TENANTS, Parts
from weir_service.redis import connect

from weir_analytics.alerts.evaluator import Evaluator
from weir_analytics.alerts.itself import Itself
from weir_analytics.alerts.journal import Journal
from weir_analytics.alerts.log_seen import LogSeen
from weir_analytics.alerts.outbox import Outbox
from weir_analytics.alerts.recording import Recording
from weir_analytics.alerts.rules import Rules
from weir_analytics.alerts.settings import Settings
from weir_analytics.alerts.signals import Signals
from weir_analytics.panes.definitions_log import DefinitionsLog

JOB = "alerts"
FENCE_EVERY_S = 0.5
MAX_TOLD = 1_000
"""Rules of which the heartbeat tells more than their number."""
STUCK_S = 60.0
DUE = Gauge(metrics.ALERTS_DUE, "Messages that wait for their outcome.")
OLDEST_DUE = Gauge(metrics.ALERTS_OLDEST_DUE, "For how long the oldest of them has waited.")
THREADS = Gauge(metrics.ALERTS_THREADS, "Threads of the process.")
THREADS.set_function(psutil.Process().num_threads)
RECOUNTING = Gauge(metrics.ALERTS_RECOUNTING, "1 while the log is counted again after a loss.")
log = structlog.get_logger()


class FencedError(Exception):
    """A later job has started."""


class Alerts:
    """The job, put together.

    Attributes:
        ready: Set once `weir.alerts` is folded and this job may write.
    """

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._redis = connect(settings.redis_url, settings.redis_password)
        self._catalog = Catalog()
        self._definitions = Follower(settings.kafka, clock, names.DEFINITIONS, self._catalog.take)
        self._batches = Batches(self._redis, clock)
        self._panes = Panes(
            self._redis,
            self._batches,
            cache_bytes=settings.cache_bytes,
            query_bytes=settings.look_bytes,
        )
        self._parts = Parts(
            self._redis, clock, JOB, instance=settings.instance, version=version("weir-analytics")
        )
        self._journal = Journal(settings.kafka, clock, self._on_records)
        link = settings.dashboard_url.rstrip("/")
        self._rules = Rules(self._catalog, self._journal.fold, link)
        self._recording = Recording(self._journal, clock)
        self._evaluator = Evaluator(
            self._rules,
            self._catalog,
            self._batches,
            self._panes,
            self._journal,
            self._recording,
            clock,
        )
        self._log_seen = LogSeen(LogLook(settings.kafka, clock), GroupPlaces(settings.kafka), clock)
        self._signals = Signals(
            self._redis,
            self._batches,
            self._panes,
            self._parts,
            self._catalog,
            self._journal,
            self._rules,
            clock,
            lambda: self._evaluator.evaluated_ms,
            self._log_seen.used,
        )
        self._itself = Itself(
            self._rules,
            self._catalog,
            self._signals,
            self._recording,
            clock,
            kafka=settings.kafka,
            ships=settings.own_rules,
        )
        self._outbox = Outbox(
            self._journal,
            self._catalog,
            settings,
            clock,
            lambda: self._evaluator.evaluated_ms,
        )
        self._fence = 0
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Work until cancelled.

        Raises:
            FencedError: If a later job has started.
            NewerFormatError: If a newer release has written to the topics that this job goes by.
            KafkaException, TimeoutError: If the start could not be recorded.
        """
        self._definitions.start()
        self._journal.follower.start()
        work: list[Coroutine[Any, Any, None]] = [
            self._parts.follow(self._told),
            self._batches.follow(),
            self._outbox.run(),
            self._log_seen.run(),
            self._begin(),
        ]
        tasks = [asyncio.create_task(one) for one in work]
        try:
            # Whichever ends first, ends the job: none of them ends by itself.
            await next(asyncio.as_completed(tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._outbox.close()
            await self._definitions.stop()
            await self._journal.close()
            await self._redis.aclose()

    def not_ready(self) -> str | None:
        """Return what this job waits for before it may write, or evaluate; None if it may."""
        if not self.ready.is_set():
            return "weir.alerts has not been read to its end yet"
        return self._newer()

    def not_alive(self) -> str | None:
        """Return that a look at rules does not end; while Kafka is away it waits, alive."""
        if self._definitions.away_s() is not None or self._evaluator.stuck_s < STUCK_S:
            return None
        return "a look at one rule has taken a minute"

    async def _begin(self) -> None:
        await self._definitions.caught_up.wait()
        await self._journal.follower.caught_up.wait()
        self._check_formats()
        self._fence = await asyncio.to_thread(self._start)
        await self._definitions.reach(self._fence)
        self._recording.fence = self._outbox.fence = self._fence
        log.info("started", fence=self._fence, due=len(self._journal.fold.due))
        self._batches.listen(self._catalog.follow)
        self._batches.listen(self._evaluator.on_batch)
        self._catalog.listen(self._evaluator.on_definitions)
        self._evaluator.on_definitions(None)
        self._outbox.wake()
        self.ready.set()
        running = {asyncio.create_task(one.run()) for one in (self._evaluator, self._itself)}
        try:
            ended: set[asyncio.Task[None]] = set()
            while not ended:
                self._check_formats()
                self._check_fence()
                ended, _ = await asyncio.wait(
                    running, timeout=FENCE_EVERY_S, return_when=asyncio.FIRST_COMPLETED
                )
            for one in ended:
                one.result()
        finally:
            for one in running:
                one.cancel()

    def _start(self) -> int:
        definitions = DefinitionsLog(self._settings.kafka)
        try:
            start = DriverStart(instance=self._settings.instance, shards=1, reason="start")
            return definitions.append(start_record(start, at_ms=self._clock.now_ms(), job=JOB))
        finally:
            definitions.close()

    def _check_formats(self) -> None:
        self._catalog.folded.newer.check()
        self._journal.fold.reader.newer.check()

    def _check_fence(self) -> None:
        latest = self._catalog.folded.fence(JOB)
        if latest is not None and latest > self._fence:
            raise FencedError

    def _newer(self) -> str | None:
        """Return what a newer release has written that rules would be evaluated by."""
        return self._batches.newer.why or self._panes.newer.why

    def _on_records(self) -> None:
        self._outbox.wake()

    def _told(self) -> dict[str, Any]:
        """Return what the heartbeat says besides."""
        rules, due = self._rules.all(), self._journal.fold.due
        oldest_ms = self._outbox.oldest_due_ms()
        DUE.set(len(due))
        OLDEST_DUE.set(0 if oldest_ms is None else (self._clock.now_ms() - oldest_ms) / 1000)
        RECOUNTING.set(self._batches.recount is not None)
        errors = {str(vid): one.error for vid, one in rules.items() if one.error}
        return {
            "trouble": self._newer(),
            "evaluated_ms": self._evaluator.evaluated_ms,
            "looked_ms": self._itself.looked_ms,
            "rules": len(rules),
            "errors": len(errors),
            "due": len(due),
            "failing": sorted({channel for _, channel in self._outbox.failing}),
            OF_TENANTS: {
                "errors": dict(islice(errors.items(), MAX_TOLD)),
                "readings": {
                    str(vid): [[list(group or ()), value] for group, value in one.newest]
                    for vid, one in islice(self._rules.itself.items(), MAX_TOLD)
                },
            },
        }
