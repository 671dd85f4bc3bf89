"""P1: the engine beside Flink SQL, on the same topic with the same 20 metrics.

Every metric has three dimensions; a third of them keeps percentiles and distinct users by
the same sketches of the same sizes, in Flink by two aggregate functions over
datasketches-java. Flink counts 10 s windows of event time, without checkpoints, dedup,
ledger or any store behind it: its rows fall into a sink that adds up their counts. The
engine's figure includes all of those, and Redis.

Both have two cores, and a JVM that is warm. Flink's figure begins when its job is planned,
and what the same job takes over no events, measured in each round, is taken off: it would
run for months. The engine plans each batch again, and nothing is taken off. CPU is that of
all processes of either, the broker's with it.

What came out is compared with a recount: of the engine in every total of every run, the
estimates within their bounds; of Flink in the first run, later in the counts of each metric.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import contest
import flink_peer
import harness
from contest import Bench, Contestant, Engine, Log, Spent, ratio, rounds
from engine import Floor
from flink_peer import SETTINGS, Flink
from workload import Truth, Wanted, check, draw, recount, wanted

NOTES = (
    "what came out was compared with a recount: of the engine in every run, of Flink in the first,"
    " with its counts in all: count, sum, least and most of each metric, distinct users and 95th"
    " percentile within three times their bound",
    "Flink without checkpoints, dedup, ledger and store; the engine with dedup, ledger, panes of"
    " 10 s and 1 m, and Redis",
    "Flink: one job of one query for each metric, so each event is read and parsed once; two cores,"
    " ParallelGC and 2 GB as the engine's JVM; planning, and start of a job over no events, not"
    " counted",
)


@dataclass
class Peer:
    """Flink as a contestant over one log."""

    bench: Bench
    flink: Flink
    log: Log
    metrics: list[Wanted]
    truths: list[Truth]
    _said: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> Spent:
        """Count the log; return what the job took from when it was planned, without its start."""
        start = self._job(self.log.first(0), checked=False)
        job = self._job(self.log, checked=not self._said)
        return Spent(self.log.total, job.wall_s - start.wall_s, job.cpu_s - start.cpu_s)

    def check(self) -> None:
        """End the benchmark if a total is wrong."""
        check("Flink", self._said, self.truths, self.metrics)

    def _job(self, log: Log, *, checked: bool) -> Spent:
        began: list[float] = []
        self._said = self.flink.count(
            self.bench.broker.bootstrap,
            log.topic,
            log.ends,
            self.metrics,
            checked=checked,
            submitted=lambda: began.extend((time.monotonic(), self._cpu_s())),
        )
        return Spent(log.total, time.monotonic() - began[0], self._cpu_s() - began[1])

    def _cpu_s(self) -> float:
        return self.flink.cpu_s() + harness.tree_cpu_s([self.bench.broker.part.pid() or 0])


@dataclass
class Beside:
    """Another contestant while Flink's JVM stands beside it, whose CPU is not the other's."""

    other: Contestant
    flink: Flink

    def run(self) -> Spent:
        """Count the log."""
        before = self.flink.cpu_s()
        took = self.other.run()
        return replace(took, cpu_s=took.cpu_s - (self.flink.cpu_s() - before))

    def check(self) -> None:
        """Compare everything with the recount."""
        self.other.check()


def measure(bench: Bench, flink: Flink, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    log = bench.fill("bench", draw(options.events, options.combinations))
    # What Spark takes at least: no engine on it could be faster.
    floor = Floor(bench, log, options.batch)
    contestants: dict[str, Contestant] = {"spark_read_and_parse": Beside(floor, flink)}
    for sketches, suffix in ((True, ""), (False, "_without_sketches")):
        metrics = wanted(options.metrics, sketches=sketches)
        truths = recount(draw(options.events, options.combinations), metrics)
        engine = Engine(bench, log, metrics, truths, options.batch)
        contestants[f"engine{suffix}"] = Beside(engine, flink)
        contestants[f"flink{suffix}"] = Peer(bench, flink, log, metrics, truths)
    return rounds(contestants, options.rounds, options.warm)


def main() -> None:
    """Measure and write the result."""
    parser = contest.parser_of(__doc__, events=1_000_000, warm=4)
    parser.add_argument("--set", action="append", default=[], help="a setting of Flink, name=value")
    parser.add_argument("--lock", action="store_true", help="write flink/jars.lock anew, no more")
    options = parser.parse_args()
    if options.lock:
        flink_peer.write_lock()
        return
    SETTINGS.update(one.split("=", 1) for one in options.set)
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as name,
        contest.bench(Path(name)) as bench,
        flink_peer.flink(Path(name) / "flink") as flink,
    ):
        found = measure(bench, flink, options)
    bars = [
        _bar(found, "", "engine over Flink SQL, the same 20 metrics, events per CPU-s"),
        _bar(found, "_without_sketches", "the same without sketches"),
        {
            "id": "P1",
            "what": "for comparison: Spark's bare read and parse over Flink SQL, all of it",
            "reach": "",
            "got": ratio(found, "spark_read_and_parse", "flink"),
        },
    ]
    versions = {jar: flink_peer.version_of(jar) for jar in ("flink-core", "flink-connector-kafka")}
    told = {name: value for name, value in vars(options).items() if name not in ("set", "lock")}
    settings = told | {"flink": SETTINGS, "flink_versions": versions}
    figures = {"rounds": found, "bars": bars, "notes": NOTES}
    sys.stdout.write(harness.write("flink", settings=settings, figures=figures).read_text())


def _bar(found: dict[str, Any], suffix: str, what: str) -> dict[str, Any]:
    got = ratio(found, f"engine{suffix}", f"flink{suffix}")
    return {"id": "P1", "what": what, "reach": "≥ 1.0 (record 2)", "got": got}


if __name__ == "__main__":
    main()
