"""Token buckets: what each holder may still take of something that comes back steadily.

A bucket is full at first, and never fuller. Taking may leave a debt, which time pays back.
Who is refused, and at which level, is for quotas to say: that of events in ingest, that of
changes in the dashboard. They tell their callers by the draft of the RateLimit header fields
for HTTP (draft-ietf-httpapi-ratelimit-headers-10).

Instants are seconds of a clock that never steps: of one set back, who has taken all would
wait until it has come as far again.
"""

from __future__ import annotations

import math


class Buckets:
    """A bucket for each holder, made when it is first asked for."""

    def __init__(self, *, per_s: float, full: float) -> None:
        """Prepare; all are full.

        Args:
            per_s: How much comes back in a second; more than 0 where anything is taken.
            full: The most that a bucket holds.
        """
        self._per_s = per_s
        self._full = full
        self._levels: dict[str, tuple[float, float]] = {}

    def level(self, holder: str, now_s: float) -> float:
        """Return what a holder may still take; below 0 a debt."""
        level, at_s = self._levels.get(holder, (self._full, now_s))
        return min(self._full, level + (now_s - at_s) * self._per_s)

    def take(self, holder: str, amount: float, now_s: float) -> None:
        """Take from a bucket, also more than is in it."""
        self._levels[holder] = (self.level(holder, now_s) - amount, now_s)

    def give_back(self, holder: str, amount: float, now_s: float) -> None:
        """Put back what was taken for nothing."""
        self._levels[holder] = (min(self._full, self.level(holder, now_s) + amount), now_s)

    def wait_s(self, holder: str, level: float, now_s: float) -> int:
        """Return after how many whole seconds a bucket is at a level, if nobody takes; 0: it is."""
        missing = level - self.level(holder, now_s)
        return math.ceil(missing / self._per_s) if missing > 0 else 0


def rate_limit_fields(
    policy: str, *, quota: float, window_s: int, left: float, wait_s: int
) -> dict[str, str]:
    """Return the header fields that tell a quota and what is left of it.

    Args:
        policy: What the quota is called.
        quota: How much may be taken in a window.
        window_s: How long that is, seconds.
        left: What may be taken now.
        wait_s: In how many seconds something may be taken again; 0: now.
    """
    return {
        "ratelimit-policy": f'"{policy}";q={quota:.0f};w={window_s}',
        "ratelimit": f'"{policy}";r={max(0, math.floor(left))};t={wait_s}',
    }
