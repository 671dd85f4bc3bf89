"""What looks at rules changed, made records of `weir.alerts` and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec
import structlog
from weir.alerts.fold import Heard
from weir.alerts.messages import Watched, messages, reminders
from weir.alerts.records import Look, Message
from weir.alerts.step import Series
from weir.alerts.watch import Change
from weir.clock import Clock
from weir.query.grouping import Group

from weir_analytics.alerts.journal import Journal

log = structlog.get_logger()


class Recording:
    """Writes what was seen, with the messages that follow from it.

    Each look is recorded before the next: who was told that an alert fires is read from
    the records.

    Attributes:
        fence: Offset of this job's start record.
    """

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal, self._clock = journal, clock
        self.fence = 0

    async def changes(self, watched: Watched, found: Iterable[Change], through_ms: int) -> None:
        """Record what one look changed of a rule's series; not the end of one never recorded."""
        known = self._journal.fold.series(watched.tenant, watched.vid)
        news = (one for one in found if one.transitions or one.group in known)
        await self._journal.append([self._look(watched, one, through_ms) for one in news])

    async def reminders(
        self, watched: Watched, series: Mapping[Group, Series], through_ms: int
    ) -> None:
        """Record what is to be told again of the series that go on firing."""
        looks = []
        for group, one in series.items():
            told_to = self._journal.fold.told_to(watched.tenant, watched.vid, group)
            found = told_to and self._again(watched, group or (), one, told_to, through_ms)
            if found:
                look = self._look(watched, Change(group, one, []), through_ms)
                looks.append(msgspec.structs.replace(look, messages=found))
        await self._journal.append(looks)

    def _look(self, watched: Watched, change: Change, through_ms: int) -> Look:
        group = change.group or ()
        told_to = self._journal.fold.told_to(watched.tenant, watched.vid, group)
        for told in change.transitions:
            log.info("transition", rule=watched.rule.name, kind=told.kind.value)
        return Look(
            fence=self.fence,
            tenant=watched.tenant,
            rule=watched.rule.name,
            vid=watched.vid,
            group=list(group),
            transitions=change.transitions,
            series=None if change.series is None else replace(change.series, tail=()),
            messages=messages(watched, group, change.transitions, told_to),
            through_ms=through_ms,
            at_ms=self._clock.now_ms(),
        )

    def _again(
        self,
        watched: Watched,
        group: tuple[str | None, ...],
        series: Series,
        told_to: Mapping[str, Heard],
        through_ms: int,
    ) -> list[Message]:
        def is_taken_on(key: str) -> bool:
            return self._journal.fold.is_taken_on(watched.tenant, key, through_ms)

        return reminders(watched, group, series, told_to, through_ms, is_taken_on=is_taken_on)
