"""Tenants apart: what one tenant sees alone, and beside one that sends a million series.

The quiet tenant sends a hundred events a second. Beside it the noisy one sends at its quota,
each event a series of its own, counted by a metric that keeps as much as a definition may.
How fresh the quiet tenant's numbers are is how long after an answer of ingest the served
numbers are past that moment. Both runs compare every pane of the quiet tenant with what was
sent, and the noisy tenant's total with what was accepted of it.

Runs a stack of its own for each, in a temporary folder; nothing of a running one is touched.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import secrets
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import harness
import httpx
from confluent_kafka import Producer
from weir import names
from weir.clock import SystemClock
from weir.definitions.records import Edit, put_record
from weir_local.client import ApiClient
from weir_local.testing import TestStack

CLOCK = SystemClock()
NOISY = "noisy"
SERIES = 1_000_000
QUIET_EVERY_S, QUIET_EVENTS = 0.1, 10
BODY = 1_000
LOOK_S = 0.05
PANE_MS = 10_000
QUIET_METRIC = """
kind: metric
name: quiet
events: {type: bench.quiet}
value: data.v
by: [data.group]
aggregates: [count, sum, p95]
resolution: 10s
"""
# What the panes of one definition may weigh is bounded: `keep` is the longest that fits.
NOISY_METRIC = """
kind: metric
name: noisy
events: {type: bench.noisy}
value: data.v
by: [data.user]
aggregates: [count, sum, p95, distinct(data.item)]
keep: {10s: 1d}
"""


@dataclass
class Looks:
    """When the served numbers were seen to be past which moment."""

    stack: TestStack
    at_ms: list[int] = field(default_factory=list)
    through_ms: list[int] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            fresh = self.stack.api("GET", "/status").body["fresh"]
            self.at_ms.append(CLOCK.now_ms())
            self.through_ms.append(int(fresh["processed_through_ms"] or 0))

    def age_ms(self, answered_ms: int) -> float:
        """Return how long after a moment the numbers were seen to be past it."""
        at = bisect_left(self.through_ms, answered_ms)
        return self.at_ms[at] - answered_ms

    def stop(self) -> None:
        """Stop once the last moment is past."""
        now_ms = CLOCK.now_ms()
        self.stack.wait_until(
            lambda: bool(self.through_ms) and self.through_ms[-1] > now_ms,
            "numbers past the end",
            60,
        )
        self._stop.set()
        self._thread.join(10)


@dataclass
class Quiet:
    """The quiet tenant's load: when each body was answered, and what its panes must hold."""

    stack: TestStack
    made: int = 0
    answered_ms: list[int] = field(default_factory=list)
    panes: Counter[tuple[int, str]] = field(default_factory=Counter)
    sums: Counter[tuple[int, str]] = field(default_factory=Counter)

    def send(self, seconds: float) -> None:
        """Send on schedule; a body that comes late is late, and the next is not."""
        began = time.monotonic()
        for n in range(int(seconds / QUIET_EVERY_S)):
            time.sleep(max(0.0, began + n * QUIET_EVERY_S - time.monotonic()))
            self.stack.post([self._event() for _ in range(QUIET_EVENTS)])
            self.answered_ms.append(CLOCK.now_ms())

    def _event(self) -> dict[str, Any]:
        n, self.made = self.made, self.made + 1
        now_ms, group = CLOCK.now_ms(), f"g{n % 5}"
        self.panes[now_ms // PANE_MS * PANE_MS, group] += 1
        self.sums[now_ms // PANE_MS * PANE_MS, group] += n % 97
        return {
            "specversion": "1.0",
            "id": f"quiet-{n}",
            "source": "/bench",
            "type": "bench.quiet",
            "time": iso(now_ms),
            "data": {"v": n % 97, "group": group},
        }

    def differences(self) -> list[str]:
        """Return what the served panes and those that were sent do not have in common."""
        starts = sorted(start for start, _group in self.panes)
        span = {"from": iso(starts[0]), "to": iso(starts[-1] + PANE_MS)}
        window = {"window": {"kind": "tumbling", "length": "10s"}, "step": "10s"}
        found = []
        for name, sent in (("count", self.panes), ("sum", self.sums)):
            asked = {"metric": "quiet", "aggregate": name, "range": span, **window}
            answer = self.stack.query({**asked, "by": ["data.group"]})
            served = Counter(
                {
                    (end_ms - PANE_MS, one["by"]["data.group"]): round(value)
                    for one in answer["series"]
                    for end_ms, value in zip(answer["t_ms"], one["value"], strict=True)
                    if value
                }
            )
            if served != +sent:
                found.append(f"{name}: {len(served)} panes served, {len(+sent)} sent")
        return found


class Noise:
    """The noisy tenant's load, made beforehand: each event is a series of its own."""

    def __init__(self, stack: TestStack, key: str, per_s: int, seconds: float) -> None:
        self._url, self._key, self._every_s = stack.ingest_url, key, BODY / per_s
        count = int(per_s * seconds / BODY)
        self._bodies = [self._body(n * BODY) for n in range(count)]
        self.accepted, self.refused = 0, 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    @staticmethod
    def _body(first: int) -> bytes:
        lines = (
            f'{{"specversion":"1.0","id":"n{n}","source":"/bench","type":"bench.noisy",'
            f'"data":{{"v":{n % 997},"user":"u{n}","item":"i{n % 5003}"}}}}'
            for n in range(first, first + BODY)
        )
        return "\n".join(lines).encode()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def join(self) -> None:
        """Return when everything was sent."""
        self._thread.join()

    def _run(self) -> None:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/x-ndjson"}
        began = time.monotonic()
        with httpx.Client(base_url=self._url, headers=headers, timeout=30) as client:
            for n, body in enumerate(self._bodies):
                time.sleep(max(0.0, began + n * self._every_s - time.monotonic()))
                answer = client.post("/v1/events", content=body)
                while answer.status_code in (429, 503):
                    self.refused += 1
                    time.sleep(float(answer.headers["Retry-After"]))
                    answer = client.post("/v1/events", content=body)
                answer.raise_for_status()
                self.accepted += BODY


def iso(at_ms: int) -> str:
    """Return an instant as text."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()


def key_of(stack: TestStack, tenant: str) -> str:
    """Define a key of another tenant, as the dashboard does of its own; return it."""
    key_id = secrets.token_hex(4)
    key = f"wk_{key_id}_{secrets.token_urlsafe(32)}"
    hash_key = (stack.home.secrets / "hash_key").read_bytes()
    digest = hmac.new(hash_key, key.encode(), hashlib.sha256).hexdigest()
    scopes = ["ingest", "read", "define"]
    text = {"kind": "key", "name": key_id, "hash": digest, "scopes": scopes, "source": "bench"}
    record = put_record(Edit(tenant, "key", key_id, None, "bench", 0), json.dumps(text))
    producer = Producer({"bootstrap.servers": stack.kafka_bootstrap})
    producer.produce(names.DEFINITIONS, record.value, record.key)
    producer.flush(10)
    return key


@contextmanager
def running(quota_per_s: int) -> Iterator[TestStack]:
    """Start a stack in which each tenant has a quota; end it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        stack = TestStack(Path(folder))
        ingest = stack.stack.parts["ingest"]
        ingest.env = {**ingest.env, "WEIR_INGEST_QUOTA_EVENTS_PER_S": str(quota_per_s)}
        try:
            stack.start()
            stack.define("metric", "quiet", QUIET_METRIC)
            progress = "/definitions/metric/quiet/progress"
            stack.wait_until(lambda: stack.api("GET", progress).body["serving"], "quiet served", 60)
            yield stack
        finally:
            stack.stop()


def run(options: argparse.Namespace, *, beside: bool) -> dict[str, Any]:
    """Return how fresh the quiet tenant's numbers were.

    Raises:
        RuntimeError: If a number was wrong.
    """
    per_s = round(options.series / options.seconds)
    with running(per_s) as stack:
        noise, api = None, None
        if beside:
            key = key_of(stack, NOISY)
            api = ApiClient(stack.dashboard_url, key, patience_s=60)
            stack.wait_until(lambda: knows(api), "the key of the noisy tenant")
            put = "/api/v1/definitions/metric/noisy"
            api.call("PUT", put, {"text": NOISY_METRIC}, {"If-None-Match": "*"})
            noise = Noise(stack, key, per_s, options.seconds)
        quiet = Quiet(stack)
        quiet.send(options.warm_s)
        warm = len(quiet.answered_ms)
        looks = Looks(stack)
        if noise is not None:
            noise.start()
        quiet.send(options.seconds)
        looks.stop()
        found: dict[str, Any] = {
            "fresh_ms": harness.spread([looks.age_ms(at) for at in quiet.answered_ms[warm:]]),
            "answers": len(quiet.answered_ms) - warm,
        }
        if differences := quiet.differences():
            msg = f"the quiet tenant's panes must be what it sent: {differences}"
            raise RuntimeError(msg)
        if noise is not None and api is not None:
            noise.join()
            found |= noisy_side(stack, api, noise)
        return found


def knows(api: ApiClient) -> bool:
    """Return whether a key is known by now."""
    try:
        return api.call("GET", "/api/v1/status", None, None).status == 200
    except Exception:  # noqa: BLE001  not yet
        return False


def noisy_side(stack: TestStack, api: ApiClient, noise: Noise) -> dict[str, Any]:
    """Return what the noisy tenant is told.

    Raises:
        RuntimeError: If its total is not what was accepted, or it is not told of its cap.
    """
    end_ms = CLOCK.now_ms() // PANE_MS * PANE_MS + PANE_MS
    span = {"from": iso(end_ms - 1_800_000), "to": iso(end_ms)}
    window = {"window": {"kind": "tumbling", "length": "10s"}, "step": "10s"}
    asked = {"metric": "noisy", "aggregate": "count", "range": span, **window}

    def answer(**more: Any) -> dict[str, Any]:
        body: dict[str, Any] = api.call("POST", "/api/v1/query", {**asked, **more}, None).body
        return body

    def total() -> int:
        return sum(n or 0 for one in answer()["series"] for n in one["count"])

    stack.wait_until(lambda: total() == noise.accepted, "the noisy tenant's total", 120)
    by_user = answer(by=["data.user"], limit={"top": 5, "other": True})
    notes = [note for note in by_user["notes"] if note["code"] == "capped"]
    if not notes:
        msg = "a tenant with a million series must be told that they are capped, was not"
        raise RuntimeError(msg)
    return {"accepted": noise.accepted, "refused": noise.refused, "told": notes[0]["message"]}


def main() -> int:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("--warm-s", type=float, default=20.0)
    options = parser.parse_args()
    alone = run(options, beside=False)
    sys.stdout.write(f"{json.dumps({'alone': alone})}\n")
    beside = run(options, beside=True)
    sys.stdout.write(f"{json.dumps({'beside': beside})}\n")
    ratio = round(beside["fresh_ms"]["p99"] / alone["fresh_ms"]["p99"], 2)
    bars = [
        {"id": "tenants", "what": "p99 of freshness beside a noisy tenant, ms", "reach": 3000}
        | {"got": beside["fresh_ms"]["p99"]},
        {"id": "tenants", "what": "the same over that alone", "reach": 1.25} | {"got": ratio},
    ]
    harness.write(
        "tenants",
        settings={"seconds": options.seconds, "series": options.series},
        figures={"alone": alone, "beside": beside, "bars": bars},
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
