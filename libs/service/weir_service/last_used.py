"""When each API key was last used, in Redis: noted where keys come in, read where they are listed.

A note says that a key was let in, to within a minute: of a key that comes with every request
one a minute is written, by each process. It is written beside the requests, in its own time.
Redis away costs the notes that are not written by the end of the process, and nothing else;
Redis emptied costs all of them, until each key comes again. No number and no decision rests
on one. A note has the id of a key, and nothing of its secret.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError
from weir import names
from weir.clock import Clock

EVERY_S: Final = 60.0
"""How often a key is noted at most."""
EXPIRES_S: Final = 400 * 86_400
"""For how long the notes of a tenant are kept of which no key comes any more."""
MOST_KEYS: Final = 10_000
"""Of a tenant with notes of more keys, of which most must be gone, all begin anew."""
FLUSH_S: Final = 1.0
_PAUSE_AFTER_ERROR_S: Final = 5.0
_READ_S: Final = 1.0

_Key = tuple[str, str]
_log = structlog.get_logger()


class LastUsed:
    """The notes of one process, and the task that writes them."""

    def __init__(self, redis: Redis, clock: Clock) -> None:
        self._redis = redis
        self._clock = clock
        # Both have at most as many entries as there are keys that are let in.
        self._noted_s: dict[_Key, float] = {}
        self._pending: dict[_Key, int] = {}
        self._wake = asyncio.Event()

    def note(self, tenant: str, key_id: str) -> None:
        """Note that a key was let in; nothing waits for it."""
        key, now_s = (tenant, key_id), self._clock.monotonic_s()
        noted_s = self._noted_s.get(key)
        if noted_s is None or now_s - noted_s >= EVERY_S:
            self._noted_s[key] = now_s
            self._pending[key] = self._clock.now_ms()
            self._wake.set()

    async def read(self, tenant: str) -> dict[str, int]:
        """Return when keys of a tenant were last used, by id; empty if Redis does not say."""
        try:
            async with asyncio.timeout(_READ_S):
                found: dict[Any, Any] = await self._redis.hgetall(names.used_key(tenant))
        except (RedisError, OSError, TimeoutError):
            return {}
        return {key_id.decode(): int(at_ms) for key_id, at_ms in found.items() if at_ms.isdigit()}

    async def run(self) -> None:
        """Write what is noted, again and again, until cancelled."""
        is_well = True
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.flush()
            except (RedisError, OSError, TimeoutError) as error:
                if is_well:
                    _log.warning("key_use_unwritten", error=repr(error))
                is_well = False
                self._wake.set()  # it is tried again
                await asyncio.sleep(_PAUSE_AFTER_ERROR_S)
            else:
                is_well = True
            await asyncio.sleep(FLUSH_S)

    async def flush(self) -> None:
        """Write what is noted; if that fails it is kept.

        Raises:
            RedisError: If Redis does not take it.
        """
        now_s = self._clock.monotonic_s()
        self._noted_s = {key: at for key, at in self._noted_s.items() if now_s - at < EVERY_S}
        written = dict(self._pending)
        by_tenant: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        for (tenant, key_id), at_ms in written.items():
            by_tenant[tenant][key_id] = at_ms
        for tenant, notes in by_tenant.items():
            await self._write(names.used_key(tenant), notes)
        # A key may have come again meanwhile.
        self._pending = {k: at for k, at in self._pending.items() if written.get(k) != at}

    async def _write(self, name: str, notes: dict[Any, Any]) -> None:
        async with self._redis.pipeline(transaction=False) as pipe:
            pipe.hset(name, mapping=notes)
            pipe.expire(name, EXPIRES_S)
            pipe.hlen(name)
            _, _, known = await pipe.execute()
        if known > MOST_KEYS:
            await self._redis.delete(name)
