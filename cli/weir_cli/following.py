"""Follows a job, or what else goes on, to its end, telling how far it is."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

from weir_cli.api import Answer, Api, quoted
from weir_cli.telling import put

FINAL = frozenset({"done", "failed", "cancelled"})
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 2.0
BAR = 30

# Given what is followed at the start, and each time it differs from before.
Tell = Callable[[dict[str, Any]], None]


def follow(api: Api, job: dict[str, Any], tell: Tell) -> Answer:
    """Ask for a job until it has ended; return the last answer, also a refusal.

    Args:
        api: The dashboard.
        job: The job, as it was last told.
        tell: Told how it is.

    Raises:
        UnreachedError: If the dashboard did not answer in time; the job goes on.
    """
    where = f"/jobs{quoted(job['id'])}"
    return follow_until(
        lambda: api.poll(where), Answer(200, job), tell, lambda one: one["state"] in FINAL
    )


def follow_until(
    ask: Callable[[], Answer],
    seen: Answer,
    tell: Tell,
    is_over: Callable[[dict[str, Any]], bool],
    deadline_s: float = math.inf,
) -> Answer:
    """Ask until something is over; return the last answer, also a refusal.

    Args:
        ask: Asks once.
        seen: What was answered last.
        tell: Told how it is.
        is_over: Whether there is nothing to wait for.
        deadline_s: When to stop, of the monotonic clock.

    Raises:
        UnreachedError: If the dashboard did not answer in time.
    """
    pause_s = FIRST_PAUSE_S
    tell(seen.body)
    while not is_over(seen.body) and (left_s := deadline_s - time.monotonic()) > 0:
        time.sleep(min(pause_s, left_s))
        answer = ask()
        if not answer.is_ok:
            return answer
        if answer.body != seen.body:
            tell(answer.body)
            pause_s = FIRST_PAUSE_S
        pause_s, seen = min(pause_s * 1.5, LONGEST_PAUSE_S), answer
    return seen


class Progress:
    """Writes how far something is to standard error: one line that changes, or a line a change."""

    def __init__(self, line: Callable[[dict[str, Any]], str] | None = None) -> None:
        """Prepare it.

        Args:
            line: Returns where it is, as one line; by default where a job is.
        """
        self._line = line or line_of
        self._live = sys.stderr.isatty()
        self._last = ""

    def __call__(self, followed: dict[str, Any]) -> None:
        """Write where it is."""
        text = self._line(followed)
        if text == self._last:
            return
        self._last = text
        put(sys.stderr, f"\r\x1b[K{text}" if self._live else f"{text}\n")

    def end(self) -> None:
        """Leave the line."""
        if self._live and self._last:
            put(sys.stderr, "\n")


def line_of(job: dict[str, Any]) -> str:
    """Return where a job is, as one line."""
    start = f"{job['job']} {job['id']}: {job['state']}"
    if job.get("waits_for"):
        start += f", {job['waits_for']}"
    progress = job.get("progress")
    if not progress or not progress["of"] or job["state"] in FINAL:
        return start
    return f"{start} {bar_of(progress['at'], progress['of'])}"


def bar_of(at: int, of: int) -> str:
    """Return how much of the log was read, as a bar and in words."""
    bar = "█" * int(min(1.0, at / of) * BAR)
    return f"{bar:░<{BAR}} {share_of(at, of)}"


def share_of(at: int, of: int) -> str:
    """Return how much of the log was read, in words."""
    return f"{min(1.0, at / of):.0%}, {at:,} of {of:,} records"
