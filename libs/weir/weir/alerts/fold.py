"""The fold of `weir.alerts`: the same records in the same order, the same state.

It is what the job goes on with after a restart: what is known of every series, up to where
each rule is settled, and which messages nobody has confirmed yet. Of two jobs the one that
started later wins: records of the other that come after it are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from weir.alerts.records import Delivery, Look, Notification, Record, decode, dedup_key
from weir.alerts.step import Kind, Series
from weir.query.grouping import Group
from weir.series import encode_series


class Due(NamedTuple):
    """A message that some channel has not confirmed.

    Attributes:
        notification: What it says.
        since_ms: When it was written, by the writer's clock.
    """

    notification: Notification
    since_ms: int


class Heard(NamedTuple):
    """Who was told last that an alert fires.

    Attributes:
        channels: The channels.
        through_ms: Processed-through then.
    """

    channels: list[str]
    through_ms: int


# (tenant, vid of the rule's version)
_Rule = tuple[str, int]
# (tenant, id of the notification, channel)
DueKey = tuple[str, str, str]


class Fold:
    """Everything that `weir.alerts` says.

    Attributes:
        fence: The latest job that wrote; 0 before any.
        due: Messages that are sent until their outcome is known, oldest first.
        next_offset: The offset after the last record.
    """

    def __init__(self) -> None:
        self.fence = 0
        self.due: dict[DueKey, Due] = {}
        self.next_offset = 0
        self._series: dict[_Rule, dict[Group, Series]] = {}
        self._settled_ms: dict[_Rule, int] = {}
        self._told_to: dict[tuple[_Rule, Group], dict[str, Heard]] = {}

    def series(self, tenant: str, vid: int) -> Mapping[Group, Series]:
        """Return what is known of the series of a rule's version."""
        return self._series.get((tenant, vid), {})

    def settled_ms(self, tenant: str, vid: int) -> int | None:
        """Return up to where series that nothing is known of are settled; None if never told."""
        return self._settled_ms.get((tenant, vid))

    def told_to(self, tenant: str, vid: int, group: Group) -> Mapping[str, Heard]:
        """Return who was told that alerts of a series fire, by dedup key."""
        return self._told_to.get(((tenant, vid), group), {})

    def versions(self) -> set[_Rule]:
        """Return the versions of rules of which anything is known."""
        return {rule for rule, series in self._series.items() if series}

    def forget(self, tenant: str, vid: int) -> None:
        """Drop a version that is no longer watched; what is due is sent all the same."""
        self._series.pop((tenant, vid), None)
        self._settled_ms.pop((tenant, vid), None)

    def apply(self, offset: int, value: bytes) -> Record | None:
        """Fold one record in.

        Returns:
            It; None if it was folded before, cannot be read or is of an earlier job.
        """
        if offset < self.next_offset:
            return None
        self.next_offset = offset + 1
        try:
            record = decode(value)
        except (msgspec.DecodeError, ValueError):
            return None
        if record.fence < self.fence:
            return None
        self.fence = record.fence
        if isinstance(record, Look):
            self._look(record)
        elif isinstance(record, Delivery):
            self.due.pop((record.tenant, record.id, record.channel), None)
        else:
            self._settled_ms[record.tenant, record.vid] = record.settled_ms
        return record

    def _look(self, look: Look) -> None:
        rule, group = (look.tenant, look.vid), tuple(look.group)
        known = self._series.setdefault(rule, {})
        if look.series is None:
            known.pop(group, None)
        else:
            known[group] = look.series
        self._remember(look, rule, group)
        for message in look.messages:
            for channel in message.channels:
                key = look.tenant, message.notification.id, channel
                self.due[key] = Due(message.notification, look.at_ms)

    def _remember(self, look: Look, rule: _Rule, group: Group) -> None:
        """Keep who was told of the alerts that can still change."""
        told_to = self._told_to.get((rule, group), {})
        fired = (m for m in look.messages if m.notification.kind == Kind.FIRING)
        told_to |= {m.notification.dedup_key: Heard(m.channels, look.through_ms) for m in fired}
        text = encode_series(look.group)
        told = look.series.told if look.series is not None else ()
        open_keys = {dedup_key(*rule, text, one.key_ms) for one in told}
        kept = {key: heard for key, heard in told_to.items() if key in open_keys}
        if kept:
            self._told_to[rule, group] = kept
        else:
            self._told_to.pop((rule, group), None)
