"""A log of mixed events of two tenants: how it is sent, and how it is counted again.

Event n of a tenant has id `<seed>-n` and value n. Both tenants use the same ids: an event
of the one is no duplicate of the other's. The recount keeps sums and no events, so that a
log of millions fits into memory.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import weblog
from account import MINUTE_MS, Account, LogRecord, dispositions, tenant_of
from load import GROUPS
from recount import Api, Comparison, MetricSpec
from weir.clock import SystemClock

TYPE = "mixed.event"
PANE_MS = 60_000
LATEST_MS = 3 * 86_400_000
SPEC = MetricSpec("mixed", TYPE, ("group",), value=lambda event: float(event["data"]["n"]))
AGGREGATES = ("count", "sum", "min", "max")
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
# Of a hundred lines: what ingest refuses, what is too old to count, what the metric cannot use,
# what was sent before, what is late.
BAD, OLD, WRONG, AGAIN, LATE = 3, 1, 1, 5, 10
OLD_MS = 401 * 86_400_000
LINES = 4_000
USES = ("used", "not_matched", "value_quarantined", "pane_not_kept")
# What the API gives at once: 200,000 values.
PANES_AT_ONCE = 4_500
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


# ── counted again ────────────────────────────────────────────────────────────


@dataclass
class Totals:
    """The sums of one pane of one series; the values are whole numbers."""

    count: int = 0
    sum: int = 0
    min: int = 0
    max: int = 0

    def add(self, n: int) -> None:
        """Add a value."""
        self.min = min(self.min, n) if self.count else n
        self.max = max(self.max, n) if self.count else n
        self.count += 1
        self.sum += n


@dataclass
class Recount:
    """What a log holds of one tenant.

    Attributes:
        account: Its ledger; no events.
        panes: By start and group.
        seen: By number, how often an event counted.
        uses: By received minute, what the metric did with the events that count.
        log_records: Records of the log, ticks not among them.
    """

    account: Account = field(default_factory=Account)
    panes: dict[tuple[int, str], Totals] = field(default_factory=lambda: defaultdict(Totals))
    seen: bytearray = field(default_factory=bytearray)
    uses: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    log_records: int = 0

    def add(self, record: LogRecord, disposition: str, event: dict[str, Any] | None) -> None:
        """Add a record of the log."""
        self.log_records += 1
        minute = record.received_ms - record.received_ms % MINUTE_MS
        self.account.minutes[minute][disposition] += 1
        if event is None or disposition != "counted":
            return
        use = self._use(event)
        self.uses[minute][use] += 1
        if use != "used":
            return
        n, at_ms = event["data"]["n"], event["_time_ms"]
        self.panes[at_ms - at_ms % PANE_MS, event["data"]["group"]].add(n)
        if n >= len(self.seen):
            self.seen.extend(bytes(n + 100_000 - len(self.seen)))
        self.seen[n] += 1

    def _use(self, event: dict[str, Any]) -> str:
        """Return what the metric does with an event that counts; of none is a pane not kept."""
        if event["type"] != TYPE:
            return "not_matched"
        return "used" if isinstance(event["data"]["n"], int) else "value_quarantined"


def compare_uses(api: Api, uses: dict[int, Counter[str]]) -> Comparison:
    """Compare what a metric did with the events of each received minute (I4), both ways round."""
    result = Comparison()
    rows = api.call("GET", "/metrics/mixed/ledger?minutes=1440")["items"]
    served = {row["minute_ms"]: Counter({name: row[name] or 0 for name in USES}) for row in rows}
    for minute, tally in uses.items():
        got = served.pop(minute, Counter[str]())
        result.note(+got == +tally, f"minute {minute} of the metric: {dict(got)}, is {dict(tally)}")
    for minute, got in served.items():
        result.note(not +got, f"minute {minute} of the metric: {dict(got)}, nothing there")
    return result


def recount(records: Iterable[LogRecord]) -> dict[str, Recount]:
    """Count a log again, by tenant."""
    found: dict[str, Recount] = defaultdict(Recount)
    for record, disposition, event in dispositions(records):
        found[tenant_of(record, event)].add(record, disposition, event)
    return found


def compare_totals(
    api: Api, panes: dict[tuple[int, str], Totals], spec: MetricSpec, pane_ms: int
) -> Comparison:
    """Compare every served pane of a metric with the recount, both ways round; exactly.

    Args:
        api: Who serves.
        panes: By start and group: all there are from the oldest to the newest of them.
        spec: The metric, by one dimension.
        pane_ms: Length of its panes.
    """
    result = Comparison()
    starts = [start for start, _group in panes]
    step_ms = PANES_AT_ONCE * pane_ms
    for first_ms in range(min(starts), max(starts) + pane_ms, step_ms):
        span = first_ms, min(first_ms + step_ms, max(starts) + pane_ms)
        part = {key: totals for key, totals in panes.items() if span[0] <= key[0] < span[1]}
        for aggregate in AGGREGATES:
            served = dict(api.panes(spec, aggregate, pane_ms, span))
            _compare_served(served, part, aggregate, result)
    return result


def _compare_served(
    served: dict[tuple[int, tuple[str, ...]], dict[str, Any]],
    panes: dict[tuple[int, str], Totals],
    aggregate: str,
    result: Comparison,
) -> None:
    for (start, group), totals in panes.items():
        point = served.pop((start, (group,)), None)
        is_equal = (
            point is not None
            and point["count"] == totals.count
            and point["value"] == getattr(totals, aggregate)
        )
        result.note(is_equal, f"{aggregate} {start} {group}: {point}, is {totals}")
    for key, point in served.items():
        result.note(not point["count"], f"{aggregate} {key}: {point}, nothing there")


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
