"""P13: all panes counted again from the log, beside live counting of the same events.

The real panes job counts a log live, as fast as it can: more events are written at once than
it can follow, and what it counted after the last was written is its pace. Then Redis loses
everything while the job runs, and the time until ledger and metrics equal the recount again is
that of the rebuild. Rounds alternate, in one life of the job; each rebuild counts all rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import contest
import harness
from confluent_kafka import Producer
from job import END_S, Job, job
from weir import names
from weir.clock import SystemClock
from workload import (
    EVENT,
    PARTITIONS,
    Drawn,
    Truth,
    Wanted,
    check,
    draw,
    record_of,
    recount,
    wanted,
)

LONGEST_S = 900.0


def send(running: Job, events: Sequence[Drawn]) -> None:
    """Write events, made beforehand, as fast as the broker takes them."""
    now_ms = SystemClock().now_ms()
    records = [(record_of(one, now_ms + i // 10), one) for i, one in enumerate(events)]
    producer = Producer(
        {"bootstrap.servers": running.broker.bootstrap, "linger.ms": 20, "enable.idempotence": True}
    )
    for found, one in records:
        partition = one.number % PARTITIONS
        while True:
            try:
                producer.produce(names.EVENTS, found.value, found.key, partition, headers=EVENT)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(END_S)


def live(running: Job, events: Sequence[Drawn], before: int) -> float:
    """Return the events a second that are counted after the last of some was written."""
    send(running, events)
    counted, began_s = running.accounted(), time.monotonic()
    running.await_accounted(before + len(events), LONGEST_S)
    return (before + len(events) - counted) / (time.monotonic() - began_s)


def rebuilt(running: Job, total: int) -> float:
    """Return the events a second of a rebuild, from the loss to the last event."""
    running.redis.flushall()
    began_s = time.monotonic()
    running.await_accounted(total, LONGEST_S)
    return total / (time.monotonic() - began_s)


def compare(running: Job, metrics: Sequence[Wanted], truths: Sequence[Truth]) -> None:
    """End the benchmark if a total of a metric is not that of the recount."""
    vids = running.vids(metrics)
    said = [contest.totals(running.redis, one, vid) for one, vid in zip(metrics, vids, strict=True)]
    check("the rebuild", said, truths, metrics)


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    metrics = wanted(options.metrics, sketches=True)
    # One round to warm up. Numbers go on, so that no event is one of a round before.
    drawn = list(draw(options.events * (options.rounds + 1), options.combinations))
    found: dict[str, list[float]] = {"live_per_s": [], "rebuild_per_s": []}
    with job(folder, metrics) as running:
        running.await_serving(metrics)
        for start in range(0, len(drawn), options.events):
            upto = start + options.events
            truths = recount(drawn[:upto], metrics)
            found["live_per_s"].append(live(running, drawn[start:upto], start))
            compare(running, metrics, truths)
            found["rebuild_per_s"].append(rebuilt(running, upto))
            compare(running, metrics, truths)
    return {name: _spread(figures[1:]) for name, figures in found.items()}


def _spread(figures: Sequence[float]) -> dict[str, int]:
    ends = {"min": round(min(figures)), "max": round(max(figures))}
    return {"median": round(statistics.median(figures))} | ends


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000, help="of a round")
    parser.add_argument("--combinations", type=int, default=200, help="of the dimensions")
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        figures = measure(Path(name), options)
    got = figures["rebuild_per_s"]["median"] / figures["live_per_s"]["median"]
    bar = {
        "id": "P13",
        "what": "rebuild over live counting, events a second",
        "reach": "≥ 1.5 (record 3)",
        "got": round(got, 2),
    }
    figures["bars"] = [bar]
    sys.stdout.write(harness.write("rebuild", settings=vars(options), figures=figures).read_text())


if __name__ == "__main__":
    main()
