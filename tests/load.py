"""A bounded load on the public API, and what was answered to every event of it.

Event n has id `<seed>-n` and value n, so that count, sum, min and max of any subset
are known and a wrong event names itself.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

import weblog
from weir.clock import SystemClock

TYPE = "load.tick"
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


@dataclass
class Load:
    """A thread that posts batches at a steady pace until it is stopped or has sent all.

    A batch that is not answered 2xx is sent again with the same ids until it is, so that
    at the end every event is acknowledged, except those of the batch that `stop` cut off.
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

    def __post_init__(self) -> None:
        self._stop = threading.Event()
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

    def events(self, first: int) -> list[dict[str, Any]]:
        """Return the batch that begins with event `first`."""
        now = weblog.iso(SystemClock().now_ms())
        return [
            {
                "specversion": "1.0",
                "id": f"{self.seed}-{n}",
                "source": "/load",
                "type": TYPE,
                "time": now,
                "data": {"n": n, "group": f"g{n % GROUPS}"},
            }
            for n in range(first, first + self.batch)
        ]

    def _run(self) -> None:
        next_s = time.monotonic()
        while not self._stop.is_set() and self.acknowledged < self.at_most:
            batch = self.events(self.acknowledged)
            if self._until_stored(batch):
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
        began = time.monotonic()
        try:
            weblog.post(self.url, self.key, batch)
        except urllib.error.HTTPError as error:
            error.read()
            after = error.headers.get("Retry-After", "")
            return Refusal(began, time.monotonic() - began, error.code, after)
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return Refusal(began, time.monotonic() - began, 0, "")
        return None
