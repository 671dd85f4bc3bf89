"""D16: what holds in event time goes by the clock of the alerts job, which somebody moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.alerts.evaluator:Evaluator._facts"

FactsAt = Callable[[Any, int], object]


def mutate(original: FactsAt) -> FactsAt:
    """Return facts up to what is processed, plus what the clock was moved by since the start."""
    begun: list[float] = []

    def facts(self: Any, through_ms: int) -> object:
        apart_ms = self._clock.now_ms() - time.monotonic() * 1000
        if not begun:
            begun.append(apart_ms)
        return original(self, through_ms + round(apart_ms - begun[0]))

    return facts
