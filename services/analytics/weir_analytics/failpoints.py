"""The failpoints of this service; `weir_service.failpoints` says what they are."""

from __future__ import annotations

from weir_service.failpoints import failpoint

__all__ = ["failpoint"]
