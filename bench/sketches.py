"""P12: how often the exact answer lies within the bounds that are printed.

Seeded trials on five shapes of data, each merged from 1, 100 and 10,000 parts. Each
percentile is read from a sketch of the size that a metric asking for it gets, and
compared with the nearest rank of all values; distinct counts with the true number. The
benchmark fails if a share is below 99 %.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import datasketches as ds
import harness
import numpy as np
from weir.sketches import Bounded, hll_estimate, kll_k, kll_quantile, merge_hll, merge_kll

VALUES = 20_000
# Trials by how many parts are merged: 10,000 parts cost 60 times as much as one.
TRIALS = {1: 1000, 100: 1000, 10_000: 100}
PERCENTILES = (0.5, 0.95, 0.99)
REACH = 0.99
Sample = Callable[[np.random.Generator], np.ndarray]

SAMPLES: dict[str, Sample] = {
    "uniform": lambda rng: rng.uniform(size=VALUES),
    "lognormal": lambda rng: rng.lognormal(3, 1, size=VALUES),
    "zipf": lambda rng: rng.zipf(1.5, size=VALUES).astype(float),
    "sorted": lambda rng: np.sort(rng.uniform(size=VALUES)),
    "constant": lambda _: np.full(VALUES, 7.0),
}


def percentiles_within(sample: Sample, parts: int, trials: int) -> dict[str, Any]:
    """Return the share of trials within the bounds, and how wide they are, by percentile."""
    held = dict.fromkeys(PERCENTILES, 0)
    size = 0
    for seed in range(trials):
        values = sample(np.random.default_rng(seed))
        ordered = np.sort(values)
        for k in sorted({kll_k([q]) for q in PERCENTILES}):
            merged = merge_kll(_kll(chunk, k) for chunk in np.array_split(values, parts)) or b""
            size = max(size, len(merged))
            for q in (q for q in PERCENTILES if kll_k([q]) == k):
                exact = ordered[math.ceil(q * VALUES - 1e-9) - 1]
                held[q] += _holds(kll_quantile(merged, q), exact)
    return {"bytes": size, **{f"p{100 * q:g}": count / trials for q, count in held.items()}}


def distinct_within(parts: int, trials: int) -> dict[str, Any]:
    """Return the share of trials within the bounds; a third of the values repeat."""
    held = 0
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 2**62, size=VALUES)
        values[: VALUES // 3] = values[-(VALUES // 3) :]
        merged = merge_hll(_hll(chunk) for chunk in np.array_split(values, parts)) or b""
        held += _holds(hll_estimate(merged), len(np.unique(values)))
    return {"distinct": held / trials}


def _kll(values: np.ndarray, k: int) -> bytes:
    sketch = ds.kll_doubles_sketch(k)
    sketch.update(values)
    return bytes(sketch.serialize())


def _hll(values: np.ndarray) -> bytes:
    sketch = ds.hll_sketch(12, ds.HLL_8)
    for value in values.tolist():
        sketch.update(value)
    return bytes(sketch.serialize_compact())


def _holds(bounded: Bounded, exact: float) -> bool:
    return bool(bounded.low <= exact <= bounded.high)


def main() -> None:
    """Measure, write the result, and fail if a bound does not hold often enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the trials, for a quick look")
    share = parser.parse_args().share
    figures: dict[str, Any] = {}
    shares: list[float] = []
    for parts, of in TRIALS.items():
        trials = max(1, round(of * share))
        found = {name: percentiles_within(s, parts, trials) for name, s in SAMPLES.items()}
        found["distinct"] = distinct_within(parts, trials)
        figures[f"{parts} parts, {trials} trials"] = found
        shares += [v for one in found.values() for n, v in one.items() if n != "bytes"]
    got = f"{100 * min(shares):.1f} % at worst, {100 * sum(shares) / len(shares):.2f} % on average"
    what = "share of trials within the printed bound"
    figures["bars"] = [{"id": "P12", "what": what, "reach": "≥ 99 %", "got": got}]
    settings = {"values": VALUES, "k": {f"p{100 * q:g}": kll_k([q]) for q in PERCENTILES}}
    path = harness.write("sketches", settings=settings, figures=figures)
    print(path.read_text())  # noqa: T201  what the command is for
    if min(shares) < REACH:
        msg = f"bounds must hold in 99 % of trials, got {100 * min(shares):.1f} %"
        raise SystemExit(msg)


if __name__ == "__main__":
    main()
