"""D6: marks that are older than the checkpoint are taken for good; it goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weir.commit import Offsets
from weir.commit_found import Found

TARGET = "weir.commit_recovery:_checkpoint_fits"

Fits = Callable[[Sequence[Offsets], Found], bool]


def mutate(_original: Fits) -> Fits:
    """Return a look at the checkpoint that finds every one fitting."""

    def checkpoint_fits(_ends: Sequence[Offsets], found: Found) -> bool:
        return found.checkpoint is not None

    return checkpoint_fits
