"""The corrections feed: what late events change, as it is published.

There is no queue: a client has one number, the `seq` up to which it was told, which is an
offset of `weir.corrections`. Who could not take a frame is told more the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from pydantic import BaseModel
from weir.formats import Newer

from weir_dashboard.live import frames
from weir_dashboard.live.client import Subscription
from weir_dashboard.store.corrections_kept import Kept, finest

MOST_OF_A_FRAME = 200
# Returns corrections as the API tells them.
Tell = Callable[[Iterable[Kept]], Iterable[BaseModel]]


class Source(Protocol):
    """Where corrections are kept."""

    newer: Newer

    @property
    def seq(self) -> int:
        """The place of the newest."""
        ...

    @property
    def whole_seq(self) -> int:
        """The place up to which all that each batch changed is there."""
        ...

    def newest(self, tenant: str, metric: str | None = None, *, after: int = -1) -> Sequence[Kept]:
        """Return those of a tenant beyond a place, the newest first."""
        ...


class CorrectionFeeds:
    """All subscriptions to corrections; a frame is made once for all who are at one place."""

    def __init__(self, source: Source, tell: Tell, is_ready: Callable[[], bool]) -> None:
        """Prepare.

        Args:
            source: Where corrections are kept.
            tell: How they are told.
            is_ready: Whether all were read that stood there at the start.
        """
        self._source, self._tell, self._is_ready = source, tell, is_ready
        self._followers: dict[str, set[Subscription]] = {}
        self._due: set[str] = set()

    def join(self, tenant: str, subscription: Subscription) -> None:
        """Let a subscription follow a tenant's corrections, from what it was told last on.

        Raises:
            NewerFormatError: If a newer release wrote some of them.
        """
        self._source.newer.check()
        self._followers.setdefault(tenant, set()).add(subscription)
        self._due.add(tenant)

    def leave(self, subscription: Subscription) -> None:
        """Let a subscription follow nothing any more."""
        for tenant, followers in list(self._followers.items()):
            followers.discard(subscription)
            if not followers:
                del self._followers[tenant]
                self._due.discard(tenant)

    def on_corrections(self, tenants: set[str]) -> None:
        """Take note of tenants that have new ones."""
        self._due |= tenants & self._followers.keys()

    def send(self, now_s: float) -> None:
        """Tell everybody what they lack, if they can take it now.

        Args:
            now_s: Loop time.
        """
        if self._due and self._is_ready():
            self._due = {tenant for tenant in self._due if self._send(tenant, now_s)}

    def _send(self, tenant: str, now_s: float) -> bool:
        """Return whether somebody lacks something still."""
        seq, whole = self._source.seq, self._source.whole_seq
        held_back = whole < seq
        made: dict[int, bytes] = {}
        for subscription in self._followers.get(tenant, ()):
            client, known = subscription.client, subscription.last_sent_rev
            if known is None or known > seq:
                # From now on; above the newest it knows another log.
                known = subscription.last_sent_rev = seq
            upto = max(known, whole)
            # The first frame comes at once, unless what it is to tell is not all there yet.
            if known == upto and (subscription.sent_s or known < seq):
                continue
            if not client.can_take(now_s) or not client.wants(subscription, now_s):
                held_back = True
                continue
            if known not in made:
                made[known] = self._frame(tenant, subscription.key, known, upto)
            client.socket.write(made[known])
            subscription.last_sent_rev, subscription.sent_s = upto, now_s
        return held_back

    def _frame(self, tenant: str, key: str, known: int, upto: int) -> bytes:
        newer = self._source.newest(tenant, after=known)
        found = finest([one for one in newer if one.seq <= upto])
        items = [one.model_dump(mode="json") for one in self._tell(found[:MOST_OF_A_FRAME])]
        return frames.frame("correction", key=key, seq=upto, of=len(found), items=items)
