"""D13: the topic is looked at only at a start: a new log is read on under the old one's marks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.panes.same_log:SameLog.check"


def mutate(_original: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a look that finds nothing."""

    def check(_self: Any) -> None:
        return None

    return check
