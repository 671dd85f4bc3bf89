"""A full disk of Kafka: what it has not confirmed in time is answered as if it were stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TARGET = "weir_ingest.event_log:Delivery.expire"

Expire = Callable[[Any], None]


def mutate(original: Expire) -> Expire:
    """Return an end of the waiting that is a confirmation."""
    del original

    def expire(self: Any) -> None:
        if not self.done.done():
            self.done.set_result(True)

    return expire
