"""The mixed log, counted again, and compared with what is served; shares no code with Weir.

The recount keeps sums and no events, so that a log of millions fits into memory. How the log is
made is in `mixed.py`; nothing is taken from there (a test holds both).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from account import MINUTE_MS, Account, LogRecord, dispositions, tenant_of
from recount import Api, Comparison, MetricSpec

TYPE = "mixed.event"
PANE_MS = 60_000
SPEC = MetricSpec("mixed", TYPE, ("group",), value=lambda event: float(event["data"]["n"]))
AGGREGATES = ("count", "sum", "min", "max")
EACH = 50
SOME = MetricSpec(
    "mixed_some",
    TYPE,
    ("group",),
    matches=lambda event: isinstance(event["data"]["n"], int) and event["data"]["n"] % EACH == 0,
    value=lambda event: float(event["data"]["n"]),
    distinct=lambda event: str(event["data"]["n"]),
)
SOME_AGGREGATES = (*AGGREGATES, "avg", "stddev", "last", "p50", "p95", "distinct")
SOME_PANES_MS = (60_000, 3_600_000)
USES = ("used", "not_matched", "value_quarantined", "pane_not_kept")
# What the API gives at once: 200,000 values.
PANES_AT_ONCE = 4_500


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
        some: The events of `SOME`.
        log_records: Records of the log, ticks not among them.
    """

    account: Account = field(default_factory=Account)
    panes: dict[tuple[int, str], Totals] = field(default_factory=lambda: defaultdict(Totals))
    seen: bytearray = field(default_factory=bytearray)
    uses: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    some: list[dict[str, Any]] = field(default_factory=list)
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
        if SOME.matches(event):
            self.some.append(event)
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


def compare_uses(
    api: Api, metric: str, uses: Mapping[int, Counter[str]], *, from_ms: int = 0
) -> Comparison:
    """Compare what a metric did with the events of each received minute (I4), both ways round.

    What a version does not match is not told of minutes that it has not counted as they came.

    Args:
        api: Who serves.
        metric: Its name.
        uses: What became of the events of each minute, by the log.
        from_ms: Minutes before it are left out: of them the log has no longer all.
    """
    result = Comparison()
    uses = {minute: tally for minute, tally in uses.items() if minute >= from_ms}
    told = api.call("GET", f"/metrics/{metric}/ledger?minutes=1440")["items"]
    rows = [row for row in told if row["minute_ms"] >= from_ms]
    for row in rows:
        named = {name: row[name] for name in USES if row[name] is not None}
        tally = uses.get(row["minute_ms"], Counter[str]())
        is_whole = len(named) < len(USES) or sum(named.values()) == row["counted"]
        result.note(
            is_whole and named == {name: tally[name] for name in named},
            f"minute {row['minute_ms']} of {metric}: {row}, is {dict(tally)}",
        )
    for minute in uses.keys() - {row["minute_ms"] for row in rows}:
        result.note(False, f"minute {minute} of {metric}: nothing, is {dict(uses[minute])}")
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
