"""What every benchmark shares: CPU of a process tree, percentiles, and the result's file.

A benchmark is one command. It writes `bench/results/<name>.json` with versions, settings,
machine and figures; `python bench/report.py` makes `bench/README.md` from those files.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil
from weir.clock import SystemClock

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("pyspark", "confluent-kafka", "redis", "datasketches", "websockets", "uvicorn")


def tree_cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU seconds used so far by processes and all their descendants.

    Children that have ended count through their parent's `children_*` times.
    """
    total = 0.0
    seen: set[int] = set()
    for pid in pids:
        try:
            root = psutil.Process(pid)
            tree = [root, *root.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
        for process in tree:
            if process.pid in seen:
                continue
            seen.add(process.pid)
            total += _cpu_s(process)
    return total


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


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
    """Return what a figure depends on: processor, cores, memory, versions."""
    model = "unknown"
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: metadata.version(name) for name in PACKAGES},
    }


def write(name: str, *, settings: Mapping[str, Any], figures: Mapping[str, Any]) -> Path:
    """Write a result; return its file.

    Args:
        name: The benchmark's name, also the file's.
        settings: What was set: rates, sizes, rounds.
        figures: What was measured. A member `bars` lists `{id, what, reach, got}`.
    """
    RESULTS.mkdir(exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
        cwd=RESULTS,
    ).stdout.strip()
    at_ms = SystemClock().now_ms()
    result = {
        "name": name,
        "at_ms": at_ms,
        "commit": commit,
        "machine": machine(),
        "settings": dict(settings),
        "figures": dict(figures),
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path
