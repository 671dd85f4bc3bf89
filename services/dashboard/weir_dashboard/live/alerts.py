"""The alerts feed: what fires, and each change of it as `weir.alerts` tells it.

There is no queue: an alert is its newest state, and its `seq`, the offset of its newest
record, is its revision. A client is told every alert whose `seq` is above the one that it
was told last, so one that could not take a frame gets the newest state later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel
from weir.alerts.listing import Alert, Listing

from weir_dashboard.live import frames
from weir_dashboard.live.client import Subscription

# Returns an alert as the API tells it.
Tell = Callable[[Alert], BaseModel]


class Answering(Protocol):
    """Makes answers about one tenant's alerts, as they are at that moment."""

    def __call__(self, tenant: str) -> Tell:
        """Return what tells an alert of a tenant."""
        ...


@dataclass
class _Followers:
    """Who follows one tenant's alerts.

    Attributes:
        subscriptions: They.
        afresh: Those to whom all that fires is due once more.
        is_due: Whether somebody may lack something.
    """

    subscriptions: set[Subscription] = field(default_factory=set)
    afresh: set[Subscription] = field(default_factory=set)
    is_due: bool = False


class AlertFeeds:
    """All subscriptions to alerts; a change is serialised once for all of a tenant."""

    def __init__(
        self, listing: Listing, answering: Answering, is_ready: Callable[[], bool]
    ) -> None:
        """Prepare.

        Args:
            listing: The alerts, as the records that were read tell them.
            answering: How they are told.
            is_ready: Whether all records were read that stood there at the start.
        """
        self._listing, self._answering, self._is_ready = listing, answering, is_ready
        self._followers: dict[str, _Followers] = {}

    def join(self, tenant: str, subscription: Subscription) -> None:
        """Let a subscription follow a tenant's alerts, from what it was told last.

        Raises:
            NewerFormatError: If a newer release wrote some of them.
        """
        self._listing.reader.newer.check()
        followers = self._followers.setdefault(tenant, _Followers())
        followers.subscriptions.add(subscription)
        followers.is_due = True

    def leave(self, subscription: Subscription) -> None:
        """Let a subscription follow nothing any more."""
        for tenant, followers in list(self._followers.items()):
            followers.subscriptions.discard(subscription)
            followers.afresh.discard(subscription)
            if not followers.subscriptions:
                del self._followers[tenant]

    def on_alerts(self, changed: list[Alert]) -> None:
        """Take note of alerts that records have changed."""
        for tenant in {one.tenant for one in changed}:
            if tenant in self._followers:
                self._followers[tenant].is_due = True

    def on_silences(self, tenants: set[str]) -> None:
        """Tell all that fires again, since silences changed: no record of it did."""
        for tenant in tenants & self._followers.keys():
            followers = self._followers[tenant]
            followers.is_due = True
            followers.afresh |= followers.subscriptions

    def send(self, now_s: float) -> None:
        """Tell everybody what they lack, if they can take it now.

        Args:
            now_s: Loop time.
        """
        for tenant, followers in self._followers.items():
            if followers.is_due and self._is_ready():
                followers.is_due = self._send(tenant, followers, now_s)

    def _send(self, tenant: str, followers: _Followers, now_s: float) -> bool:
        """Return whether somebody lacks something still."""
        seq = self._listing.reader.next_offset - 1
        alerts = sorted(self._listing.alerts(tenant), key=lambda one: one.seq)
        tell = self._answering(tenant)
        made: dict[str, bytes] = {}
        held_back = False
        for subscription in followers.subscriptions:
            client, known = subscription.client, _known(subscription, seq)
            if not client.can_take(now_s) or not client.wants(subscription, now_s):
                held_back = True
                continue
            write, key = client.socket.write, subscription.key
            again = known is None or subscription in followers.afresh
            for one in alerts:
                if (again and one.is_open) or (known is not None and one.seq > known):
                    if one.id not in made:
                        body = tell(one).model_dump(mode="json")
                        made[one.id] = frames.frame("alert", key=key, seq=one.seq, alert=body)
                    write(made[one.id])
            if again or known is None or seq > known or not subscription.sent_s:
                firing = [one.id for one in alerts if one.is_open]
                write(frames.frame("alerts", key=key, seq=seq, open=firing))
            subscription.last_sent_rev, subscription.sent_s = seq, now_s
            followers.afresh.discard(subscription)
        return held_back


def _known(subscription: Subscription, seq: int) -> int | None:
    """Return up to where a client knows alerts; None if it must be told all that fires."""
    known = subscription.last_sent_rev
    # Above the newest: it knows another log.
    return known if known is not None and known <= seq else None
