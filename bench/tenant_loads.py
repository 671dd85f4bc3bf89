"""What the two tenants of `tenants.py` send, and what the quiet one's panes must then hold.

Both are made beforehand. The quiet tenant's events carry their own times, so that they fall
into the same panes whenever they are sent; they lie a little back, within the lateness that
its metric allows, so that in the second run they are no later than in the first for the engine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from weir.definitions.budget import TENANT_BYTES, estimate
from weir.definitions.metric import Metric
from weir.definitions.text import parse_text
from weir_local.testing import TestStack

PANE_MS = 10_000
QUIET_EVERY_S, QUIET_EVENTS = 0.1, 10
# So many that a pane of one has fewer values than its sketch holds one by one: a percentile is
# then one number, whatever a merge throws dice about.
GROUPS = 7
BACK_MS = 600_000
NOISY_BODY = 1_000
QUIET_METRIC = """
kind: metric
name: quiet
events: {type: bench.quiet}
value: data.v
by: [data.group]
aggregates: [count, sum, min, max, p95]
resolution: 10s
allowed_lateness: 1h
"""
NOISY_METRIC = """
kind: metric
name: noisy
events: {{type: bench.noisy}}
value: data.v
by: [data.user]
aggregates: [count, sum, p95, distinct(data.item)]
keep: {{10s: {days}d}}
max_series: {series}
"""
QUIET_ASKED = ("count", "sum", "min", "max", "p95")
ASKED_OF_POINTS = ("value", "low", "high", "count")
Panes = dict[tuple[str, int, str], tuple[Any, ...]]
"""By aggregate, pane and group: what was served."""


def iso(at_ms: int) -> str:
    """Return an instant as text."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()


@dataclass
class Quiet:
    """The quiet tenant's input, the same bytes in each run that gets it.

    Attributes:
        begin_ms: About when it is sent first.
        seconds: How long it takes to send.
        bodies: What is sent.
        counts, sums: What each pane of each group must hold.
    """

    begin_ms: int
    seconds: float
    bodies: list[bytes] = field(default_factory=list)
    counts: Counter[tuple[int, str]] = field(default_factory=Counter)
    sums: Counter[tuple[int, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        first_ms = (self.begin_ms - BACK_MS) // PANE_MS * PANE_MS
        step_ms = round(1000 * QUIET_EVERY_S / QUIET_EVENTS)
        for body in range(round(self.seconds / QUIET_EVERY_S)):
            numbers = range(body * QUIET_EVENTS, (body + 1) * QUIET_EVENTS)
            lines = [self._line(n, first_ms + n * step_ms) for n in numbers]
            self.bodies.append("\n".join(lines).encode())

    def _line(self, n: int, at_ms: int) -> str:
        value, group = n * 31 % 97, f"g{n % GROUPS}"
        pane = at_ms // PANE_MS * PANE_MS, group
        self.counts[pane] += 1
        self.sums[pane] += value
        return (
            f'{{"specversion":"1.0","id":"quiet-{n}","source":"/bench","type":"bench.quiet",'
            f'"time":"{iso(at_ms)}","data":{{"v":{value},"group":"{group}"}}}}'
        )

    def served(self, stack: TestStack) -> Panes:
        """Return everything that is served of its panes."""
        starts = [start for start, _group in self.counts]
        span = {"from": iso(min(starts)), "to": iso(max(starts) + PANE_MS)}
        found: Panes = {}
        for name in QUIET_ASKED:
            asked = {"metric": "quiet", "aggregate": name, "range": span, "by": ["data.group"]}
            asked |= {"window": {"kind": "tumbling", "length": "10s"}, "step": "10s"}
            answer = stack.query(asked)
            for one in answer["series"]:
                for at, end_ms in enumerate(answer["t_ms"]):
                    point = tuple(one[member][at] for member in ASKED_OF_POINTS)
                    if point[-1]:
                        found[name, end_ms - PANE_MS, one["by"]["data.group"]] = point
        return found

    def sent(self) -> Panes:
        """Return what can be told from what was sent: counts and sums, each with the count."""
        known = (("count", self.counts), ("sum", self.sums))
        return {
            (name, start, group): (float(of[start, group]), self.counts[start, group])
            for name, of in known
            for start, group in self.counts
        }


def differences(one: Panes, other: Panes) -> list[str]:
    """Return every pane that two runs do not have alike, in words."""
    return [
        f"{name} of {group} at {iso(start)}: {one.get(key)} and {other.get(key)}"
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
        for name, start, group in [key]
    ]


def noisy_bodies(count: int) -> list[bytes]:
    """Return so many events of which each is a series of its own."""
    return [
        "\n".join(
            f'{{"specversion":"1.0","id":"n{n}","source":"/bench","type":"bench.noisy",'
            f'"data":{{"v":{n % 997},"user":"u{n}","item":"i{n % 5003}"}}}}'
            for n in range(first, first + NOISY_BODY)
        ).encode()
        for first in range(0, count, NOISY_BODY)
    ]


def noisy_metric(series: int) -> tuple[str, str]:
    """Return the metric that keeps as long as a tenant's budget allows, and one a day longer.

    Raises:
        ValueError: If not even a day fits.
    """
    days = 0
    while _bytes(days + 1, series) <= TENANT_BYTES:
        days += 1
    if not days:
        msg = f"{series} series must fit into {TENANT_BYTES} bytes for a day; ask for fewer"
        raise ValueError(msg)
    largest, beyond = (NOISY_METRIC.format(days=n, series=series) for n in (days, days + 1))
    return largest, beyond


def _bytes(days: int, series: int) -> int:
    text = NOISY_METRIC.format(days=days, series=series)
    return estimate(Metric.model_validate(parse_text(text))).memory_bytes
