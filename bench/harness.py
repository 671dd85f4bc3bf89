"""What every benchmark shares: CPU of a process tree, percentiles, and the result's file.

A benchmark is one command. It writes `bench/results/<name>.json` with versions, settings,
machine and figures, and `bench/README.md` anew from all of those files. A figure is written
only if everything that was sent for it was counted. `WEIR_BENCH_RESULTS` names another
folder, for a run that only tries whether a benchmark works; its page is written beside it.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import report
import sources
from weir.clock import SystemClock

if TYPE_CHECKING:
    from weir_local.testing import TestStack

PANE_MS = 10_000
COUNTED_S = 60.0
RESULTS = Path(os.environ.get("WEIR_BENCH_RESULTS", report.RESULTS))
# Of a processor that calls itself no more than "AMD EPYC", these tell which one it is.
PROCESSOR = ("cpu family", "model", "stepping", "microcode", "cache size")
PACKAGES = ("pyspark", "confluent-kafka", "redis", "datasketches", "websockets", "uvicorn")


def used_s(pids: Iterable[int]) -> dict[psutil.Process, float]:
    """Return processes and all their descendants with the CPU seconds that each has used so far.

    Those of children that have ended and were heeded are among their parent's. One that has a
    number anew is another process.
    """
    used: dict[psutil.Process, float] = {}
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            root = psutil.Process(pid)
            for process in [root, *root.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess):
                    used[process] = float(sum(process.cpu_times()[:4]))
    return used


def tree_cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU seconds used so far by processes and all their descendants.

    What a process had used that ended unheeded is gone from it: see `tree_cpu.py`.
    """
    return sum(used_s(pids).values(), 0.0)


def own_cpu_s(pid: int) -> float:
    """Return the CPU seconds used so far by one process, without its children."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def tree_rss_bytes(pids: Iterable[int]) -> int:
    """Return the resident memory of processes and all their descendants, in bytes."""
    total = 0
    for pid in pids:
        try:
            root = psutil.Process(pid)
            total += sum(p.memory_info().rss for p in [root, *root.children(recursive=True)])
        except psutil.NoSuchProcess:
            continue
    return total


def percentile(values: Sequence[float], q: float) -> float:
    """Return the nearest-rank percentile of at least one value; `q` is 0 to 1."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return p50, p99, p99.9 and the largest of latencies, rounded to 0.1."""
    names = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
    return {name: round(percentile(values, q), 1) for name, q in names.items()}


def machine() -> dict[str, Any]:
    """Return what a figure depends on: processor, cores, memory, kernel, versions."""
    path = Path("/proc/cpuinfo")
    name, details = processor(path.read_text() if path.exists() else "")
    return {
        "cpu": name,
        "cpu_details": details,
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def processor(told: str) -> tuple[str, dict[str, str]]:
    """Return name and details of the first processor in what /proc/cpuinfo says."""
    first: dict[str, str] = {}
    for line in told.splitlines():
        name, _, value = line.partition(":")
        first.setdefault(name.strip(), value.strip())
    details = {name: first[name] for name in PROCESSOR if first.get(name)}
    return first.get("model name") or "unknown", details


def counted(stack: TestStack, metric: str, since_ms: int) -> int:
    """Return how many events a metric has counted since an instant."""
    first = since_ms // PANE_MS * PANE_MS
    last = SystemClock().now_ms() // PANE_MS * PANE_MS + PANE_MS
    iso = [datetime.fromtimestamp(ms / 1000, UTC).isoformat() for ms in (first, last)]
    query = {
        "metric": metric,
        "aggregate": "count",
        "window": {"kind": "tumbling", "length": "10s"},
        "step": "10s",
        "range": {"from": iso[0], "to": iso[1]},
    }
    return sum(sum(n or 0 for n in one["count"]) for one in stack.query(query)["series"])


def await_counted(
    stack: TestStack, metric: str, *, since_ms: int, sent: int, timeout_s: float = COUNTED_S
) -> None:
    """Return when a metric has counted exactly what was sent.

    Raises:
        RuntimeError: If it counts more, or did not count all in time; says how many.
    """
    deadline = time.monotonic() + timeout_s
    while (got := counted(stack, metric, since_ms)) != sent:
        if got > sent or time.monotonic() > deadline:
            msg = f"{metric} must count the {sent} events that were sent, got {got}"
            raise RuntimeError(msg)
        time.sleep(0.2)


def median_of(values: Sequence[float], digits: int = 1) -> dict[str, float]:
    """Return the median of at least one figure, with least and most, rounded."""
    found = {"median": statistics.median(values), "min": min(values), "max": max(values)}
    return {name: round(value, digits) for name, value in found.items()}


def made_now(name: str) -> dict[str, Any]:
    """Return what a figure that a benchmark makes now is of: instant, commit, script, machine."""
    of = {"commit": commit(), "script": sources.digest(name), "machine": machine()}
    return {"at_ms": SystemClock().now_ms(), **of}


def commit() -> str:
    """Return the commit of the tree, with a `+` if tracked files besides results are changed."""
    changed = _git("status", "--porcelain", "-uno", ":/", ":!/bench/results", ":!/bench/README.md")
    return _git("rev-parse", "--short", "HEAD") + "+" * bool(changed)


def _git(*words: str) -> str:
    done = subprocess.run(  # noqa: S603  git, asked by us
        ["git", *words],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
    )
    return done.stdout.strip()


def write(
    name: str,
    *,
    settings: Mapping[str, Any],
    figures: Mapping[str, Any],
    pieces: Mapping[str, Any] | None = None,
) -> Path:
    """Write a result, and the page of all results; return the result's file.

    Args:
        name: The benchmark's name, also the file's.
        settings: What was set: rates, sizes, rounds.
        figures: What was measured. A member `bars` lists `{id, what, reach, got}`, the last two
            as `bars.py` reads them.
        pieces: Of a result whose parts can be measured one by one: what `made_now` returned
            for each of them.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    result = {"name": name, **made_now(name), "settings": dict(settings), "figures": dict(figures)}
    if pieces is not None:
        result["pieces"] = dict(pieces)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    report.main(RESULTS)
    return path
