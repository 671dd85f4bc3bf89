"""P3 and P3b: from the intended moment of a POST to the pane, the socket and the screen.

Open loop: event n is due at `start + n / rate`, and its latency counts from then, also if
the sender was late. While a background load runs through the same ingest, probes are
posted one a request. The board's tile counts probes over an hour, so the moment when it shows at
least n + 1 is the moment when probe n can be seen: no probe is looked up by name, none can
be missed. The live tail is matched by id.

The stack also gets as much as it takes: what it counts of that a second, on all cores and
with the sender and the browser on them, is the maximum that the loads are parts of. The bodies
are made beforehand, so that a sender costs what sending costs.

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
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
import httpx

sys.path.append(str(Path(__file__).parent.parent / "tests"))

import weblog
from account import LogRecord, records_of
from browser import signed_in
from weir.clock import SystemClock
from weir_local.testing import TestStack

if TYPE_CHECKING:
    from playwright.sync_api import Page

CLOCK = SystemClock()
SENDERS = 2
EVERY_S = 0.05
# Parts of the maximum at which latency is told.
SHARES = (0.5, 0.8)
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


@dataclass(frozen=True)
class Bodies:
    """Requests made beforehand, each with the same number of events, numbered from `first`."""

    first: int
    events: int
    texts: list[bytes]


class Supply:
    """Makes bodies of events that all differ; they happen when they arrive."""

    def __init__(self) -> None:
        self.made = 0

    def bodies(self, count: int, events: int) -> Bodies:
        """Return some requests."""
        first, texts = self.made, []
        for _ in range(count):
            numbers = range(self.made, self.made + events)
            texts.append("\n".join(map(self._event, numbers)).encode())
            self.made += events
        return Bodies(first, events, texts)

    @staticmethod
    def _event(n: int) -> str:
        data = f'{{"v":{n % 997 / 7:.3f},"group":"g{n % 20}","user":"u{n % 5003}"}}'
        return (
            f'{{"specversion":"1.0","id":"load-{n}","source":"/bench","type":"bench.load",'
            f'"data":{data}}}'
        )


def sender(stack: TestStack) -> httpx.Client:
    """Return a client that sends NDJSON to the stack's ingest."""
    headers = {"Authorization": f"Bearer {stack.key}", "Content-Type": "application/x-ndjson"}
    return httpx.Client(base_url=stack.ingest_url, headers=headers, timeout=30)


def post(client: httpx.Client, body: bytes) -> None:
    """Send a body until it is stored; what is refused for now comes again with the same ids."""
    while (answer := client.post("/v1/events", content=body)).status_code == 503:
        time.sleep(0.1)
    answer.raise_for_status()


class Background:
    """A steady load beside the probes: body n is due at `start + n * EVERY_S`."""

    def __init__(self, stack: TestStack, bodies: Bodies) -> None:
        self.sent = 0
        self.start_ms = 0.0
        self._stack, self._bodies = stack, bodies
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
        self.start_ms, began = CLOCK.now_ms(), time.monotonic()
        with sender(self._stack) as client:
            for n, body in enumerate(self._bodies.texts):
                if self._stop.wait(max(0.0, began + n * EVERY_S - time.monotonic())):
                    return
                post(client, body)
                self.sent += self._bodies.events

    def due_ms(self, name: str) -> float | None:
        """Return when an event of the load was due; None of one that was not sent by it."""
        kind, _, digits = name.partition("-")
        number = int(digits) - self._bodies.first
        within = kind == "load" and 0 <= number < self.sent
        return self.start_ms + number // self._bodies.events * EVERY_S * 1000 if within else None


def saturate(stack: TestStack, bodies: Bodies, since_ms: int, total: int) -> int:
    """Return how many events a second the whole stack counts when it gets all it takes.

    Args:
        stack: The stack.
        bodies: What to send.
        since_ms: From when on events are counted, epoch milliseconds.
        total: How many there must be in the end, with those before.
    """
    left, taken = iter(bodies.texts), threading.Lock()

    def run() -> None:
        with sender(stack) as client:
            while True:
                with taken:
                    body = next(left, None)
                if body is None:
                    return
                post(client, body)

    began = time.monotonic()
    threads = [threading.Thread(target=run) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    harness.await_counted(stack, "background", since_ms=since_ms, sent=total, timeout_s=300)
    return round(len(bodies.texts) * bodies.events / (time.monotonic() - began))


def tail_times(stack: TestStack, until: threading.Event, seen: dict[str, float]) -> None:
    """Note when each event reaches a client of the live tail, as raw websocket frames."""
    from websockets.sync.client import connect

    url = stack.dashboard_url.replace("http", "ws") + "/api/v1/live"
    with connect(url, subprotocols=["weir.v1"]) as socket:  # type: ignore[list-item]
        socket.send(json.dumps({"op": "hello", "v": 1, "auth": stack.key}))
        for n, kind in enumerate(("bench.probe", "bench.load"), 1):
            ask = {"op": "subscribe", "id": n, "to": "tail", "filter": {"type": kind}}
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


@dataclass
class Run:
    """The phases on one stack: what was sent so far, and what the tail has shown."""

    stack: TestStack
    options: argparse.Namespace
    supply: Supply = field(default_factory=Supply)
    began_ms: int = field(default_factory=CLOCK.now_ms)
    background: int = 0
    probes: int = 0
    tail: dict[str, float] = field(default_factory=dict)

    def maximum(self) -> int:
        """Return what the stack counts a second of as much as it takes."""
        bodies = self.supply.bodies(self.options.saturate // 1000, 1000)
        self.background += len(bodies.texts) * bodies.events
        return saturate(self.stack, bodies, self.began_ms, self.background)

    def beside(self, page: Page, load: float) -> dict[str, Any]:
        """Return the latencies of probes beside a load, in milliseconds.

        Raises:
            RuntimeError: If an event was not counted, or the screen did not show a probe.
        """
        options, size = self.options, max(1, round(load * EVERY_S))
        seconds = options.warm_s + options.probes / options.rate + 30
        background = Background(self.stack, self.supply.bodies(int(seconds / EVERY_S), size))
        warm = int(options.warm_s * 5)
        send_probes(self.stack, first=self.probes, count=warm, rate=5)
        self.probes += warm
        page.evaluate(WATCH_TILE)
        due = send_probes(self.stack, first=self.probes, count=options.probes, rate=options.rate)
        # Not the page's own waiting: that evaluates text, which the policy refuses.
        reached = f"window.seen.at(-1)?.[1] >= {self.probes + options.probes}"
        self.stack.wait_until(lambda: page.evaluate(reached), "the last probe on the screen")
        drawn: list[tuple[float, int]] = page.evaluate("window.seen")
        background.stop()
        self.background += background.sent
        first, self.probes = self.probes, self.probes + options.probes
        for metric, count in (("probes", self.probes), ("background", self.background)):
            harness.await_counted(self.stack, metric, since_ms=self.began_ms, sent=count)
        values = [value for _at, value in drawn]
        check_shown(values, self.probes)
        pixel = [drawn[bisect_left(values, first + n + 1)][0] - at for n, at in enumerate(due)]
        tailed = [
            at - due_ms
            for name, at in self.tail.items()
            if (due_ms := background.due_ms(name)) is not None
        ]
        return {
            "load_per_s": round(size / EVERY_S),
            "pixel_ms": harness.spread(pixel),
            "tail_ms": harness.spread(tailed),
            "tail_seen": len(tailed),
        }


def measure(stack: TestStack, options: argparse.Namespace) -> dict[str, Any]:
    """Run all phases against a warm stack.

    Raises:
        RuntimeError: If an event was not counted, or a sampled probe was not seen.
    """
    run, stop = Run(stack, options), threading.Event()
    reader = threading.Thread(target=tail_times, args=(stack, stop, run.tail), daemon=True)
    reader.start()
    with signed_in(stack) as (page, complaints):
        page.goto("/".join(page.url.split("/")[:3]) + "/b/bench")
        page.get_by_test_id("tile").first.wait_for()
        # First, since a cold engine has no maximum worth the name.
        found = {"light": run.beside(page, options.light)}
        maximum = run.maximum()
        for share in SHARES:
            found[f"{share:.0%}"] = run.beside(page, maximum * share)
        if complaints.texts:
            raise RuntimeError(str(complaints.texts))
    stop.set()
    reader.join(5)
    check_tail(sampled(records_of(stack.kafka_bootstrap)), run.tail.keys())
    return {
        "maximum_per_s": maximum,
        "loads": found,
        "notes": [
            f"all {run.probes} probes and all {run.background} events beside them were "
            "counted, and the tile ended at that very number of probes",
            "the tail is of at most 50 events/s a tenant, chosen before they are stored by the "
            "moment of arrival alone: every probe that was chosen was seen; the latency is that "
            "of the load's events, from when their request was due",
            "the maximum is that of all parts, the sender and the browser on the same cores",
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


def sampled(log: Iterable[LogRecord]) -> set[str]:
    """Return the ids of the events that ingest chose for the tail, as the log says."""
    return {json.loads(r.value)["id"] for r in log if r.value and "weir-tail" in r.headers}


def check_tail(chosen: Set[str], seen: Set[str]) -> None:
    """Do nothing if the tail showed what ingest chose: every probe, and nothing else.

    A subscription shows 20 events a second: more than there are probes, and fewer than
    are chosen of a load.

    Raises:
        RuntimeError: If not; says which.
    """
    missing = {name for name in chosen - seen if name.startswith("probe-")}
    if differs := missing | (seen - chosen):
        msg = f"the tail must show each chosen probe, differs in {sorted(differs)[:5]}"
        raise RuntimeError(msg)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--light", type=float, default=1000, help="events a second, a light load")
    parser.add_argument("--saturate", type=int, default=1_000_000, help="events for the maximum")
    parser.add_argument("--rate", type=float, default=10, help="probes a second")
    parser.add_argument("--probes", type=int, default=400)
    parser.add_argument("--warm-s", type=float, default=30)
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
            stack.wait_until(lambda: stack.api("GET", progress).body["serving"])
            figures = measure(stack, options)
        finally:
            stack.stop()
    figures["bars"] = bars(figures["loads"])
    path = harness.write("latency", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


def bars(loads: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was to be reached, beside what was: the bar is set at half load."""
    found: list[dict[str, Any]] = []
    for name, one in loads.items():
        pixel, tail, load = one["pixel_ms"], one["tail_ms"], f"{one['load_per_s']} events/s"
        at = f"{name} load, {load}" if name == "light" else f"{name} of the maximum, {load}"
        bar = name == "50%"
        found += [
            {
                "id": "P3",
                "what": f"event to pixel at {at}",
                "reach": "p50 < 800 ms, p99 < 1500 ms (record 500, 1000)" if bar else "",
                "got": f"p50 {pixel['p50']} ms, p99 {pixel['p99']} ms",
            },
            {
                "id": "P3b",
                "what": f"event to the live tail at {at}",
                "reach": "p99 < 250 ms (record 100)" if bar else "",
                "got": f"p99 {tail['p99']} ms (of {one['tail_seen']} events)",
            },
        ]
    return found


if __name__ == "__main__":
    main()
