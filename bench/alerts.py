"""Alert latency: from the intended moment of the event that crosses a limit to the webhook.

Each probe is an event of a group of its own, and the rule fires for each group that has any
event in a window of a second: so every probe crosses a line and is told by a message of its
own. Open loop: probe n is due at `start + n / rate`, and its latency counts from then. It
contains what is left of its window, since a window is looked at when it has ended.

Beside a light load and beside half of what the whole stack takes; how that is found, and
the loads, are those of `latency.py`. Runs a stack of its own in a temporary folder.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness
from latency import CLOCK, EVERY_S, LOAD_METRIC, Background, Supply, event, saturate

sys.path.extend(str(Path(__file__).parent.parent / "tests" / name) for name in ("", "shared"))

import weblog
from alerts_job import SECRET, Receiver
from weir_local.testing import TestStack

METRIC = """
kind: metric
name: crossings
events: {type: bench.crossing}
by: [data.n]
aggregates: [count]
resolution: 1s
keep: {1s: 6h}
allowed_lateness: 2s
"""
RULE = """
kind: rule
name: crossed
metric: crossings
aggregate: count
window: 1s
by: [n]
above: 0
no_data: {tell_after: 10s, end_after: 30s}
route: {channels: [bench]}
"""
CHANNEL = """
kind: channel
name: bench
webhook: {{url: "{url}", secret: "secret://bench_hook"}}
"""


def cross(stack: TestStack, *, first: int, count: int, rate: float) -> dict[str, float]:
    """Post probes on their schedule; return when each was due, epoch milliseconds."""
    start_ms = CLOCK.now_ms() + 200
    due = {f"p{first + n}": start_ms + n / rate * 1000 for n in range(count)}
    for name, due_ms in due.items():
        time.sleep(max(0.0, (due_ms - CLOCK.now_ms()) / 1000))
        weblog.post(stack.ingest_url, stack.key, [event("bench.crossing", name, {"n": name})])
    return due


def told(receiver: Receiver, kind: str) -> dict[str, int]:
    """Return when each probe was first told so."""
    found: dict[str, int] = {}
    for body, at_ms in zip(receiver.bodies, receiver.at_ms, strict=True):
        if body["kind"] == kind:
            found.setdefault(body["labels"]["n"], at_ms)
    return found


class Run:
    """The phases on one stack."""

    def __init__(self, stack: TestStack, receiver: Receiver, options: argparse.Namespace) -> None:
        self._stack, self._receiver, self._options = stack, receiver, options
        self._supply, self._began_ms = Supply(), CLOCK.now_ms()
        self._background = self._probes = 0

    def maximum(self) -> int:
        """Return what the stack counts a second of as much as it takes."""
        bodies = self._supply.bodies(self._options.saturate // 1000, 1000)
        self._background += len(bodies.texts) * bodies.events
        return saturate(self._stack, bodies, self._began_ms, self._background)

    def beside(self, load: float) -> dict[str, Any]:
        """Return the latencies of alerts beside a load, in milliseconds.

        Raises:
            TimeoutError: If a probe was not told, or its end was not.
        """
        options, size = self._options, max(1, round(load * EVERY_S))
        seconds = options.warm_s + options.probes / options.rate + 60
        background = Background(self._stack, self._supply.bodies(int(seconds / EVERY_S), size))
        warm = int(options.warm_s * 2)
        self._cross(warm, 2)
        due = self._cross(options.probes, options.rate)
        for kind in ("firing", "resolved"):
            self._stack.wait_until(
                lambda kind=kind: due.keys() <= told(self._receiver, kind).keys(),  # type: ignore[misc]
                f"every probe {kind}",
                60,
            )
        background.stop()
        self._background += background.sent
        at_ms = told(self._receiver, "firing")
        return {
            "load_per_s": round(size / EVERY_S),
            "alert_ms": harness.spread([at_ms[name] - due_ms for name, due_ms in due.items()]),
            "probes": len(due),
        }

    def _cross(self, count: int, rate: float) -> dict[str, float]:
        due = cross(self._stack, first=self._probes, count=count, rate=rate)
        self._probes += count
        return due


def measure(stack: TestStack, receiver: Receiver, options: argparse.Namespace) -> dict[str, Any]:
    """Run the phases against a warm stack."""
    run = Run(stack, receiver, options)
    # First, since a cold engine has no maximum worth the name.
    loads = {"light": run.beside(options.light)}
    maximum = run.maximum()
    loads["50%"] = run.beside(maximum * 0.5)
    kinds = [body["kind"] for body in receiver.bodies]
    if receiver.forged or set(kinds) != {"firing", "resolved"}:
        msg = f"the receiver must get firing and resolved, got {sorted(set(kinds))}"
        raise RuntimeError(msg)
    return {
        "maximum_per_s": maximum,
        "loads": loads,
        "messages": len(kinds),
        "notes": [
            "every probe fired and was resolved; each message was verified by its signature",
            "half a second of it, in the mean, is what is left of the probe's window of 1 s",
        ],
        "bars": [
            {
                "id": "alert",
                "what": f"event to webhook beside {one['load_per_s']} events/s ({name})",
                "reach": "p99 < 3000 ms" if name == "50%" else "",
                "got": f"p50 {one['alert_ms']['p50']} ms, p99 {one['alert_ms']['p99']} ms",
            }
            for name, one in loads.items()
        ],
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--light", type=float, default=1000, help="events a second, a light load")
    parser.add_argument("--saturate", type=int, default=1_000_000, help="events for the maximum")
    parser.add_argument("--rate", type=float, default=5, help="probes a second")
    parser.add_argument("--probes", type=int, default=300)
    parser.add_argument("--warm-s", type=float, default=20)
    options = parser.parse_args()
    receiver = Receiver()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        stack = TestStack(Path(folder))
        stack.start()
        try:
            (stack.home.secrets / "bench_hook").write_text(SECRET)
            for kind, name, text in (
                ("metric", "crossings", METRIC),
                ("metric", "background", LOAD_METRIC),
                ("channel", "bench", CHANNEL.format(url=receiver.url)),
                ("rule", "crossed", RULE),
            ):
                stack.define(kind, name, text)
            progress = "/definitions/metric/crossings/progress"
            stack.wait_until(lambda: stack.api("GET", progress).body["serving"])
            # Windows that began before the metric was counted say nothing.
            time.sleep(5)
            figures = measure(stack, receiver, options)
        finally:
            stack.stop()
            receiver.close()
    path = harness.write("alerts", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
