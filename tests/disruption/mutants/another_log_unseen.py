"""D13: at a start nobody asks of which log the marks are: a new one is counted, nothing is told."""

from __future__ import annotations

from collections.abc import Callable

TARGET = "weir.commit_recovery:_foreign"

Foreign = Callable[..., str]


def mutate(_original: Foreign) -> Foreign:
    """Return a look at the marks that never finds another log."""

    def foreign(*_: object) -> str:
        return ""

    return foreign
