"""Alerts as people look at them: each with its state, its history and its deliveries.

Folded from the same records as the job's own state. What fires is kept; of what ended, the
newest of each tenant.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Final

from weir.alerts.channels import Channels
from weir.alerts.machine import Phase, Point
from weir.alerts.records import (
    Acknowledgement,
    Attempt,
    Delivery,
    Look,
    Message,
    Reader,
    dedup_key,
)
from weir.alerts.step import Kind, Transition
from weir.series import encode_series

MAX_ENDED: Final = 1_000
MAX_HAPPENED: Final = 1_000
"""Of one alert: how it began, and the newest. One that flaps each minute comes there in a day."""
_ENDING: Final = {
    Kind.RESOLVED: "resolved",
    Kind.ENDED: "ended",
    Kind.WITHDRAWN: "withdrawn",
}
MAX_MESSAGES: Final = 50_000
"""Messages whose deliveries are still expected to be told."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One thing that happened to an alert.

    Attributes:
        kind: A kind of transition; of a message `delivered refused given_up failed` or
            `silenced`; `acknowledged` and `given_back`.
        at_ms: End of the window that made it; of what is no transition, when.
        value, low, high: What it was told with, and its bounds; None for silence and for what
            is no transition.
        channel, status, tries: Of a message that was sent.
        why: What went wrong with it.
        by: Who acknowledged it, or gave it back.
        note: What they said; of a silence, its names.
    """

    kind: str
    at_ms: int
    value: float | None = None
    low: float | None = None
    high: float | None = None
    channel: str = ""
    status: int | None = None
    tries: int = 0
    why: str = ""
    by: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert.

    Attributes:
        id: Its dedup key.
        seq: Offset of the newest record about it.
        tenant, rule, vid: Whose, which rule, which version of it.
        group: Values of the rule's dimensions.
        state: `firing recovering resolved ended withdrawn`.
        confirmed: Whether what it rests on is final.
        point: The window that fired, as last told; None where silence did.
        since_ms: End of the first window beyond.
        at_ms: End of the window that made the last change.
        reason: Why it ended, where its state does not say it.
        happened: Everything, oldest first; behind the first one lacks what is `left_out`.
        left_out: How many things are too many to be kept.
        taken_on: Who has acknowledged it last, and for how long; None for nobody.
        silences: Names of all that ever hid a message of it.
    """

    id: str
    seq: int
    tenant: str
    rule: str
    vid: int
    group: tuple[str | None, ...]
    state: str
    confirmed: bool
    point: Point | None
    since_ms: int
    at_ms: int
    reason: str = ""
    happened: tuple[Happened, ...] = ()
    left_out: int = 0
    taken_on: Acknowledgement | None = None
    silences: frozenset[str] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether it still fires."""
        return self.state in ("firing", "recovering")


@dataclass(frozen=True, slots=True)
class Group:
    """Where one series of a rule stands.

    Attributes:
        phase: Of the machine.
        silent_ms: End of the first window of a silence that lasts; None without one.
        since_ms: From when it is pending or recovering, else None.
        at_ms: End of the newest window of the last record.
        point: The window that the last record told.
    """

    phase: Phase
    silent_ms: int | None
    since_ms: int | None
    at_ms: int | None
    point: Point | None = None


@dataclass
class Listing:
    """All alerts of all tenants, and where the series of rules stand.

    Attributes:
        reader: Which records have counted.
        groups: By tenant and vid of the rule's version: what was told of its series last.
        channels: How channels are.
    """

    groups: dict[tuple[str, int], dict[tuple[str | None, ...], Group]] = field(default_factory=dict)
    _open: dict[str, Alert] = field(default_factory=dict)
    _ended: dict[str, OrderedDict[str, Alert]] = field(default_factory=dict)
    _messages: OrderedDict[str, str] = field(default_factory=OrderedDict)
    reader: Reader = field(default_factory=Reader)
    channels: Channels = field(default_factory=Channels)

    def alerts(self, tenant: str) -> list[Alert]:
        """Return a tenant's alerts: what fires first, then what ended, each newest first."""
        firing = [one for one in self._open.values() if one.tenant == tenant]
        ended = list(self._ended.get(tenant, OrderedDict()).values())
        return [
            *sorted(firing, key=lambda one: -one.since_ms),
            *sorted(ended, key=lambda one: -one.at_ms),
        ]

    def alert(self, tenant: str, alert_id: str) -> Alert | None:
        """Return one alert; None if it is not known, or another tenant's."""
        ended = self._ended.get(tenant, OrderedDict())
        found = self._open.get(alert_id) or ended.get(alert_id)
        return found if found is not None and found.tenant == tenant else None

    def apply(self, offset: int, value: bytes) -> list[Alert]:
        """Fold one record in; return the alerts that changed."""
        record = self.reader.take(offset, value)
        self.channels.take(record)
        if isinstance(record, Look):
            return self._look(offset, record)
        if isinstance(record, Delivery | Attempt):
            return self._sent(offset, record)
        return self._acknowledged(offset, record) if isinstance(record, Acknowledgement) else []

    def _look(self, offset: int, look: Look) -> list[Alert]:
        group = tuple(look.group)
        self._stand(look, group)
        for message in look.messages:
            note = message.notification
            self._messages[note.id] = note.dedup_key
            if len(self._messages) > MAX_MESSAGES:
                self._messages.popitem(last=False)
        changed: dict[str, Alert] = {}
        for told in look.transitions:
            if told.key_ms is None:
                continue
            key = dedup_key(look.tenant, look.vid, encode_series(group), told.key_ms)
            found = self._told(offset, look, key, told)
            if found is not None:
                changed[key] = found
        for message in look.messages:
            alert = self.alert(look.tenant, message.notification.dedup_key)
            if message.held and alert is not None:
                changed[alert.id] = self._put(_silenced(alert, offset, look.at_ms, message))
        return list(changed.values())

    def _told(self, offset: int, look: Look, key: str, told: Transition) -> Alert | None:
        alert = self.alert(look.tenant, key)
        if alert is None:
            if told.kind is not Kind.FIRING:
                return None
            alert = Alert(
                id=key,
                seq=offset,
                tenant=look.tenant,
                rule=look.rule,
                vid=look.vid,
                group=tuple(look.group),
                state="firing",
                confirmed=told.confirmed,
                point=told.point,
                since_ms=told.key_ms or told.at_ms,
                at_ms=told.at_ms,
            )
        done = Happened(told.kind.value, told.at_ms)
        if told.point is not None:
            point = told.point
            done = replace(done, value=point.value, low=point.low, high=point.high)
        alert = replace(_with(alert, offset, done), at_ms=told.at_ms)
        return self._put(_changed(alert, told))

    def _sent(self, offset: int, record: Delivery | Attempt) -> list[Alert]:
        alert = self.alert(record.tenant, self._messages.get(record.id, ""))
        if alert is None:
            return []
        done = Happened(
            record.outcome if isinstance(record, Delivery) else "failed",
            record.at_ms,
            channel=record.channel,
            status=record.status,
            tries=record.tries if isinstance(record, Delivery) else 1,
            why=record.why,
        )
        return [self._put(_with(alert, offset, done))]

    def _acknowledged(self, offset: int, record: Acknowledgement) -> list[Alert]:
        alert = self.alert(record.tenant, record.alert)
        if alert is None or not alert.is_open:
            return []
        put = record.op == "put"
        kind = "acknowledged" if put else "given_back"
        done = Happened(kind, record.at_ms, by=record.by, note=record.note)
        taken_on = record if put else None
        return [self._put(replace(_with(alert, offset, done), taken_on=taken_on))]

    def _put(self, alert: Alert) -> Alert:
        ended = self._ended.setdefault(alert.tenant, OrderedDict())
        if alert.is_open:
            ended.pop(alert.id, None)
            self._open[alert.id] = alert
            return alert
        self._open.pop(alert.id, None)
        ended[alert.id] = alert
        while len(ended) > MAX_ENDED:
            ended.popitem(last=False)
        return alert

    def _stand(self, look: Look, group: tuple[str | None, ...]) -> None:
        known = self.groups.setdefault((look.tenant, look.vid), {})
        if look.series is None:
            known.pop(group, None)
            return
        core = look.series.core
        point = look.transitions[-1].point if look.transitions else None
        known[group] = Group(core.phase, core.silent_ms, core.since_ms, core.at_ms, point)


def _changed(alert: Alert, told: Transition) -> Alert:
    """Return an alert after a transition."""
    if told.kind is Kind.FIRING:
        return replace(alert, state="firing", reason=told.reason)
    if told.kind is Kind.CONFIRMED:
        return replace(alert, confirmed=True)
    if told.kind is Kind.AMENDED:
        return replace(alert, point=told.point)
    if told.kind is Kind.RECOVERING:
        return replace(alert, state="recovering")
    if told.kind is Kind.RELAPSED:
        return replace(alert, state="firing")
    if told.kind in _ENDING:
        return replace(alert, state=_ENDING[told.kind], reason=told.reason, taken_on=None)
    return alert


def _silenced(alert: Alert, offset: int, at_ms: int, message: Message) -> Alert:
    """Return an alert after a message that was held back."""
    done = Happened("silenced", at_ms, note=", ".join(message.silences))
    silences = alert.silences | frozenset(message.silences)
    return replace(_with(alert, offset, done), silences=silences)


def _with(alert: Alert, offset: int, done: Happened) -> Alert:
    """Return an alert to which one thing more has happened, told by the record at an offset."""
    happened, left_out = (*alert.happened, done), alert.left_out
    if len(happened) > MAX_HAPPENED:
        happened, left_out = (happened[0], *happened[2:]), left_out + 1
    return replace(alert, seq=offset, happened=happened, left_out=left_out)
