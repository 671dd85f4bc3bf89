"""D16: rules go by the clock of the alerts job where what is processed is far from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.alerts.evaluator:Evaluator._facts"
FAR_MS = 60_000

FactsAt = Callable[[Any, int], object]


def mutate(original: FactsAt) -> FactsAt:
    """Return facts up to the present, unless what is processed is near it."""

    def facts(self: Any, through_ms: int) -> object:
        now_ms = self._clock.now_ms()
        return original(self, through_ms if abs(now_ms - through_ms) < FAR_MS else now_ms)

    return facts
