"""P14 and P15: how fast the stack starts again, and what it uses at rest and under a little load.

Two stacks, one after the other, each in a temporary folder: one counts what the demo counts,
over the demo's requests; the other the 20 metrics of `workload.py`, those of P1. Each is left
alone for five minutes, measured at rest, then sent 1,000 events a second, made beforehand, and
measured again. Afterwards all that came out is compared with a recount.

CPU is that of all processes and their children, over five spans; memory is their resident
memory at the end of each, so what processes share counts in each of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import contest
import harness
import job
import psutil
import redis

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from account import account_for, read_log
from job import Job
from paced import Paced
from recount import WEB_METRICS, Api, compare, compare_ledger, panes_of
from weir.definitions.budget import TENANT_BYTES as BUDGET_BYTES
from weir_local.demo.accesslog import read_log as read_requests
from weir_local.demo.prepare import put_definitions, wait_until_counting
from weir_local.repository import ACCESS_LOG
from weir_local.testing import TestStack
from workload import check, draw, recount, sent, wanted

RATE, BODY = 1_000, 100
METRICS, COMBINATIONS = 20, 200
PANE_MS = 10_000
COUNTED_S = 300.0


# ── what is used ────────────────────────────────────────────────────────────

Processes = dict[tuple[str, int], tuple[float, float]]
"""By kind and pid: CPU seconds so far, resident gigabytes."""


def kind_of(process: psutil.Process, part: str, first: int) -> str:
    """Return what a process is: the part itself, its JVM, or Python workers."""
    if process.name() == "java":
        return f"{part}: JVM"
    return f"{part}: {'itself' if process.pid == first else 'workers'}"


def by_process(stack: TestStack) -> Processes:
    """Return CPU seconds so far and resident gigabytes of each process, by kind and pid."""
    found = {}
    for part, one in stack.stack.parts.items():
        pid = one.pid()
        if pid is None:
            continue
        root = psutil.Process(pid)
        for process in [root, *root.children(recursive=True)]:
            try:
                times, memory = process.cpu_times(), process.memory_info().rss / 1e9
                kind = kind_of(process, part, pid)
            except psutil.NoSuchProcess:
                continue
            found[kind, process.pid] = (float(times.user + times.system), memory)
    return found


def cores_between(before: Processes, after: Processes, took_s: float) -> dict[str, float]:
    """Return the cores used between two looks by kind of process, of those that there still are."""
    cores: dict[str, float] = {}
    for (kind, pid), (cpu_s, _gigabytes) in after.items():
        used_s = cpu_s - before.get((kind, pid), (0.0, 0.0))[0]
        cores[kind] = cores.get(kind, 0.0) + used_s / took_s
    return cores


def use_over(stack: TestStack, seconds: float) -> dict[str, Any]:
    """Return cores used over a span and memory at its end, in all and by kind of process.

    The sum is that of whole trees, so it also has processes that ended meanwhile.
    """
    pids = [pid for part in stack.stack.parts.values() if (pid := part.pid()) is not None]
    before, before_s = by_process(stack), harness.tree_cpu_s(pids)
    began = time.monotonic()
    time.sleep(seconds)
    after, after_s, took = by_process(stack), harness.tree_cpu_s(pids), time.monotonic() - began
    cores = cores_between(before, after, took)
    memory: dict[str, float] = {}
    for (kind, _pid), (_cpu_s, gigabytes) in after.items():
        memory[kind] = memory.get(kind, 0.0) + gigabytes
    return {
        "cores": (after_s - before_s) / took,
        "memory_gb": sum(memory.values()),
        "by_process": {kind: (cores[kind], memory[kind]) for kind in cores},
    }


def used(stack: TestStack, options: argparse.Namespace) -> dict[str, Any]:
    """Return what is used over some spans: medians with ends."""
    spans = [use_over(stack, options.span_s) for _ in range(options.spans)]
    return {
        "cores": harness.median_of([one["cores"] for one in spans], 3),
        "memory_gb": harness.median_of([one["memory_gb"] for one in spans], 2),
        "by_process": summed([one["by_process"] for one in spans]),
    }


def summed(spans: Sequence[dict[str, tuple[float, float]]]) -> dict[str, Any]:
    """Return median cores and gigabytes of each kind of process that every span has."""
    kinds = [kind for kind in spans[0] if all(kind in one for one in spans)]
    return {
        kind: {
            "cores": harness.median_of([one[kind][0] for one in spans], 3)["median"],
            "memory_gb": harness.median_of([one[kind][1] for one in spans], 3)["median"],
        }
        for kind in kinds
    }


# ── what is sent, and what must come out ────────────────────────────────────


def bodies(lines: Sequence[str]) -> list[bytes]:
    """Return events as bodies of NDJSON."""
    return ["\n".join(lines[at : at + BODY]).encode() for at in range(0, len(lines), BODY)]


class Demo:
    """The demo's metrics over the demo's requests, again and again."""

    name = "the demo's metrics"
    tenant_bytes = BUDGET_BYTES

    def __init__(self, stack: TestStack, count: int) -> None:
        """Make so many events; they get their time when they arrive."""
        self._stack = stack
        requests = read_requests(ACCESS_LOG)
        heads = (
            f'{{"specversion":"1.0","id":"rest-{n}","source":"/bench","type":"web.request","data":'
            for n in range(count)
        )
        data = [json.dumps(request.data) for request in requests]
        self.lines = [f"{head}{data[n % len(data)]}}}" for n, head in enumerate(heads)]

    def define(self) -> None:
        """Define them as the demo does, and return when they are counted."""
        put_definitions(self._stack.home, lambda _: None)
        wait_until_counting(self._stack.home)

    def check(self, accepted: int) -> None:
        """Compare ledger and panes with the log.

        Raises:
            RuntimeError: If a number is wrong or missing.
        """
        api = Api(self._stack.dashboard_url, self._stack.key)
        account = account_for(read_log(self._stack.kafka_bootstrap))
        results = [compare_ledger(api, account)]
        for spec, aggregates in WEB_METRICS:
            panes = panes_of(account.counted, spec, PANE_MS)
            results.append(compare(api, panes, spec, aggregates, PANE_MS))
        wrong = [text for result in results for text in result.mismatches]
        if wrong or len(account.counted) != accepted:
            msg = f"{accepted} events must be counted, got {len(account.counted)}; {wrong[:3]}"
            raise RuntimeError(msg)


class Twenty:
    """The 20 metrics of P1, over its events."""

    name = "20 metrics"
    tenant_bytes = job.TENANT_BYTES

    def __init__(self, stack: TestStack, count: int) -> None:
        """Make so many events; they get their time when they arrive."""
        self._stack = stack
        self._job = job_of(stack)
        self._metrics = wanted(METRICS, sketches=True)
        self._drawn = list(draw(count, COMBINATIONS))
        self.lines = [sent(one) for one in self._drawn]

    def define(self) -> None:
        """Define them as the benchmarks of the engine do, and return when they are counted."""
        job.define(self._stack.stack.broker, self._metrics)
        self._job.await_serving(self._metrics, COUNTED_S)

    def check(self, accepted: int) -> None:
        """Compare all totals of each metric with the recount.

        Raises:
            SystemExit: If one is wrong.
        """
        client = redis.Redis.from_url(self._stack.redis_url)
        vids = self._job.vids(self._metrics)
        said = [
            contest.totals(client, one, vid) for one, vid in zip(self._metrics, vids, strict=True)
        ]
        truths = recount(self._drawn[:accepted], self._metrics)
        check("the stack", said, truths, self._metrics)


def job_of(stack: TestStack) -> Job:
    """Return what asks the stack's panes job how far it is."""
    part = stack.stack.parts["panes"]
    return Job(stack.stack.broker, stack.stack.redis, part.pid() or 0, Path(), part.log_path)


# ── the runs ────────────────────────────────────────────────────────────────


@contextmanager
def running(tenant_bytes: int, again: int, starts: list[float]) -> Iterator[TestStack]:
    """Start a stack, stop and start it again, and end it afterwards.

    Args:
        tenant_bytes: What the panes of a tenant may take.
        again: How often it is stopped and started.
        starts: Takes how long each start took.
    """
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        stack = TestStack(Path(folder))
        for part, prefix in (("panes", "ANALYTICS"), ("dashboard", "DASHBOARD")):
            one = stack.stack.parts[part]
            one.env = {**one.env, f"WEIR_{prefix}_TENANT_BYTES": str(tenant_bytes)}
        try:
            starts.append(start_s(stack))
            for _ in range(again):
                stack.stop()
                starts.append(start_s(stack))
            yield stack
        finally:
            stack.stop()


def start_s(stack: TestStack) -> float:
    """Start a stack that is down; return the seconds until every part was ready."""
    began = time.monotonic()
    stack.start()
    return round(time.monotonic() - began, 1)


def measured(stack: TestStack, work: Demo | Twenty, options: argparse.Namespace) -> dict[str, Any]:
    """Return what a stack uses at rest and under load, once all that was sent is counted right."""
    work.define()
    time.sleep(options.settle_s)
    rest = used(stack, options)
    load = Paced(stack.ingest_url, stack.key, bodies(work.lines), BODY / options.rate)
    load.start()
    time.sleep(options.warm_s)
    loaded = used(stack, options)
    load.stop()
    accepted = load.accepted * BODY
    job_of(stack).await_accounted(accepted, COUNTED_S)
    work.check(accepted)
    due = (load.due_ms[-1] - load.due_ms[0]) / 1000
    late_ms = [done - due for done, due in zip(load.answered_ms, load.due_ms, strict=True)]
    return {
        "at_rest": rest,
        "loaded": loaded,
        "sent": accepted,
        "sent_per_s": round((load.accepted - 1) * BODY / due) if due else 0,
        "answered_after_ms": harness.spread(late_ms),
    }


def bars(found: dict[str, Any], again: Sequence[float], rate: int) -> list[dict[str, Any]]:
    """Return the bars of both stacks."""
    median = harness.median_of(again)["median"]
    made = [
        {
            "id": "P14",
            "what": "start of the whole stack, everything installed",
            "reach": "< 30 s (record 20)",
            "got": f"{median} s (median of {len(again)})",
        }
    ]
    for name, one in found.items():
        for when, reach in (
            ("at_rest", "≤ 0.3 core, ≤ 2.5 GB (record 0.15, 1.8)"),
            ("loaded", "≤ 0.9 core (record 0.5)"),
        ):
            what = "at rest" if when == "at_rest" else f"at {rate:,} events/s"
            cores, memory = one[when]["cores"]["median"], one[when]["memory_gb"]["median"]
            got = f"{cores} core, {memory} GB"
            made.append({"id": "P15", "what": f"{what}, {name}", "reach": reach, "got": got})
    return made


def main() -> None:
    """Measure, compare the loads with a recount, write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settle-s", type=float, default=300)
    parser.add_argument("--warm-s", type=float, default=60, help="of the load")
    parser.add_argument("--span-s", type=float, default=60)
    parser.add_argument("--spans", type=int, default=5)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--rate", type=int, default=RATE, help="events a second")
    options = parser.parse_args()
    seconds = options.warm_s + options.spans * options.span_s
    one_s = options.settle_s + options.spans * options.span_s + seconds
    minutes = (2 * one_s + options.starts * 30 + 120) / 60
    sys.stderr.write(f"  about {minutes:.0f} minutes\n")
    # A sender is ahead of its schedule by no more than a body; a tenth more is never needed.
    count = -(-round(1.1 * options.rate * (seconds + 10)) // BODY) * BODY
    found: dict[str, Any] = {}
    starts: list[float] = []
    kinds: tuple[type[Demo | Twenty], ...] = (Demo, Twenty)
    for kind in kinds:
        times = options.starts if kind is Demo else 0
        with running(kind.tenant_bytes, times, starts) as stack:
            work = kind(stack, count)
            found[work.name] = measured(stack, work, options)
    first, again = starts[0], starts[1 : options.starts + 1]
    figures = {
        "first_start_s": first,
        "starts_s": again,
        **found,
        "notes": [
            "every event was counted: of the demo ledger and panes, of the 20 metrics all totals",
            "the sender is no part of the stack",
        ],
        "bars": bars(found, again, options.rate),
    }
    path = harness.write("rest", settings=vars(options), figures=figures)
    sys.stdout.write(path.read_text())


if __name__ == "__main__":
    main()
