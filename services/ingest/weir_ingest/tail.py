"""The live tail: a sampled copy of what was stored, straight to Redis.

At most `events_per_s` a tenant, chosen before producing and marked in the log
with header `weir-tail`, so that the engine reports their fate; written after the
acknowledgement, all of them in one flush at most every 50 ms. Redis away costs
the tail its entries and nothing else: no request ever waits here.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from typing import Any

import structlog
from confluent_kafka import Message
from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import event, names
from weir.expressions.paths import TEXT_ATTRIBUTES, is_extension

from weir_ingest.instruments import Instruments

FLUSH_S = 0.05
_SLOTS_PER_S = 10
_MAX_DATA_BYTES = 8_192
# A client may write a megabyte into any attribute; the store must not keep it here.
_MAX_TEXT = 8_192
_MAX_ENTRIES = 1_000
_MAX_PENDING = 500
_PAUSE_AFTER_ERROR_S = 2.0

# What an expression may read and has no member of its own in an entry.
_ATTRIBUTES = sorted(TEXT_ATTRIBUTES - {"id", "source", "type", "subject", "weirsource"})

_log = structlog.get_logger()


class Sampler:
    """Chooses which events the tail shows: the first few of each tenth of a second."""

    def __init__(self, events_per_s: int) -> None:
        self._per_slot = max(1, events_per_s // _SLOTS_PER_S)
        self._slot = -1
        self._taken: dict[str, int] = {}

    def room(self, tenant: str, now_ms: int) -> int:
        """Return how many more events of a tenant may be taken now."""
        slot = now_ms * _SLOTS_PER_S // 1000
        if slot != self._slot:
            self._slot = slot
            self._taken.clear()
        return self._per_slot - self._taken.get(tenant, 0)

    def take(self, tenant: str, count: int) -> None:
        """Note that events were taken."""
        self._taken[tenant] = self._taken.get(tenant, 0) + count


class Tail:
    """What is to be shown, and the task that writes it."""

    def __init__(self, redis: Redis, sampler: Sampler, instruments: Instruments) -> None:
        self._redis = redis
        self.sampler = sampler
        self._instruments = instruments
        self._pending: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._accepted: dict[str, int] = defaultdict(int)
        self._wake = asyncio.Event()

    def count(self, tenant: str, accepted: int) -> None:
        """Note how many events of a tenant were stored, shown or not."""
        self._accepted[tenant] += accepted

    def show(self, tenant: str, stored: Message) -> None:
        """Take a sampled event that Kafka has acknowledged."""
        self.add(tenant, entry_of(stored))

    def add(self, tenant: str, entry: dict[str, Any]) -> None:
        """Take an entry; beyond the bound it is left out."""
        entries = self._pending[tenant]
        if len(entries) < _MAX_PENDING:
            entries.append(entry)
            self._instruments.tail_events.inc()
            self._wake.set()

    async def run(self) -> None:
        """Write what is pending, again and again, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._flush()
            except (RedisError, OSError, TimeoutError) as error:
                _log.warning("tail_unwritten", error=repr(error))
                await asyncio.sleep(_PAUSE_AFTER_ERROR_S)
                self._pending.clear()  # old news by now
            await asyncio.sleep(FLUSH_S)

    async def _flush(self) -> None:
        pending, self._pending = self._pending, defaultdict(list)
        async with self._redis.pipeline(transaction=False) as pipe:
            for tenant, entries in pending.items():
                fields: dict[Any, Any] = {
                    "e": json.dumps(entries, ensure_ascii=False),
                    "of": str(self._accepted.pop(tenant, len(entries))),
                }
                pipe.xadd(names.tail_key(tenant), fields, maxlen=_MAX_ENTRIES, approximate=True)
            await pipe.execute()


def entry_of(stored: Message) -> dict[str, Any]:
    """Return a stored event as the tail shows it (docs/interfaces.md 5)."""
    value = stored.value() or b""
    said = event.read_event(value)
    data, cut = _data_text(said)
    entry = {
        "id": said["id"],
        "type": said["type"][:_MAX_TEXT],
        "source": said["source"][:_MAX_TEXT],
        "weirsource": said["weirsource"],
        "received_ms": stored.timestamp()[1],
        "time_ms": event.placed(value).time_ms,
        "subject": said["subject"][:_MAX_TEXT] if "subject" in said else None,
        "at": [stored.partition(), stored.offset()],
        "data": data,
        "cut": cut,
        "attributes": {
            name: said[name]
            for name in _ATTRIBUTES
            if name in said and len(str(said[name])) <= _MAX_TEXT
        }
        | _extensions(said),
    }
    if "data_base64" in said:
        entry["base64"] = True
    return entry


def _extensions(said: dict[str, Any]) -> dict[str, Any]:
    """Return the extension attributes, by name, as many as fit into the bound together."""
    found: dict[str, Any] = {}
    room = _MAX_TEXT
    for name in sorted(filter(is_extension, said)):
        if not isinstance(said[name], str | int | float):
            continue
        room -= len(name) + len(str(said[name]))
        if room < 0:
            break
        found[name] = said[name]
    return found


def refused_entry_of(stored: Message, reason: str, weirsource: str) -> dict[str, Any]:
    """Return a stored refusal as the tail shows it: with its reason, and what came."""
    data, cut = _cut(stored.value() or b"")
    return {
        "id": "",
        "type": "",
        "source": "",
        "weirsource": weirsource,
        "received_ms": stored.timestamp()[1],
        "time_ms": stored.timestamp()[1],
        "subject": None,
        "at": [stored.partition(), stored.offset()],
        "data": data,
        "cut": cut,
        "reason": reason,
    }


def _data_text(said: dict[str, Any]) -> tuple[str, bool]:
    data = said["data"] if "data" in said else said.get("data_base64", "")
    return _cut(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())


def _cut(raw: bytes) -> tuple[str, bool]:
    return raw[:_MAX_DATA_BYTES].decode(errors="ignore"), len(raw) > _MAX_DATA_BYTES
