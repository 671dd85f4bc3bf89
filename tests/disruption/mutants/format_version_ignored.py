"""D18: nobody looks at versions: what a newer release wrote is read as if it were one's own."""

from __future__ import annotations

from collections.abc import Callable

TARGET = "weir.formats:refusal"

Refusal = Callable[[str, int, int], str | None]


def mutate(_original: Refusal) -> Refusal:
    """Return a look at a version that finds every one readable."""

    def refusal(_what: str, _found: int, _newest: int) -> str | None:
        return None

    return refusal
