"""Weir watches itself: rules on its own signals, evaluated by the clock.

Beside the evaluator, which stands still whenever counting does. The rules are definitions
like all others, shipped once to each tenant that has a key and never had them.
"""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Final

import structlog
from weir import names
from weir.clock import Clock
from weir.definitions.fold import Definitions
from weir.definitions.records import Edit, NewRecord, put_record
from weir.definitions.signals import EVERY_MS
from weir.definitions.text import parse_text, split_text
from weir.kafka import Kafka
from weir_reading.appender import Appender, NotConfirmedError
from weir_reading.catalog import Catalog

from weir_analytics.alerts.recording import Recording
from weir_analytics.alerts.rules import Rules, WatchingItself
from weir_analytics.alerts.signals import Readings, Signals, show

SEND_TIMEOUT_S = 10.0
BY: Final = "weir"
log = structlog.get_logger()


class Itself:
    """Evaluates the rules on signals, and ships those that tenants begin with.

    Attributes:
        looked_ms: When all signals were read last, by the clock; None before.
    """

    def __init__(
        self,
        rules: Rules,
        catalog: Catalog,
        signals: Signals,
        recording: Recording,
        clock: Clock,
        *,
        kafka: Kafka,
        ships: bool,
    ) -> None:
        self._rules, self._catalog, self._signals = rules, catalog, signals
        self._recording, self._clock = recording, clock
        self._kafka, self._ships = kafka, ships
        self._defined = True
        self.looked_ms: int | None = None
        catalog.listen(self._on_definitions)

    async def run(self) -> None:
        """Evaluate every ten seconds, until cancelled."""
        while True:
            try:
                if self._defined and self._ships:
                    self._defined = False
                    await self._ship()
                await self.look()
            except Exception:
                # Whatever is wrong here must not stop the rules on data.
                log.exception("own_rules_failed")
                self._defined = True
            now_ms = self._clock.now_ms()
            await asyncio.sleep((EVERY_MS - now_ms % EVERY_MS) / 1000)

    async def look(self) -> None:
        """Take one reading of each signal and evaluate every rule on it."""
        watching = list(self._rules.itself.values())
        common, found = await self._signals.common(), dict[str, Readings]()
        for tenant in {one.watched.tenant for one in watching}:
            try:
                found[tenant] = common | await self._signals.of_tenant(tenant)
            except Exception:
                # Of one tenant; the others' rules are looked at all the same.
                log.exception("signals_not_read", tenant=tenant)
        show(found.values())
        at_ms = self._clock.now_ms()
        for watched, changes in self._rules.ended(at_ms, itself=True):
            await self._recording.changes(watched, changes, at_ms)
        for one in watching:
            await self._evaluate(one, found.get(one.watched.tenant), at_ms)
        self.looked_ms = at_ms

    async def _evaluate(self, one: WatchingItself, found: Readings | None, at_ms: int) -> None:
        if found is None:
            one.error = "its signals could not be read; the log of the alerts job says why"
            return
        try:
            changes = one.watch.see(found[one.watched.rule.metric], at_ms)
            await self._recording.changes(one.watched, changes, at_ms)
            await self._recording.reminders(one.watched, one.watch.series, at_ms)
            one.error = ""
        except Exception:
            log.exception("rule_failed", rule=one.watched.rule.name)
            one.error = "it could not be evaluated; the log of the alerts job says why"

    async def _ship(self) -> None:
        due = shipments(self._catalog.folded, self._clock.now_ms())
        if not due:
            return
        appender = Appender(self._kafka, names.DEFINITIONS, timeout_s=SEND_TIMEOUT_S)
        try:
            for key, value in due:
                await appender.append(key, value)
            log.info("own_rules_shipped", records=len(due))
        except NotConfirmedError:
            # Some may stand: what is missing is found by reading.
            self._defined = True
        finally:
            await appender.close()

    def _on_definitions(self, _: object) -> None:
        self._defined = True


def shipments(folded: Definitions, at_ms: int) -> list[NewRecord]:
    """Return the records of shipped rules that tenants lack.

    A tenant that ever had a rule of that name has it no more because somebody wanted so.
    """
    tenants = sorted({one.tenant for one in folded.current(kind="key")})
    return [
        put_record(Edit(tenant, "rule", name, None, BY, at_ms), text)
        for tenant in tenants
        for name, text in shipped().items()
        if not folded.history(tenant, "rule", name)
    ]


@cache
def shipped() -> dict[str, str]:
    """Return the texts of the rules on Weir itself, by name."""
    text = files(__package__).joinpath("own_rules.yaml").read_text(encoding="utf-8")
    return {parse_text(one)["name"]: one for one in split_text(text)}
