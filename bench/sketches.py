"""P12: how often the exact answer lies within the bounds that are printed.

Sizes other than the usual are tried by `--kll-k`, `--distinct-lg-k`, `--theta-lg-k` and
`--top-lg-k`, and shown without being written down; give large ones more `--values` than
they hold, or all is exact.

Seeded trials on five shapes of data, each merged from 1, 100 and 10,000 parts. Each
percentile is read from a sketch of the size that a metric asking for it gets, and
compared with the nearest rank of all values; distinct counts, and what two sets have in
common, with the true numbers; each text of a top list with how often it came, and what is
not listed with the bound for that. The benchmark fails if a share is below 99 %.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import datasketches as ds
import harness
import numpy as np
from weir.frequent import TOP_LG_K, Texts, merge_top, texts_union, top_of
from weir.sets import THETA_LG_K, Theta, merge_theta, only_left, opened, overlap, set_size
from weir.sketches import (
    HLL_LG_K,
    Bounded,
    hll_estimate,
    kll_k,
    kll_quantile,
    merge_hll,
    merge_kll,
)

# More than the largest usual sketch, of k 8,500 for p99.9, holds one by one.
VALUES = 20_000
# Trials by how many parts are merged, of each shape: 10,000 parts cost five times as much as one.
TRIALS = {1: 250, 100: 250, 10_000: 100}
PERCENTILES = (0.001, 0.5, 0.95, 0.99, 0.999)
LISTED = 10
REACH = 0.99
Values = np.ndarray
Sample = Callable[[np.random.Generator, int], Values]

SAMPLES: dict[str, Sample] = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "lognormal": lambda rng, n: rng.lognormal(3, 1, size=n),
    "zipf": lambda rng, n: rng.zipf(1.5, size=n).astype(float),
    "sorted": lambda rng, n: np.sort(rng.uniform(size=n)),
    "constant": lambda _, n: np.full(n, 7.0),
}


@dataclass(frozen=True)
class Sizes:
    """How large the sketches of a run are, and of how many values.

    Attributes:
        values: Of how many values each trial is.
        kll_k: Of every percentile; None: the size that a metric asking for it gets.
        distinct, theta, top: Base-2 logarithms, as in a metric's `sketches`.
    """

    values: int = VALUES
    kll_k: int | None = None
    distinct: int = HLL_LG_K
    theta: int = THETA_LG_K
    top: int = TOP_LG_K

    def kll(self, q: float) -> int:
        """Return the size of the sketch that a percentile is read from."""
        return self.kll_k or kll_k([q])


class Tally:
    """What trials of one shape and one number of parts came to."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.held: Counter[str] = Counter()
        self.trials: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def note(self, name: str, held: bool, size: int) -> None:
        """Count one trial."""
        self.held[name] += held
        self.trials[name] += 1
        self.bytes[name] = max(self.bytes[name], size)

    def to_dict(self) -> dict[str, Any]:
        """Return the share within the bounds and the largest sketch, by what was asked."""
        return {
            name: {"within": self.held[name] / of, "bytes": self.bytes[name]}
            for name, of in self.trials.items()
        }


def measured(sample: Sample, parts: int, trials: int, sizes: Sizes) -> Tally:
    """Return what seeded trials came to."""
    tally = Tally(sizes)
    for seed in range(trials):
        values = sample(np.random.default_rng(seed), sizes.values)
        chunks = np.array_split(values, parts)
        try_percentiles(values, chunks, tally)
        try_distinct(values, chunks, tally)
        try_sets(values, parts, tally)
        try_top(values, chunks, tally)
    return tally


def try_percentiles(values: Values, chunks: Iterable[Values], tally: Tally) -> None:
    """Compare each percentile with the nearest rank of all values."""
    ordered = np.sort(values)
    for k in sorted({tally.sizes.kll(q) for q in PERCENTILES}):
        merged = merge_kll(_kll(chunk, k) for chunk in chunks) or b""
        for q in (q for q in PERCENTILES if tally.sizes.kll(q) == k):
            exact = ordered[math.ceil(q * len(values) - 1e-9) - 1]
            tally.note(f"p{100 * q:g}", _holds(kll_quantile(merged, q), exact), len(merged))


def try_distinct(values: Values, chunks: Iterable[Values], tally: Tally) -> None:
    """Compare the distinct count with how many different values there are."""
    merged = merge_hll(_hll(chunk, tally.sizes.distinct) for chunk in chunks) or b""
    tally.note("distinct", _holds(hll_estimate(merged), len(np.unique(values))), len(merged))


def try_sets(values: Values, parts: int, tally: Tally) -> None:
    """Compare a set, and what two of which half is common have in common, with the truth."""
    third = len(values) // 3
    halves = values[: 2 * third], values[third:]
    one, other = (_set(half, parts, tally.sizes.theta) for half in halves)
    size = len(one.sketch)
    tally.note("theta", _holds(set_size(opened(one)), len(np.unique(halves[0]))), size)
    common = set_size(overlap(opened(one), opened(other)))
    tally.note("overlap", _holds(common, len(np.intersect1d(*halves))), size)
    left = set_size(only_left(opened(one), opened(other)))
    tally.note("only_left", _holds(left, len(np.setdiff1d(*halves))), size)


def try_top(values: Values, chunks: Iterable[Values], tally: Tally) -> None:
    """Compare every listed text, and the most frequent one that is not, with a plain count."""
    counts = Counter(values.tolist())
    merged = merge_top(_top(chunk, tally.sizes.top) for chunk in chunks) or Texts(0, b"")
    top = top_of(texts_union([merged]), LISTED)
    held = all(item.low <= counts.pop(float(item.text)) <= item.high for item in top.items)
    held = held and max(counts.values(), default=0) <= top.unlisted
    tally.note("top", held, len(merged.sketch))


def _kll(values: Values, k: int) -> bytes:
    sketch = ds.kll_doubles_sketch(k)
    sketch.update(values)
    return bytes(sketch.serialize())


def _hll(values: Values, lg_k: int) -> bytes:
    sketch = ds.hll_sketch(lg_k, ds.HLL_8)
    for value in values.tolist():
        sketch.update(value)
    return bytes(sketch.serialize_compact())


def _set(values: Values, parts: int, lg_k: int) -> Theta:
    made = []
    for chunk in np.array_split(values, parts):
        sketch = ds.update_theta_sketch(lg_k)
        for value in chunk.tolist():
            sketch.update(value)
        if not sketch.is_empty():
            made.append(Theta(lg_k, bytes(sketch.compact().serialize())))
    merged = merge_theta(made)
    if merged is None:
        msg = "a set must be made of at least one value"
        raise AssertionError(msg)
    return merged


def _top(values: Values, lg_k: int) -> Texts:
    sketch = ds.frequent_strings_sketch(lg_k)
    for value, count in Counter(values.tolist()).items():
        sketch.update(repr(value), count)
    return Texts(len(values), bytes(sketch.serialize()))


def _holds(bounded: Bounded, exact: float) -> bool:
    return bool(bounded.low <= exact <= bounded.high)


def asked() -> tuple[float, Sizes]:
    """Return the share of the trials to run, and the sizes, as the command line says."""
    usual = Sizes()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the trials, for a quick look")
    parser.add_argument("--values", type=int, default=usual.values, help="of each trial")
    parser.add_argument("--kll-k", type=int, help="of all percentiles; left out, what each takes")
    for name in ("distinct", "theta", "top"):
        parser.add_argument(f"--{name}-lg-k", type=int, default=getattr(usual, name))
    given = parser.parse_args()
    lg_k = given.distinct_lg_k, given.theta_lg_k, given.top_lg_k
    return given.share, Sizes(given.values, given.kll_k, *lg_k)


def main() -> None:
    """Measure, write the result, and fail if a bound does not hold often enough."""
    share, sizes = asked()
    figures: dict[str, Any] = {}
    shares: list[float] = []
    for parts, of in TRIALS.items():
        trials = max(1, round(of * share))
        found = {n: measured(s, parts, trials, sizes).to_dict() for n, s in SAMPLES.items()}
        figures[f"{parts} parts, {trials} trials"] = found
        shares += [one["within"] for shape in found.values() for one in shape.values()]
    got = f"{100 * min(shares):.1f} % at worst, {100 * sum(shares) / len(shares):.2f} % on average"
    what = "share of trials within the printed bound"
    figures["bars"] = [{"id": "P12", "what": what, "reach": "≥ 99 %", "got": got}]
    settings = {
        "values": sizes.values,
        "k": {f"p{100 * q:g}": sizes.kll(q) for q in PERCENTILES},
        "lg_k": {"distinct": sizes.distinct, "theta": sizes.theta, "top": sizes.top},
    }
    if sizes == Sizes():
        shown = harness.write("sketches", settings=settings, figures=figures).read_text()
    else:
        shown = json.dumps({"settings": settings, "figures": figures}, indent=2)
    print(shown)  # noqa: T201  what the command is for
    if min(shares) < REACH:
        msg = f"bounds must hold in 99 % of trials, got {100 * min(shares):.1f} %"
        raise SystemExit(msg)


if __name__ == "__main__":
    main()
