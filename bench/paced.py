"""A load that was made beforehand, sent on schedule over one connection.

Open loop: body n is due at `start + n * every_s`, whatever came before it was late. What is
refused for a while (429, 503) is sent again when the answer says so, with the same bytes, so
that in the end all of it is accepted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
from weir.clock import SystemClock

CLOCK = SystemClock()
AGAIN = (429, 503)
TIMEOUT_S = 30.0


@dataclass
class Paced:
    """A thread that sends bodies of NDJSON until they are all accepted, or it is stopped.

    Attributes:
        url: Of ingest.
        key: Of the tenant.
        bodies: What is sent, in order.
        every_s: How long after one the next is due.
        due_ms: When each was due, of those that were accepted.
        answered_ms: When it was accepted.
        refused: How often one had to be sent again.
    """

    url: str
    key: str
    bodies: Sequence[bytes]
    every_s: float
    due_ms: list[float] = field(default_factory=list)
    answered_ms: list[int] = field(default_factory=list)
    refused: int = 0

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def accepted(self) -> int:
        """How many bodies were accepted so far."""
        return len(self.answered_ms)

    def start(self) -> None:
        """Begin; the first body is due now."""
        self._thread.start()

    def stop(self) -> None:
        """Send no more after the body under way, and return once that is accepted.

        Raises:
            httpx.HTTPError: If one was refused for good, or not answered.
        """
        self._stop.set()
        self.join()

    def join(self) -> None:
        """Return when everything is accepted.

        Raises:
            httpx.HTTPError: If a body was refused for good, or not answered.
        """
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            self._send()
        except httpx.HTTPError as error:
            self._failed = error

    def _send(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/x-ndjson"}
        began_s, began_ms = time.monotonic(), CLOCK.now_ms()
        with httpx.Client(base_url=self.url, headers=headers, timeout=TIMEOUT_S) as client:
            for n, body in enumerate(self.bodies):
                if self._stop.wait(max(0.0, began_s + n * self.every_s - time.monotonic())):
                    return
                answer = client.post("/v1/events", content=body)
                while answer.status_code in AGAIN:
                    self.refused += 1
                    time.sleep(float(answer.headers["Retry-After"]))
                    answer = client.post("/v1/events", content=body)
                answer.raise_for_status()
                self.due_ms.append(began_ms + 1000 * n * self.every_s)
                self.answered_ms.append(CLOCK.now_ms())
