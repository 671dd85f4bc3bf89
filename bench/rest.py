"""P14 and P15: how fast the stack starts again, and what it uses at rest and under a little load.

Runs a stack of its own in a temporary folder. CPU is that of all its processes and their
children, over a span; memory is their resident memory at the end of it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import harness

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from equality import DEFINITION, assert_equal_to_recount
from load import Load
from weir_local.testing import TestStack


def pids(stack: TestStack) -> list[int]:
    """Return the first process of each part."""
    return [pid for part in stack.stack.parts.values() if (pid := part.pid()) is not None]


def use_over(stack: TestStack, seconds: float) -> dict[str, Any]:
    """Return cores used over a span by part and in all, and memory at its end."""
    names = {n: p.pid() for n, p in stack.stack.parts.items() if p.pid() is not None}
    before = {n: harness.tree_cpu_s([pid]) for n, pid in names.items() if pid}
    began = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    after = {n: harness.tree_cpu_s([pid]) for n, pid in names.items() if pid}
    cores = {n: round((after[n] - before[n]) / took, 3) for n in before}
    memory = {n: round(harness.tree_rss_bytes([pid]) / 1e9, 2) for n, pid in names.items() if pid}
    return {
        "cores": round(sum(cores.values()), 3),
        "memory_gb": round(sum(memory.values()), 2),
        "cores_by_part": cores,
        "memory_gb_by_part": memory,
    }


def start_s(stack: TestStack) -> float:
    """Start a stack that is down; return the seconds until every part was ready."""
    began = time.monotonic()
    stack.start()
    return round(time.monotonic() - began, 1)


def main() -> None:
    """Measure, compare the load with the recount, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settle-s", type=float, default=300)
    parser.add_argument("--span-s", type=float, default=60)
    parser.add_argument("--starts", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        stack = TestStack(Path(folder))
        first = start_s(stack)
        try:
            again = []
            for _ in range(options.starts):
                stack.stop()
                again.append(start_s(stack))
            stack.define("metric", "load", DEFINITION)
            time.sleep(options.settle_s)
            rest = use_over(stack, options.span_s)
            load = Load(stack.ingest_url, stack.key, "rest", batch=100, at_most=1_000_000)
            with load:
                time.sleep(min(60.0, options.settle_s))
                loaded = use_over(stack, options.span_s)
            assert_equal_to_recount(stack, load)
        finally:
            stack.stop()
    figures = {
        "first_start_s": first,
        "starts_s": again,
        "at_rest": rest,
        "at_1000_a_second": loaded,
        "sent": load.acknowledged,
        "notes": ["every event of the load was counted: ledger and panes equal the recount"],
        "bars": [
            {
                "id": "P14",
                "what": "start of the whole stack, everything installed",
                "reach": "< 30 s",
                "got": f"{sorted(again)[len(again) // 2]} s (median of {len(again)})",
            },
            {
                "id": "P15",
                "what": "at rest",
                "reach": "≤ 0.3 core, ≤ 2.5 GB",
                "got": f"{rest['cores']} core, {rest['memory_gb']} GB",
            },
            {
                "id": "P15",
                "what": "at 1,000 events/s",
                "reach": "≤ 0.9 core",
                "got": f"{loaded['cores']} core, {loaded['memory_gb']} GB",
            },
        ],
    }
    path = harness.write("rest", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
