"""Counts the log again, by the slow and obvious way, and compares it with what Weir serves.

A plain script: a Kafka consumer (`account.py`), the standard library and the public HTTP API.
It shares no code with Weir (a test holds that), so that an error in Weir cannot hide in it. It
can be run against any installation that serves the metrics named in `WEB_METRICS`. Events that
arrive while it reads show as differences of the newest panes:

    python tests/recount.py --bootstrap 127.0.0.1:8085 --api http://localhost:8081 --key wk_…
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import statistics
import sys
import urllib.request
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from account import MINUTE_MS, Account, account_for, read_log

# The ledger keeps 8 days and answers at most a day at once.
LEDGER_MS = 8 * 86_400_000
LEDGER_PAGE = 1440
DISPOSITIONS = ("counted", "duplicate", "quarantined", "beyond_horizon", "erased")


# ── panes, counted the slow way ──────────────────────────────────────────────


@dataclass(frozen=True)
class MetricSpec:
    """What a metric of the test counts, in plain Python.

    `matches`, `value` and `part` see a whole event; `by` names the members of `data`, or what
    `part` makes of one.
    """

    name: str
    type: str
    by: tuple[str, ...] = ()
    matches: Callable[[dict[str, Any]], bool] = lambda _event: True
    value: Callable[[dict[str, Any]], float] | None = None
    distinct: Callable[[dict[str, Any]], str] | None = None
    percentiles: tuple[str, ...] = ()
    part: Callable[[dict[str, Any], str], str] = lambda event, name: str(event["data"][name])


@dataclass
class ExactPane:
    """Everything of one pane of one series, nothing thrown away; `values` ascend.

    `newest` is event time, identity and value of the last event.
    """

    count: int = 0
    values: list[float] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    newest: tuple[int, str, float] | None = None


Series = tuple[str, ...]
Panes = dict[tuple[int, Series], ExactPane]


def panes_of(events: Iterable[dict[str, Any]], spec: MetricSpec, pane_ms: int) -> Panes:
    """Sort events into panes of event time by series."""
    panes: Panes = defaultdict(ExactPane)
    for event in events:
        if event["type"] != spec.type or not spec.matches(event):
            continue
        time_ms = event["_time_ms"]
        series = tuple(spec.part(event, dimension) for dimension in spec.by)
        pane = panes[time_ms - time_ms % pane_ms, series]
        pane.count += 1
        if spec.value is not None:
            value = spec.value(event)
            insort(pane.values, value)
            last = (time_ms, identity_of(event), value)
            pane.newest = last if pane.newest is None else max(pane.newest, last)
        if spec.distinct is not None:
            pane.members.add(spec.distinct(event))
    return panes


def identity_of(event: dict[str, Any]) -> str:
    """Return the digest that decides which of two events at one instant is the last."""
    digest = hashlib.md5(usedforsecurity=False)
    for text in (event.get("weirtenant", "default"), event["source"], event["id"]):
        raw = text.encode()
        digest.update(len(raw).to_bytes(4, "big") + raw)
    return digest.hexdigest()


def expected(pane: ExactPane, aggregate: str, pane_ms: int) -> float:
    """Return an aggregate of a pane from all its values."""
    plain: dict[str, Callable[[], float]] = {
        "count": lambda: pane.count,
        "rate": lambda: pane.count / (pane_ms / 1000),
        "sum": lambda: math.fsum(pane.values),
        "avg": lambda: math.fsum(pane.values) / len(pane.values),
        "min": lambda: min(pane.values),
        "max": lambda: max(pane.values),
        "stddev": lambda: statistics.pstdev(pane.values),
        "last": lambda: pane.newest[2] if pane.newest else math.nan,
        "distinct": lambda: len(pane.members),
        "theta": lambda: len(pane.members),
    }
    return plain[aggregate]()


def ranks(values: Sequence[float], percentile: str) -> tuple[float, float]:
    """Return the two neighbors, of ascending values, that a percentile may be taken from."""
    rank = float(percentile[1:]) / 100 * len(values)
    low = max(0, math.ceil(rank) - 1)
    return values[low], values[min(len(values) - 1, math.floor(rank))]


def is_too_few(count: int, percentile: str) -> bool:
    """Return whether no value lies beyond a percentile on its nearer side: it has none then."""
    q = Fraction(percentile[1:]) / 100
    return count * min(q, 1 - q) < 1


# ── what Weir serves ─────────────────────────────────────────────────────────


class Api:
    """Weir's public query API, as a client sees it."""

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url.rstrip("/"), key

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Send one request; return the answer's JSON.

        Raises:
            urllib.error.HTTPError: If Weir refuses.
        """
        request = urllib.request.Request(  # noqa: S310 - the address is given by the caller
            self._url + "/api/v1" + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.loads(answer.read())

    def panes(
        self, spec: MetricSpec, aggregate: str, pane_ms: int, span: tuple[int, int]
    ) -> Iterator[tuple[tuple[int, Series], dict[str, Any]]]:
        """Yield each served point as its pane and series, with value, bounds, count, state."""
        answer = self.call("POST", "/query", pane_query(spec, aggregate, pane_ms, span))
        for series in answer["series"]:
            key = tuple(str(series["by"][dimension]) for dimension in spec.by)
            for i, end_ms in enumerate(answer["t_ms"]):
                point = {name: series[name][i] for name in ("value", "low", "high", "count")}
                point["state"] = series["state"][i]
                yield (end_ms - pane_ms, key), point


def pane_query(
    spec: MetricSpec, aggregate: str, pane_ms: int, span: tuple[int, int]
) -> dict[str, Any]:
    """Return the query whose windows are exactly a metric's panes."""
    length = f"{pane_ms // 1000}s"
    iso = [datetime.fromtimestamp(ms / 1000).astimezone().isoformat() for ms in span]
    return {
        "metric": spec.name,
        "aggregate": aggregate,
        "window": {"kind": "tumbling", "length": length},
        "step": length,
        "by": list(spec.by),
        "range": {"from": iso[0], "to": iso[1]},
        "limit": {"top": 400, "other": False},
    }


@dataclass
class Comparison:
    """How many points were compared, and every one that was not equal."""

    points: int = 0
    mismatches: list[str] = field(default_factory=list)

    def note(self, ok: bool, text: str) -> None:
        """Count one comparison; keep its words if it failed."""
        self.points += 1
        if not ok:
            self.mismatches.append(text)


def compare(
    api: Api, panes: Panes, spec: MetricSpec, aggregates: Sequence[str], pane_ms: int
) -> Comparison:
    """Compare every served pane of a metric with the exact ones, both ways round."""
    result = Comparison()
    starts = [start for start, _series in panes]
    span = (min(starts), max(starts) + pane_ms)
    for aggregate in aggregates:
        served = dict(api.panes(spec, aggregate, pane_ms, span))
        for key, pane in panes.items():
            point = served.pop(key, None)
            result.note(
                point is not None and _agrees(point, pane, aggregate, pane_ms),
                f"{spec.name} {aggregate} {key}: {point}, is {pane}",
            )
        for key, point in served.items():
            result.note(
                not point["count"],
                f"{spec.name} {aggregate} {key}: {point}, nothing there",
            )
    return result


def _agrees(point: dict[str, Any], pane: ExactPane, aggregate: str, pane_ms: int) -> bool:
    if point["count"] != pane.count:
        return False
    if aggregate.startswith("p"):
        if is_too_few(pane.count, aggregate):
            return point["value"] is None
        if point["value"] is None:
            return False
        low, high = ranks(pane.values, aggregate)
        return bool(point["low"] <= high and low <= point["high"])
    want = expected(pane, aggregate, pane_ms)
    if aggregate in ("distinct", "theta"):
        return bool(point["low"] <= want <= point["high"])
    if point["value"] is None:
        return False
    return bool(abs(point["value"] - want) <= slack(pane, aggregate, want))


def slack(pane: ExactPane, aggregate: str, want: float) -> float:
    """Return how far a value that is no estimate may be off (RELIABILITY 1, I5).

    Nothing is forgiven where floats add up exactly, whatever their order: integers of less than
    2^53 together. Of a rate and an average that leaves the last bits of one division.
    """
    if aggregate in ("rate", "avg") and is_exact(pane):
        return 1e-15 * abs(want)
    if aggregate == "stddev":
        # Of equal values it is 0, and what is left of the squares is of their own last bits.
        return max(1e-6 * want, 1e-12 * max(abs(value) for value in pane.values))
    if aggregate not in ("sum", "avg") or is_exact(pane):
        return 0.0
    scale = 1e-9 * math.fsum(abs(value) for value in pane.values)
    return scale if aggregate == "sum" else scale / len(pane.values)


def is_exact(pane: ExactPane) -> bool:
    """Return whether all sums of a pane's values are exact in floats, in any order."""
    total = math.fsum(abs(value) for value in pane.values)
    return total < 2**53 and all(float(value).is_integer() for value in pane.values)


def compare_ledger(api: Api, account: Account, *, from_ms: int = 0) -> Comparison:
    """Compare the served ledger with the account of the log, minute by minute, both ways round.

    Args:
        api: Who serves.
        account: Of the log.
        from_ms: Minutes before it are left out: of them the log has no longer all.
    """
    result = Comparison()
    if not account.minutes:
        return result
    newest, oldest = max(account.minutes), min(account.minutes)
    oldest = max(oldest, newest - LEDGER_MS + MINUTE_MS, from_ms)
    served: dict[int, Counter[str]] = {}
    for row in ledger_rows(api, oldest):
        if row["minute_ms"] < from_ms:
            continue
        tally = Counter({name: row[name] for name in DISPOSITIONS if row[name]})
        if tally:
            served[row["minute_ms"]] = tally
        result.note(not row["difference"], f"ledger difference: {row}")
    for minute in sorted(served.keys() | {m for m in account.minutes if m >= oldest}):
        got, tally = served.get(minute, Counter()), account.minutes.get(minute, Counter())
        result.note(got == tally, f"minute {minute}: {dict(got)}, is {dict(tally)}")
    return result


def ledger_rows(api: Api, oldest_ms: int) -> Iterator[dict[str, Any]]:
    """Yield the served minutes from the newest back to that of an instant, a day at a time."""
    rows = api.call("GET", f"/ledger?minutes={LEDGER_PAGE}")["items"]
    while rows:
        yield from rows
        before_ms = min(row["minute_ms"] for row in rows) - MINUTE_MS
        if before_ms < max(oldest_ms, 0):
            return
        rows = api.call("GET", f"/ledger?minutes={LEDGER_PAGE}&to_ms={before_ms}")["items"]


# ── the demo's own log file ──────────────────────────────────────────────────


def digest_of(lines: Iterable[str]) -> str:
    """Return a digest of lines, to say which input a result belongs to."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


WEB_METRICS = (
    (
        MetricSpec("requests", "web.request", ("method", "status_class")),
        ("count", "rate"),
    ),
    (
        MetricSpec(
            "response_bytes",
            "web.request",
            value=lambda event: float(event["data"]["bytes"]),
            matches=lambda event: event["data"].get("bytes") is not None,
        ),
        ("count", "avg", "p50", "p95", "p99"),
    ),
    (
        MetricSpec("visitors", "web.request", distinct=lambda event: event["data"]["client"]),
        ("distinct",),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Recount a running demo; print what was compared; return 0 if all is equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--api", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--pane-ms", type=int, default=10_000)
    options = parser.parse_args(arguments)
    api = Api(options.api, options.key)
    account = account_for(read_log(options.bootstrap))
    results = {"ledger": compare_ledger(api, account)}
    for spec, aggregates in WEB_METRICS:
        panes = panes_of(account.counted, spec, options.pane_ms)
        results[spec.name] = compare(api, panes, spec, aggregates, options.pane_ms)
    for name, result in results.items():
        sys.stdout.write(f"{name}: {result.points} compared, {len(result.mismatches)} differ\n")
        for mismatch in result.mismatches[:5]:
            sys.stdout.write(f"  {mismatch}\n")
    sys.stdout.write(f"dispositions: {dict(account.totals)}\n")
    return int(any(result.mismatches for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
