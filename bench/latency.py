"""P3 and P3b: from the intended moment of a POST to the pane, the socket and the screen.

Open loop: event n is due at `start + n / rate`, and its latency counts from then, also if
the sender was late. While a background load runs through the same ingest, probes are
posted one a request. The board's tile counts probes over an hour, so the moment when it shows at
least n + 1 is the moment when probe n can be seen: no probe is looked up by name, none can
be missed. The live tail is matched by id.

Runs a stack of its own in a temporary folder; nothing of a running one is touched.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Set
from pathlib import Path
from typing import Any

import harness

sys.path.append(str(Path(__file__).parent.parent / "tests"))

import weblog
from account import LogRecord, read_log
from browser import signed_in
from weir.clock import SystemClock
from weir_local.testing import TestStack

CLOCK = SystemClock()
METRIC = """
kind: metric
name: probes
events: {type: bench.probe}
aggregates: [count]
resolution: 1s
keep: {1s: 6h}
"""
LOAD_METRIC = """
kind: metric
name: background
events: {type: bench.load}
value: data.v
by: [data.group]
aggregates: [count, avg, p95, distinct(data.user)]
resolution: 10s
"""
BOARD = """
kind: board
name: bench
title: Bench
tiles:
  - {type: number, title: Probes, size: S, metric: probes, aggregate: count, window: {length: 1h}}
"""
# What the page notes: each new number at the frame in which it is drawn, and each probe's
# row in the tail. The page's clock is this machine's.
WATCH_TILE = """() => {
  window.seen = [];
  const look = () => {
    const value = Number(document.querySelector('[data-testid=tile-value]')?.dataset.value || 0);
    const last = window.seen.at(-1);
    if (!last || last[1] !== value) window.seen.push([Date.now(), value]);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""


def event(type_: str, name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return a CloudEvent that happens now."""
    return {
        "specversion": "1.0",
        "id": name,
        "source": "/bench",
        "type": type_,
        "time": weblog.iso(CLOCK.now_ms()),
        "data": data,
    }


class Background:
    """A steady load beside the probes, in batches every 50 ms."""

    def __init__(self, stack: TestStack, rate: float) -> None:
        self.sent = 0
        self._stack, self._rate = stack, rate
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop and wait.

        Raises:
            RuntimeError: If it did not last until now.
        """
        ended = not self._thread.is_alive()
        self._stop.set()
        self._thread.join(30)
        if ended:
            msg = f"the load beside the probes must last, ended after {self.sent} events"
            raise RuntimeError(msg)

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(0.05):
            due = int((time.monotonic() - began) * self._rate) - self.sent
            batch = [self._event(self.sent + i) for i in range(min(due, 1000))]
            if batch:
                weblog.post(self._stack.ingest_url, self._stack.key, batch)
            self.sent += len(batch)

    def _event(self, n: int) -> dict[str, Any]:
        data = {"v": n % 997 / 7, "group": f"g{n % 20}", "user": f"u{n % 5003}"}
        return event("bench.load", f"load-{n}", data)


def tail_times(stack: TestStack, until: threading.Event, seen: dict[str, float]) -> None:
    """Note when each probe reaches a client of the live tail, as raw websocket frames."""
    from websockets.sync.client import connect

    url = stack.dashboard_url.replace("http", "ws") + "/api/v1/live"
    with connect(url, subprotocols=["weir.v1"]) as socket:  # type: ignore[list-item]
        socket.send(json.dumps({"op": "hello", "v": 1, "auth": stack.key}))
        ask = {"op": "subscribe", "id": 1, "to": "tail", "filter": {"type": "bench.probe"}}
        socket.send(json.dumps(ask))
        while not until.is_set():
            try:
                frame = json.loads(socket.recv(timeout=1))
            except TimeoutError:
                continue
            now = CLOCK.now_ms()
            for item in frame.get("events", ()):
                seen.setdefault(item["id"], now)


def send_probes(stack: TestStack, *, first: int, count: int, rate: float) -> list[float]:
    """Post probes on their schedule; return when each was due, epoch milliseconds."""
    start_ms = CLOCK.now_ms() + 200
    due = [start_ms + n / rate * 1000 for n in range(count)]
    for n, due_ms in enumerate(due):
        time.sleep(max(0.0, (due_ms - CLOCK.now_ms()) / 1000))
        weblog.post(stack.ingest_url, stack.key, [event("bench.probe", f"probe-{first + n}", {})])
    return due


def measure(stack: TestStack, options: argparse.Namespace) -> dict[str, Any]:
    """Run the probes against a warm stack; return latencies in milliseconds.

    Raises:
        RuntimeError: If an event was not counted, or a sampled probe was not seen.
    """
    began_ms = CLOCK.now_ms()
    stop = threading.Event()
    tail: dict[str, float] = {}
    reader = threading.Thread(target=tail_times, args=(stack, stop, tail), daemon=True)
    reader.start()
    background = Background(stack, options.load)
    with signed_in(stack) as (page, complaints):
        page.goto("/".join(page.url.split("/")[:3]) + "/b/bench")
        page.get_by_test_id("tile").first.wait_for()
        warm = int(options.warm_s * 5)
        send_probes(stack, first=0, count=warm, rate=5)
        page.evaluate(WATCH_TILE)
        due = send_probes(stack, first=warm, count=options.probes, rate=options.rate)
        # Not the page's own waiting: that evaluates text, which the policy refuses.
        reached = f"window.seen.at(-1)?.[1] >= {warm + options.probes}"
        stack.wait_until(lambda: page.evaluate(reached), "the last probe on the screen")
        drawn: list[tuple[float, int]] = page.evaluate("window.seen")
        if complaints.texts:
            raise RuntimeError(str(complaints.texts))
    stop.set()
    background.stop()
    reader.join(5)
    sent = {"probes": warm + options.probes, "background": background.sent}
    for metric, count in sent.items():
        harness.await_counted(stack, metric, since_ms=began_ms, sent=count)
    values = [value for _at, value in drawn]
    check_shown(values, sent["probes"])
    chosen = sampled(read_log(stack.kafka_bootstrap))
    check_tail(chosen, tail.keys())
    pixel = [drawn[bisect_left(values, warm + n + 1)][0] - at for n, at in enumerate(due)]
    tailed = [
        tail[f"probe-{warm + n}"] - at for n, at in enumerate(due) if f"probe-{warm + n}" in tail
    ]
    return {
        "pixel_ms": harness.spread(pixel),
        "tail_ms": harness.spread(tailed),
        "tail_seen": len(tailed),
        "probes": len(due),
        "background_sent": background.sent,
        "final_value": values[-1],
        "notes": [
            f"all {sent['probes']} probes and all {sent['background']} events beside them were "
            "counted, and the tile ended at that very number of probes",
            f"the tail shows at most 50 events/s a tenant, chosen before they are stored: "
            f"{len(tailed)} of {len(due)} probes were chosen, and all of those were seen. The "
            "choice goes by the moment of arrival alone, so it does not favor fast ones",
        ],
    }


def check_shown(values: list[int], probes: int) -> None:
    """Do nothing if the tile only grew, and ended at the number of probes.

    Raises:
        RuntimeError: If not; says what it showed.
    """
    if values != sorted(values) or values[-1] != probes:
        msg = f"the tile must grow to {probes}, showed {values[-5:]} at the end"
        raise RuntimeError(msg)


def sampled(log: list[LogRecord]) -> set[str]:
    """Return the ids of the probes that ingest chose for the tail, as the log says."""
    marked = [json.loads(r.value) for r in log if r.value and "weir-tail" in r.headers]
    return {one["id"] for one in marked if one["type"] == "bench.probe"}


def check_tail(chosen: Set[str], seen: Set[str]) -> None:
    """Do nothing if exactly the probes that were chosen for the tail were seen there.

    Raises:
        RuntimeError: If not; says which.
    """
    if chosen != seen:
        msg = f"the tail must show each chosen probe, differs in {sorted(chosen ^ seen)[:5]}"
        raise RuntimeError(msg)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=float, default=1000, help="background events a second")
    parser.add_argument("--rate", type=float, default=10, help="probes a second")
    parser.add_argument("--probes", type=int, default=600)
    parser.add_argument("--warm-s", type=float, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        stack = TestStack(Path(folder))
        stack.start()
        try:
            for kind, name, text in (
                ("metric", "probes", METRIC),
                ("metric", "background", LOAD_METRIC),
                ("board", "bench", BOARD),
            ):
                stack.define(kind, name, text)
            progress = "/definitions/metric/probes/progress"
            stack.wait_until(lambda: stack.api("GET", progress).body["active"])
            figures = measure(stack, options)
        finally:
            stack.stop()
    pixel, tail = figures["pixel_ms"], figures["tail_ms"]
    figures["bars"] = [
        {
            "id": "P3",
            "what": f"event to pixel, {options.load:g} events/s beside it",
            "reach": "p50 < 800 ms, p99 < 1500 ms",
            "got": f"p50 {pixel['p50']} ms, p99 {pixel['p99']} ms",
        },
        {
            "id": "P3b",
            "what": "event to the live tail",
            "reach": "p99 < 250 ms",
            "got": f"p99 {tail['p99']} ms (of {figures['tail_seen']} probes)",
        },
    ]
    path = harness.write("latency", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
