"""The fold of `weir.alerts`: the same records in the same order, the same state.

It is what the job goes on with after a restart: what is known of every series, up to where
each rule is settled, and which messages nobody has confirmed yet. Of two jobs the one that
started later wins: records of the other that come after it are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from weir.alerts.due import Backlog, Due
from weir.alerts.records import (
    Acknowledgement,
    Cursor,
    Delivery,
    Look,
    Message,
    Reader,
    Record,
    Trial,
    dedup_key,
)
from weir.alerts.step import Kind, Series
from weir.query.grouping import Group
from weir.series import encode_series

CLOSING: Final = frozenset((Kind.WITHDRAWN, Kind.RESOLVED, Kind.ENDED))
"""What ends an alert."""
MAX_TRIALS: Final = 1_000
"""Tests that nobody answered: while the job is away people may ask for any number."""


class Heard(NamedTuple):
    """Who was told last that an alert fires.

    Attributes:
        channels: The channels.
        through_ms: Processed-through then.
        held: Whether the last such message was silenced: `channels` are those told before.
    """

    channels: list[str]
    through_ms: int
    held: bool = False


# (tenant, vid of the rule's version)
_Rule = tuple[str, int]


class Fold:
    """Everything that `weir.alerts` says.

    Attributes:
        reader: Which records have counted.
        due: Messages that are sent until their outcome is known, oldest first.
        trials: Tests that were asked for and not answered yet, by id, oldest first.
    """

    def __init__(self) -> None:
        self.reader = Reader()
        self.due = Backlog()
        self.trials: dict[str, Trial] = {}
        self._taken_on: dict[tuple[str, str], int] = {}
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

    def is_taken_on(self, tenant: str, key: str, through_ms: int) -> bool:
        """Tell whether somebody has acknowledged an alert, for as long as they said."""
        return self._taken_on.get((tenant, key), 0) > through_ms

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
        record = self.reader.take(offset, value)
        if isinstance(record, Look):
            self._look(record)
        elif isinstance(record, Delivery):
            self.due.settle((record.tenant, record.id, record.channel))
            self.trials.pop(record.id, None)
        elif isinstance(record, Cursor):
            for vid, settled_ms in record.settled_ms.items():
                self._settled_ms[record.tenant, vid] = settled_ms
        elif isinstance(record, Acknowledgement):
            self._acknowledged(record)
        elif isinstance(record, Trial):
            self.trials[record.id] = record
            if len(self.trials) > MAX_TRIALS:
                del self.trials[next(iter(self.trials))]
        return record

    def _acknowledged(self, record: Acknowledgement) -> None:
        if record.op == "put":
            self._taken_on[record.tenant, record.alert] = record.until_ms
        else:
            self._taken_on.pop((record.tenant, record.alert), None)

    def _look(self, look: Look) -> None:
        rule, group = (look.tenant, look.vid), tuple(look.group)
        known = self._series.setdefault(rule, {})
        if look.series is None:
            known.pop(group, None)
        else:
            known[group] = look.series
        self._remember(look, rule, group)
        for told in look.transitions:
            if told.kind in CLOSING and told.key_ms is not None:
                alert = dedup_key(*rule, encode_series(group), told.key_ms)
                self._taken_on.pop((look.tenant, alert), None)
        for message in look.messages:
            for channel in message.channels:
                key = look.tenant, message.notification.id, channel
                self.due.put(key, Due(message.notification, look.at_ms))

    def _remember(self, look: Look, rule: _Rule, group: Group) -> None:
        """Keep who was told of the alerts that can still change."""
        told_to = dict(self._told_to.get((rule, group), {}))
        for message in look.messages:
            if message.notification.kind == Kind.FIRING:
                key = message.notification.dedup_key
                told_to[key] = _heard(message, told_to.get(key), look.through_ms)
        text = encode_series(look.group)
        told = look.series.told if look.series is not None else ()
        open_keys = {dedup_key(*rule, text, one.key_ms) for one in told}
        kept = {key: heard for key, heard in told_to.items() if key in open_keys}
        if kept:
            self._told_to[rule, group] = kept
        else:
            self._told_to.pop((rule, group), None)


def _heard(message: Message, before: Heard | None, through_ms: int) -> Heard:
    """Return who has heard that an alert fires, after one more message of it.

    Whoever was told is told of its end, also if it fires again under a silence.
    """
    if message.held:
        return Heard(before.channels if before else [], through_ms, held=True)
    return Heard(message.channels, through_ms)
