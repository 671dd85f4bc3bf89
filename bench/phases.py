"""The budget of a small batch: what each phase takes at 1,000 events a second.

The real panes job counts a steady load with 20 metrics, as it does in the stack; steps of its
driver and of its Python workers are marked (`marks.py`), and Spark tells its own. Phases
follow each other, so they add up to the batch; parsing, matching and aggregating are one piece
of generated code and one phase. Every event sent must be counted at the end.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import marks
from confluent_kafka import Producer
from job import END_S, job
from marks import Mark
from weir import names
from weir.admission import Admitted
from weir.clock import SystemClock
from workload import EVENT, Drawn, draw, record_of, wanted

TURN_S = 0.02
START_S = 600.0

# Of Spark's own steps around what `foreachBatch` runs, by the names that it gives them.
AROUND = {
    "latestOffset": "Spark: look for new records",
    "queryPlanning": "Spark: plan the stream's batch",
    "walCommit": "Spark: write the range to the checkpoint",
    "commitOffsets": "Spark: note in the checkpoint that it is done",
}


# What each phase may take, in ms, in the median. An event waits for half a batch and is counted
# by a whole one, so one and a half times the sum, half a second, is the engine's part of P3's
# 800 ms; the rest is left to ingest, the readers and the page.
BUDGET_MS = {
    "driver: what is counted, and the range": 5,
    "Spark: start the task": 100,
    "read the records": 10,
    "dispose: fates and dedup": 30,
    "parse, match, aggregate": 45,
    "writer: parts of panes": 15,
    "commit to Redis": 25,
    "Spark: end the task": 25,
    "driver: outcome, definitions, outboxes": 10,
    "record: append for the readers": 5,
    "driver: afterwards": 1,
    "Spark: look for new records": 12,
    "Spark: plan the stream's batch": 12,
    "Spark: write the range to the checkpoint": 20,
    "Spark: note in the checkpoint that it is done": 20,
}
# Of P3's 1,500 ms, likewise, where the batch before was as slow.
WHOLE_P99_MS = 500


# ── the load ────────────────────────────────────────────────────────────────


@dataclass
class Load:
    """Events at a steady pace, each with the time at which it is sent."""

    producer: Producer
    events: Iterator[Drawn]
    rate: int
    sent: int = 0

    def run(self, seconds: float) -> None:
        """Send for some time."""
        began, due, before = time.monotonic(), 0, self.sent
        while (passed := time.monotonic() - began) < seconds:
            due = int(passed * self.rate)
            while self.sent - before < due:
                found = _now(next(self.events))
                self.producer.produce(names.EVENTS, found.value, found.key, headers=EVENT)
                self.sent += 1
            self.producer.poll(0)
            time.sleep(TURN_S)


def _now(drawn: Drawn) -> Admitted:
    """Return an event as if it happened now."""
    return record_of(drawn, SystemClock().now_ms())


# ── the table ───────────────────────────────────────────────────────────────


def phases_of(batch: Mark, steps: Sequence[Mark]) -> dict[str, float] | None:
    """Return what each phase of one batch took, in ms; None if it went another way.

    Args:
        batch: The driver's step around all others.
        steps: What ended within it, in the order of ends.
    """
    by_step: dict[str, list[Mark]] = {}
    for one in steps:
        by_step.setdefault(one.step, []).append(one)
    if any(len(by_step.get(step, ())) != 1 for step in ("job", "record", "merge", "commit")):
        return None
    if not {"read", "dispose", "take"} <= by_step.keys():
        return None
    job, record, commit = (by_step[step][0] for step in ("job", "record", "commit"))
    reader = [one for step in ("read", "dispose", "runs") for one in by_step.get(step, ())]
    taken = by_step["take"][0]
    # Values are decoded slice by slice, before the runs are written.
    read, decoded = (sum(one.wall for one in by_step.get(s, ())) for s in ("read", "decode"))
    first, last = min(one.start for one in reader), max(one.end for one in reader)
    spans = {
        "driver: what is counted, and the range": job.start - batch.start,
        "Spark: start the task": first - job.start,
        "read the records": read,
        "dispose: fates and dedup": last - first - read - decoded,
        "parse, match, aggregate": taken.start - last + decoded,
        "writer: parts of panes": commit.start - taken.start,
        "commit to Redis": commit.wall,
        "Spark: end the task": job.end - commit.end,
        "driver: outcome, definitions, outboxes": record.start - job.end,
        "record: append for the readers": record.wall,
        "driver: afterwards": batch.end - record.end,
    }
    return {name: span / 1e6 for name, span in spans.items()}


def table(found: Sequence[Mark]) -> dict[str, Any]:
    """Return median and 99th percentile of each phase, in ms, over all batches."""
    batches = [one for one in found if one.step == "batch"]
    budgets = []
    for batch in batches:
        within = [one for one in found if batch.start <= one.start and one.end <= batch.end]
        if phases := phases_of(batch, within):
            budgets.append(phases)
    if not budgets:
        msg = f"some batch must have every phase, none of {len(batches)} had; see the job's log"
        raise SystemExit(msg)
    lines = {name: _spread([one[name] for one in budgets]) for name in budgets[0]}
    spark = [
        json.loads(one.step.removeprefix("spark ")) for one in found if one.step[:5] == "spark"
    ]
    for name, told in AROUND.items():
        if values := [float(one[name]) for one in spark if name in one]:
            lines[told] = _spread(values)
    whole = _spread([one.wall / 1e6 for one in batches])
    return {"batches": len(budgets), "ms": lines, "all of foreachBatch": whole}


def bars(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return each phase held against its budget, and the 99th percentile of the whole."""
    whole, of_p3 = found["all of foreachBatch"], "P3's share"
    return [
        *(
            {
                "id": of_p3,
                "what": phase,
                "reach": f"p50 ≤ {budget} ms",
                "got": f"p50 {found['ms'][phase]['p50']} ms",
            }
            for phase, budget in BUDGET_MS.items()
            if phase in found["ms"]
        ),
        {
            "id": of_p3,
            "what": "all of foreachBatch",
            "reach": f"p99 ≤ {WHOLE_P99_MS} ms",
            "got": f"p99 {whole['p99']} ms",
        },
    ]


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {
        name: round(harness.percentile(values, q), 1) for name, q in (("p50", 0.5), ("p99", 0.99))
    }


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--combinations", type=int, default=200, help="of the dimensions")
    parser.add_argument("--metrics", type=int, default=20)
    parser.add_argument("--warm-s", type=float, default=90)
    parser.add_argument("--span-s", type=float, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as name:
        figures = measure(Path(name), options)
    path = harness.write("phases", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    events = draw(sys.maxsize, options.combinations)
    with job(folder, wanted(options.metrics, sketches=True), marked=True) as running:
        producer = Producer(
            {
                "bootstrap.servers": running.broker.bootstrap,
                "linger.ms": 5,
                "enable.idempotence": True,
            }
        )
        load = Load(producer, events, options.rate)
        load.run(1)
        producer.flush(END_S)
        running.await_accounted(load.sent, START_S)
        load.run(options.warm_s)
        running.file.write_text("")
        cpu_s = harness.tree_cpu_s([running.pid])
        load.run(options.span_s)
        cores = (harness.tree_cpu_s([running.pid]) - cpu_s) / options.span_s
        found = marks.read(running.file)
        producer.flush(END_S)
        running.await_accounted(load.sent)
    figures = table(found)
    figures |= {"cores of the job": round(cores, 3), "events": load.sent}
    return figures | {"bars": bars(figures)}


if __name__ == "__main__":
    main()
