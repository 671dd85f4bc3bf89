"""P1: the engine beside Flink SQL, on the same topic with the same 20 metrics.

Every metric has three dimensions; a third of them keeps percentiles and distinct users by
the same sketches of the same sizes, in Flink by two aggregate functions over
datasketches-java. Flink counts 10 s windows of event time, without checkpoints, dedup,
ledger or any store behind it: its rows fall into a sink that adds up their counts. The
engine's figure includes all of those, and Redis.

Both have two cores, and a JVM that is warm; the engine's is the one that it has everywhere,
without the optimizing compiler (docs/decisions/0036). Flink's figure begins when its job is
planned, and what the same job takes over no events, measured in each round, is taken off: it
would run for months. The engine plans each batch again, and nothing is taken off. CPU is that of
all processes of either, the broker's with it.

What a fresh job costs once events come is not taken off, and weighs the more the smaller the
log is. What one event more costs, between the two largest logs, is without it, and stands
beside the bar; months of one job would come to that.

What came out is compared with a recount: of both in every total of every run, and how many
of the estimates of all runs are within the bound that is promised. Flink's sink keeps what
falls into it for that, and merges it when the time is over.

The bar is that of the largest log; the smaller ones say how the cost of an event grows, in the
same alternating rounds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import contest
import flink_peer
import harness
from contest import Bench, Contestant, Engine, Log, Spent, by_size, ratio
from flink_peer import SETTINGS, Flink
from floor import Floor, Parser, parser
from shares import Estimates
from workload import Truth, Wanted, check, draw, recount, wanted

WITHOUT = "_without_sketches"
WAYS = {
    "": "the same 20 metrics with sketches",
    WITHOUT: "the same 20 metrics without sketches",
}
SIZES = (250_000, 500_000, 1_000_000, 2_000_000)
NOTES = (
    "what came out was compared with a recount, of both in every run: count, sum, least and most"
    " of each metric; distinct users and 95th percentile within twice the promised bound (three"
    " standard errors, 1.33 % of rank), and over all runs within the bound itself in as many"
    " trials as 99 % allows",
    "Flink without checkpoints, dedup, ledger and store; the engine with dedup, ledger, panes of"
    " 10 s and 1 m, and Redis",
    "Flink: one job of one query for each metric, so each event is read and parsed once; two cores,"
    " ParallelGC and 2 GB as the engine's JVM, but all compilers, where the engine's has the first"
    " alone; planning, start of a job over no events, and the merge of its panes for the check not"
    " counted",
    "P1 is no price of an event: what a fresh job of Flink costs once events come is not taken off,"
    " so its figure falls with the size of the log, and with it the engine's lead. P1 marginal is"
    " without that: by how much a run over the largest log costs more CPU than one over the next"
    " smaller, for each event more (`µs_of_one_more`); there 1 is as dear as Flink, and less than"
    " 1 is dearer",
    "Spark's bare read and parse is the least that Spark's own reading and parsing takes; the"
    " engine does not read through it, and without sketches may take less",
)


@dataclass
class Peer:
    """Flink as a contestant over one log."""

    bench: Bench
    flink: Flink
    log: Log
    metrics: list[Wanted]
    truths: list[Truth]
    estimates: Estimates = field(default_factory=Estimates)
    _said: list[dict[str, Any]] = field(default_factory=list)
    _explained: bool = False

    def run(self) -> Spent:
        """Count the log; return what the job took from when it was planned, without its start."""
        start = self._job(self.log.first(0))
        job = self._job(self.log, explained=not self._explained)
        self._explained = True
        return Spent(self.log.total, job.wall_s - start.wall_s, job.cpu_s - start.cpu_s)

    def check(self) -> None:
        """End the benchmark if a total is wrong."""
        check("Flink", self._said, self.truths, self.metrics, self.estimates)

    def _job(self, log: Log, *, explained: bool = False) -> Spent:
        moments: list[tuple[float, float]] = []
        self._said = self.flink.count(
            self.bench.broker.bootstrap,
            log.topic,
            log.ends,
            self.metrics,
            explained=explained,
            moment=lambda: moments.append((time.monotonic(), self._cpu_s())),
        )
        (began_s, used_s), (ended_s, after_s) = moments
        return Spent(log.total, ended_s - began_s, after_s - used_s)

    def _cpu_s(self) -> float:
        return self.flink.cpu_s() + harness.tree_cpu_s([self.bench.broker.part.pid() or 0])


def contestants(
    bench: Bench, flink: Flink, floor: Parser, events: int, options: argparse.Namespace
) -> dict[str, Contestant]:
    """Return who counts a log of so many events, by name."""
    log = bench.fill(f"bench-{events}", draw(events, options.combinations))
    found: dict[str, Contestant] = {"spark_read_and_parse": Floor(bench, floor, log, options.batch)}
    for sketches, suffix in ((True, ""), (False, WITHOUT)):
        metrics = wanted(options.metrics, sketches=sketches)
        truths = recount(draw(events, options.combinations), metrics)
        found[f"engine{suffix}"] = Engine(bench, log, metrics, truths, options.batch)
        found[f"flink{suffix}"] = Peer(bench, flink, log, metrics, truths)
    return found


def measure(
    bench: Bench, flink: Flink, floor: Parser, options: argparse.Namespace
) -> dict[str, Any]:
    """Return all figures, by size and contestant."""
    of = {events: contestants(bench, flink, floor, events, options) for events in options.events}
    return by_size(of, options.rounds, options.warm)


def bars_of(sizes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the bar, of the largest log, with and without sketches; and the others beside it."""
    made = []
    largest, *smaller = sorted(sizes, key=int, reverse=True)
    for events in (largest, *smaller):
        of = f"{int(events):,} events"
        reach = "≥ 1.0 (record 2)" if events == largest else ""
        for suffix, what in WAYS.items():
            told = f"engine over Flink SQL, {what}, events per CPU-s, {of}"
            got = ratio(sizes[events], f"engine{suffix}", f"flink{suffix}")
            made.append({"id": "P1", "what": told, "reach": reach, "got": got})
        if smaller and events == largest:
            made += marginal(sizes[largest], f"from {int(smaller[0]):,} to {int(largest):,}")
    made.append(
        {
            "id": "P1",
            "what": "for comparison: Spark's bare read and parse over Flink SQL, all of it",
            "reach": "",
            "got": ratio(sizes[largest], "spark_read_and_parse", "flink"),
        }
    )
    return made


def marginal(of: Mapping[str, Any], between: str) -> list[dict[str, Any]]:
    """Return what one event more costs, which is not judged.

    Args:
        of: The figures of the largest log, by contestant.
        between: The sizes that it is told of.
    """
    made = []
    for suffix, what in WAYS.items():
        ours, theirs = (of[f"{who}{suffix}"]["µs_of_one_more"] for who in ("engine", "flink"))
        told = (
            f"engine over Flink SQL, {what}, one event more, {between}:"
            f" {ours['median']} µs ({ours['min']} to {ours['max']}) beside"
            f" {theirs['median']} ({theirs['min']} to {theirs['max']})"
        )
        # Of logs too small to tell it may be 0.
        got = round(theirs["median"] / ours["median"], 3) if ours["median"] else "none"
        made.append({"id": "P1 marginal", "what": told, "reach": "", "got": got})
    return made


def asked(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line says."""
    of = contest.parser_of(__doc__, events=SIZES)
    of.add_argument("--set", action="append", default=[], help="a setting of Flink, name=value")
    of.add_argument("--lock", action="store_true", help="write flink/jars.lock anew, no more")
    return of.parse_args(given)


def main() -> None:
    """Measure and write the result."""
    options = asked()
    if options.lock:
        flink_peer.write_lock()
        return
    SETTINGS.update(one.split("=", 1) for one in options.set)
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as name,
        contest.bench(Path(name)) as bench,
        flink_peer.flink(Path(name) / "flink") as flink,
        parser(bench) as floor,
    ):
        bench.beside.append(flink.process.pid)
        found = measure(bench, flink, floor, options)
    versions = {jar: flink_peer.version_of(jar) for jar in ("flink-core", "flink-connector-kafka")}
    told = {name: value for name, value in vars(options).items() if name not in ("set", "lock")}
    settings = told | {"flink": SETTINGS, "flink_versions": versions}
    figures = {"sizes": found, "bars": bars_of(found), "notes": NOTES}
    sys.stdout.write(harness.write("flink", settings=settings, figures=figures).read_text())


if __name__ == "__main__":
    main()
