"""P12: how often the exact answer lies within the bounds that are printed.

Seeded trials on five shapes of data, each merged from 1, 100 and 10,000 parts by the code
that merges panes. Each percentile is read from a sketch of the size that a metric asking for
it gets, and compared with the nearest rank of all values, sorted; distinct counts, and what
two sets have in common, with the true numbers; each text of a top list with how often it
came, and what is not listed with the bound for that.

A sketch that still holds everything one by one proves nothing. So what is merged is large
enough that it estimates, wherever the data have enough different values, and the benchmark
fails if it does not; `parts_estimated` says whether the parts do so already. Of 100 parts
they do. Of 10,000 they do where a thousand values are enough for it: for p99.9 and theta
they are not, there the parts are exact and what is merged of them is not. With
`--parts 10000 --values 10000=150000000 --share 0.1` they do for those too, in twice the time.

It also fails if less than 99 % of the trials of one kind, over all shapes, are within the
bounds, or if those of one shape are fewer than chance can make of 99 % (one time in a
thousand). Sizes other than the usual are tried by `--kll-k`, `--distinct-lg-k`,
`--theta-lg-k` and `--top-lg-k`, and shown without being written down.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import harness
from sketch_trials import (
    ERROR,
    OTHERS,
    PERCENTILES,
    SHAPES,
    Sizes,
    Tally,
    Trial,
    is_exact,
    of_trials,
)
from weir.frequent import TOP_LG_K
from weir.sets import THETA_LG_K
from weir.sketches import HLL_LG_K

# Of each trial, by how many parts are merged: as the module says.
VALUES = {1: 20_000, 100: 1_500_000, 10_000: 10_000_000}
# Of each shape, by the same. Top lists are bounded for certain, so fewer trials say as much.
TRIALS = {1: 400, 100: 100, 10_000: 40}
TOP_TRIALS = {1: 400, 100: 50, 10_000: 10}
REACH = 0.99
CHANCE = 0.001
# Trials of one task: few enough that all cores end at about the same time.
TASK = 5
P99_ERROR, P99_BYTES = 1, 4
USUAL_SECONDS = 600


def tasks(options: argparse.Namespace) -> Iterator[Trial]:
    """Yield all trials, the longest first."""
    for parts in sorted(options.trials, reverse=True):
        trials, tops = options.trials[parts], options.top_trials[parts]
        for shape in SHAPES:
            for first in range(0, trials, TASK):
                seeds = range(first, min(trials, first + TASK))
                yield Trial(shape, parts, options.values[parts], seeds, options.sizes, tops)


def refuted(held: int, trials: int, share: float = REACH) -> bool:
    """Tell whether a share can hardly be true, seeing that so many trials held.

    Args:
        held: How many did.
        trials: Of how many.
        share: Of trials that would hold in the long run.

    Returns:
        Whether as many misses, or more, come by chance in less than one case of a thousand.
    """
    misses, term, fewer = trials - held, share**trials, 0.0
    for n in range(misses):
        fewer += term
        term *= (trials - n) / (n + 1) * (1 - share) / share
    return 1 - fewer < CHANCE


def failures(found: dict[int, dict[str, Tally]], values: dict[int, int]) -> list[str]:
    """Return what is wrong: bounds that do not hold, and trials that prove nothing."""
    wrong = []
    for parts, shapes in found.items():
        for name, (held, trials) in pooled(shapes).items():
            if held < REACH * trials:
                wrong.append(f"{name} of {parts} parts: {held} of {trials} within the bounds")
        for shape, tally in shapes.items():
            for name, trials in tally.trials.items():
                held, estimated = tally.held[name], tally.estimated[name]
                if refuted(held, trials):
                    wrong.append(f"{name}, {shape}, {parts} parts: {held} of {trials} within")
                if estimated < trials and not is_exact(shape, name, values[parts]):
                    wrong.append(
                        f"{name}, {shape}, {parts} parts: {estimated} of {trials} estimated"
                    )
    return wrong


def pooled(shapes: dict[str, Tally]) -> dict[str, tuple[int, int]]:
    """Return how many trials held, and of how many, by what was asked, over all shapes."""
    held: Counter[str] = Counter()
    trials: Counter[str] = Counter()
    for tally in shapes.values():
        held.update(tally.held)
        trials.update(tally.trials)
    return {name: (held[name], of) for name, of in trials.items()}


def bars(found: dict[int, dict[str, Tally]]) -> list[dict[str, Any]]:
    """Return the bars: of each kind of answer the least share, and the p99."""
    made = []
    names = [f"p{100 * q:g}" for q in PERCENTILES] + list(OTHERS)
    for name in names:
        shares = []
        for parts, shapes in found.items():
            held, trials = pooled(shapes).get(name, (0, 0))
            if trials:
                shares.append(f"{100 * held / trials:.2f} % ({parts:,} parts, {trials} trials)")
        what = f"share of trials within the printed bound, {name}"
        made.append({"id": "P12", "what": what, "reach": "≥ 99 %", "got": ", ".join(shares)})
    for shape in SHAPES:
        off = max(t[shape].worst_error("p99") for t in found.values())
        size = max(t[shape].bytes["p99"] for t in found.values())
        what = f"p99 against its true value, {ERROR}, and bytes a group, {shape}"
        reach = f"record ≤ {P99_ERROR} %, ≤ {P99_BYTES} KB"
        got = f"{100 * off:.2f} %, {size / 1024:.1f} KB"
        made.append({"id": "P12", "what": what, "reach": reach, "got": got})
    return made


def counts(text: str) -> tuple[int, int]:
    """Return what `parts=number` says."""
    parts, number = text.split("=")
    return int(parts), int(number)


def asked(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line says: `values`, `trials` and `top_trials` by parts, `sizes`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the trials, for a quick look")
    parser.add_argument("--parts", type=int, nargs="+", default=list(VALUES))
    parser.add_argument(
        "--values", type=counts, nargs="+", default=[], metavar="PARTS=VALUES", help="of each trial"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--kll-k", type=int, help="of all percentiles; left out, what each takes")
    parser.add_argument("--distinct-lg-k", type=int, default=HLL_LG_K)
    parser.add_argument("--theta-lg-k", type=int, default=THETA_LG_K)
    parser.add_argument("--top-lg-k", type=int, default=TOP_LG_K)
    options = parser.parse_args(given)
    lg_k = options.distinct_lg_k, options.theta_lg_k, options.top_lg_k
    options.sizes = Sizes(options.kll_k, *lg_k)
    options.values = VALUES | dict(options.values)
    for name, usual in (("trials", TRIALS), ("top_trials", TOP_TRIALS)):
        shares = {parts: max(1, round(usual[parts] * options.share)) for parts in options.parts}
        setattr(options, name, shares)
    return options


def measured(options: argparse.Namespace) -> dict[int, dict[str, Tally]]:
    """Return what all trials came to, by parts and shape; says how it goes."""
    found = {parts: {shape: Tally() for shape in SHAPES} for parts in options.trials}
    work, began_s = list(tasks(options)), time.monotonic()
    sys.stderr.write(f"  {len(work)} tasks; usually {USUAL_SECONDS // 60} minutes on two cores\n")
    with ProcessPoolExecutor(options.workers) as pool:
        for n, (task, tally) in enumerate(zip(work, pool.map(of_trials, work), strict=True), 1):
            found[task.parts][task.shape].add(tally)
            if n % 50 == 0:
                took_s = time.monotonic() - began_s
                sys.stderr.write(f"  {n} of {len(work)} tasks after {took_s:.0f} s\n")
    return found


def main() -> None:
    """Measure, write the result, and fail if a bound does not hold often enough."""
    options = asked()
    found = measured(options)
    figures: dict[str, Any] = {
        f"{parts} parts of {options.values[parts] // parts} values": {
            shape: tally.to_dict() for shape, tally in shapes.items()
        }
        for parts, shapes in sorted(found.items())
    }
    figures["bars"] = bars(dict(sorted(found.items())))
    sizes = options.sizes
    settings = {
        "values": {str(parts): options.values[parts] for parts in sorted(found)},
        "k": {f"p{100 * q:g}": sizes.kll(q) for q in PERCENTILES},
        "lg_k": {"distinct": sizes.distinct, "theta": sizes.theta, "top": sizes.top},
    }
    if sizes == Sizes():
        shown = harness.write("sketches", settings=settings, figures=figures).read_text()
    else:
        shown = json.dumps({"settings": settings, "figures": figures}, indent=2)
    print(shown)  # noqa: T201  what the command is for
    if wrong := failures(found, options.values):
        raise SystemExit("bounds must hold, and be those of an estimate: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
