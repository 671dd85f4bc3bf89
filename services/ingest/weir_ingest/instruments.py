"""The metrics of ingest, with their labels made once: a look-up costs more than a count."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.registry import REGISTRY
from weir import metrics
from weir.problems import Reason

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Instruments:
    """Everything that ingest counts."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.registry = registry
        self._requests = Counter(
            metrics.INGEST_REQUESTS, "Requests answered", ["status"], registry=registry
        )
        self._refused = Counter(
            metrics.INGEST_REFUSED,
            "Requests refused and items quarantined",
            ["code"],
            registry=registry,
        )
        events = Counter(
            metrics.INGEST_EVENTS, "Items acknowledged by Kafka", ["outcome"], registry=registry
        )
        self._accepted = events.labels("accepted")
        self._quarantined = events.labels("quarantined")
        self.body_bytes = Counter(metrics.INGEST_BODY_BYTES, "Bytes read", registry=registry)
        self.in_flight = Gauge(metrics.INGEST_IN_FLIGHT_BYTES, "Bytes held", registry=registry)
        self.unacknowledged = Gauge(
            metrics.INGEST_UNACKNOWLEDGED, "Records without acknowledgement", registry=registry
        )
        self.delivery_seconds = Histogram(
            metrics.INGEST_DELIVERY_SECONDS,
            "From the first record of a request to its last acknowledgement",
            buckets=_SECONDS,
            registry=registry,
        )
        self.delivery_failures = Counter(
            metrics.INGEST_DELIVERY_FAILURES,
            "Records of requests that Kafka refused, or did not acknowledge in time",
            registry=registry,
        )
        self.tail_events = Counter(
            metrics.INGEST_TAIL_EVENTS, "Events sampled for the live tail", registry=registry
        )
        self.threads = Gauge(metrics.INGEST_THREADS, "Threads of the process", registry=registry)
        self.keys = Gauge(metrics.INGEST_KEYS, "API keys known", registry=registry)
        self.events_accepted = 0
        self.received_ms: int | None = None
        self._by_status = {n: self._requests.labels(str(n)) for n in (200, 400, 401, 503)}
        self._by_code = {reason: self._refused.labels(reason.value) for reason in Reason}

    def stored(self, accepted: int, quarantined: int, arrived_ms: int) -> None:
        """Count a request's items once Kafka has them, and note when the newest arrived."""
        if accepted:
            self.received_ms = max(arrived_ms, self.received_ms or 0)
        self.events_accepted += accepted
        self._accepted.inc(accepted)
        self._quarantined.inc(quarantined)

    def answered(self, status: int) -> None:
        """Count an answer."""
        counter = self._by_status.get(status)
        (counter or self._requests.labels(str(status))).inc()

    def refused(self, reason: Reason) -> None:
        """Count a refusal, of a request or of one item."""
        self._by_code[reason].inc()
