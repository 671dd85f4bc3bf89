"""D17: ingest waits for Redis as long as it takes: its heartbeat and live tail never come back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_service.redis:connect"

Connect = Callable[..., Any]


def mutate(original: Connect) -> Connect:
    """Return a client that waits without end."""

    def connect(*where: Any, **told: Any) -> Any:
        return original(*where, **{**told, "timeout_s": None})

    return connect
