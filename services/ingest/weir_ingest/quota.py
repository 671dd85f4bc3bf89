"""The quota: how many events a second each tenant may send, averaged over ten seconds.

A bucket for each tenant holds what it may still send. A request is taken as long as
anything is left, and what it takes beyond is paid back by waiting: so a large request
needs no larger quota than small ones. Told as the draft of the RateLimit header fields
for HTTP says (draft-ietf-httpapi-ratelimit-headers-10); who is over it is refused
before the body is read, and nothing of it is stored. Bodies that were under way by then
are refused once they are read: so no debt is larger than one request. What was not
stored does not count: an outage of ours locks nobody out who sends again.

Instants are seconds of a clock that never steps: of one set back, who is over the quota
would wait until it has come as far again.
"""

from __future__ import annotations

import math

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
        self._levels: dict[str, tuple[float, float]] = {}

    def in_all(self, tenants: int) -> int | None:
        """Return how many events a second so many tenants may send together; None: any."""
        return self._per_s * tenants if self._per_s else None

    def check(self, tenant: str, now_s: float) -> None:
        """Do nothing if a tenant may send now.

        Raises:
            ProblemError: 429 `rate_limited`, with the seconds to wait.
        """
        if not self._per_s or (level := self._level(tenant, now_s)) > 0:
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
            self._levels[tenant] = (self._level(tenant, now_s) - events, now_s)

    def give_back(self, tenant: str, events: int, now_s: float) -> None:
        """Take events back that were counted and then not stored."""
        if self._per_s:
            self._levels[tenant] = (min(self._full, self._level(tenant, now_s) + events), now_s)

    def headers(self, tenant: str, now_s: float) -> list[tuple[bytes, bytes]]:
        """Return the header fields that tell the quota and what is left; none without one."""
        if not self._per_s:
            return []
        level = self._level(tenant, now_s)
        left = f'"tenant";r={max(0, math.floor(level))};t={self._wait_s(level)}'
        policy = f'"tenant";q={self._full:.0f};w={WINDOW_S}'
        return [(b"ratelimit-policy", policy.encode()), (b"ratelimit", left.encode())]

    def _level(self, tenant: str, now_s: float) -> float:
        level, at_s = self._levels.get(tenant, (self._full, now_s))
        return min(self._full, level + (now_s - at_s) * self._per_s)

    def _wait_s(self, level: float) -> int:
        return 0 if level > 0 else max(1, math.ceil(-level / self._per_s))
