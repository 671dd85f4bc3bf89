"""D5: a shard without a mark begins where the others are, and nothing before is counted again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from weir.commit_found import Found, Recovery

TARGET = "weir.commit_recovery:reconcile"

Reconcile = Callable[[Found], Recovery]


def mutate(original: Reconcile) -> Reconcile:
    """Return a reconciliation that opens no lane for what was lost."""

    def reconcile(found: Found) -> Recovery:
        return replace(original(found), rebuild=())

    return reconcile
