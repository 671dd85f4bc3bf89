"""A bounded load on the public API, and what was answered to every event of it.

Event n has id `<seed>-n` and value n, so that count, sum, min and max of any subset
are known and a wrong event names itself. If asked to, each batch has others besides: items that
ingest stores as refused, and events that count and are in no pane of the load's metric.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import weblog
from weir.clock import SystemClock

TYPE = "load.tick"
# Of what counts besides: types that the load's metric matches, and does not.
ODD, OTHER = "load.odd", "load.other"
# Older than any metric keeps, and not yet too old to count.
OLD_MS = 399 * 86_400_000
GROUPS = 7


@dataclass(frozen=True)
class Refusal:
    """One answer that was not 2xx.

    Attributes:
        at_s: When, on the monotonic clock.
        took_s: How long it took to come.
        status: HTTP status; 0 if there was no answer.
        retry_after: That header field, "" if absent.
    """

    at_s: float
    took_s: float
    status: int
    retry_after: str


def outcome_of(status: int) -> str:
    """Return what is known of a request by its answer: `ok`, `fail`, or `unknown` (I1).

    Args:
        status: Of the answer; 0: there was none.
    """
    if 200 <= status < 300:
        return "ok"
    return "fail" if 400 <= status < 500 else "unknown"


@dataclass
class Load:
    """A thread that posts batches at a steady pace until it is stopped or has sent all.

    A batch that is not answered 2xx is sent again with the same ids until it is, so that
    at the end every event is acknowledged, except those of the batch that `stop` cut off.

    Attributes:
        acknowledged: Events that were answered 2xx.
        unknown: Events of the batch that was cut off.
        bad: Items in each batch, besides, that cannot be used.
        odd: Events in each batch, besides, of each kind that is in no pane of the load's metric.
        sent: Events that were sent at least once.
        batches: First event, how many, and the time of all of them as written, in order.
        answered_ms: When each of them was answered 2xx, by the clock; the newest may not be yet.
        history: The file that has one line per request and what became of it; None: none.
    """

    url: str
    key: str
    seed: str
    batch: int = 50
    every_s: float = 0.1
    at_most: int = 2_000_000
    acknowledged: int = 0
    unknown: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    bad: int = 0
    odd: int = 0
    sent: int = 0
    batches: list[tuple[int, int, str]] = field(default_factory=list)
    answered_ms: list[int] = field(default_factory=list)
    history: Path | None = None

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._paused, self._idle = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop, and wait for the batch under way."""
        self._stop.set()
        self._thread.join(60)

    def pause(self, timeout_s: float = 60.0) -> None:
        """Return once the batch under way is acknowledged; none follows until `resume`.

        Raises:
            TimeoutError: If it was not acknowledged in time.
        """
        self._idle.clear()
        self._paused.set()
        if not self._idle.wait(timeout_s):
            msg = f"the batch under way must be acknowledged within {timeout_s:g} s"
            raise TimeoutError(msg)

    def resume(self) -> None:
        """Go on after `pause`."""
        self._paused.clear()

    def events(self, first: int) -> list[dict[str, Any]]:
        """Return the batch that begins with event `first`."""
        now = weblog.iso(SystemClock().now_ms())
        return [self.event(n, now) for n in range(first, first + self.batch)]

    def event(self, n: int, time_text: str) -> dict[str, Any]:
        """Return event n."""
        return {
            "specversion": "1.0",
            "id": f"{self.seed}-{n}",
            "source": "/load",
            "type": TYPE,
            "time": time_text,
            "data": {"n": n, "group": f"g{n % GROUPS}"},
        }

    def _bad_items(self) -> list[dict[str, Any]]:
        """Return items that are stored and quarantined: their time is none."""
        return [{**self.event(0, "none"), "id": name} for name in self._bad_ids(self.acknowledged)]

    def _bad_ids(self, first: int) -> list[str]:
        """Return the ids of what cannot be used, of the batch that begins with event `first`."""
        return [f"{self.seed}-bad-{first}-{n}" for n in range(self.bad)]

    def _odd_items(self) -> list[dict[str, Any]]:
        """Return events that another metric would use: by their type, value or age."""
        now_ms = SystemClock().now_ms()
        event, old = self.event(0, weblog.iso(now_ms)), weblog.iso(now_ms - OLD_MS)
        kinds: dict[str, dict[str, Any]] = {
            "other": {"type": OTHER},
            "wrong": {"type": ODD, "data": {"n": "seven", "group": "g0"}},
            "old": {"type": ODD, "time": old},
        }
        return [
            {**event, "id": f"{self.seed}-{kind}-{self.acknowledged}-{n}", **what}
            for kind, what in kinds.items()
            for n in range(self.odd)
        ]

    def refused(self) -> list[str]:
        """Return the ids of all items that cannot be used and were answered 2xx."""
        stored = {first for first, _count, _time in self.batches if first < self.acknowledged}
        return [name for first in sorted(stored) for name in self._bad_ids(first)]

    def _run(self) -> None:
        next_s = time.monotonic()
        while not self._stop.is_set() and self.acknowledged < self.at_most:
            if self._paused.is_set():
                self._idle.set()
                self._stop.wait(0.02)
                continue
            batch = self.events(self.acknowledged)
            self.batches.append((self.acknowledged, len(batch), batch[0]["time"]))
            self.sent = max(self.sent, self.acknowledged + len(batch))
            if self._until_stored(batch + self._bad_items() + self._odd_items()):
                self.answered_ms.append(SystemClock().now_ms())
                self.acknowledged += len(batch)
            else:
                self.unknown += len(batch)
            next_s = max(next_s + self.every_s, time.monotonic() - 1)
            self._stop.wait(max(0.0, next_s - time.monotonic()))

    def _until_stored(self, batch: list[dict[str, Any]]) -> bool:
        while True:
            refusal = self._once(batch)
            if refusal is None:
                return True
            self.refusals.append(refusal)
            if self._stop.wait(0.3):
                return False

    def _once(self, batch: list[dict[str, Any]]) -> Refusal | None:
        began, began_ms = time.monotonic(), SystemClock().now_ms()
        refusal = self._answered(batch, began)
        self._note(
            {
                "at_ms": began_ms,
                "took_ms": round(1000 * (time.monotonic() - began)),
                "first": self.acknowledged,
                "items": len(batch),
                "status": 200 if refusal is None else refusal.status,
                "outcome": outcome_of(200 if refusal is None else refusal.status),
            }
        )
        return refusal

    def _note(self, operation: dict[str, Any]) -> None:
        if self.history is not None:
            with self.history.open("a") as file:
                file.write(json.dumps(operation) + "\n")

    def _answered(self, batch: list[dict[str, Any]], began: float) -> Refusal | None:
        try:
            weblog.post(self.url, self.key, batch)
        except urllib.error.HTTPError as error:
            error.read()
            after = error.headers.get("Retry-After", "")
            return Refusal(began, time.monotonic() - began, error.code, after)
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return Refusal(began, time.monotonic() - began, 0, "")
        return None
