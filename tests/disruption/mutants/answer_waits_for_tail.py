"""D17: events are answered once Redis has answered: no live tail, no answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import redis

TARGET = "weir_ingest.tail:Tail.count"

Count = Callable[[Any, str, int], None]


def mutate(original: Count) -> Count:
    """Return a count of what was stored that asks Redis first."""

    def count(self: Any, tenant: str, accepted: int) -> None:
        client = redis.Redis.from_url(os.environ["WEIR_INGEST_REDIS_URL"], retry=None)
        client.ping()
        client.close()
        original(self, tenant, accepted)

    return count
