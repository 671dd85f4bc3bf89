"""What a batch could cost whose events are parsed and counted in Arrow, by Python's workers.

Decision 0030 asks what holds the engine behind Flink SQL. Its floor is Spark's own reader of
JSON. Here the same records go to the workers as bytes, and Arrow's libraries do the rest, step
by step, so that what each step adds is seen. It is a measurement of libraries and no engine:
types are declared, nothing is quarantined, deduplicated, merged or stored.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import contest
import harness
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from contest import Bench, Contestant, Log, Spent, ratio, rounds, spent
from datasketches import hll_sketch, kll_doubles_sketch
from floor import Floor, Parser, parser
from workload import Wanted, draw, recount, wanted

PANE_MS = 10_000
FIELDS = pa.schema(
    [
        ("weirms", pa.string()),
        ("type", pa.string()),
        ("weirtenant", pa.string()),
        ("weirsource", pa.string()),
        (
            "data",
            pa.struct(
                [
                    *((name, pa.string()) for name in ("region", "route", "env", "user")),
                    *((name, pa.float64()) for name in ("status", "latency_ms", "bytes")),
                ]
            ),
        ),
    ]
)
Step = Callable[[pa.RecordBatch], int]


@dataclass
class Workers:
    """Python's workers, who take records as bytes and do one more step than who comes before."""

    bench: Bench
    log: Log
    size: int
    step: Step
    expected: int
    got: int = 0

    def run(self) -> Spent:
        """Take all of the log."""
        return spent(self.log.total, self._take, self.bench.cpu_s)

    def check(self) -> None:
        """End the benchmark if another number of events was counted than should be."""
        if self.got != self.expected:
            msg = f"{self.expected} events must be counted, got {self.got}"
            raise SystemExit(msg)

    def _take(self) -> None:
        step, self.got = self.step, 0

        def counts(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield pa.record_batch({"n": [step(batch)]})

        for start, end in self.log.slices(self.size):
            values = self.bench.read(self.log, start, end).select("value")
            self.got += sum(row.n for row in values.mapInArrow(counts, "n long").collect())


def parsed(batch: pa.RecordBatch) -> pa.Table:
    """Return the fields of events that come as bytes, one JSON text each."""
    lines = pa.compute.binary_join(
        pa.ListArray.from_arrays([0, batch.num_rows], batch.column(0)), b"\n"
    )
    text = lines[0].as_buffer()
    return pj.read_json(
        pa.BufferReader(text),
        read_options=pj.ReadOptions(use_threads=False, block_size=max(1, text.size)),
        parse_options=pj.ParseOptions(explicit_schema=FIELDS, unexpected_field_behavior="ignore"),
    )


def step_of(metrics: list[Wanted]) -> Step:
    """Return who counts the metrics' events by pane and dimensions, with their sketches."""

    def step(batch: pa.RecordBatch) -> int:
        table = parsed(batch)
        data = table["data"].combine_chunks()
        pane = pc.floor(
            pc.divide(pc.cast(pc.utf8_slice_codeunits(table["weirms"], 1), pa.int64()), PANE_MS)
        )
        found = pa.table(
            {"type": table["type"], "pane": pane}
            | {name: data.field(name) for name in ("region", "route", "env", "user")}
            | {name: data.field(name) for name in ("status", "latency_ms", "bytes")}
        )
        by_type = {
            one: found.filter(pc.equal(found["type"], one)) for one in {m.type for m in metrics}
        }
        return sum(counted(one, by_type[one.type]) for one in metrics)

    return step


def counted(one: Wanted, events: pa.Table) -> int:
    """Count a metric's events by pane and dimensions; return how many there are."""
    if one.filtered:
        events = events.filter(
            pc.and_(pc.less(events["status"], 500.0), pc.equal(events["env"], "prod"))
        )
    keys = ["pane", "region", "route", "status"]
    asked = [(one.value, how) for how in ("count", "sum", "min", "max")]
    if one.sketches:
        asked += [(one.value, "list"), ("user", "list")]
    groups = events.group_by(keys, use_threads=False).aggregate(asked)
    if one.sketches:
        sketch(groups, one.value)
    return int(pc.sum(groups[f"{one.value}_count"]).as_py() or 0)


def sketch(groups: pa.Table, value: str) -> list[tuple[bytes, bytes]]:
    """Return both sketches of each group."""
    made = []
    for values, users in zip(groups[f"{value}_list"], groups["user_list"], strict=True):
        kll, hll = kll_doubles_sketch(200), hll_sketch(12)
        kll.update(values.values.to_numpy().copy())
        for user in users.values.to_pylist():
            hll.update(user)
        made.append((kll.serialize(), hll.serialize_compact()))
    return made


def measure(bench: Bench, floor: Parser, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of each step beside Spark's read and parse."""
    log = bench.fill("bench", draw(options.events, options.combinations))
    metrics = wanted(options.metrics, sketches=True)
    plain = wanted(options.metrics, sketches=False)
    matches = sum(
        len(one.values) for one in recount(draw(options.events, options.combinations), plain)
    )
    steps: dict[str, tuple[Step, int]] = {
        "bytes_handed_over": (lambda batch: batch.num_rows, options.events),
        "parsed_in_arrow": (lambda batch: parsed(batch).num_rows, options.events),
        "counted_in_arrow_without_sketches": (step_of(plain), matches),
        "counted_in_arrow": (step_of(metrics), matches),
    }
    contestants: dict[str, Contestant] = {"floor": Floor(bench, floor, log, options.batch)}
    for name, (step, expected) in steps.items():
        contestants[name] = Workers(bench, log, options.batch, step, expected)
    return rounds(contestants, options.rounds, options.warm)


def main() -> None:
    """Measure and write the result."""
    options = contest.parser_of(__doc__, events=1_000_000).parse_args()
    # The workers find there what the steps are made of.
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as name,
        contest.bench(Path(name)) as bench,
        parser(bench) as floor,
    ):
        found = measure(bench, floor, options)
    figures = {
        "rounds": found,
        "over_floor": {name: ratio(found, name, "floor") for name in found if name != "floor"},
    }
    path = harness.write("arrow", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
