"""The quota: how many events a second each tenant may send, averaged over ten seconds.

A bucket for each tenant holds what it may still send. A request is taken as long as
anything is left, and what it takes beyond is paid back by waiting: so a large request
needs no larger quota than small ones. Told as the draft of the RateLimit header fields
for HTTP says (draft-ietf-httpapi-ratelimit-headers-10); who is over it is refused
before the body is read, and nothing of it is stored. Bodies that were under way by then
are refused once they are read: so no debt is larger than one request. What was not
stored does not count: an outage of ours locks nobody out who sends again.

Instants are those of `weir.buckets`.
"""

from __future__ import annotations

import math

from weir.buckets import Buckets, rate_limit_fields
from weir.problems import ProblemError, Reason

WINDOW_S = 10
# What clients wait at most before they give a batch up (docs/ingest.md, 1.3).
MAX_RETRY_S = 5


class Quota:
    """What each tenant may still send; 0 events a second: everything.

    It is one process's: replicas have one each.
    """

    def __init__(self, events_per_s: int) -> None:
        self._per_s = events_per_s
        self._full = float(events_per_s * WINDOW_S)
        self._buckets = Buckets(per_s=events_per_s, full=self._full)

    def in_all(self, tenants: int) -> int | None:
        """Return how many events a second so many tenants may send together; None: any."""
        return self._per_s * tenants if self._per_s else None

    def check(self, tenant: str, now_s: float) -> None:
        """Do nothing if a tenant may send now.

        Raises:
            ProblemError: 429 `rate_limited`, with the seconds to wait.
        """
        if not self._per_s or (level := self._buckets.level(tenant, now_s)) > 0:
            return
        raise ProblemError(
            429,
            Reason.RATE_LIMITED,
            f"a tenant must send at most {self._per_s} events a second, {self._full:.0f} in "
            f"{WINDOW_S} s, and got them; nothing was stored, send again with the same ids in "
            f"{self._wait_s(level)} s",
            retry_after_s=min(MAX_RETRY_S, self._wait_s(level)),
        )

    def take(self, tenant: str, events: int, now_s: float) -> None:
        """Count events that a tenant sent and that are about to be stored.

        Raises:
            ProblemError: As `check`, if other requests were faster; nothing is counted.
        """
        self.check(tenant, now_s)
        if self._per_s:
            self._buckets.take(tenant, events, now_s)

    def give_back(self, tenant: str, events: int, now_s: float) -> None:
        """Take events back that were counted and then not stored."""
        if self._per_s:
            self._buckets.give_back(tenant, events, now_s)

    def headers(self, tenant: str, now_s: float) -> list[tuple[bytes, bytes]]:
        """Return the header fields that tell the quota and what is left; none without one."""
        if not self._per_s:
            return []
        level = self._buckets.level(tenant, now_s)
        told = rate_limit_fields(
            "tenant", quota=self._full, window_s=WINDOW_S, left=level, wait_s=self._wait_s(level)
        )
        return [(name.encode(), value.encode()) for name, value in told.items()]

    def _wait_s(self, level: float) -> int:
        return 0 if level > 0 else max(1, math.ceil(-level / self._per_s))
