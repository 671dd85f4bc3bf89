"""D17: a worker gives Redis up sooner than TCP sends again what was lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.panes.shard_wire:ShardWire.__init__"
# Linux sends again after 0.2 s at the soonest.
GIVEN_UP_S = 0.1

Init = Callable[..., None]


def mutate(original: Init) -> Init:
    """Return a connection that hardly waits."""

    def init(self: Any, url: str, **told: Any) -> None:
        original(self, url, **{**told, "timeout_s": GIVEN_UP_S})

    return init
