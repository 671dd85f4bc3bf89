"""D17: of all channels one message is sent at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.alerts.sending:Sending.send"

Send = Callable[..., Any]


def mutate(original: Send) -> Send:
    """Return a sending that waits for its turn among all channels."""
    turn = asyncio.Lock()

    async def send(self: Any, *message: Any) -> Any:
        async with turn:
            return await original(self, *message)

    return send
