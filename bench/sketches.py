"""P12: how often the exact answer lies within the bounds that are printed.

Seeded trials on five shapes of data, each merged from 1, 100 and 10,000 parts by the code
that merges panes: all into one union that stays open, as where many panes are read as one
window; and of 10,000 also one after another, what is merged written and read again after each,
as a pane is that many commits add to. Each percentile is read from a sketch of the size that a
metric asking for it gets, and compared with the nearest rank of all values, sorted; distinct
counts, and what two sets have in common, with the true numbers; each text of a top list with
how often it came, and what is not listed with the bound for that.

A sketch that still holds everything one by one proves nothing. So what is merged is large
enough that it estimates, and so are parts of it, wherever the data have enough different
values; the benchmark fails if they are not, and `parts_estimated` says of how many trials they
are. Of 100 parts each is that large, of sets every other one. Of 10,000 each is for p50 and
p95; a tenth is for p99 and distinct, and one in a hundred or two hundred for the rest, beside
small ones that are exact: of many series few have most events. `--times 5` makes all parts
five times as large. `merge_us_a_part` is what one part more costs a core, in the middle one of
the trials: what a commit pays for a pane's sketch, or a window for a pane.

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
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import harness
from shares import REACH, refuted
from sketch_trials import (
    ERROR,
    KIND_OF,
    KINDS,
    OTHERS,
    PERCENTILES,
    SHAPES,
    Cut,
    Sizes,
    Tally,
    Trial,
    Way,
    is_exact,
    named,
    of_trials,
    part_is_exact,
)
from weir.frequent import TOP_LG_K
from weir.sets import THETA_LG_K
from weir.sketches import HLL_LG_K

# The parts of each kind of sketch, by how many are merged: as the module says.
CUTS: dict[int, dict[str, Cut]] = {
    1: dict.fromkeys(KINDS, Cut(1, 20_000)),
    100: {
        "p50": Cut(100, 1_500),
        "p99": Cut(100, 2_500),
        "p99.9": Cut(100, 10_000),
        "distinct": Cut(100, 1_500),
        "sets": Cut(50, 8_000, 50, 100),
        "top": Cut(100, 1_500),
    },
    10_000: {
        "p50": Cut(10_000, 250),
        "p99": Cut(1_000, 1_000, 9_000, 50),
        "p99.9": Cut(100, 10_000, 9_900, 50),
        "distinct": Cut(1_000, 600, 9_000, 30),
        "sets": Cut(50, 8_000, 9_950, 20),
        "top": Cut(100, 1_500, 9_900, 10),
    },
}
# Of each of the five shapes: a thousand at least of each kind of answer and number of parts; one
# after another they take some five seconds of a core, most of them of sets.
TRIALS = {Way(1): 400, Way(100): 200, Way(10_000): 200, Way(10_000, chained=True): 200}
# Trials of one task: few enough that all cores end at about the same time.
TASK = 5
P99_ERROR, P99_BYTES = 1, 4
USUAL_SECONDS = 3_600


def tasks(options: argparse.Namespace) -> Iterator[Trial]:
    """Yield all trials, the longest first."""
    for way in sorted(options.trials, reverse=True):
        trials = options.trials[way]
        for shape in SHAPES:
            for first in range(0, trials, TASK):
                seeds = range(first, min(trials, first + TASK))
                yield Trial(shape, way, options.cuts[way.parts], seeds, options.sizes)


def failures(
    found: Mapping[Way, dict[str, Tally]], cuts: Mapping[int, Mapping[str, Cut]]
) -> list[str]:
    """Return what is wrong: bounds that do not hold, and trials that prove nothing."""
    wrong = []
    for way, shapes in found.items():
        for name, (held, trials) in pooled(shapes).items():
            if held < REACH * trials:
                wrong.append(f"{name} of {way}: {held} of {trials} within the bounds")
        for shape, tally in shapes.items():
            for name, trials in tally.trials.items():
                held, estimated = tally.held[name], tally.estimated[name]
                if refuted(held, trials):
                    wrong.append(f"{name}, {shape}, {way}: {held} of {trials} within")
                if estimated < trials and not is_exact(
                    shape, name, cuts[way.parts][KIND_OF[name]].values
                ):
                    wrong.append(f"{name}, {shape}, {way}: {estimated} of {trials} estimated")
                large = tally.parts_estimated[name]
                if large < trials and not part_is_exact(shape, name):
                    wrong.append(f"{name}, {shape}, {way}: of {large} of {trials} a part estimated")
    return wrong


def pooled(shapes: dict[str, Tally]) -> dict[str, tuple[int, int]]:
    """Return how many trials held, and of how many, by what was asked, over all shapes."""
    held: Counter[str] = Counter()
    trials: Counter[str] = Counter()
    for tally in shapes.values():
        held.update(tally.held)
        trials.update(tally.trials)
    return {name: (held[name], of) for name, of in trials.items()}


def bars(found: Mapping[Way, dict[str, Tally]]) -> list[dict[str, Any]]:
    """Return the bars: of each kind of answer the least share, and the p99."""
    made = []
    names = [named(q) for q in PERCENTILES] + list(OTHERS)
    for name in names:
        shares = []
        for way, shapes in found.items():
            held, trials = pooled(shapes).get(name, (0, 0))
            if trials:
                shares.append(f"{100 * held / trials:.2f} % ({way}, {trials} trials)")
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


def told(cut: Cut) -> str:
    """Return a cut in words."""
    small = f", {cut.small} of {cut.of_small}" if cut.small else ""
    return f"{cut.large} of {cut.of} values{small}"


def larger(cut: Cut, times: int) -> Cut:
    """Return a cut whose parts are so many times as large."""
    return replace(cut, of=cut.of * times, of_small=cut.of_small * times)


def asked(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line says: `cuts` by parts, `trials` by way to merge, `sizes`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the trials, for a quick look")
    parser.add_argument("--parts", type=int, nargs="+", default=list(CUTS))
    parser.add_argument("--times", type=int, default=1, help="as large as usual are the parts")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--kll-k", type=int, help="of all percentiles; left out, what each takes")
    parser.add_argument("--distinct-lg-k", type=int, default=HLL_LG_K)
    parser.add_argument("--theta-lg-k", type=int, default=THETA_LG_K)
    parser.add_argument("--top-lg-k", type=int, default=TOP_LG_K)
    options = parser.parse_args(given)
    lg_k = options.distinct_lg_k, options.theta_lg_k, options.top_lg_k
    options.sizes = Sizes(options.kll_k, *lg_k)
    options.cuts = {
        parts: {kind: larger(cut, options.times) for kind, cut in CUTS[parts].items()}
        for parts in options.parts
    }
    options.trials = {
        way: max(1, round(trials * options.share))
        for way, trials in TRIALS.items()
        if way.parts in options.parts
    }
    return options


def measured(options: argparse.Namespace) -> dict[Way, dict[str, Tally]]:
    """Return what all trials came to, by way to merge and shape; says how it goes."""
    found = {way: {shape: Tally() for shape in SHAPES} for way in options.trials}
    work, began_s = list(tasks(options)), time.monotonic()
    sys.stderr.write(f"  {len(work)} tasks; usually {USUAL_SECONDS // 60} minutes on two cores\n")
    with ProcessPoolExecutor(options.workers) as pool:
        for n, (task, tally) in enumerate(zip(work, pool.map(of_trials, work), strict=True), 1):
            found[task.way][task.shape].add(tally)
            if n % 50 == 0:
                took_s = time.monotonic() - began_s
                sys.stderr.write(f"  {n} of {len(work)} tasks after {took_s:.0f} s\n")
    return found


def main() -> None:
    """Measure, write the result, and fail if a bound does not hold often enough."""
    options = asked()
    found = measured(options)
    figures: dict[str, Any] = {
        str(way): {shape: tally.to_dict() for shape, tally in shapes.items()}
        for way, shapes in sorted(found.items())
    }
    figures["bars"] = bars(dict(sorted(found.items())))
    sizes = options.sizes
    settings = {
        "parts": {
            str(parts): {kind: told(cut) for kind, cut in options.cuts[parts].items()}
            for parts in options.parts
        },
        "k": {named(q): sizes.kll(q) for q in PERCENTILES},
        "lg_k": {"distinct": sizes.distinct, "theta": sizes.theta, "top": sizes.top},
    }
    if sizes == Sizes():
        shown = harness.write("sketches", settings=settings, figures=figures).read_text()
    else:
        shown = json.dumps({"settings": settings, "figures": figures}, indent=2)
    print(shown)  # noqa: T201  what the command is for
    if wrong := failures(found, options.cuts):
        raise SystemExit("bounds must hold, and be those of an estimate: " + "; ".join(wrong))


if __name__ == "__main__":
    main()
