"""What the steps of a batch take, as lines in a file that driver and Python workers write.

A line is `<end, ns since the epoch> <wall, ns> <CPU of the thread's process, ns> <step>`. The
steps are those functions of the engine, wrapped: who measures starts workers by
`marked_daemon`, which does so before they are forked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

FILE = "WEIR_BENCH_MARKS"


@dataclass(frozen=True)
class Mark:
    """One step that ended: instants and lengths in ns."""

    end: int
    wall: int
    cpu: int
    step: str

    @property
    def start(self) -> int:
        """When it began."""
        return self.end - self.wall


def mark(step: str, wall: int, cpu: int) -> None:
    """Write that a step ended now."""
    line = f"{time.time_ns()} {wall} {cpu} {step}\n".encode()
    file = os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line)  # one call: lines of several processes do not mix
    finally:
        os.close(file)


def read(path: Path) -> list[Mark]:
    """Return all marks so far, in the order of their ends."""
    found = (line.split(" ", 3) for line in path.read_text().splitlines())
    return sorted(
        (Mark(int(end), int(wall), int(cpu), step) for end, wall, cpu, step in found),
        key=lambda one: one.end,
    )


def timed(holder: Any, name: str, step: str) -> None:
    """Replace a function by one that marks each call."""
    original: Callable[..., Any] = getattr(holder, name)

    @wraps(original)
    def marked(*args: Any, **kwargs: Any) -> Any:
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        try:
            return original(*args, **kwargs)
        finally:
            mark(step, time.monotonic_ns() - wall, time.process_time_ns() - cpu)

    setattr(holder, name, marked)


def timed_steps(holder: Any, name: str, step: str) -> None:
    """Replace a generator by one that marks each item: what it took until it came."""
    original: Callable[..., Iterator[Any]] = getattr(holder, name)

    @wraps(original)
    def marked(*args: Any, **kwargs: Any) -> Iterator[Any]:
        items = original(*args, **kwargs)
        while True:
            wall, cpu = time.monotonic_ns(), time.process_time_ns()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                mark(step, time.monotonic_ns() - wall, time.process_time_ns() - cpu)
            yield item

    setattr(holder, name, marked)


def mark_workers() -> None:
    """Wrap the steps of the Python workers; before they are forked."""
    from weir_analytics.panes import arrow_count, dispose, inbox, small, writer

    timed_steps(small, "read_ranges", "read")
    timed(small._Read, "add", "dispose")
    timed(small, "_disposed", "dispose")
    timed(dispose.DisposeTask, "answer", "fates")
    timed(dispose.DisposeTask, "finish", "runs")
    timed(arrow_count.CountTask, "take", "decode")
    timed_steps(arrow_count.CountTask, "rows", "count")
    timed(inbox.Inbox, "take", "take")
    timed(inbox.Inbox, "parts", "merge")
    timed(writer, "commit", "commit")
