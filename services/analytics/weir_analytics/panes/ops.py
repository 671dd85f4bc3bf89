"""The ops port: `/livez`, `/readyz` and the figures of `/metrics`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from weir import metrics
from weir.commit import Verdict
from weir.problems import Reason

from weir_analytics.panes.cycle import Done
from weir_analytics.panes.kinds import DISPOSITIONS
from weir_analytics.panes.own import Process
from weir_analytics.panes.quarantine import OTHER
from weir_analytics.panes.vitals import Vitals

UNUSED = (Reason.VALUE_MISSING, Reason.VALUE_INVALID, Reason.VALUE_RANGE)
"""Why a metric cannot use an event."""


@dataclass
class Figures:
    """The figures of `/metrics`; their names are the public ones."""

    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        registry = self.registry
        self.events = Counter(
            metrics.PANES_EVENTS, "Events by disposition.", ["disposition"], registry=registry
        )
        self._quarantined = Counter(
            metrics.PANES_QUARANTINED,
            "Events that nobody could use, by reason.",
            ["reason"],
            registry=registry,
        )
        self._unused = Counter(
            metrics.PANES_VALUES_REFUSED,
            "How often a metric could not use an event that it matches, by reason.",
            ["reason"],
            registry=registry,
        )
        self._audited = Counter(
            metrics.PANES_AUDITED, "Panes that audits compared with the log.", registry=registry
        )
        self._mismatches = Counter(
            metrics.PANES_AUDIT_MISMATCHES,
            "Differences between panes and log that audits found.",
            registry=registry,
        )
        for reason in UNUSED:
            self._unused.labels(reason)
        for code in (*Reason, OTHER):
            self._quarantined.labels(code)
        self.ticks = Counter(metrics.PANES_TICKS, "Ticks read.", registry=registry)
        self._verdicts = Counter(
            metrics.PANES_VERDICTS,
            "What starts and batches found of the right to write, by verdict.",
            ["verdict"],
            registry=registry,
        )
        for verdict in Verdict:
            self._verdicts.labels(verdict.value)
        for disposition in DISPOSITIONS:
            self.events.labels(disposition)
        self.batch = Histogram(
            metrics.PANES_BATCH_SECONDS,
            "Time of a batch.",
            buckets=(0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30),
            registry=registry,
        )
        self.revision = Gauge(metrics.PANES_REVISION, "Revision of the epoch.", registry=registry)
        self.epoch = Gauge(metrics.PANES_EPOCH, "Epoch.", registry=registry)
        self.through = Gauge(
            metrics.PANES_PROCESSED_THROUGH,
            "Received time up to which all is counted.",
            registry=registry,
        )
        self.clock = Gauge(
            metrics.PANES_CLOCK_AHEAD,
            "The broker's clock minus this one.",
            registry=registry,
        )

        self.corrections = Counter(
            metrics.PANES_CORRECTIONS,
            "Series of final panes that late events changed.",
            registry=registry,
        )
        self.spans = Counter(
            metrics.PANES_SPANS,
            "Spans of panes that may have changed, told in place of too long a list.",
            registry=registry,
        )
        self.freshness = Histogram(
            metrics.PANES_FRESHNESS_SECONDS,
            "Age of processed-through when a batch is recorded.",
            buckets=(0.25, 0.5, 1, 1.5, 2, 3, 5, 10, 30, 120, 600),
            registry=registry,
        )

    def watch(self, vitals: Vitals) -> None:
        """Tell what the threads know of themselves, as it is when somebody asks."""
        for name, says, value in _WATCHED:
            gauge = Gauge(name, says, registry=self.registry)
            gauge.set_function(partial(value, vitals))
        memory = Gauge(metrics.PANES_RSS, _RSS, ["process"], registry=self.registry)
        for process in Process:
            told = partial(_resident, vitals, process)
            memory.labels(process.value).set_function(told)

    def found(self, verdict: Verdict) -> None:
        """Count what a start, or a batch, found."""
        self._verdicts.labels(verdict.value).inc()

    def audited(self, outcome: Mapping[str, Any]) -> None:
        """Count what an audit has compared; of another job's outcome nothing."""
        if "differences_in_all" in outcome:
            self._audited.inc(sum(metric["panes"] for metric in outcome["metrics"]))
            rows = len(outcome.get("ledger_differences", ()))
            self._mismatches.inc(outcome["differences_in_all"] + rows)

    def tell(self, done: Done, vitals: Vitals) -> None:
        """Take in a batch that is committed and recorded."""
        for disposition, n in done.outcome.events.items():
            self.events.labels(disposition).inc(n)
        for reason, n in done.outcome.reasons.items():
            self._quarantined.labels(reason).inc(n)
        for reason, n in done.outcome.unused.items():
            self._unused.labels(reason).inc(n)
        self.ticks.inc(done.record.ticks)
        self.corrections.inc(done.corrections)
        self.spans.inc(len(done.record.spans))
        record = done.record
        self.freshness.observe(max(0, record.at_ms - record.processed_through_ms) / 1000)
        self.found(Verdict.DONE if done.outcome.repeated else done.outcome.verdict)
        self._verdicts.labels(Verdict.RETRY.value).inc(done.outcome.retries)
        self.batch.observe(done.seconds)
        self.revision.set(done.record.rev)
        self.epoch.set(done.record.epoch)
        self.through.set(done.record.processed_through_ms / 1000)
        self.clock.set(vitals.clock_ahead_ms / 1000)


_RSS = (
    "Resident memory: of the driver, of its JVM, and of Python's workers together; what they share"
    " counts in each."
)


def _resident(vitals: Vitals, process: Process) -> float:
    return vitals.own.resident.get(process, 0)


def _seconds(ms: int | None) -> float:
    return math.inf if ms is None else ms / 1000


def _known(value: float | None) -> float:
    return math.nan if value is None else value


_WATCHED: tuple[tuple[str, str, Callable[[Vitals], float]], ...] = (
    (
        metrics.PANES_LAG,
        "Records not counted yet, as the log ends now: events, refused items and what came twice,"
        " but no ticks of this process; NaN: not known yet.",
        lambda vitals: _known(vitals.lag_records),
    ),
    (
        metrics.PANES_LOG_END,
        "Records that the log ever got, ticks among them: the sum of its ends.",
        lambda vitals: sum(vitals.log.ends.values()),
    ),
    (
        metrics.PANES_LOG_LEFT,
        "For how long the log still holds what is not counted; +Inf: for ever; NaN: not known yet.",
        lambda vitals: _seconds(vitals.log_left.ms) if vitals.log_left else math.nan,
    ),
    (
        metrics.PANES_LOG_KEPT,
        "For how long the log keeps what comes now; +Inf: for ever; NaN: not known yet.",
        lambda vitals: _seconds(vitals.log_left.kept_ms) if vitals.log_left else math.nan,
    ),
    (
        metrics.PANES_QUARANTINE_LEFT,
        "For how long quarantine still holds what no replay has looked into; +Inf: nothing waits, "
        "or for ever; NaN: not known yet.",
        lambda vitals: _seconds(vitals.quarantine_left.ms) if vitals.quarantine_left else math.nan,
    ),
    (
        metrics.PANES_QUARANTINE_KEPT,
        "For how long quarantine keeps what comes now; +Inf: nothing waits, or for ever; "
        "NaN: not known yet.",
        lambda vitals: (
            _seconds(vitals.quarantine_left.kept_ms) if vitals.quarantine_left else math.nan
        ),
    ),
    (
        metrics.PANES_THREADS,
        "Threads of the driver, its JVM and its workers.",
        lambda vitals: vitals.own.threads,
    ),
    (
        metrics.PANES_OPEN_FILES,
        "Files and sockets that all of them have open.",
        lambda vitals: vitals.own.open_files,
    ),
    (metrics.PANES_DEDUP, "Size of dedup's files.", lambda vitals: vitals.own.dedup_bytes),
    (
        metrics.PANES_DEDUP_ENTRIES,
        "Identities in the dedup runs.",
        lambda vitals: vitals.own.dedup_entries,
    ),
    (
        metrics.PANES_CHECKPOINT,
        "Files of the checkpoint.",
        lambda vitals: vitals.own.checkpoint_files,
    ),
)


class OpsServer:
    """Answers `/livez`, `/readyz` and `/metrics`."""

    def __init__(self, address: tuple[str, int], vitals: Vitals, figures: Figures) -> None:
        figures.watch(vitals)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, kind, body = answer(self.path, vitals, figures)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Log nothing: probes come every few seconds."""

        self._server = ThreadingHTTPServer(address, Handler)
        self.port: int = self._server.server_address[1]

    def run(self) -> None:
        """Serve until `close`."""
        self._server.serve_forever(poll_interval=1.0)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


def answer(path: str, vitals: Vitals, figures: Figures) -> tuple[int, str, bytes]:
    """Return status, content type and body of one request to the ops port.

    `/livez` fails only if a thread has died; being behind, or without Kafka, is no
    reason to be restarted.
    """
    if path == "/metrics":
        return 200, "text/plain; version=0.0.4; charset=utf-8", generate_latest(figures.registry)
    if path == "/livez":
        ok = vitals.failed is None
        return (200, "text/plain", b"ok\n") if ok else (503, "text/plain", b"a thread has died\n")
    if path == "/readyz":
        text = f"{vitals.doing}\n".encode()
        return (200, "text/plain", b"ok\n") if vitals.ready else (503, "text/plain", text)
    return 404, "text/plain", b"not found; /livez, /readyz or /metrics\n"
