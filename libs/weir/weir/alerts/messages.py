"""Which messages follow from what one look changed, and who gets them.

    firing                          the rule's channels
    confirmed, amended              those of them that follow everything
    withdrawn, resolved, ended      whoever got the firing, also if the rule names others now
    no_data                         the rule's channels
    firing, again                   whoever got the firing, as often as the rule repeats it
    firing, no longer silenced      the rule's channels

What a silence hides is recorded with who would have got it, but for ends: they go to
whoever was told. An alert that somebody has taken on is not told again. A rule in `shadow`
tells nobody; what was told before it was put there is still ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from weir.alerts import words
from weir.alerts.fold import CLOSING, Heard
from weir.alerts.records import Message, Notification, Trial, dedup_key, notification_id
from weir.alerts.silences import Spell, hiding
from weir.alerts.step import Kind, Series, Transition
from weir.alerts.words import Subject
from weir.definitions.durations import format_duration
from weir.definitions.rule import Rule
from weir.series import encode_series

_FOLLOWED: Final = frozenset((Kind.CONFIRMED, Kind.AMENDED))
_OPENING: Final = frozenset((Kind.FIRING, Kind.NO_DATA))


@dataclass(frozen=True, slots=True)
class Watched:
    """One version of a rule, and what its messages need besides.

    Attributes:
        tenant: Whose.
        vid: The version: the offset of its record.
        version: Its number.
        rule: It.
        unit: Of its aggregate.
        followers: Channels that follow everything.
        silences: Of its tenant, and when they hold.
        link: Where its alerts are seen; the alert's id is put behind it.
    """

    tenant: str
    vid: int
    version: int
    rule: Rule
    unit: str = ""
    followers: frozenset[str] = frozenset()
    silences: tuple[Spell, ...] = ()
    link: str = ""


def messages(
    watched: Watched,
    group: tuple[str | None, ...],
    transitions: Collection[Transition],
    told_to: Mapping[str, Heard],
) -> list[Message]:
    """Return what is to be sent, in order.

    Args:
        watched: The rule.
        group: Values of its dimensions, in its order.
        transitions: What changed of that series.
        told_to: Who was told that alerts of the series fire, by dedup key.
    """
    heard = {key: one.channels for key, one in told_to.items()}
    found = []
    for told in transitions:
        key = _key(watched, group, told)
        channels = _channels(watched, told, heard.get(key, []))
        silences = [] if told.kind in CLOSING else _hiding(watched, group, told.through_ms)
        if told.kind is Kind.FIRING and not silences:
            heard[key] = channels
        if channels:
            note = _notification(watched, group, told, key)
            found.append(_message(note, channels, silences))
    return found


def reminders(
    watched: Watched,
    group: tuple[str | None, ...],
    series: Series,
    told_to: Mapping[str, Heard],
    through_ms: int,
    *,
    is_taken_on: Callable[[str], bool] = lambda _: False,
) -> list[Message]:
    """Return what is to be told again, or at last, because it goes on firing.

    Args:
        watched: The rule.
        group: Values of its dimensions, in its order.
        series: What is known of that series.
        told_to: Who was told that alerts of the series fire, and when, by dedup key.
        through_ms: Processed-through.
        is_taken_on: Whether somebody has acknowledged an alert, by dedup key.
    """
    if watched.rule.mode != "active" or _hiding(watched, group, through_ms):
        return []
    found = []
    for one in series.told:
        again = Transition(
            Kind.FIRING,
            one.episode.fired_ms,
            through_ms,
            one.key_ms,
            one.confirmed,
            one.episode.point,
        )
        key = _key(watched, group, again)
        heard = told_to.get(key)
        if one.episode.ended_ms is not None or heard is None or is_taken_on(key):
            continue
        channels, reason = _again(watched.rule, heard, through_ms)
        if channels:
            note = _notification(watched, group, replace(again, reason=reason), key)
            found.append(Message(notification=note, channels=channels))
    return found


def trial_message(trial: Trial) -> Notification:
    """Return what a test of a channel sends."""
    return Notification(
        id=trial.id,
        kind="test",
        verdict="confirmed",
        dedup_key=trial.id,
        tenant=trial.tenant,
        rule="",
        rule_version=0,
        labels={},
        severity="info",
        title=f"Test of channel {trial.channel}",
        text=f"{trial.by} asked whether messages of alerts arrive here. This one did.",
        at_ms=trial.at_ms,
    )


def heartbeat_message(
    tenant: str, channel: str, every_ms: int, now_ms: int, evaluated_ms: int
) -> Notification:
    """Return what a channel is told as long as rules are being evaluated.

    Args:
        tenant: Whose.
        channel: Its name.
        every_ms: How often it is told.
        now_ms: When it is sent, by the job's clock.
        evaluated_ms: Processed-through that rules are evaluated up to.
    """
    key = dedup_key(tenant, 0, channel, 0)
    every, late = format_duration(every_ms), format_duration(2 * every_ms)
    return Notification(
        id=notification_id(key, "heartbeat", now_ms),
        kind="heartbeat",
        verdict="confirmed",
        dedup_key=key,
        tenant=tenant,
        rule="",
        rule_version=0,
        labels={},
        severity="info",
        title=f"Heartbeat of channel {channel}",
        text=f"Weir evaluates its rules, and says so every {every}. "
        f"Complain if this message has not come for {late}.",
        at_ms=evaluated_ms,
    )


def _again(rule: Rule, heard: Heard, through_ms: int) -> tuple[list[str], str]:
    """Return whom to tell again that it fires, and why; nobody if it is not time."""
    if heard.held:
        return list(rule.route.channels), "its silence has ended"
    if 0 < rule.route.repeat <= through_ms - heard.through_ms:
        return heard.channels, "still firing"
    return [], ""


def _message(note: Notification, channels: list[str], silences: list[str]) -> Message:
    if silences:
        return Message(notification=note, channels=[], held=channels, silences=silences)
    return Message(notification=note, channels=channels)


def _hiding(watched: Watched, group: tuple[str | None, ...], through_ms: int) -> list[str]:
    if not watched.silences:
        return []
    rule = watched.rule
    silences = (one.silence for one in watched.silences if one.holds(through_ms))
    return hiding(silences, rule.name, _labels(rule, group), through_ms)


def _labels(rule: Rule, group: tuple[str | None, ...]) -> dict[str, str | None]:
    return {**rule.labels, **dict(zip(rule.by, group, strict=True))}


def _channels(watched: Watched, told: Transition, heard: list[str]) -> list[str]:
    if told.kind in CLOSING:
        return heard
    if watched.rule.mode != "active":
        return []
    named = list(watched.rule.route.channels)
    if told.kind in _FOLLOWED:
        return [channel for channel in heard if channel in watched.followers]
    return named if told.kind in _OPENING else []


def _key(watched: Watched, group: tuple[str | None, ...], told: Transition) -> str:
    # Silence is no alert; each spell of it has a key of its own.
    begun_ms = told.at_ms if told.key_ms is None else told.key_ms
    return dedup_key(watched.tenant, watched.vid, encode_series(group), begun_ms)


def _notification(
    watched: Watched, group: tuple[str | None, ...], told: Transition, key: str
) -> Notification:
    rule, point = watched.rule, told.point
    by = dict(zip(rule.by, group, strict=True))
    subject = Subject(rule, by, watched.unit)
    links = {"alert": watched.link + key} if watched.link else {}
    return Notification(
        id=notification_id(key, told.kind, told.through_ms),
        kind=told.kind,
        verdict="confirmed" if told.confirmed else "provisional",
        dedup_key=key,
        tenant=watched.tenant,
        rule=rule.name,
        rule_version=watched.version,
        labels=_labels(rule, group),
        severity=rule.severity,
        title=words.title(subject, told),
        text=words.text(subject, told),
        value=None if point is None else point.value,
        low=None if point is None else point.low,
        high=None if point is None else point.high,
        limit=rule.limit,
        unit=watched.unit,
        count=None if point is None else point.events,
        since_ms=told.key_ms,
        at_ms=told.at_ms,
        before=told.before,
        before_low=told.before_low,
        before_high=told.before_high,
        reason=told.reason or None,
        links=links | ({"runbook": rule.runbook} if rule.runbook else {}),
    )
