"""Queries: from what a tenant asks to an answer, with panes read from Redis.

The engine of `weir.query` is pure; this module brings it definitions, panes, freshness
and color slots, in that order: the revision is read first, then the panes, so an answer
may be newer than the revision it names, never older.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

from redis.asyncio import Redis
from weir.batches import BatchRecord
from weir.changed import ChangedPanes
from weir.clock import Clock
from weir.query import Answer, Evaluator, Facts, PaneKey, Plan, Query, canonical, parse_query, plan
from weir.query.corrected import corrected
from weir.query.facts import PaneRows
from weir_reading.facts import facts_of
from weir_reading.panes import Panes
from weir_reading.served import served
from weir_reading.threads import in_thread

from weir_dashboard.definitions.catalog import Catalog
from weir_dashboard.observer import Observer
from weir_dashboard.store.corrections import Corrections
from weir_dashboard.store.slots import Slots

NOWHERE = (-1, -1)


class Queries:
    """Asks questions of panes.

    Attributes:
        panes: The panes and names, cached.
        late: What late events changed.
    """

    def __init__(
        self,
        redis: Redis,
        catalog: Catalog,
        observer: Observer,
        clock: Clock,
        panes: Panes,
        late: Corrections,
    ) -> None:
        self.panes, self.late = panes, late
        self._slots = Slots(redis)
        self._catalog = catalog
        self._observer = observer
        self._clock = clock

    def on_batch(self, record: BatchRecord) -> None:
        """Forget the panes that a batch changed."""
        self.panes.on_batch(record)

    async def ask(
        self, tenant: str, asked: dict[str, Any], pool: Executor | None = None
    ) -> tuple[Question, dict[str, Any]]:
        """Return a question and its canonical query.

        Args:
            tenant: Who asks.
            asked: What.
            pool: Whose threads work on it; None for those of the live hub.

        Raises:
            ProblemError: 404 `metric_unknown`, 422 `query_invalid`, `query_too_large`.
            NewerFormatError: If a newer release wrote definitions.
        """
        self._catalog.folded.newer.check()
        # Who asks for the same in other words is given the same, whoever asked first.
        form = canonical(parse_query(asked))
        question = Question(self, tenant, parse_query(form), pool)
        question.plan()
        return question, form

    def facts(self) -> Facts:
        """Return how far counting has come now."""
        fresh, batches = self._observer.fresh(), self._observer.batches
        known = facts_of(
            self._catalog,
            batches,
            processed_through_ms=batches.processed_through_ms,
            now_ms=self._clock.now_ms(),
        )
        return replace(known, status=fresh.status, fresh=fresh.body())

    def plan(self, tenant: str, query: Query, facts: Facts) -> Plan:
        """Return how a query is answered with the definitions of now."""
        return plan(query, lambda name: served(self._catalog, tenant, name), facts)

    async def rows(
        self, keys: set[PaneKey], facts: Facts, pool: Executor | None = None
    ) -> dict[PaneKey, PaneRows | None]:
        """Return panes as the engine takes them: shards together, rows by series text.

        Raises:
            StoreLostError: If the state of the facts is no longer there.
        """
        return await self.panes.together(keys, self._catalog.shards, facts.epoch, pool)

    async def slots(self, tenant: str, made: Plan, texts: list[str]) -> dict[str, int]:
        """Return the color slot of each series, new ones given out by first appearance."""
        return await self._slots.of(tenant, _metrics_of(made)[0], tuple(made.query.by), texts)


class Question:
    """A query of one tenant, answered at one revision after another at little cost."""

    def __init__(
        self, queries: Queries, tenant: str, query: Query, pool: Executor | None = None
    ) -> None:
        self._queries = queries
        self._pool = pool
        self._tenant = tenant
        self._query = query
        self._evaluator: Evaluator | None = None
        self._plan: Plan | None = None
        self._place = NOWHERE
        self._life = 0
        self._changed = ChangedPanes()
        self._edges: tuple[int, ...] = ()
        self._late_stands: list[int] = []

    def plan(self) -> Plan:
        """Return how the query would be answered now.

        Raises:
            ProblemError: 404 `metric_unknown`, 422 `query_invalid`, `query_too_large`.
        """
        return self._queries.plan(self._tenant, self._query, self._queries.facts())

    def is_due(self, record: BatchRecord) -> bool:
        """Take note of what a batch changed, and tell whether the answer may differ."""
        if (record.epoch, record.rev) != (self._place[0], self._place[1] + 1):
            self._begin_again()
        self._place = (record.epoch, record.rev)
        # Also while an answer is being made: its panes may have been read before this batch.
        changed = record.changes()
        self._changed.add(changed)
        if self._plan is None or self._evaluator is None:
            return True
        if self._late_stands_of(self._plan) != self._late_stands:
            return True  # the record of a batch may be read before its corrections are
        return changed.touches(self._plan.keys) or self._time_moves(self._plan)

    async def answer(self) -> dict[str, Any]:
        """Return the answer at the newest revision.

        Raises:
            ProblemError: 404 where the metric is gone, 422 `query_too_large`.
            RedisError: If the store does not answer; the next answer begins again.
        """
        facts, life = self._queries.facts(), self._life
        made = self._queries.plan(self._tenant, self._query, facts)
        changed, self._changed = self._changed, ChangedPanes()
        before, self._evaluator = self._evaluator, None
        # Listing panes and merging sketches take long; the loop must go on sending heartbeats.
        evaluator, wanted = await in_thread(self._pool, _prepared, before, made, changed)
        rows = await self._queries.rows(wanted, facts, self._pool)
        found = await in_thread(self._pool, evaluator.update, rows, facts)
        texts = [series.text for series in found.series]
        slots = await self._queries.slots(self._tenant, made, texts)
        if life == self._life:
            self._evaluator = evaluator
        if self._place == NOWHERE:
            self._place = (facts.epoch, facts.rev)
        self._plan, self._edges = made, _edges(made, facts)
        return found.to_dict(slots, await self._corrected(made, found))

    async def _corrected(self, made: Plan, found: Answer) -> list[dict[str, Any]]:
        """Return what late events changed in the windows of an answer."""
        late = self._queries.late
        self._late_stands = self._late_stands_of(made)
        records = [one for name in _metrics_of(made) for one in late.of_metric(self._tenant, name)]
        if not records:
            return []
        return await in_thread(self._pool, corrected, made, found.series, records)

    def _late_stands_of(self, made: Plan) -> list[int]:
        late = self._queries.late
        return [late.stand(self._tenant, name) for name in _metrics_of(made)]

    def _begin_again(self) -> None:
        """Forget what was read: a record was missed."""
        self._life += 1
        self._evaluator = None
        self._changed = ChangedPanes()

    def _time_moves(self, made: Plan) -> bool:
        """Tell whether time alone changes the answer: a window opens, ends or is final."""
        if any(reading.aggregate.per_second for reading in made.readings):
            return True
        return _edges(made, self._queries.facts()) != self._edges


def _metrics_of(made: Plan) -> list[str]:
    names = (reading.served.newest.metric.name for reading in made.readings)
    return list(dict.fromkeys(names))


def _prepared(
    evaluator: Evaluator | None, made: Plan, changed: ChangedPanes
) -> tuple[Evaluator, set[PaneKey]]:
    """Return the evaluator of a plan, and which panes it has to be given."""
    if evaluator is None:
        evaluator = Evaluator(made)
    else:
        evaluator.advance(made)
    return evaluator, changed.among(made.keys) | evaluator.missing()


def _edges(made: Plan, facts: Facts) -> tuple[int, ...]:
    """Return which steps and panes the present and processed-through stand in."""
    through_ms = facts.processed_through_ms or 0
    edges = [facts.now_ms // made.windows.step_ms, len(facts.rebuilding)]
    for reading in made.readings:
        edges.append(through_ms // reading.pane_ms)
        # Of each version: one before may hold up what is final.
        waits = sorted({version.metric.lateness_ms for version in reading.served.versions})
        edges += [(through_ms - late_ms) // reading.pane_ms for late_ms in waits]
    return tuple(edges)
