"""Watches the parts and says how fresh the numbers are: `freshness` with real inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from weir.clock import Clock
from weir_reading.batches import Batches
from weir_reading.parts import Part, Parts

from weir_dashboard.freshness import Fresh, Observed, judge

# A read of the stream is answered within a second, also if there is nothing new.
SILENT_MS = 2_500


class LogHealth(Protocol):
    """Whether Kafka answers."""

    def away_s(self) -> float | None:
        """Return for how long no broker has answered, or None if one does."""
        ...

    def silent_s(self) -> float:
        """Return how long ago a broker last answered."""
        ...


class Evaluations(Protocol):
    """Whether the hub keeps up with what is due."""

    evaluated_ms: int | None
    overdue_s: float | None


class Observer:
    """Looks at batches, heartbeats, Kafka and the hub, and judges."""

    def __init__(self, batches: Batches, parts: Parts, kafka: LogHealth, clock: Clock) -> None:
        self.batches = batches
        self.parts = parts
        self._kafka = kafka
        self._clock = clock
        # A heartbeat expires with its instance; when it was last well must not.
        self._ingest_well_ms = clock.now_ms()
        self._evaluations: Callable[[], Evaluations] | None = None

    def watch(self, evaluations: Callable[[], Evaluations]) -> None:
        """Also judge the hub itself."""
        self._evaluations = evaluations

    def now_ms(self) -> int:
        """Return the present by the clock, for ages that clients compute."""
        return self._clock.now_ms()

    def fresh(self) -> Fresh:
        """Return how fresh the numbers are now."""
        return judge(self.observed())

    def servers(self) -> list[Part]:
        """Return Kafka and Redis as they answer this process: they write no heartbeat."""
        kafka_ms = self._clock.now_ms() - int(self._kafka.silent_s() * 1000)
        heard = (("kafka", kafka_ms), ("redis", self.batches.heard_ms))
        return [
            Part(name, "", at_ms, "ok", busy=None, flow=None, lag_ms=None, version="", detail={})
            for name, at_ms in heard
        ]

    def observed(self) -> Observed:
        """Return what is seen now."""
        now_s, now_ms = self._clock.monotonic_s(), self._clock.now_ms()
        panes, ingest = self.parts.named("panes"), self.parts.named("ingest")
        hub = self._evaluations() if self._evaluations else None
        overdue_s = hub.overdue_s if hub else None
        return Observed(
            now_ms=now_ms,
            processed_through_ms=self.batches.processed_through_ms,
            unmoved_ms=int((now_s - self.batches.moved_s) * 1000),
            since_ms=self.batches.moved_ms,
            redis_away_ms=self._redis_away_ms(now_ms),
            kafka_away_ms=_ms(self._kafka.away_s()),
            panes_age_ms=_age(panes, now_ms),
            panes_held=_held(self.batches),
            ingest_away_ms=self._ingest_away_ms(ingest, now_ms),
            ingest_stalled=bool(ingest) and all(part.status == "stalled" for part in ingest),
            hub_idle_ms=int((now_s - overdue_s) * 1000) if overdue_s is not None else 0,
            rebuilding=_rebuilding(self.batches),
            received_ms=_received(ingest, self.batches),
            evaluated_ms=hub.evaluated_ms if hub else None,
        )

    def _ingest_away_ms(self, ingest: list[Part], now_ms: int) -> int:
        well = (part.at_ms for part in ingest if part.status != "stalled")
        self._ingest_well_ms = max(self._ingest_well_ms, *well, 0)
        return max(0, now_ms - self._ingest_well_ms)

    def _redis_away_ms(self, now_ms: int) -> int | None:
        """Return for how long Redis has been silent; None while it answers.

        A read that hangs ends only after some seconds; until then its age tells.
        """
        silent_ms = max(0, now_ms - self.batches.heard_ms)
        return None if self.batches.reachable and silent_ms < SILENT_MS else silent_ms


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)


def _age(parts: list[Part], now_ms: int) -> int | None:
    return max(0, now_ms - parts[0].at_ms) if parts else None


def _held(batches: Batches) -> bool:
    return batches.newest is not None and batches.newest.held_by is not None


def _rebuilding(batches: Batches) -> float | None:
    return batches.recount.progress if batches.recount is not None else None


def _received(ingest: list[Part], batches: Batches) -> int | None:
    told: list[Any] = [part.detail.get("received_ms") for part in ingest]
    known = [ms for ms in told if isinstance(ms, int)]
    return max(known) if known else batches.processed_through_ms
