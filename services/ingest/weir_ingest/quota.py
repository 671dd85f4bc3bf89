"""Quotas: how much a second tenants and keys may send, averaged over ten seconds.

A tenant's, of events, is a setting; those of a key, of events and of the bytes of decoded
bodies, stand in its definition. All that there are of a caller hold together.

A bucket for each holds what may still be sent. A request is taken as long as anything is
left of each, and what it takes beyond is paid back by waiting: so a large request needs no
larger quota than small ones. Told as the draft of the RateLimit header fields for HTTP says
(draft-ietf-httpapi-ratelimit-headers-10); who is over one is refused before the body is
read, and nothing of it is stored. Bodies that were under way by then are refused once they
are read: so no debt is larger than one request. What was not stored does not count: an
outage of ours locks nobody out who sends again.

Instants are those of `weir.buckets`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from weir.buckets import Buckets, Standing, rate_limit_fields
from weir.problems import ProblemError, Reason

from weir_ingest.keys import StoredKey

WINDOW_S = 10
# What clients wait at most before they give a batch up (docs/ingest.md, 1.3).
MAX_RETRY_S = 5


class Size(NamedTuple):
    """How much a request brings.

    Attributes:
        events: How many records are stored of it.
        content_bytes: How long its body is, once decoded.
    """

    events: int
    content_bytes: int


class _Policy(NamedTuple):
    """A kind of quota.

    Attributes:
        name: What header fields call it.
        whose: Whose it is, in words.
        counts: What it counts.
        unit: The same as the draft says it; None for what it has no word for.
    """

    name: str
    whose: str
    counts: str
    unit: str | None = None


_TENANT: Final = _Policy("tenant", "tenant", "events")
_KEY: Final = _Policy("key", "key", "events")
_KEY_BYTES: Final = _Policy("key-bytes", "key", "bytes", "content-bytes")


class _Held(NamedTuple):
    """A quota of one caller."""

    policy: _Policy
    per_s: int
    holder: str
    buckets: Buckets

    def level(self, now_s: float) -> float:
        return self.buckets.level(self.holder, now_s)

    def wait_s(self, now_s: float) -> int:
        """Return in how many seconds something is left; 0: something is."""
        level = self.level(now_s)
        return 0 if level > 0 else max(1, math.ceil(-level / self.per_s))

    def of(self, size: Size) -> int:
        """Return how much it counts of a request."""
        return size.content_bytes if self.policy.counts == "bytes" else size.events

    def standing(self, now_s: float) -> Standing:
        full, left, wait_s = self.per_s * WINDOW_S, self.level(now_s), self.wait_s(now_s)
        return Standing(self.policy.name, full, WINDOW_S, left, wait_s, self.policy.unit)

    def refusal(self, now_s: float) -> ProblemError:
        policy, wait_s = self.policy, self.wait_s(now_s)
        return ProblemError(
            429,
            Reason.RATE_LIMITED,
            f"a {policy.whose} must send at most {self.per_s} {policy.counts} a second, "
            f"{self.per_s * WINDOW_S} in {WINDOW_S} s, and got them; nothing was stored, send "
            f"again with the same ids in {wait_s} s",
            retry_after_s=min(MAX_RETRY_S, wait_s),
        )


class Quota:
    """What each caller may still send.

    It is one process's: replicas have one each.
    """

    def __init__(self, events_per_s: int) -> None:
        """Prepare; everything is left.

        Args:
            events_per_s: What each tenant may send; 0: everything.
        """
        self._per_s = events_per_s
        # A bucket that is filled at another pace is another one: a key's quota may be changed.
        self._buckets: dict[tuple[str, int], Buckets] = {}

    def in_all(self, tenants: int) -> int | None:
        """Return how many events a second so many tenants may send together; None: any."""
        return self._per_s * tenants if self._per_s else None

    def check(self, caller: StoredKey, now_s: float) -> None:
        """Do nothing if somebody may send now.

        Raises:
            ProblemError: 429 `rate_limited`, with whose quota of what is spent and the seconds
                to wait; of several that are spent it is that of the longest wait.
        """
        spent = [one for one in self._of(caller) if one.level(now_s) <= 0]
        if spent:
            raise max(spent, key=lambda one: one.wait_s(now_s)).refusal(now_s)

    def take(self, caller: StoredKey, size: Size, now_s: float) -> None:
        """Count what somebody sent and what is about to be stored.

        Raises:
            ProblemError: As `check`, if other requests were faster; nothing is counted.
        """
        self.check(caller, now_s)
        for one in self._of(caller):
            one.buckets.take(one.holder, one.of(size), now_s)

    def give_back(self, caller: StoredKey, size: Size, now_s: float) -> None:
        """Take back what was counted and then not stored."""
        for one in self._of(caller):
            one.buckets.give_back(one.holder, one.of(size), now_s)

    def headers(self, caller: StoredKey, now_s: float) -> list[tuple[bytes, bytes]]:
        """Return the header fields that tell each quota and what is left; none without one."""
        told = rate_limit_fields(*(one.standing(now_s) for one in self._of(caller)))
        return [(name.encode(), value.encode()) for name, value in told.items()]

    def forget(self, now_s: float) -> None:
        """Forget who has sent nothing for long: keys are made and revoked for ever."""
        self._buckets = {at: one for at, one in self._buckets.items() if one.drop_full(now_s)}

    def _of(self, caller: StoredKey) -> Iterator[_Held]:
        """Yield the quotas of a caller; who sends without a key has its tenant's alone."""
        if self._per_s:
            yield self._held(_TENANT, self._per_s, caller.tenant)
        holder = f"{caller.tenant}/{caller.id}"
        if caller.events_per_s is not None:
            yield self._held(_KEY, caller.events_per_s, holder)
        if caller.bytes_per_s is not None:
            yield self._held(_KEY_BYTES, caller.bytes_per_s, holder)

    def _held(self, policy: _Policy, per_s: int, holder: str) -> _Held:
        buckets = self._buckets.get((policy.name, per_s))
        if buckets is None:
            buckets = Buckets(per_s=per_s, full=float(per_s * WINDOW_S))
            self._buckets[policy.name, per_s] = buckets
        return _Held(policy, per_s, holder, buckets)
