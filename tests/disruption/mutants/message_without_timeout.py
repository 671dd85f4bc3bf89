"""D17: the alerts job waits for the receiver of a message as long as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.alerts.channels.webhook:Caller.__init__"

Init = Callable[..., None]


def mutate(original: Init) -> Init:
    """Return a caller that waits without end."""

    def init(self: Any, *allowed: Any, **told: Any) -> None:
        original(self, *allowed, **{**told, "timeout_s": None})

    return init
