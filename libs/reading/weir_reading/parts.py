"""The heartbeats of Weir's processes: who runs, who has stopped moving.

Each process writes `weir:1:part:<name>:<instance>` every second; it expires after 15 s.
Whoever follows them reads all each second and writes its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psutil
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError
from weir import names
from weir.clock import Clock

from weir_reading.redis import read_texts

EVERY_S = 1.0
EXPIRES_S = 15
PATTERN = f"{names.PREFIX}part:*"
OF_TENANTS = "of_tenants"
"""The member of a detail that is about tenants' definitions, by vid: not for everybody."""


@dataclass(frozen=True)
class Part:
    """One process as its heartbeat tells it.

    Attributes:
        name: `ingest`, `panes`, `alerts` or `dashboard`.
        instance: Which process.
        at_ms: When it wrote, by its own clock.
        status: `ok`, `starting`, `behind` or `stalled`.
        busy: Share of its time at work, 0 to 1, or None.
        flow: Items taken in a second, or None (`in` on the wire).
        lag_ms: How far behind it is, or None.
        version: Its release.
        detail: What else it tells.
    """

    name: str
    instance: str
    at_ms: int
    status: str
    busy: float | None
    flow: float | None
    lag_ms: int | None
    version: str
    detail: dict[str, Any]


def read_part(key: bytes, text: bytes) -> Part | None:
    """Return the part of a heartbeat, or None if it cannot be read."""
    try:
        name, instance = key.decode().removeprefix(f"{names.PREFIX}part:").split(":", 1)
        body = json.loads(text)
        detail = body.get("detail")
        return Part(
            name=name,
            instance=instance,
            at_ms=int(body["at_ms"]),
            status=str(body.get("status", "ok")),
            busy=body.get("busy"),
            flow=body.get("in"),
            lag_ms=body.get("lag_ms"),
            version=str(body.get("version", "")),
            detail=detail if isinstance(detail, dict) else {},
        )
    except (ValueError, KeyError, TypeError):
        return None


class Parts:
    """The newest heartbeat of each process.

    Attributes:
        known: By key, as last read.
        refused: What Redis said to our own heartbeat, if it answers but writes nothing.
    """

    def __init__(
        self, redis: Redis, clock: Clock, name: str, *, instance: str, version: str
    ) -> None:
        self._redis = redis
        self._clock = clock
        self._own_key = names.part_key(name, instance)
        self._version = version
        self._process = psutil.Process()
        self.known: dict[bytes, Part] = {}
        self.refused: str | None = None

    def named(self, name: str) -> list[Part]:
        """Return the processes of one name, the newest heartbeat first."""
        found = [part for part in self.known.values() if part.name == name]
        return sorted(found, key=lambda part: -part.at_ms)

    async def follow(self, own: Callable[[], dict[str, Any]]) -> None:
        """Read all heartbeats and write our own, each second, until cancelled."""
        while True:
            try:
                await self._write(json.dumps(self._beat(own())))
                await self._read()
            except (RedisError, OSError):
                pass  # `Batches.reachable` says so; a heartbeat has nothing to add
            await asyncio.sleep(EVERY_S)

    async def _write(self, text: str) -> None:
        """Write our own heartbeat; a Redis that is full is read from all the same."""
        try:
            await self._redis.set(self._own_key, text, ex=EXPIRES_S)
        except ResponseError as error:
            self.refused = str(error)
        else:
            self.refused = None

    async def _read(self) -> None:
        texts = await read_texts(self._redis, PATTERN)
        read = {key: read_part(key, text) for key, text in texts.items()}
        self.known = {key: part for key, part in read.items() if part is not None}

    def _beat(self, own: dict[str, Any]) -> dict[str, Any]:
        return {
            "at_ms": self._clock.now_ms(),
            "version": self._version,
            "status": "ok",
            "busy": self._process.cpu_percent() / 100,
            "in": own.pop("in", None),
            "lag_ms": None,
            "detail": {"rss_bytes": self._process.memory_info().rss, **own},
        }
