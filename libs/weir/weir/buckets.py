"""Token buckets: what each holder may still take of something that comes back steadily.

A bucket is full at first, and never fuller. Taking may leave a debt, which time pays back.
Who is refused, and at which level, is for quotas to say: those of events in ingest, that of
changes in the dashboard. They tell their callers by the draft of the RateLimit header fields
for HTTP (draft-ietf-httpapi-ratelimit-headers-10).

Instants are seconds of a clock that never steps: of one set back, who has taken all would
wait until it has come as far again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


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

    def drop_full(self, now_s: float) -> bool:
        """Forget the holders whose buckets are full again; return whether any is left.

        One that is not known has a full bucket, so nothing changes for anybody.
        """
        full = [one for one in self._levels if self.level(one, now_s) >= self._full]
        for holder in full:
            del self._levels[holder]
        return bool(self._levels)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a quota stands for somebody.

    Attributes:
        policy: What the quota is called.
        quota: How much may be taken in a window.
        window_s: How long that is, seconds.
        left: What may be taken now.
        wait_s: In how many seconds something may be taken again; 0: now.
        unit: What is counted (`qu`), of what the draft knows; None: requests, or as documented.
    """

    policy: str
    quota: float
    window_s: int
    left: float
    wait_s: int
    unit: str | None = None


def rate_limit_fields(*standings: Standing) -> dict[str, str]:
    """Return the header fields that tell quotas and what is left of them; none of no quota.

    Each is a list (RFC 9651) with a member for each quota, in the same order.
    """
    if not standings:
        return {}
    policies, levels = [], []
    for one in standings:
        unit = f';qu="{one.unit}"' if one.unit else ""
        policies.append(f'"{one.policy}";q={one.quota:.0f}{unit};w={one.window_s}')
        levels.append(f'"{one.policy}";r={max(0, math.floor(one.left))};t={one.wait_s}')
    return {"ratelimit-policy": ", ".join(policies), "ratelimit": ", ".join(levels)}
