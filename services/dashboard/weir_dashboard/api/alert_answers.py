"""Alerts as the API answers with them, made of records and definitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from weir.alerts import listing
from weir.alerts.machine import Point
from weir.alerts.silences import hiding
from weir.definitions.history import Definition
from weir.definitions.rule import Rule
from weir.definitions.silence import Silence
from weir.query.grouping import Group
from weir_reading.served import Metrics

from weir_dashboard.api import alert_models as told
from weir_dashboard.context import Context


class Answers:
    """Makes answers about one tenant's alerts; for one request."""

    def __init__(self, here: Context, tenant: str) -> None:
        self._here, self._tenant = here, tenant
        self.through_ms = here.batches.processed_through_ms or here.clock.now_ms()
        # Each alert is held against them: what is over is left out once, not for each.
        self._silences = silences_of(here, tenant, self.through_ms)

    @cached_property
    def alerts(self) -> list[listing.Alert]:
        """The tenant's alerts: what fires first, then what ended, each newest first."""
        return self._here.alerts.listing.alerts(self._tenant)

    def alert(self, one: listing.Alert) -> told.Alert:
        """Return an alert as lists show it."""
        return told.Alert(**self._members(one))

    def detail(self, one: listing.Alert) -> told.AlertDetail:
        """Return an alert with all that happened to it."""
        rule = rule_of(self._here.catalog.folded.by_vid(one.vid))
        return told.AlertDetail(
            **self._members(one),
            metric=rule.metric if rule is not None else "",
            happened=[_happened(happened) for happened in one.happened],
            left_out=one.left_out,
        )

    def hidden_by(self, one: listing.Alert, silences: Sequence[Silence]) -> list[str]:
        """Return the names of those silences that hide messages of an alert now."""
        return hiding(silences, one.rule, self._labels(one), self._at_ms(one))

    def _at_ms(self, one: listing.Alert) -> int:
        """Return the time of its rule: processed-through, or the clock of rules on Weir itself."""
        rule = rule_of(self._here.catalog.folded.by_vid(one.vid))
        on_signal = rule is not None and rule.signal is not None
        return self._here.clock.now_ms() if on_signal else self.through_ms

    def _labels(self, one: listing.Alert) -> dict[str, str | None]:
        rule = rule_of(self._here.catalog.folded.by_vid(one.vid))
        return {} if rule is None else {**rule.labels, **by_of(rule, one.group)}

    def _members(self, one: listing.Alert) -> dict[str, Any]:
        definition = self._here.catalog.folded.by_vid(one.vid)
        rule = rule_of(definition)
        return {
            **measured(one.point),
            "count": one.point.events if one.point is not None else None,
            "id": one.id,
            "seq": one.seq,
            "rule": one.rule,
            "rule_version": definition.version if definition is not None else 0,
            "labels": self._labels(one),
            "severity": rule.severity if rule is not None else "high",
            "state": one.state,
            "verdict": "confirmed" if one.confirmed else "provisional",
            "aggregate": rule.aggregate if rule is not None else "",
            "limit": limit_of(rule) if rule is not None else None,
            "unit": unit_of(self._here, one.tenant, rule) if rule is not None else "",
            "since_ms": one.since_ms,
            "at_ms": one.at_ms,
            "reason": one.reason or None,
            "runbook": (rule.runbook or None) if rule is not None else None,
            "ack": self._ack(one),
            "silenced_by": self.hidden_by(one, self._silences) if one.is_open else [],
        }

    def _ack(self, one: listing.Alert) -> told.Acknowledged | None:
        taken = one.taken_on
        if taken is None or taken.until_ms <= self._at_ms(one):
            return None
        return told.Acknowledged(by=taken.by, note=taken.note, until_ms=taken.until_ms)


def silences_of(here: Context, tenant: str, through_ms: int) -> list[Silence]:
    """Return a tenant's silences that are not over."""
    found = (one.readable for one in here.catalog.folded.current(tenant, "silence"))
    return [one for one in found if isinstance(one, Silence) and one.until > through_ms]


def rule_of(version: Definition | None) -> Rule | None:
    """Return a version's rule; None if there is none that this release can read."""
    model = version.readable if version is not None else None
    return model if isinstance(model, Rule) else None


def by_of(rule: Rule, group: Group) -> dict[str, str | None]:
    """Return the dimensions of a series with their values."""
    return dict(zip(rule.by, group or (), strict=True))


def limit_of(rule: Rule) -> float | list[float]:
    """Return a rule's limit as JSON has it."""
    return list(rule.limit) if isinstance(rule.limit, tuple) else rule.limit


def unit_of(here: Context, tenant: str, rule: Rule) -> str:
    """Return the unit of what a rule asks."""
    return Metrics(here.catalog, tenant).unit(rule.metric, rule.aggregate)


def measured(point: Point | None) -> dict[str, float | None]:
    """Return the value of a window and its ends; None of each where there is none."""
    if point is None:
        return {"value": None, "low": None, "high": None}
    return {"value": point.value, "low": point.low, "high": point.high}


def _happened(one: listing.Happened) -> told.Happened:
    return told.Happened(
        kind=one.kind,
        at_ms=one.at_ms,
        value=one.value,
        low=one.low,
        high=one.high,
        channel=one.channel or None,
        status=one.status,
        tries=one.tries or None,
        why=one.why or None,
        by=one.by or None,
        note=one.note or None,
    )
