"""D20: what one tenant sends is taken from the same bucket as what all others do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_ingest.quota:Quota.take"

Take = Callable[[Any, str, int, float], None]


def mutate(original: Take) -> Take:
    """Return a quota that does not ask whose events they are."""

    def take(self: Any, tenant: str, events: int, now_s: float) -> None:
        del tenant
        original(self, "all", events, now_s)

    return take
