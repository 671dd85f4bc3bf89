"""D17: a worker waits for Redis as long as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.panes.shard_wire:ShardWire.__init__"

Init = Callable[..., None]


def mutate(original: Init) -> Init:
    """Return a connection that waits without end."""

    def init(self: Any, url: str, **told: Any) -> None:
        original(self, url, **{**told, "timeout_s": None})

    return init
