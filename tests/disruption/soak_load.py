"""What a soak sends, and the metric that it edits while that is counted."""

from __future__ import annotations

import time
from typing import Any

import weblog
from disruption.rig import PACE
from disruption.scene import Scene
from load import TYPE, Load
from recount import MetricSpec
from weir.clock import SystemClock

CELLS = 40
# Ingest takes 1,000 events in a batch; a few that cannot be used come with each.
MOST_OF_A_BATCH = 900
PANE_MS = 1_000
KEEP_MS = 6 * 3_600_000
# Redis keeps a pane for a day beyond its `keep`.
FULL_MIN = 60 * (6 + 24 + 1)
# So short that dedup is full within half an hour; no item is sent again so much later.
HORIZON_MS = 600_000
SPEC = MetricSpec("soak", TYPE, ("cell",), value=lambda event: float(event["data"]["n"]))
AGGREGATES = ("[count, sum, min, max]", "[count, sum, min, max, avg]")
DEFINITION = f"""
kind: metric
name: soak
events: {{type: {TYPE}}}
value: data.n
by: [data.cell]
aggregates: %s
resolution: 1s
keep: {{1s: 6h}}
max_series: 100
"""


class SoakLoad(Load):
    """A load that also counts its items, those that cannot be used among them, and has bursts.

    Attributes:
        items, accepted, resent: Items sent at least once, answered 2xx, sent once more.
    """

    items = accepted = resent = 0
    # Until when, and what is sent then: the size of a batch, and how often.
    _burst: tuple[float, int, float] = (0.0, 0, 0.0)
    _usual_s: float | None = None

    def burst(self, seconds: float, per_s: int) -> None:
        """Send so many events a second for so long, in batches that ingest takes."""
        batch = min(MOST_OF_A_BATCH, per_s)
        self._burst = time.monotonic() + seconds, batch, batch / per_s

    def told(self) -> dict[str, int]:
        """Return what of all items is known as of now, as a line and the summary tell it.

        Of the batch under way nobody knows yet; at the end there is none.
        """
        return {
            "sent": self.items,
            "accepted": self.accepted,
            "refused": len(self.refusals),
            "unknown": self.items - self.accepted,
            "resent": self.resent,
        }

    def events(self, first: int) -> list[dict[str, Any]]:
        """Return the batch that begins with event `first`."""
        until_s, count, every_s = self._burst
        if self._usual_s is None:
            self._usual_s = self.every_s
        if time.monotonic() >= until_s:
            count, every_s = self.batch, self._usual_s
        self.every_s = every_s
        now = weblog.iso(SystemClock().now_ms())
        return [self.event(n, now) for n in range(first, first + count)]

    def event(self, n: int, time_text: str) -> dict[str, Any]:
        """Return event n; it has a cell besides."""
        event = super().event(n, time_text)
        event["data"]["cell"] = f"c{n % CELLS}"
        return event

    def _until_stored(self, batch: list[dict[str, Any]]) -> bool:
        self.items += len(batch)
        before = len(self.refusals)
        is_stored = super()._until_stored(batch)
        self.resent += len(batch) * (len(self.refusals) - before)
        self.accepted += len(batch) if is_stored else 0
        return is_stored


def define(here: Scene, version: int) -> int:
    """Put a version of the metric; return its number."""
    text = DEFINITION % AGGREGATES[version % len(AGGREGATES)]
    rig = here.rig
    if version == 1:
        rig.define("metric", "soak", text)
        path = "/definitions/metric/soak/progress"
        rig.wait_until(lambda: rig.api("GET", path).body["serving"], "the metric", 60 * PACE)
        return 1
    current = rig.api("GET", "/definitions/metric/soak").headers["etag"]
    rig.api("PUT", "/definitions/metric/soak", {"text": text}, {"If-Match": current})
    return version
