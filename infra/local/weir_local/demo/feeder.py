"""The feeder: sends what is due, remembers how far it got, waits when it must.

On a retry the same ids are sent again and count once. After a crash the last batch
may be sent twice, for the same reason without effect. What the API refuses for good
ends the feeder with the reason.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from weir.clock import Clock

from weir_local.client import ApiClient
from weir_local.demo.accesslog import Request
from weir_local.demo.machine import Counters, gauges, rates, read_counters
from weir_local.demo.schedule import PASS_MS, Cursor, Due, Schedule

BATCH = 500
# Samples that wait while ingest is away: ten minutes. The oldest are given up first.
MOST_SAMPLES = 600


@dataclass
class Progress:
    """What the feeder remembers in a file: when it began, and how far it got."""

    path: Path
    started_ms: int
    cursor: Cursor

    @classmethod
    def read(cls, path: Path, now_ms: int) -> Progress:
        """Return what was saved, or a beginning now."""
        try:
            saved = json.loads(path.read_text())
            return cls(path, saved["started_ms"], Cursor(**saved["cursor"]))
        except (OSError, ValueError, KeyError, TypeError):
            return cls(path, now_ms, Cursor())

    def save(self) -> None:
        """Write the file anew, in one step."""
        partial = self.path.with_suffix(".new")
        partial.write_text(
            json.dumps({"started_ms": self.started_ms, "cursor": asdict(self.cursor)})
        )
        partial.replace(self.path)


@dataclass
class WebRequests:
    """The access log, again and again."""

    requests: list[Request]
    schedule: Schedule
    progress: Progress

    def send(
        self, client: ApiClient, now_ms: int, stopping: Callable[[], bool] = lambda: False
    ) -> int:
        """Send what is due, batch after batch until `stopping`; return how many events.

        Raises:
            TimeoutError: If ingest is away for longer than the client's patience.
        """
        progress = self.progress
        progress.cursor = self.schedule.not_before(progress.cursor, now_ms - PASS_MS)
        sent = 0
        while not stopping() and (due := self.schedule.due(progress.cursor, now_ms, BATCH)):
            client.post_events([self._event(line) for line in due])
            progress.cursor = self.schedule.after(progress.cursor, len(due))
            progress.save()
            sent += len(due)
        return sent

    def _event(self, due: Due) -> dict[str, Any]:
        return event(
            f"web-{self.progress.started_ms:x}-{due.round}-{due.line}",
            "web.request",
            due.time_ms,
            self.requests[due.line].data,
        )


@dataclass
class MachineSamples:
    """This machine's figures; kept for a while if they cannot be sent."""

    run_id: str
    waiting: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    _before: Counters | None = None
    _taken: int = 0

    def take(self, clock: Clock) -> None:
        """Take one sample; the first call only reads the counters to compare with."""
        now = read_counters(clock.monotonic_s())
        figures = gauges()
        if self._before is not None:
            data = {**figures, **rates(self._before, now)}
            self._taken += 1
            name = f"machine-{self.run_id}-{self._taken}"
            self.waiting.append(event(name, "machine.sample", clock.now_ms(), data))
        self._before = now

    def send(self, client: ApiClient) -> None:
        """Send what waits; what cannot be sent goes on waiting."""
        if self.waiting:
            batch = list(self.waiting)
            client.post_events(batch)
            self.waiting.clear()


def event(name: str, kind: str, time_ms: int, data: dict[str, Any]) -> dict[str, Any]:
    """Return a CloudEvent of the demo."""
    return {
        "specversion": "1.0",
        "id": name,
        "source": "urn:weir:demo",
        "type": kind,
        "time": iso(time_ms),
        "data": data,
    }


def iso(time_ms: int) -> str:
    """Return an instant as RFC 3339 in UTC with milliseconds."""
    at = datetime.fromtimestamp(time_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
