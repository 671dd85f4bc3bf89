"""D3: what a shard was read as is not asked again when it is written: fence and marks, no token.

In Redis, WATCH is what compares the token read with the one there is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

TARGET = "weir_analytics.panes.pane_reader:PaneReader.begin"

Begin = Callable[..., Any]


@dataclass
class _Unwatched:
    wire: Any

    def ask(self, commands: Sequence[Sequence[Any]]) -> Any:
        """Ask all but to be told of what moves."""
        return self.wire.ask([("PING",) if one[0] == "WATCH" else one for one in commands])


def mutate(original: Begin) -> Begin:
    """Return a reading whose transaction is applied whatever has moved since."""

    def begin(self: Any, *told: Any) -> Any:
        wire = self._wire
        self._wire = _Unwatched(wire)
        try:
            return original(self, *told)
        finally:
            self._wire = wire

    return begin
