"""Reads the signals that rules on Weir itself watch (`weir/definitions/signals.py`)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from prometheus_client import Gauge
from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import metrics
from weir.batches import BatchRecord
from weir.clock import Clock
from weir.log_left import read_log_told, used_share
from weir.problems import ProblemError
from weir.query.grouping import Group
from weir_reading.batches import Batches
from weir_reading.catalog import Catalog
from weir_reading.ledger import MINUTE_MS, batch_sum, covered, read_minutes
from weir_reading.panes import Panes
from weir_reading.parts import EXPIRES_S, Part, Parts

from weir_analytics.alerts.journal import Journal
from weir_analytics.alerts.rules import Rules
from weir_analytics.alerts.signal_watch import LowerBound

QUARANTINE_MINUTES = 10
FEW_EVENTS = 20
"""Of fewer events a share of them says nothing."""

MEMORY = Gauge(metrics.ALERTS_REDIS_MEMORY, "Memory that Redis uses, of what it may use.")
MEMORY_BYTES = Gauge(metrics.ALERTS_REDIS_BYTES, "Memory that Redis uses.")
KEYS = Gauge(metrics.ALERTS_REDIS_KEYS, "Keys of Redis: panes, all but some dozens.")
DIFFERENCE = Gauge(metrics.ALERTS_LEDGER_DIFFERENCE, "Events that the ledger does not explain.")
FAILING = Gauge(metrics.ALERTS_FAILING_CHANNELS, "Channels on which nothing is delivered.")
REFUSED = Gauge(metrics.ALERTS_RULES_REFUSED, "Rules that cannot be evaluated.")

Readings = dict[str, Mapping[Group, float | None]]
"""By signal, by group; None where nothing could be read."""


class Signals:
    """What this job sees of the parts."""

    def __init__(
        self,
        redis: Redis,
        batches: Batches,
        panes: Panes,
        parts: Parts,
        catalog: Catalog,
        journal: Journal,
        rules: Rules,
        clock: Clock,
        evaluated: Callable[[], int | None],
        log_seen: Callable[[], float | None],
    ) -> None:
        """Prepare.

        Args:
            redis: Whose memory is told.
            batches: How far counting has come.
            panes: Where the ledger is kept.
            parts: What ingest and the engine say of themselves.
            catalog: The channels.
            journal: What came of messages.
            rules: Which cannot be evaluated.
            clock: The present.
            evaluated: Returns processed-through of the last look at all rules; None before it.
            log_seen: Returns what this job has seen of the log; see `LogSeen.used`.
        """
        self._log_seen = log_seen
        self._evaluated = evaluated
        self._redis, self._batches, self._panes, self._parts = redis, batches, panes, parts
        self._catalog, self._journal, self._rules = catalog, journal, rules
        self._clock = clock
        self._begun_ms = clock.now_ms()
        self._accounts: dict[str, tuple[int, Readings]] = {}

    async def common(self) -> Readings:
        """Return the signals that are all tenants', as they are now."""
        now_ms, through_ms = self._clock.now_ms(), self._batches.processed_through_ms
        found: Readings = {
            "weir.stalled": {(): self._stalled_s(now_ms)},
            "weir.lag": {(): None if through_ms is None else max(0, now_ms - through_ms) / 1000},
            "weir.memory": {(): _percent(await self._memory())},
            "weir.log": {(): _percent(self._log_used(now_ms))},
            "weir.quota": {
                (): _percent(quota_share(self._parts.named("ingest"), self._parts.named("panes")))
            },
        }
        MEMORY.set((found["weir.memory"][()] or 0) / 100)
        return found

    async def of_tenant(self, tenant: str) -> Readings:
        """Return the signals that are one tenant's own, as they are now."""
        now_ms = self._clock.now_ms()
        channels = [one.name for one in self._catalog.folded.current(tenant, "channel")]
        return {
            **await self._accounts_of(tenant),
            "weir.channel": {(name,): self._failing_s(tenant, name, now_ms) for name in channels},
            "weir.rules": {(): self._refused(tenant)},
        }

    def _log_used(self, now_ms: int) -> float | None:
        """Return what this job has seen of the log, or who else has just looked: the most."""
        parts = [*self._parts.named("panes"), *self._parts.named("dashboard")]
        # While Redis is away the heartbeats that were read last stay.
        told = log_used([one for one in parts if now_ms - one.at_ms < 1000 * EXPIRES_S])
        return max((one for one in (self._log_seen(), told) if one is not None), default=None)

    def _stalled_s(self, now_ms: int) -> float:
        """Return since when counting stands still; at least that long, if nobody has said."""
        counted_ms = self._batches.counted_ms
        if counted_ms is None:
            return LowerBound(max(0, now_ms - self._begun_ms) / 1000)
        return max(0, now_ms - counted_ms) / 1000

    async def _accounts_of(self, tenant: str) -> Readings:
        """Return what the accounts of closed minutes say: nothing new before the next is closed."""
        records = list(self._batches.records)
        newest_ms = max(closed(records), default=0) if self._batches.recount is None else 0
        kept_ms, kept = self._accounts.get(tenant, (0, {}))
        if kept_ms == newest_ms and kept:
            return kept
        found: Readings = {
            "weir.ledger": {(): await self._difference(tenant, records) if newest_ms else None},
            "weir.quarantine": {(): _percent(quarantined(records, tenant))},
        }
        # What could not be read is tried again at the next reading.
        if found["weir.ledger"][()] is not None:
            self._accounts[tenant] = newest_ms, found
        return found

    def _refused(self, tenant: str) -> float | None:
        """Return how many rules cannot be evaluated; None before any was tried."""
        if self._evaluated() is None:
            return None
        rules = self._rules.all().values()
        return float(sum(1 for one in rules if one.error and one.watched.tenant == tenant))

    def _failing_s(self, tenant: str, channel: str, now_ms: int) -> float:
        since_ms = self._journal.channels.standing(tenant, channel).failing_ms
        return 0.0 if since_ms is None else max(0, now_ms - since_ms) / 1000

    async def _difference(self, tenant: str, records: Sequence[BatchRecord]) -> float | None:
        """Return how many events two accounts do not agree on; None if that cannot be read."""
        shards, starts = self._catalog.shards, [one // 1000 for one in closed(records)]
        try:
            minutes = await read_minutes(self._panes, records, starts, shards, tenant)
        except (RedisError, OSError, ProblemError):
            return None
        unlike = sum(abs(one.difference or 0) for one in minutes)
        return float(unlike + abs(batch_sum(records).difference))

    async def _memory(self) -> float | None:
        """Return the share of its memory that Redis uses; None while it does not answer."""
        try:
            told: Any = await self._redis.info("memory")
        except (RedisError, OSError):
            return None
        MEMORY_BYTES.set(told["used_memory"])
        # Whoever may not ask for it still watches the memory.
        with contextlib.suppress(RedisError, OSError):
            KEYS.set(await self._redis.dbsize())
        # Without a limit of its own it may take what the machine has.
        limit = int(told.get("maxmemory", 0)) or int(told.get("total_system_memory", 0))
        return int(told["used_memory"]) / limit if limit else None


def show(found: Collection[Readings]) -> None:
    """Tell Prometheus the worst of all tenants, or their sum."""

    def of(signal: str) -> list[float]:
        tenants = (readings[signal] for readings in found)
        return [value for one in tenants for value in one.values() if value is not None]

    DIFFERENCE.set(max(of("weir.ledger"), default=0))
    FAILING.set(sum(value > 0 for value in of("weir.channel")))
    REFUSED.set(sum(of("weir.rules")))


def closed(records: Sequence[BatchRecord]) -> list[int]:
    """Return the minutes that the records cover whole and that nothing is added to, ms."""
    if not records:
        return []
    through_ms = records[-1].processed_through_ms
    return [at_ms for at_ms in covered(records) if at_ms + MINUTE_MS <= through_ms]


def quarantined(records: Sequence[BatchRecord], tenant: str) -> float | None:
    """Return the share of a tenant's events of the last minutes that could not be used.

    0 of fewer than `FEW_EVENTS`; None if no minute is known whole.
    """
    minutes = set(closed(records)[-QUARANTINE_MINUTES:])
    if not minutes:
        return None
    rows = [
        row
        for record in records
        for row in record.ledger
        if row.tenant == tenant and row.minute_ms in minutes
    ]
    events = sum(row.counted + row.duplicate + row.quarantined + row.beyond_horizon for row in rows)
    return sum(row.quarantined for row in rows) / events if events >= FEW_EVENTS else 0.0


def quota_share(ingest: Sequence[Part], panes: Sequence[Part]) -> float | None:
    """Return what all tenants may send, of what the engine was seen to count in the same time.

    0 where no quota is set; None where nobody knows yet what the engine can do.

    Args:
        ingest: The processes of ingest; each has a quota of its own.
        panes: Those of the engine, the newest heartbeat first.
    """
    allowed = sum(_number(part, "allowed_per_s") or 0 for part in ingest)
    if not allowed:
        return 0.0 if ingest else None
    capacity = _number(panes[0], "capacity_per_s") if panes else None
    return allowed / capacity if capacity else None


def log_used(parts: Sequence[Part]) -> float | None:
    """Return how much has passed of the time until the first uncounted event is deleted.

    By whoever sees the least left: the driver, which is not there when it matters most, or a
    dashboard, which looks by itself. None where nobody has looked.
    """
    seen = [left for part in parts if (left := read_log_told(part.detail)) is not None]
    return max(map(used_share, seen), default=None)


def _number(part: Part, member: str) -> float | None:
    found = part.detail.get(member)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _percent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 3)
