"""Follows a job to its end, telling how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from weir_cli.api import Answer, Api, quoted

FINAL = frozenset({"done", "failed", "cancelled"})
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 2.0
BAR = 30


def follow(api: Api, job: dict[str, Any], tell: Callable[[dict[str, Any]], None]) -> Answer:
    """Ask for a job until it has ended; return the last answer, also a refusal.

    Args:
        api: The dashboard.
        job: The job, as it was last told.
        tell: Given the job at the start, and each time it differs from before.

    Raises:
        UnreachedError: If the dashboard did not answer in time; the job goes on.
    """
    seen, pause_s = Answer(200, job), FIRST_PAUSE_S
    tell(job)
    while seen.body["state"] not in FINAL:
        time.sleep(pause_s)
        answer = api.call("GET", f"/jobs{quoted(job['id'])}")
        if not answer.is_ok:
            return answer
        if answer.body != seen.body:
            tell(answer.body)
            pause_s = FIRST_PAUSE_S
        pause_s, seen = min(pause_s * 1.5, LONGEST_PAUSE_S), answer
    return seen


class Progress:
    """Writes how far a job is to standard error: one line that changes, or a line a change."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = ""

    def __call__(self, job: dict[str, Any]) -> None:
        """Write where a job is."""
        text = line_of(job)
        if text == self._last:
            return
        self._last = text
        sys.stderr.write(f"\r\x1b[K{text}" if self._live else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._live and self._last:
            sys.stderr.write("\n")
            sys.stderr.flush()


def line_of(job: dict[str, Any]) -> str:
    """Return where a job is, as one line."""
    start = f"{job['job']} {job['id']}: {job['state']}"
    if job.get("waits_for"):
        start += f", {job['waits_for']}"
    progress = job.get("progress")
    if not progress or not progress["of"] or job["state"] in FINAL:
        return start
    share = min(1.0, progress["at"] / progress["of"])
    bar = "█" * int(share * BAR)
    counted = f"{progress['at']:,} of {progress['of']:,} records"
    return f"{start} {bar:░<{BAR}} {share:.0%}, {counted}"
