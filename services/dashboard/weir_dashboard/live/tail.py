"""The live tail: sampled events as ingest copied them, with what became of them.

One reader a tenant, only while somebody watches. A frame is built once for all who
filter alike. Events are not queued: who is slow misses some of a sample. What became of those
that were shown is told later to who pauses or is slow: it stands beside them on a screen.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import names
from weir.batches import BatchRecord
from weir.erasure import Subjects
from weir_reading.redis import newest_entries, read_streams

from weir_dashboard.live import frames
from weir_dashboard.live.client import Subscription
from weir_dashboard.live.tail_filter import Event, Filter

EVENTS_PER_S = 20
BLOCK_MS = 500
RETRY_S = 0.5
IDLE_S = 30.0
READ_COUNT = 50
# Events whose fate may still come, and fates whose event may still come.
REMEMBERED = 5_000
# Fates that one who pauses is told later: more events than a screen holds, whose fates come first.
OWED = 500
Place = tuple[int, int]

log = structlog.get_logger()


@dataclass(eq=False)
class TailFeed:
    """The tail of one tenant through one filter.

    Attributes:
        shown: Events whose fate is to be told -> their ids.
        owed: Who could not be told some fates -> these.
    """

    key: str
    tenant: str
    filter: Filter
    subscriptions: set[Subscription] = field(default_factory=set)
    shown: OrderedDict[Place, str] = field(default_factory=OrderedDict)
    owed: dict[Subscription, list[dict[str, Any]]] = field(default_factory=dict)
    _of: int = 0
    _allowance: float = EVENTS_PER_S
    _at_s: float = 0.0

    def take(self, events: list[Event], of: int, now_s: float) -> list[Event]:
        """Return which of the events to show, within 20 a second."""
        self._of += of
        gained = (now_s - self._at_s) * EVENTS_PER_S
        self._allowance, self._at_s = min(EVENTS_PER_S, self._allowance + gained), now_s
        matching = [event for event in events if self.filter.matches(event)]
        chosen = matching[-int(self._allowance) :] if self._allowance >= 1 else []
        self._allowance -= len(chosen)
        for event in chosen:
            _remember(self.shown, _place(event), str(event.get("id", "")))
        return chosen

    def counted(self) -> int:
        """Return how many events were accepted since the last frame, and start anew."""
        of, self._of = self._of, 0
        return of


class Tails:
    """All tails of this process."""

    def __init__(self, redis: Redis, erased: Callable[[str], Subjects | None]) -> None:
        """Read nothing yet.

        Args:
            redis: Where ingest copies what it samples.
            erased: Tells who of a tenant was erased: events about them are not shown.
        """
        self._redis = redis
        self._erased = erased
        self._feeds: dict[str, TailFeed] = {}
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._fates: OrderedDict[Place, dict[str, Any]] = OrderedDict()

    async def open(self, tenant: str) -> None:
        """Begin to read a tenant's tail: whatever is sampled from now on is seen."""
        if tenant in self._readers and not self._readers[tenant].done():
            return
        last = None
        with suppress(RedisError, OSError):
            last = await self._newest(tenant)
        if tenant not in self._readers or self._readers[tenant].done():
            self._readers[tenant] = asyncio.create_task(self._follow(tenant, last))

    def join(self, key: str, tail_filter: Filter, subscription: Subscription, tenant: str) -> None:
        """Let a subscription follow an open tail."""
        feed = self._feeds.setdefault(key, TailFeed(key, tenant, tail_filter))
        feed.subscriptions.add(subscription)

    def leave(self, subscription: Subscription) -> None:
        """Let a subscription follow nothing any more."""
        feed = self._feeds.get(subscription.key)
        if feed is None:
            return
        feed.subscriptions.discard(subscription)
        feed.owed.pop(subscription, None)
        if feed.subscriptions:
            return
        del self._feeds[feed.key]
        if not self._of_tenant(feed.tenant) and feed.tenant in self._readers:
            self._readers.pop(feed.tenant).cancel()

    def on_batch(self, record: BatchRecord) -> None:
        """Tell what became of events that are on screen."""
        if not self._feeds:
            return
        for partition, offset, fate, reason, refused in record.fates:
            told = {
                "at": [partition, offset],
                "fate": fate,
                "reason": reason,
                "refused": [{"metric": metric, "code": code} for metric, code in refused],
            }
            _remember(self._fates, (partition, offset), told)
        for feed in self._feeds.values():
            self._send(feed, [])

    async def stop(self) -> None:
        """Stop reading."""
        for reader in self._readers.values():
            reader.cancel()
        await asyncio.gather(*self._readers.values(), return_exceptions=True)

    def _of_tenant(self, tenant: str) -> list[TailFeed]:
        return [feed for feed in self._feeds.values() if feed.tenant == tenant]

    async def _newest(self, tenant: str) -> str:
        newest = await newest_entries(self._redis, names.tail_key(tenant), 1)
        return newest[0][0].decode() if newest else "0-0"

    async def _follow(self, tenant: str, last: str | None) -> None:
        key = names.tail_key(tenant)
        watched_s = asyncio.get_running_loop().time()
        while True:
            now_s = asyncio.get_running_loop().time()
            watched_s = now_s if self._of_tenant(tenant) else watched_s
            if now_s - watched_s > IDLE_S:
                return  # whoever opened it has gone before joining
            try:
                last = last or await self._newest(tenant)
                found = await read_streams(
                    self._redis, {key: last}, count=READ_COUNT, block_ms=BLOCK_MS
                )
            except (RedisError, OSError) as error:
                log.warning("tail_lost", error=type(error).__name__)
                last = None
                await asyncio.sleep(RETRY_S)
                continue
            for entry_id, fields in found.get(key, ()):
                last = entry_id.decode()
                self._take(tenant, fields)

    def _take(self, tenant: str, fields: dict[bytes, bytes]) -> None:
        try:
            events = json.loads(fields.get(b"e", b"[]"))
            of = int(fields.get(b"of", len(events)))
        except ValueError:
            log.error("tail_entry_unreadable", tenant=tenant)
            return
        gone = self._erased(tenant)
        if gone is not None:
            events = [one for one in events if not _is_about(gone, one)]
        now_s = asyncio.get_running_loop().time()
        for feed in self._of_tenant(tenant):
            self._send(feed, feed.take(events, of, now_s))

    def _send(self, feed: TailFeed, events: list[Event]) -> None:
        fates = self._due_fates(feed)
        is_new = bool(events or fates)
        of = feed.counted() if is_new else 0

        def frame(told: list[dict[str, Any]]) -> bytes:
            return frames.frame(
                "tail", key=feed.key, shown=len(events), of=of, events=events, fates=told
            )

        body = frame(fates) if is_new else b""
        now_s = asyncio.get_running_loop().time()
        for subscription in feed.subscriptions:
            client = subscription.client
            if client.hz == 0 or not client.can_take(now_s):
                if fates:
                    kept = feed.owed.setdefault(subscription, [])
                    kept += fates[: OWED - len(kept)]
            elif owed := feed.owed.pop(subscription, None):
                client.socket.write(frame([*owed, *fates]))
            elif is_new:
                client.socket.write(body)

    def _due_fates(self, feed: TailFeed) -> list[dict[str, Any]]:
        """Return the fates of shown events, each once: what is not yet known is kept."""
        known = [place for place in feed.shown if place in self._fates]
        return [{"id": feed.shown.pop(place), **self._fates[place]} for place in known]


def _is_about(gone: Subjects, event: Event) -> bool:
    subject = event.get("subject")
    return isinstance(subject, str) and gone.is_one(subject)


def _place(event: Event) -> Place:
    at = event.get("at") or (-1, -1)
    return int(at[0]), int(at[1])


def _remember(memory: OrderedDict[Place, Any], place: Place, value: Any) -> None:
    memory[place] = value
    while len(memory) > REMEMBERED:
        memory.popitem(last=False)
