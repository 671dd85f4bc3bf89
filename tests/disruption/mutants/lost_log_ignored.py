"""D12: what retention took before it was counted is passed over in silence."""

from __future__ import annotations

from collections.abc import Callable

TARGET = "weir.commit_recovery:_gone"

Gone = Callable[..., str]


def mutate(_original: Gone) -> Gone:
    """Return a look at the log that never finds anything gone."""

    def gone(*_: object) -> str:
        return ""

    return gone
