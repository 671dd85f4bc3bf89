"""D16: what is due by event time is due by the clock of the alerts job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.alerts.evaluator:Evaluator._facts"

FactsAt = Callable[[Any, int], object]


def mutate(original: FactsAt) -> FactsAt:
    """Return facts that hold up to now instead of up to what is processed."""

    def facts(self: Any, _through_ms: int) -> object:
        return original(self, self._clock.now_ms())

    return facts
