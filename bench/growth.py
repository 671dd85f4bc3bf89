"""P8: what an event costs when there are more of them, more series, more definitions.

Each size is a log of its own, counted by the engine as in `engine.py`, the sizes of one kind
in alternating rounds. A line that bends shows as a cost per unit that is not that of the
smallest size. Definitions are grown twice: with as many event types as definitions, so that
each event matches one of them however many there are; and over one type, so that each event
matches all of them, where the cost of one more match is told.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import contest
import harness
from contest import Bench, Contestant, Engine, rounds
from workload import draw, recount, wanted

METRICS, COMBINATIONS, TYPES = 20, 200, 10
# Series are those of all metrics together, ten here.
DEFAULTS = {
    "events": [1_000_000, 3_000_000, 10_000_000],
    "series": [10, 100, 1_000, 10_000],
    "definitions": [1, 10, 100],
    "matches": [1, 3, 10],
}


@dataclass(frozen=True)
class Size:
    """One log and the metrics over it."""

    events: int
    combinations: int = COMBINATIONS
    metrics: int = METRICS
    types: int = TYPES
    alike: bool = False

    def engine(self, bench: Bench, batch: int) -> Engine:
        """Fill the log and return the engine over it."""
        name = f"events-{self.events}-{self.combinations}-{self.types}-{self.metrics}"
        log = bench.fill(name, draw(self.events, self.combinations, self.types))
        metrics = wanted(self.metrics, sketches=True, types=self.types, alike=self.alike)
        truths = recount(draw(self.events, self.combinations, self.types), metrics)
        return Engine(bench, log, metrics, truths, batch)


def sizes(options: argparse.Namespace) -> dict[str, dict[int, Size]]:
    """Return the sizes of each kind."""
    few = options.events[0]
    return {
        "events": {n: Size(n) for n in options.events},
        "series": {
            n: Size(few, combinations=max(1, n // TYPES), metrics=TYPES) for n in options.series
        },
        "definitions, of which an event matches one": {
            n: Size(few, metrics=n, types=n, alike=True) for n in options.definitions
        },
        "definitions, of which an event matches all": {
            n: Size(few // 4, metrics=n, types=1, alike=True) for n in options.matches
        },
    }


def grown(bench: Bench, asked: Mapping[int, Size], options: argparse.Namespace) -> dict[str, Any]:
    """Return for each size the cost of an event in µs of CPU, and how that grew."""
    engines: dict[str, Contestant] = {
        str(n): size.engine(bench, options.batch) for n, size in asked.items()
    }
    found: dict[str, Any] = {}
    for name, figures in rounds(engines, options.rounds, options.warm).items():
        costs = {kind: 1e6 / per_s for kind, per_s in figures["per_cpu_s"].items()}
        found[name] = {
            "µs_an_event": round(costs["median"], 2),
            "min": round(costs["max"], 2),
            "max": round(costs["min"], 2),
        }
    first, least = next(iter(found.values()))["µs_an_event"], next(iter(asked))
    for n, figures in zip(asked, found.values(), strict=True):
        figures["of_the_smallest"] = round(figures["µs_an_event"] / first, 3)
        if n > least and asked[n].types == 1:
            figures["µs_a_match_more"] = round((figures["µs_an_event"] - first) / (n - least), 2)
    return found


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, nargs="+", default=default)
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=4, help="rounds before")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for kind, asked in sizes(options).items():
        with (
            tempfile.TemporaryDirectory(prefix="weir-bench-") as name,
            contest.bench(Path(name)) as bench,
        ):
            figures[kind] = grown(bench, asked, options)
    figures["bars"] = [_bar(kind, found) for kind, found in figures.items() if "all" not in kind]
    sys.stdout.write(harness.write("growth", settings=vars(options), figures=figures).read_text())


def _bar(kind: str, found: Mapping[str, Any]) -> dict[str, Any]:
    most = max(figures["of_the_smallest"] for figures in found.values())
    return {
        "id": "P8",
        "what": f"cost of an event, {' to '.join((next(iter(found)), list(found)[-1]))} {kind}",
        "reach": "within 40 % (record 20 %)",
        "got": f"at most {100 * (most - 1):+.0f} % on the smallest",
    }


if __name__ == "__main__":
    main()
