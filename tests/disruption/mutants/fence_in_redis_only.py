"""D4: a fence is the next number of a counter in Redis; the log of start records is not asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from weir import names

TARGET = "weir_analytics.panes.start:_Start.append"

Append = Callable[..., Any]


def mutate(original: Append) -> Append:
    """Return a start that takes its fence from Redis, for as long as Redis remembers."""

    def append(self: Any, *told: Any, **more: Any) -> Any:
        number = self.stores.shards.ask([("INCR", f"{names.PREFIX}fences")])[0]
        log = self.stores.definitions

        def stored(record: Any) -> int:
            said = json.loads(record.value)
            if said["record"] == "start":
                type(log).append(log, record)
                return int(number)
            # Readers take a record whose fence is the newest start's place, whoever's that is.
            value = json.dumps({**said, "fence": log.fold.fence()}).encode()
            return int(type(log).append(log, record._replace(value=value)))

        vars(log).update(append=stored, check_fence=_unasked, check_fence_now=_unasked)
        vars(self.own).update(check=_unasked)  # it holds a fence against the log's as well
        return original(self, *told, **more)

    return append


def _unasked(_of: object) -> None:
    return None
