"""What follows from the definitions alone: asked again only where something was written since."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from weir.definitions.fold import Definitions

T = TypeVar("T")


@dataclass
class FoldMemo(Generic[T]):
    """One look at the fold; its answer is kept until the fold takes a record, or is another fold.

    Batches come some times a second, definitions some times a day. Like the fold, it is not
    to be shared between threads.

    Attributes:
        look: What is asked of the fold. It goes by nothing else, and nobody changes its answer.
    """

    look: Callable[[Definitions], T]
    _kept: tuple[Definitions, int, T] | None = field(default=None, repr=False)

    def of(self, fold: Definitions) -> T:
        """Return the answer for the fold as it is now."""
        if self._kept is not None:
            seen, next_offset, found = self._kept
            if seen is fold and next_offset == fold.next_offset:
                return found
        next_offset, found = fold.next_offset, self.look(fold)
        self._kept = (fold, next_offset, found)
        return found
