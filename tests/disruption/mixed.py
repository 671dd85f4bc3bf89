"""A log of mixed events of two tenants: how it is sent (`mixed_recount.py` counts it again).

Event n of a tenant has id `<seed>-n` and value n. Both tenants use the same ids: an event
of the one is no duplicate of the other's.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import weblog
from disruption.mixed_recount import TYPE
from load import GROUPS
from weir.clock import SystemClock

LATEST_MS = 3 * 86_400_000
DEFINITION = f"""
kind: metric
name: mixed
events: {{type: {TYPE}}}
value: data.n
by: [data.group]
aggregates: [count, sum, min, max]
resolution: 1m
keep: {{1m: 7d}}
max_series: 20
"""
# One in fifty of them with all that a metric can tell: the recount keeps these events.
SOME = f"""
kind: metric
name: mixed_some
events: {{type: {TYPE}}}
where: mod(data.n, 50) = 0
value: data.n
by: [data.group]
aggregates: [count, sum, avg, min, max, stddev, last, p50, p95, distinct(data.n)]
resolution: 1m
keep: {{1m: 7d, 1h: 30d}}
max_series: 20
"""
# Of a hundred lines: what ingest refuses, what is too old to count, what the metric cannot use,
# what was sent before, what is late.
BAD, OLD, WRONG, AGAIN, LATE = 3, 1, 1, 5, 10
OLD_MS = 401 * 86_400_000
LINES = 4_000
# From how many lines before it a line is sent once more.
MEMORY = 20_000


@dataclass
class MixedLoad:
    """A thread that sends one tenant's lines as NDJSON, as fast as they are taken.

    A request that is not answered 2xx is sent again, the same bytes, until it is.

    Attributes:
        lines: How many are sent in all, repetitions and bad ones among them.
        urls: Replicas of ingest, taken in turn when one does not answer; `url` by default.
        batch: Lines of a request.
        at_ms: The present of all lines; None: that of each request.
        upto: Part of the lines that may be sent now; those beyond wait until it is raised.
        sent: Lines that were answered 2xx.
        events: Events with a number of their own; each of them counts.
        kinds: How many lines of each kind there were.
        unanswered: Requests that had no 2xx.
        failure: What ended the thread before its time.
    """

    url: str
    key: str
    seed: int
    tenant: str
    lines: int
    urls: tuple[str, ...] = ()
    batch: int = LINES
    upto: float = 1.0
    at_ms: int | None = None
    sent: int = 0
    events: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._chance = random.Random(f"{self.seed}-{self.tenant}")  # noqa: S311
        self._recent: list[bytes] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        found = [urlsplit(url) for url in self.urls or (self.url,)]
        self._addresses = [(one.hostname or "", one.port or 80) for one in found]
        self._connection: http.client.HTTPConnection | None = None

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """Send no further request."""
        self._stop.set()
        self._thread.join(60)

    @property
    def is_done(self) -> bool:
        """Return whether every line was answered 2xx.

        Raises:
            BaseException: What ended the thread.
        """
        if self.failure is not None:
            raise self.failure
        return self.sent >= self.lines

    def _run(self) -> None:
        try:
            while self.sent < self.lines and not self._stop.is_set():
                if self.sent >= self.upto * self.lines:
                    self._stop.wait(0.02)
                    continue
                batch = self._lines(min(self.batch, self.lines - self.sent))
                body = b"\n".join(batch)
                while not self._post(body):
                    self.unanswered += 1
                    if self._stop.wait(0.5):
                        return
                self.sent += len(batch)
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._close()

    def _lines(self, count: int) -> list[bytes]:
        now_ms = SystemClock().now_ms() if self.at_ms is None else self.at_ms
        chance, batch = self._chance, []
        for _ in range(count):
            drawn = chance.randrange(100)
            if drawn < BAD:
                batch.append(self._bad(now_ms))
            elif drawn < BAD + OLD:
                batch.append(self._other("old", now_ms - OLD_MS, self.kinds["old"]))
            elif drawn < BAD + OLD + WRONG:
                batch.append(self._other("wrong", now_ms, '"seven"'))
            elif drawn < BAD + OLD + WRONG + AGAIN and self._recent:
                self.kinds["again"] += 1
                batch.append(chance.choice(self._recent))
            else:
                is_late = drawn < BAD + OLD + WRONG + AGAIN + LATE
                self.kinds["late" if is_late else "good"] += 1
                line = self._line(now_ms - (chance.randrange(LATEST_MS) if is_late else 0))
                self._remember(line)
                batch.append(line)
        return batch

    def _remember(self, line: bytes) -> None:
        if len(self._recent) < MEMORY:
            self._recent.append(line)
        else:
            self._recent[self._chance.randrange(MEMORY)] = line

    def _line(self, time_ms: int) -> bytes:
        n, self.events = self.events, self.events + 1
        return self._event(str(n), time_ms, n, n % GROUPS)

    def _other(self, kind: str, time_ms: int, value: object) -> bytes:
        """Return an event that ingest takes and that is in no pane."""
        self.kinds[kind] += 1
        return self._event(f"{kind}-{self.kinds[kind]}", time_ms, value, 0)

    def _event(self, name: str, time_ms: int, value: object, group: int) -> bytes:
        return (
            f'{{"specversion":"1.0","id":"{self.seed}-{name}","source":"/mixed","type":"{TYPE}",'
            f'"time":"{weblog.iso(time_ms)}","data":{{"n":{value},"group":"g{group}"}}}}'
        ).encode()

    def _bad(self, now_ms: int) -> bytes:
        """Return a line that is stored and quarantined: cut, of no time, too deep, no JSON."""
        self.kinds["bad"] += 1
        number = self.kinds["bad"]
        start = f'{{"specversion":"1.0","id":"bad-{self.seed}-{number}","source":"/mixed",'
        deep = "[" * 40 + "]" * 40
        ends = (
            f'"type":"{TYPE}","time":"{weblog.iso(now_ms)}","data":{{"n":',
            f'"type":"{TYPE}","time":"none","data":{{"n":1,"group":"g0"}}}}',
            f'"type":"{TYPE}","data":{{"n":1,"group":{deep}}}}}',
            "and so on",
        )
        return (start + ends[number % len(ends)]).encode()

    def _post(self, body: bytes) -> bool:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/x-ndjson",
        }
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(*self._addresses[0], timeout=30)
            self._connection.request("POST", "/v1/events", body, headers)
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self._close()
            return False
        if 400 <= answer.status < 500 and answer.status != http.client.TOO_MANY_REQUESTS:
            msg = f"ingest must take the lines, got {answer.status}: {text[:200]!r}"
            raise RuntimeError(msg)
        return answer.status == http.client.OK

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._addresses.append(self._addresses.pop(0))


def await_end(loads: Iterable[MixedLoad], fraction: float, timeout_s: float) -> None:
    """Return once so large a part of all lines was taken.

    Raises:
        TimeoutError: If it was not in time.
    """
    loads = list(loads)
    wanted = fraction * sum(load.lines for load in loads)
    deadline_s = time.monotonic() + timeout_s
    while sum(load.sent for load in loads) < wanted:
        for load in loads:
            if load.failure is not None:
                raise load.failure
        if time.monotonic() > deadline_s:
            msg = f"{wanted:.0f} lines must be taken within {timeout_s:g} s, got {loads}"
            raise TimeoutError(msg)
        time.sleep(0.1)
