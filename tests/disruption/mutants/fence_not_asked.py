"""D3: nobody asks the log of start records whether he is still the newest driver."""

from __future__ import annotations

from collections.abc import Callable

TARGET = "weir_analytics.panes.definitions_log:DefinitionsLog.check_fence"

Check = Callable[[object, int], None]


def mutate(_: Check) -> Check:
    """Return a check that finds nothing."""

    def check_fence(_log: object, _fence: int) -> None:
        return None

    return check_fence
