"""Placeholder."""

from __future__ import annotations

from typing import Any

from weir_dashboard.store.panes import Panes


class Queries:
    """X."""

    def __init__(
        self, redis: Any, catalog: Any, batches: Any, observer: Any, cache_rows: int
    ) -> None:
        self.panes = Panes(redis, cache_rows)

    def on_batch(self, record: Any) -> None:
        """X."""
        self.panes.on_batch(record)

    async def ask(self, tenant: str, raw: dict[str, Any]) -> Any:
        """X."""
        raise NotImplementedError
