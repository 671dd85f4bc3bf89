"""Why one item cannot be used: the error that its readers raise."""

from __future__ import annotations

from weir.problems import Reason


class ItemRefusedError(ValueError):
    """An item that cannot be used: its reason, and what was required and came."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
