"""Evaluates all rules at each revision: panes in, records of `weir.alerts` out.

One pass at a time. While one runs, what batches change is collected for the next; so a
slow pass makes passes rarer and none of them wrong.
"""

from __future__ import annotations

import asyncio

import structlog
from prometheus_client import Gauge
from redis.exceptions import RedisError
from weir import metrics
from weir.alerts.records import Cursor
from weir.batches import BatchRecord
from weir.changed import ChangedPanes
from weir.clock import Clock
from weir.problems import ProblemError, Reason
from weir.query import Facts
from weir.query.facts import Served
from weir_reading.batches import Batches
from weir_reading.catalog import Catalog
from weir_reading.facts import facts_of
from weir_reading.panes import Panes
from weir_reading.threads import in_thread

from weir_analytics.alerts.journal import Journal
from weir_analytics.alerts.recording import Recording
from weir_analytics.alerts.rules import Rules, Watching

CURSOR_EVERY_S = 900.0
RETRY_S = 0.5
REST_S = 10.0
"""What cannot be evaluated is tried again after it, or when definitions change."""
THROUGH = Gauge(metrics.ALERTS_PROCESSED_THROUGH, "Received time that rules are evaluated up to.")
log = structlog.get_logger()


class Evaluator:
    """Follows batches and definitions.

    Attributes:
        evaluated_ms: Processed-through of the last pass; None before the first.
    """

    def __init__(
        self,
        rules: Rules,
        catalog: Catalog,
        batches: Batches,
        panes: Panes,
        journal: Journal,
        recording: Recording,
        clock: Clock,
    ) -> None:
        self._rules, self._catalog, self._batches = rules, catalog, batches
        self._panes, self._journal, self._clock = panes, journal, clock
        self._recording = recording
        self._changed = ChangedPanes()
        self._place = (0, 0)
        self._through_ms = 0
        self._woken = asyncio.Event()
        self._defined = True
        self._cursors_s = clock.monotonic_s()
        self.evaluated_ms: int | None = None
        self._busy_s: float | None = None

    @property
    def stuck_s(self) -> float:
        """For how long the rule that is being looked at has been; 0 while there is none."""
        return 0.0 if self._busy_s is None else self._clock.monotonic_s() - self._busy_s

    def on_batch(self, record: BatchRecord) -> None:
        """Take note of what a batch changed."""
        self._panes.on_batch(record)
        if (record.epoch, record.rev) != (self._place[0], self._place[1] + 1):
            # Another life of the state, or a record that was missed.
            for one in self._rules.watching.values():
                one.watch.forget()
        self._place = (record.epoch, record.rev)
        self._changed.add(record.changes())
        self._woken.set()

    def on_definitions(self, _: object) -> None:
        """Take note that definitions have changed."""
        self._defined = True
        self._woken.set()

    async def run(self) -> None:
        """Evaluate until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            self._busy_s = self._clock.monotonic_s()
            try:
                await self._pass()
            except (RedisError, OSError) as error:
                log.warning("store_lost", error=type(error).__name__)
                for one in self._rules.watching.values():
                    one.watch.forget()
                await asyncio.sleep(RETRY_S)
                self._woken.set()
            finally:
                self._busy_s = None

    async def _pass(self) -> None:
        if self._defined:
            self._defined = False
            self._rules.update()
        through_ms = self._batches.processed_through_ms
        if through_ms is None:
            return
        facts, self._through_ms = self._facts(through_ms), through_ms
        changed, self._changed = self._changed, ChangedPanes()
        for watched, changes in self._rules.ended(through_ms):
            await self._recording.changes(watched, changes, through_ms)
        try:
            for one in list(self._rules.watching.values()):
                await self._evaluate(one, facts, changed)
                self._busy_s = self._clock.monotonic_s()
        except (RedisError, OSError):
            # A correction of old panes is said once: it must reach the next pass.
            self._changed.add(changed)
            raise
        await self._journal.append(self._cursors())
        self.evaluated_ms = through_ms
        THROUGH.set(through_ms / 1000)

    async def _evaluate(self, one: Watching, facts: Facts, everywhere: ChangedPanes) -> None:
        """Look at one rule until there is no more to see."""
        served = self._rules.metrics(one.watched.tenant)
        if not self._rules.is_counted(one.watched):
            return
        changed = _of_metric(served.get(one.watched.rule.metric), everywhere)
        changed.add(one.missed)
        if self._clock.monotonic_s() < one.rests_to_s:
            one.missed = changed
            return
        try:
            more = one.watch.is_due(served, facts, changed)
            one.watch.doubt(changed.spans.values())
            while more:
                self._busy_s = self._clock.monotonic_s()
                try:
                    wanted = one.watch.look(served, facts, changed)
                    panes = await self._panes.together(wanted, self._catalog.shards, facts.epoch)
                    # Merging sketches takes long, and heartbeats must go on.
                    changes, more = await in_thread(None, one.watch.see, panes, facts)
                except ProblemError as problem:
                    if problem.reason is Reason.QUERY_TOO_LARGE and one.watch.narrow():
                        continue
                    raise
                await self._recording.changes(one.watched, changes, self._through_ms)
                await self._recording.reminders(one.watched, one.watch.series, self._through_ms)
            one.error, one.missed = "", ChangedPanes()
        except ProblemError as problem:
            if one.error != problem.message:
                log.warning("rule_refused", rule=one.watched.rule.name, why=problem.message)
            self._rest(one, problem.message, changed)
        except (RedisError, OSError):
            raise
        except Exception:
            # Whatever is wrong with one rule must not stop the others.
            log.exception("rule_failed", rule=one.watched.rule.name)
            why = "it could not be evaluated; the log of the alerts job says why"
            self._rest(one, why, changed)

    def _rest(self, one: Watching, why: str, changed: ChangedPanes) -> None:
        """Leave a rule alone for a while; what changes meanwhile is kept for its next look."""
        one.error, one.missed = why, changed
        one.rests_to_s = self._clock.monotonic_s() + REST_S
        one.watch.forget()

    def _cursors(self) -> list[Cursor]:
        """Return how far rules are settled, now and then: a restart begins there."""
        now_s = self._clock.monotonic_s()
        if now_s - self._cursors_s < CURSOR_EVERY_S:
            return []
        self._cursors_s = now_s
        settled: dict[str, dict[int, int]] = {}
        for vid, one in self._rules.watching.items():
            settled.setdefault(one.watched.tenant, {})[vid] = self._rules.settled_ms(one)
        at_ms, fence = self._clock.now_ms(), self._recording.fence
        return [
            Cursor(fence=fence, tenant=tenant, settled_ms=of_rules, at_ms=at_ms)
            for tenant, of_rules in settled.items()
        ]

    def _facts(self, through_ms: int) -> Facts:
        # What is kept is decided by the events' own time, so that a replay decides alike.
        return facts_of(
            self._catalog, self._batches, processed_through_ms=through_ms, now_ms=through_ms
        )


def _of_metric(served: Served | None, changed: ChangedPanes) -> ChangedPanes:
    """Return what changed of a metric; nothing if it is not served."""
    vids = set() if served is None else {version.vid for version in served.versions}
    return changed.of(vids)
