"""The quota of changes: how much each tenant may append to `weir.definitions` and `weir.alerts`.

The first is kept for ever and read whole by every process that starts, so what a key may
write without end would cost all tenants, for ever. A bucket for each tenant holds an hour's
worth of changes: a folder of hundreds of definitions is applied at once, and what is taken
comes back steadily.

A request is taken if the bucket has all that it needs. Who asks for much waits longer than
who asks for little: while a large apply waits, an alert can be taken on. What needs more than
a whole bucket is taken from a full one, and leaves a debt. What is refused is not appended at
all, and what was not confirmed does not count, as in ingest.

What calms (a deletion, a silence, an alert that is taken on) may leave a debt of a tenth: a key
that takes each change as it comes back keeps nobody from deleting what it floods with.

It is one process's: replicas have a bucket each, and a new process begins with full ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from weir.buckets import Buckets, Standing, rate_limit_fields
from weir.clock import Clock
from weir.problems import ProblemError, Reason
from weir_reading.appender import NotConfirmedError

WINDOW_S: Final = 3_600
CHANGE_BYTES: Final = 4_096
"""A longer change counts as several, so that the quota bounds the bytes of the log as well."""
RESERVE: Final = 0.1
"""Of the quota, for what calms alone."""
# What comes back is a sum of fractions, off by less: nobody is to wait a second for that.
SLACK: Final = 1e-6


def changes_in(values: Iterable[bytes]) -> int:
    """Return as how many changes records count: each as one for every 4,096 bytes begun."""
    return sum(max(1, math.ceil(len(value) / CHANGE_BYTES)) for value in values)


class ChangeQuota:
    """What each tenant may still change; 0 changes an hour: everything."""

    def __init__(self, changes_per_hour: int, clock: Clock) -> None:
        self._per_hour = changes_per_hour
        self._clock = clock
        self._buckets = Buckets(per_s=changes_per_hour / WINDOW_S, full=changes_per_hour)

    def check(self, tenant: str, changes: int, *, calms: bool = False) -> None:
        """Do nothing if a tenant may make so many changes now.

        Args:
            tenant: Whose they are.
            changes: How many.
            calms: Whether they may be made out of the reserve.

        Raises:
            ProblemError: 429 `rate_limited`, with the seconds to wait.
        """
        if not self._per_hour:
            return
        now_s, needed = self._clock.monotonic_s(), float(min(changes, self._per_hour))
        if calms:
            needed -= RESERVE * self._per_hour
        level = self._buckets.level(tenant, now_s)
        if level >= needed - SLACK:
            return
        wait_s = self._wait_s(tenant, needed, now_s)
        msg = (
            f"a tenant must make at most {self._per_hour} changes an hour, got {changes} more with "
            f"{max(0, math.floor(level))} left; nothing is stored, send it again in {wait_s} s"
        )
        raise ProblemError(429, Reason.RATE_LIMITED, msg, retry_after_s=wait_s)

    @contextmanager
    def taken(self, tenant: str, changes: int) -> Iterator[None]:
        """Count changes while they are appended; if Kafka does not confirm them they do not count.

        Asked or not: what `check` let through, and what must never be refused.
        """
        if not self._per_hour:
            yield
            return
        self._buckets.take(tenant, changes, self._clock.monotonic_s())
        try:
            yield
        except NotConfirmedError:
            self._buckets.give_back(tenant, changes, self._clock.monotonic_s())
            raise

    def fields(self, tenant: str) -> dict[str, str]:
        """Return the header fields that tell the quota and what is left; none without one."""
        if not self._per_hour:
            return {}
        now_s = self._clock.monotonic_s()
        left = self._buckets.level(tenant, now_s) + SLACK
        wait_s = self._wait_s(tenant, 1, now_s)
        return rate_limit_fields(Standing("changes", self._per_hour, WINDOW_S, left, wait_s))

    def _wait_s(self, tenant: str, changes: float, now_s: float) -> int:
        return self._buckets.wait_s(tenant, changes - SLACK / 2, now_s)
