"""P9: a p99 over every 5 minutes of 24 h of 10 s panes; and what a live query costs.

The backtest's read: packed rows are decoded, their sketches merged into sliding windows
at the step of a pane, and each window gives its p99 with bounds. Redis is not part of it.
In the same run a sample of windows is compared with the exact percentile of the events.

The live hub's step: one pane of an hour's 360 has changed in all of 50 series.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from typing import Any

import datasketches as ds
import harness
import numpy as np
from weir.definitions.metric import Metric
from weir.query import (
    Answer,
    Evaluator,
    Facts,
    PaneKey,
    PaneRows,
    Plan,
    Served,
    Version,
    answer,
    parse_query,
    plan,
)
from weir.rows import Row, decode, encode
from weir.series import encode_series
from weir.sketches import kll_k

SEED = 9
ROUNDS = 5
NOW_MS = 1_795_181_523_000
HOURS = (6, 12, 24)
EVENTS_A_PANE = (100, 1000)
LIVE_SERIES = 50
SAMPLED = 100
K = kll_k([0.99])
METRIC = Metric.model_validate(
    {
        "kind": "metric",
        "name": "latency",
        "events": {"type": "bench"},
        "value": "data.ms",
        "by": ["data.region"],
        "aggregates": ["count", "avg", "p99"],
        "resolution": "10s",
        "keep": {"10s": "48h"},
    }
)
SERVED = {"latency": Served((Version(vid=1, number=1, metric=METRIC),))}
FACTS = Facts(epoch=1, rev=1, processed_through_ms=NOW_MS, now_ms=NOW_MS)
Packed = dict[PaneKey, dict[str, bytes]]


def planned(aggregate: str, last: str, **change: Any) -> Plan:
    """Return the plan of a query about the one metric."""
    asked = {"metric": "latency", "aggregate": aggregate, "range": {"last": last}, **change}
    return plan(parse_query(asked), SERVED, FACTS)


def packed_row(values: np.ndarray) -> bytes:
    """Return the row of some events, as Redis holds it."""
    sketch = ds.kll_doubles_sketch(K)
    sketch.update(values)
    numbers = float(values.sum()), float(values.min()), float(values.max())
    return encode(Row(len(values), *numbers, kll=bytes(sketch.serialize())))


def unpacked(panes: Packed) -> Mapping[PaneKey, PaneRows]:
    """Return panes as the engine takes them."""
    return {k: {text: decode(row) for text, row in rows.items()} for k, rows in panes.items()}


# ── P9 ──────────────────────────────────────────────────────────────────────


def backtest(hours: int, events: int) -> dict[str, Any]:
    """Return the time of one backtest, of several rounds, with its accuracy checked."""
    made = planned("p99", f"{hours}h", window={"kind": "sliding", "length": "5m"}, step="10s")
    rng = np.random.default_rng(SEED)
    values = {key: rng.lognormal(3, 1, size=events) for key in sorted(made.keys)}
    panes = {key: {"~": packed_row(of)} for key, of in values.items()}
    seconds = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        found = answer(made, unpacked(panes), FACTS)
        seconds.append(time.process_time() - begun)
    return {
        "seconds": round(statistics.median(seconds), 3),
        "min": round(min(seconds), 3),
        "max": round(max(seconds), 3),
        "µs_a_window": round(1e6 * statistics.median(seconds) / made.windows.count, 1),
        "within_bounds": check(found, values),
    }


def check(found: Answer, values: Mapping[PaneKey, np.ndarray]) -> str:
    """Compare a sample of windows with the exact p99; fails if more than 1 % are beyond."""
    windows = found.plan.windows
    cells = found.series[0].cells
    sample = np.random.default_rng(SEED).choice(windows.count, SAMPLED, replace=False)
    held = 0
    for at in map(int, sample):
        end_s = windows.ends_ms[at] // 1000
        within = [values[(1, 10, s)] for s in range(end_s - 300, end_s, 10)]
        ordered = np.sort(np.concatenate(within))
        exact = ordered[math.ceil(0.99 * len(ordered) - 1e-9) - 1]
        bounded = cells[at].value
        held += bounded is not None and bounded.low <= exact <= bounded.high
    if held < 0.99 * SAMPLED:
        msg = f"bounds must hold in 99 % of windows, got {held} of {SAMPLED}"
        raise AssertionError(msg)
    return f"{held} of {SAMPLED}"


# ── the live hub ────────────────────────────────────────────────────────────


def live(aggregate: str) -> dict[str, float]:
    """Return the milliseconds of a first answer, and of one after one pane changed."""
    made = planned(aggregate, "1h", by=["region"], window={"kind": "sliding", "length": "5m"})
    rng = np.random.default_rng(SEED)
    texts = [encode_series([f"r{i}"]) for i in range(LIVE_SERIES)]
    panes = {
        key: {text: packed_row(rng.lognormal(3, 1, size=20)) for text in texts}
        for key in sorted(made.keys)
    }
    rows = unpacked(panes)
    evaluator = Evaluator(made)
    begun = time.process_time()
    evaluator.update(rows, FACTS)
    first = time.process_time() - begun
    newest = max(key for key in made.keys if key[2] * 1000 < NOW_MS)
    steps = []
    for extra in range(1, 1 + 4 * ROUNDS):
        row = {text: decode(packed_row(rng.lognormal(3, 1, size=20 + extra))) for text in texts}
        begun = time.process_time()
        evaluator.update({newest: row}, FACTS).to_dict()
        steps.append(time.process_time() - begun)
    return {
        "first_ms": round(1000 * first, 1),
        "step_ms": round(1000 * statistics.median(steps), 2),
        "step_max_ms": round(1000 * max(steps), 2),
    }


def main() -> None:
    """Measure and write the result."""
    backtests = {
        f"{hours} h, {events} events a pane": backtest(hours, events)
        for events in EVENTS_A_PANE
        for hours in HOURS
    }
    lives = {aggregate: live(aggregate) for aggregate in ("count", "avg", "p99")}
    day = [found["seconds"] for name, found in backtests.items() if name.startswith("24 h")]
    bar = {
        "id": "P9",
        "what": "p99 of 5 min at each of 24 h of 10 s panes, CPU seconds, without Redis",
        "reach": "< 5 s (record 2)",
        "got": " and ".join(
            f"{s} s ({e} events a pane)" for s, e in zip(day, EVENTS_A_PANE, strict=True)
        ),
    }
    settings = {"k": K, "seed": SEED, "rounds": ROUNDS, "live_series": LIVE_SERIES}
    figures = {"backtest": backtests, "live": lives, "bars": [bar]}
    path = harness.write("query", settings=settings, figures=figures)
    print(path.read_text())  # noqa: T201  what the command is for


if __name__ == "__main__":
    main()
