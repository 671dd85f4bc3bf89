"""A small world for the query engine: events, the panes they make, and a plain recount.

The recount is the oracle. It goes through all events for every window and knows nothing
of panes' merges, blocks, caches or sketches; of the engine's code it uses none.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import datasketches as ds
from weir.definitions.metric import Metric
from weir.frequent import Texts
from weir.further import Further, Last
from weir.query import Facts, PaneKey, Served, Span, Version
from weir.rows import Row, merge, part
from weir.series import OTHER, encode_series
from weir.sets import Theta

SECOND = 1000
PANE_MS = 10 * SECOND
NOW_MS = 1_795_181_523_000
RESOLUTIONS_S = (10, 60)


def metric(**changes: Any) -> Metric:
    """Return the definition that the tests ask about."""
    text: dict[str, Any] = {
        "kind": "metric",
        "name": "latency",
        "events": {"type": "request"},
        "value": "data.ms",
        "unit": "ms",
        "by": ["data.region", "data.route"],
        "aggregates": [
            "count",
            "sum",
            "avg",
            "min",
            "max",
            "p50",
            "p95",
            "p99",
            "stddev",
            "last",
            "distinct(subject)",
            "theta(subject)",
            "top(subject, 3)",
        ],
        "resolution": "10s",
        "keep": {"10s": "1h", "1m": "24h"},
        "allowed_lateness": "1m",
    }
    return Metric.model_validate({**text, **changes})


def served(**changes: Any) -> dict[str, Served]:
    """Return one metric with one version."""
    return {"latency": Served((Version(vid=7, number=3, metric=metric(**changes)),))}


def facts(through_ms: int | None = NOW_MS, **changes: Any) -> Facts:
    """Return facts at revision 5, counted up to now unless said otherwise."""
    return Facts(epoch=1, rev=5, processed_through_ms=through_ms, now_ms=NOW_MS, **changes)


@dataclass(frozen=True)
class Event:
    """One event that the metric counts."""

    at_ms: int
    region: str | None
    route: str | None
    value: float
    user: str = "u"

    @property
    def identity(self) -> bytes:
        """Return what stands for the digest of the event's identity."""
        return hashlib.md5(repr(self).encode(), usedforsecurity=False).digest()


@dataclass
class Panes:
    """The panes of one version, merged part by part as the writer does.

    Attributes:
        vid: The version.
        beyond: (region, route) of the series that have no row of their own.
        held: What the panes hold.
    """

    vid: int = 7
    beyond: Collection[tuple[str | None, str | None]] = ()
    held: dict[PaneKey, dict[str, Row]] = field(default_factory=dict)

    def count(self, batch: Iterable[Event]) -> set[PaneKey]:
        """Merge one batch and return the panes that it changed."""
        changed = set()
        for event in batch:
            hll, kll = ds.hll_sketch(12, ds.HLL_8), ds.kll_doubles_sketch(800)
            hll.update(event.user)
            kll.update(event.value)
            row = part(1, (event.value,) * 3, hll.serialize_updatable(), kll.serialize())
            row.further = further_of(event)
            values = event.region, event.route
            text = OTHER if values in self.beyond else encode_series(values)
            for pane_s in RESOLUTIONS_S:
                start_s = event.at_ms // 1000 // pane_s * pane_s
                key = (self.vid, pane_s, start_s)
                rows = dict(self.held.get(key, {}))
                rows[text] = merge(rows[text], row) if text in rows else row
                self.held[key] = rows
                changed.add(key)
        return changed


def further_of(event: Event) -> Further:
    """Return the further members of the row of one event."""
    users, top = ds.update_theta_sketch(12), ds.frequent_strings_sketch(10)
    users.update(event.user)
    top.update(event.user)
    return Further(
        spread=0.0,
        last=Last(event.at_ms, event.identity, event.value),
        top=Texts(1, bytes(top.serialize())),
        theta=Theta(12, bytes(users.compact().serialize())),
    )


# ── the recount ─────────────────────────────────────────────────────────────


def matches(event: Event, where: Sequence[Sequence[Any]]) -> bool:
    """Tell whether an event passes every condition: `=`, `!=` and `in` only."""
    for name, op, wanted in where:
        value = getattr(event, name)
        if op == "=" and value != wanted:
            return False
        if op == "!=" and (value == wanted or (wanted is not None and value is None)):
            return False
        if op == "in" and value not in wanted:
            return False
    return True


def recount(aggregate: str, events: Sequence[Event]) -> float | None:
    """Return an aggregate of at least one event, from the events themselves."""
    values = sorted(event.value for event in events)
    if aggregate.startswith("p"):
        q = float(aggregate[1:]) / 100
        few = len(values) * min(q, 1 - q) < 1 - 1e-9
        return None if few else values[max(0, math.ceil(q * len(values) - 1e-9) - 1)]
    return {
        "count": float(len(values)),
        "sum": math.fsum(values),
        "avg": math.fsum(values) / len(values),
        "min": values[0],
        "max": values[-1],
        "stddev": statistics.pstdev(values),
        "last": max(events, key=lambda event: (event.at_ms, event.identity)).value,
        "distinct": float(len({event.user for event in events})),
        "theta": float(len({event.user for event in events})),
    }[aggregate]


def recount_top(events: Sequence[Event], items: int) -> list[list[Any]]:
    """Return the most frequent users as answers have them, all others as the last."""
    ranked = sorted(Counter(event.user for event in events).items(), key=lambda of: (-of[1], of[0]))
    rest = [[None, None, 0, ranked[items][1]]] if len(ranked) > items else []
    return [[user, n, n, n] for user, n in ranked[:items]] + rest


def recounted_state(begin_ms: int, end_ms: int, pane_ms: int, known: Facts) -> str:
    """Return the letter of a window: every pane's letter, then the worst of them."""
    keep_ms = {10_000: 3_600_000, 60_000: 86_400_000}[pane_ms]
    letters = []
    for start_ms in range(begin_ms, end_ms, pane_ms):
        pane_end_ms = start_ms + pane_ms
        if pane_end_ms + keep_ms <= known.now_ms:
            letters.append("n")
        elif any(span.from_ms <= start_ms < span.to_ms for span in known.rebuilding):
            letters.append("r")
        elif start_ms < known.incomplete_before_ms:
            letters.append("i")
        elif known.processed_through_ms is None:
            letters.append("p")
        else:
            late_ms = known.processed_through_ms - pane_end_ms
            letters.append("f" if late_ms >= 60_000 else "p")
    return min(letters, key="nripf".index)


__all__ = [
    "NOW_MS",
    "PANE_MS",
    "Event",
    "Panes",
    "Span",
    "facts",
    "matches",
    "metric",
    "recount",
    "recounted_state",
    "served",
]
