"""Color slots: each group of a metric has a number by first appearance, the same for all.

Kept in Redis so that every replica and every page draws a group alike; losing them
changes colors only. A retry gives the same slots.
"""

from __future__ import annotations

from typing import Any, cast

from redis.asyncio import Redis
from weir import names

# One step for all texts of an answer: two replicas never give the same slot twice.
SCRIPT = """
local slots = {}
for at, field in ipairs(ARGV) do
  if at > 1 then
    local slot = redis.call('HGET', KEYS[1], field)
    if not slot then
      slot = redis.call('HINCRBY', KEYS[1], ARGV[1], 1) - 1
      redis.call('HSET', KEYS[1], field, slot)
    end
    slots[#slots + 1] = tonumber(slot)
  end
end
return slots
"""
MAX_KNOWN = 100_000


class Slots:
    """Gives out slots and remembers those that it was told."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._known: dict[tuple[str, str, str], int] = {}

    async def of(
        self, tenant: str, metric: str, by: tuple[str, ...], texts: list[str]
    ) -> dict[str, int]:
        """Return the slot of each series text, grouped by some dimensions."""
        group = ",".join(by)
        fields = {text: (tenant, metric, f"{group}:{text}") for text in texts}
        new = [text for text in texts if fields[text] not in self._known]
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
            new = texts
        if new:
            await self._give(tenant, metric, group, new)
        return {text: self._known[field] for text, field in fields.items()}

    async def _give(self, tenant: str, metric: str, group: str, texts: list[str]) -> None:
        wanted = [f"{group}:{text}" for text in texts]
        key = names.slots_key(tenant, metric)
        reply = await cast("Any", self._redis.eval(SCRIPT, 1, key, f"#{group}", *wanted))
        for field, slot in zip(wanted, reply, strict=True):
            self._known[(tenant, metric, field)] = int(slot)
