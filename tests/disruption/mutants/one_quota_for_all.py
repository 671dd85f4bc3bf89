"""D20: what one tenant sends is taken from the same bucket as what all others do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

TARGET = "weir_ingest.quota:Quota.take"

Take = Callable[[Any, Any, Any, float], None]


def mutate(original: Take) -> Take:
    """Return a quota that does not ask whose events they are."""

    def take(self: Any, caller: Any, size: Any, now_s: float) -> None:
        original(self, replace(caller, tenant="all"), size, now_s)

    return take
