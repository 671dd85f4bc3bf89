"""P2 and P11: what the engine makes of a core, beside Spark's bare read-and-parse.

Floor and engine read the same ranges of the same topic in alternating rounds, each in a
session of its own (`floor.py`). The floor reads and parses the fields that the metrics need,
with plain types, and throws them away. The engine's figure includes dedup, ledger, sketches and
Redis. CPU is that of the whole tree: driver, JVM, Python workers, broker, Redis. After each round
ledger and metrics are compared with a recount, and the benchmark fails if one is off.

The log is of three sizes, each with a bar of its own. What dedup costs is measured with several
numbers of digests within the horizon: each is a log of its own, counted whole with dedup and
without it. The last log begins behind an hour at 20,000 events/s (`past.py`), and is counted once
in batches as the others and once in batches of a second of that, so many that runs are merged as
they are while such traffic lasts. Each partition's runs of a minute are merged once to one of the
largest size, and in small batches a sieve takes in four of those.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import contest
import harness
import undeduped
from contest import Bench, Contestant, Engine, Log, Spent, by_size, ratio, rounds
from floor import Floor, Parser, parser
from past import Past
from pyspark import RDD
from pyspark.sql import Row, SparkSession
from weir_analytics.panes import dataflow, plans
from weir_analytics.panes.arrow_plan import AnyPlan
from weir_analytics.panes.runs import held
from workload import draw, recount, wanted

# Each of whole batches.
SIZES = (200_000, 400_000, 1_000_000)
# Events a second for an hour, in batches of a second, and how many are counted behind it.
A_SECOND = 20_000
PAST_S = 3_600
BEHIND = 1_200_000


@dataclass
class WithoutDedup:
    """The engine without its dispose step, which leaves no run."""

    engine: Engine

    def run(self) -> Spent:
        """Count the log; every event counts, whether it came before or not."""
        steps = {name: getattr(undeduped, name) for name in ("count_range", "count_and_write")}
        # What is made once for a plan is kept apart, so that neither counts by the other's.
        with patch.multiple(dataflow, **steps), patch.object(plans, "small_rows", small_rows):
            return self.engine.run()

    def check(self) -> None:
        """Compare everything with the recount, and what dedup remembers with what it did before."""
        self.engine.check()
        check_remembered(self.engine, 0)


@dataclass
class WithDedup:
    """The engine as it is, which remembers its events and all of before them."""

    engine: Engine

    def run(self) -> Spent:
        """Count the log."""
        return self.engine.run()

    def check(self) -> None:
        """Compare everything with the recount, and what dedup remembers with what came."""
        self.engine.check()
        check_remembered(self.engine, self.engine.log.total)


def check_remembered(engine: Engine, more: int) -> None:
    """End the benchmark if dedup does not remember a log's past and so many events besides.

    A past that it does not take for its own is deleted, and nothing would be looked through.
    """
    past, folder = engine.log.past, engine.bench.settings.dedup_dir
    wanted_now = (past.identities if past else 0) + more
    there = sum(held(path, path.stat().st_size) for path in folder.rglob("*.run"))
    if there != wanted_now:
        msg = f"dedup must remember {wanted_now} identities, got {there}"
        raise SystemExit(msg)


@lru_cache
def small_rows(spark: SparkSession, plan: AnyPlan, tasks: int = 1) -> RDD[Row]:
    """Return what small batches without dedup are collected by."""
    return dataflow.small_dataflow(spark, plan, tasks).rdd


def measure(bench: Bench, floor: Parser, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the engine beside its floor, by size."""
    contestants: dict[int, dict[str, Contestant]] = {}
    for events in options.events:
        log = bench.fill(f"bench-{events}", draw(events, options.combinations))
        contestants[events] = {
            "floor": Floor(bench, floor, log, options.batch),
            "engine": engine_of(bench, log, options, events),
            "engine_without_sketches": engine_of(bench, log, options, events, sketches=False),
        }
    return by_size(contestants, options.rounds, options.warm)


def measure_dedup(
    bench: Bench, options: argparse.Namespace, folder: Path
) -> dict[str, dict[str, Any]]:
    """Return the figures with dedup and without it, by what is within the horizon.

    Args:
        bench: What runs the engine.
        options: What was asked for.
        folder: Where a long past is written.
    """
    found: dict[str, dict[str, Any]] = {}
    for events in sorted(options.dedup_events):
        log = bench.fill(f"dedup-{events}", draw(events, options.combinations))
        engine = engine_of(bench, log, options, events)
        found[f"{events:,} events within the horizon"] = with_and_without(engine, options)
    if not options.dedup_past:
        return found
    past = Past.write(folder, options.dedup_past, A_SECOND, bench.settings.horizon_ms)
    sys.stderr.write(f"  {past.told}\n")
    log = bench.fill("dedup-past", draw(BEHIND, options.combinations), past)
    for size in (options.batch, A_SECOND):
        engine = replace(engine_of(bench, log, options, BEHIND), size=size)
        what = f"behind {options.dedup_past} s of {A_SECOND:,} events/s, batches of {size:,}"
        found[what] = with_and_without(engine, options)
    return found


def with_and_without(engine: Engine, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of one log with dedup and without it."""
    contestants: dict[str, Contestant] = {
        "engine": WithDedup(engine),
        "engine_without_dedup": WithoutDedup(engine),
    }
    return rounds(contestants, options.rounds, options.dedup_warm)


def engine_of(
    bench: Bench, log: Log, options: argparse.Namespace, events: int, *, sketches: bool = True
) -> Engine:
    """Return the engine over a log of so many events."""
    metrics = wanted(options.metrics, sketches=sketches)
    truths = recount(draw(events, options.combinations), metrics)
    return Engine(bench, log, metrics, truths, options.batch)


def main() -> None:
    """Measure and write the result."""
    arguments = contest.parser_of(__doc__, events=SIZES)
    arguments.add_argument(
        "--dedup-events",
        type=int,
        nargs="+",
        default=[100_000, 400_000, 1_000_000],
        help="within the horizon, with dedup and without",
    )
    arguments.add_argument(
        "--dedup-warm", type=int, default=3, help="rounds before, of each of those"
    )
    arguments.add_argument(
        "--dedup-past",
        type=int,
        default=PAST_S,
        help=f"seconds of {A_SECOND:,} events that are within the horizon; 0: not measured",
    )
    options = arguments.parse_args()
    # The workers find there how to count without dedup.
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as name,
        contest.bench(Path(name)) as bench,
    ):
        with parser(bench) as floor:
            found = measure(bench, floor, options)
        dedup = measure_dedup(bench, options, Path(name) / "past")
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
                "what": f"dedup on over off, {past}",
                "reach": "≥ 0.75 (record 0.9)",
                "got": ratio(of, "engine", "engine_without_dedup"),
            }
            for past, of in dedup.items()
        ),
    ]
    figures = {"sizes": found, "dedup": dedup, "bars": bars}
    path = harness.write("engine", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
