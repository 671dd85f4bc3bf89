"""D18: the driver is told to end, and counts on until it is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

TARGET = "weir_analytics.panes.driver:Driver.__init__"

Init = Callable[..., None]


def mutate(original: Init) -> Init:
    """Return a driver whose own end is never asked for."""

    def init(self: Any, *told: Any, **more: Any) -> None:
        original(self, *told, **more)
        self.stop = threading.Event()

    return init
