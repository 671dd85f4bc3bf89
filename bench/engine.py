"""P2 and P11: what the engine makes of a core, beside Spark's bare read-and-parse.

Floor and engine read the same ranges of the same topic in alternating rounds, in one
session. The floor reads and parses the fields that the metrics need, with plain types,
and throws them away. The engine's figure includes dedup, ledger, sketches and Redis. CPU
is that of the whole tree: driver, JVM, Python workers, broker, Redis. After each round
ledger and metrics are compared with a recount, and the benchmark fails if one is off.

The log is of three sizes, each with a bar of its own. What dedup costs is measured with several
numbers of digests within the horizon: each is a log of its own, counted whole with dedup and
without it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import contest
import harness
import undeduped
from contest import Bench, Contestant, Engine, Log, Spent, by_size, ratio, rounds, spent
from pyspark.sql import functions as F
from workload import draw, recount, wanted

# Each of whole batches.
SIZES = (200_000, 400_000, 1_000_000)
FLOOR_SCHEMA = (
    "type string, weirtenant string, weirsource string, data struct<region: string,"
    " route: string, env: string, status: double, latency_ms: double, bytes: double,"
    " user: string>"
)


@dataclass
class Floor:
    """Who reads and parses every event, and throws it away."""

    bench: Bench
    log: Log
    size: int

    def run(self) -> Spent:
        """Parse the log."""
        return spent(self.log.total, self._parse, self.bench.cpu_s)

    def check(self) -> None:
        """Do nothing: no number comes out."""

    def _parse(self) -> None:
        for start, end in self.log.slices(self.size):
            parsed = F.from_json(F.col("value").cast("string"), FLOOR_SCHEMA).alias("e")
            records = self.bench.read(self.log, start, end).select(parsed)
            records.write.format("noop").mode("overwrite").save()


@dataclass
class WithoutDedup:
    """The engine without its dispose step."""

    engine: Engine

    def run(self) -> Spent:
        """Count the log; every event counts, whether it came before or not."""
        flow: Any = importlib.import_module("weir_analytics.panes.dataflow")
        kept = flow.count_range
        flow.count_range = undeduped.count_range
        try:
            return self.engine.run()
        finally:
            flow.count_range = kept

    def check(self) -> None:
        """Compare everything with the recount."""
        self.engine.check()


def measure(bench: Bench, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the engine beside its floor, by size."""
    contestants: dict[int, dict[str, Contestant]] = {}
    for events in options.events:
        log = bench.fill(f"bench-{events}", draw(events, options.combinations))
        contestants[events] = {
            "floor": Floor(bench, log, options.batch),
            "engine": engine_of(bench, log, options, events),
            "engine_without_sketches": engine_of(bench, log, options, events, sketches=False),
        }
    return by_size(contestants, options.rounds, options.warm)


def measure_dedup(bench: Bench, options: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """Return the figures with dedup and without it, by how many events are within the horizon."""
    found: dict[int, dict[str, Any]] = {}
    for events in sorted(options.dedup_events):
        log = bench.fill(f"dedup-{events}", draw(events, options.combinations))
        engine = engine_of(bench, log, options, events)
        contestants: dict[str, Contestant] = {
            "engine": engine,
            "engine_without_dedup": WithoutDedup(engine),
        }
        found[events] = rounds(contestants, options.rounds, options.dedup_warm)
    return found


def engine_of(
    bench: Bench, log: Log, options: argparse.Namespace, events: int, *, sketches: bool = True
) -> Engine:
    """Return the engine over a log of so many events."""
    metrics = wanted(options.metrics, sketches=sketches)
    truths = recount(draw(events, options.combinations), metrics)
    return Engine(bench, log, metrics, truths, options.batch)


def main() -> None:
    """Measure and write the result."""
    parser = contest.parser_of(__doc__, events=SIZES, warm=4)
    parser.add_argument(
        "--dedup-events",
        type=int,
        nargs="+",
        default=[100_000, 400_000, 1_000_000],
        help="within the horizon, with dedup and without",
    )
    parser.add_argument("--dedup-warm", type=int, default=3, help="rounds before, of each of those")
    options = parser.parse_args()
    # The workers find there how to count without dedup.
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as name,
        contest.bench(Path(name)) as bench,
    ):
        found = measure(bench, options)
        dedup = measure_dedup(bench, options)
    bars = [
        *(
            {
                "id": "P2",
                "what": f"engine over read-and-parse, per CPU-s, {int(events):,} events",
                "reach": "≥ 0.35 (record 0.5)",
                "got": ratio(of, "engine", "floor"),
            }
            for events, of in found.items()
        ),
        *(
            {
                "id": "P11",
                "what": f"dedup on over off, {events:,} events within the horizon",
                "reach": "≥ 0.75 (record 0.9)",
                "got": ratio(of, "engine", "engine_without_dedup"),
            }
            for events, of in dedup.items()
        ),
    ]
    figures = {"sizes": found, "dedup": dedup, "bars": bars}
    path = harness.write("engine", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
