"""P8: what an event costs when there are more of them, more series, more definitions.

Each size is a log of its own, counted by the engine as in `engine.py`, the sizes of one axis
in alternating rounds. A line that bends shows as a cost per unit that is not that of the
smallest size. Definitions are grown twice: as `definitions`, with as many event types as
definitions, so that each event matches one of them however many there are; and as `matches`,
over one type, so that each event matches all of them. Of those one match costs less the more
there are, since they share what the event costs by itself; so what one *more* costs is a bar
of its own: from the second size to the last against from the first to the second.

All axes take about an hour. `--only` measures some of them; the others stay in the result as
they were, each with its own commit and machine, and the page says where those differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import contest
import harness
from contest import Bench, Contestant, Engine, rounds
from workload import PARTITIONS, draw, recount, wanted

METRICS, COMBINATIONS, TYPES = 20, 200, 10
# Series are those of all metrics together, ten here.
DEFAULTS = {
    "events": [1_000_000, 3_000_000, 10_000_000],
    "series": [10, 100, 1_000, 10_000],
    "definitions": [1, 10, 100],
    "matches": [1, 10, 100],
}
WHAT = {
    "events": "events",
    "series": "series",
    "definitions": "definitions, of which an event matches one",
    "matches": "definitions, of which an event matches all",
}
# For what is said beforehand, measured on two cores: microseconds to draw, admit, write and
# recount an event, to count one, and to count one more match of it.
US_MADE, US_COUNTED, US_MATCH = 40, 10, 1
# An event is recounted once for each metric that it matches.
US_RECOUNTED = 0.5
# As many matches an event are no more work than usual.
MATCHES_A_WARM = 10
# A new session, broker and Redis.
START_S = 30


@dataclass(frozen=True)
class Size:
    """One log and the metrics over it."""

    events: int
    combinations: int = COMBINATIONS
    metrics: int = METRICS
    types: int = TYPES
    alike: bool = False

    @property
    def matching(self) -> int:
        """How many definitions an event matches; filters are not looked at."""
        return max(1, self.metrics // self.types)

    def engine(self, bench: Bench, batch: int) -> Engine:
        """Fill the log and return the engine over it."""
        name = f"events-{self.events}-{self.combinations}-{self.types}-{self.metrics}"
        log = bench.fill(name, draw(self.events, self.combinations, self.types))
        metrics = wanted(self.metrics, sketches=True, types=self.types, alike=self.alike)
        truths = recount(draw(self.events, self.combinations, self.types), metrics)
        return Engine(bench, log, metrics, truths, batch)


def sizes(options: argparse.Namespace) -> dict[str, dict[int, Size]]:
    """Return the sizes of each axis that is asked for."""
    few = options.events[0]
    all_of_them = {
        "events": {n: Size(n) for n in options.events},
        "series": {
            n: Size(few, combinations=max(1, n // TYPES), metrics=TYPES) for n in options.series
        },
        "definitions": {
            n: Size(few, max(1, COMBINATIONS // n), metrics=n, types=n, alike=True)
            for n in options.definitions
        },
        "matches": {n: Size(few // 4, metrics=n, types=1, alike=True) for n in options.matches},
    }
    return {axis: all_of_them[axis] for axis in options.only}


def expected_s(asked: Mapping[int, Size], options: argparse.Namespace) -> float:
    """Return about how many seconds an axis takes on two cores."""
    made = sum(size.events * (US_MADE + US_RECOUNTED * size.matching) for size in asked.values())
    counted = sum(
        (warm_events(size, options) + options.rounds * size.events)
        * (US_COUNTED + US_MATCH * (size.matching - 1))
        for size in asked.values()
    )
    return START_S + float(made + counted) / 1e6


def warm_events(size: Size, options: argparse.Namespace) -> int:
    """Return how many events a size counts before: fewer of those that match much."""
    return int(options.warm_events) // max(1, round(size.matching / MATCHES_A_WARM))


def warm(engine: Engine, events: int) -> None:
    """Let the engine count so many events of its log, or all of it so often that it comes to that.

    What a JVM compiles in its first minutes is not its pace. Of a large log its beginning does.
    """
    if events < PARTITIONS:
        return
    part = replace(engine, log=engine.log.first(min(events, engine.log.total)))
    for _ in range(max(1, events // part.log.total)):
        took = part.run()
        contest.tell("warm", engine.log.topic, took.events / took.cpu_s)


def grown(bench: Bench, asked: Mapping[int, Size], options: argparse.Namespace) -> dict[str, Any]:
    """Return for each size the cost of an event in µs of CPU, and how that grew."""
    engines = {n: size.engine(bench, options.batch) for n, size in asked.items()}
    for n, engine in engines.items():
        warm(engine, warm_events(asked[n], options))
    contestants: dict[str, Contestant] = {str(n): engine for n, engine in engines.items()}
    found = rounds(contestants, options.rounds, warm=0)
    return costs({n: found[str(n)]["per_cpu_s"] for n in asked}, asked)


def costs(
    per_cpu_s: Mapping[int, Mapping[str, float]], asked: Mapping[int, Size]
) -> dict[str, dict[str, float]]:
    """Return what an event and a match cost, by size, from how many a CPU-second makes.

    Args:
        per_cpu_s: Events, as `median`, `min` and `max` of the rounds.
        asked: The same sizes, the smallest first.
    """
    least = before = next(iter(asked))
    first = last = 1e6 / per_cpu_s[least]["median"]
    found = {}
    for n, size in asked.items():
        cost = 1e6 / per_cpu_s[n]["median"]
        one = {
            "µs_an_event": round(cost, 2),
            "min": round(1e6 / per_cpu_s[n]["max"], 2),
            "max": round(1e6 / per_cpu_s[n]["min"], 2),
            "µs_a_match": round(cost / size.matching, 2),
            "of_the_smallest": round(cost / first, 3),
        }
        if n > least and size.types == 1:
            one["µs_a_match_more"] = round((cost - last) / (n - before), 3)
        before, last = n, cost
        found[str(n)] = one
    return found


def bars(axis: str, found: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Return the bars of an axis: by how much the dearest size is above the smallest.

    What is to be reached is the cost of an event, and of definitions that of a *matching* one:
    of all of them together, and of one more.
    """
    if axis != "matches":
        return [_bar(axis, "an event", list(found), [f["of_the_smallest"] for f in found.values()])]
    shares = _bar(axis, "a match", list(found), [one["µs_a_match"] for one in found.values()])
    more = {n: one["µs_a_match_more"] for n, one in found.items() if "µs_a_match_more" in one}
    if len(more) < 2:
        return [shares]
    steps = [f"{one} to {other}" for one, other in pairwise(found)]
    told = _bar(axis, "one more match", list(found), list(more.values()))
    costs_of = ", ".join(
        f"{cost} µs from {step}" for step, cost in zip(steps, more.values(), strict=True)
    )
    return [shares, told | {"what": f"{told['what']} ({costs_of})"}]


def _bar(axis: str, unit: str, sizes: Sequence[str], costs_of: Sequence[float]) -> dict[str, Any]:
    growth = 100 * (max(costs_of) / costs_of[0] - 1)
    return {
        "id": "P8",
        "what": f"growth of the cost of {unit}, {sizes[0]} to {sizes[-1]} {WHAT[axis]}",
        "reach": "≤ 40 % (record 20)",
        "got": f"{growth:.1f} %",
    }


def merged(
    before: Mapping[str, Any] | None, measured: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return pieces and figures of a result, of which some axes were measured now.

    Args:
        before: The result as it was; None if there is none.
        measured: By axis: `made` and `settings` of the run, and `sizes`, its figures.
    """
    before = before or {"pieces": {}, "figures": {}}
    pieces, figures = {}, {}
    for axis in DEFAULTS:
        if axis in measured:
            one = measured[axis]
            pieces[axis], figures[axis] = one["made"] | {"settings": one["settings"]}, one["sizes"]
        elif axis in before.get("pieces", {}):
            pieces[axis], figures[axis] = before["pieces"][axis], before["figures"][axis]
    return pieces, figures | {
        "bars": [one for axis, of in figures.items() for one in bars(axis, of)]
    }


def write(measured: Mapping[str, Any]) -> Path:
    """Write what was measured beside what stands there of other axes; return the file."""
    path = harness.RESULTS / "growth.json"
    before = json.loads(path.read_text()) if path.exists() else None
    pieces, figures = merged(before, measured)
    missing = [axis for axis in DEFAULTS if axis not in pieces]
    if missing:
        figures["notes"] = [f"not measured yet: {', '.join(missing)}"]
    settings = {axis: piece["settings"] for axis, piece in pieces.items()}
    return harness.write("growth", settings=settings, figures=figures, pieces=pieces)


def asked(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in DEFAULTS.items():
        parser.add_argument(f"--{name}", type=int, nargs="+", default=default)
    parser.add_argument("--only", nargs="+", choices=list(DEFAULTS), default=list(DEFAULTS))
    parser.add_argument("--batch", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-events", type=int, default=4_000_000, help="of each size, before")
    return parser.parse_args(given)


def main() -> None:
    """Measure and write the result, after each axis."""
    options = asked()
    wanted_sizes = sizes(options)
    minutes = {a: expected_s(of, options) / 60 for a, of in wanted_sizes.items()}
    told = ", ".join(f"{axis} {m:.0f}" for axis, m in minutes.items())
    sys.stderr.write(f"  about {sum(minutes.values()):.0f} minutes on two cores: {told}\n")
    for axis, of in wanted_sizes.items():
        with (
            tempfile.TemporaryDirectory(prefix="weir-bench-") as name,
            contest.bench(Path(name)) as bench,
        ):
            found = grown(bench, of, options)
        settings = {"batch": options.batch, "rounds": options.rounds}
        settings |= {"warm_events": options.warm_events, "events": of[next(iter(of))].events}
        one = {"made": harness.made_now("growth"), "settings": settings, "sizes": found}
        path = write({axis: one})
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
