"""What a record of the log is, and what becomes of it: two small closed lists."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What a record is, told by its first header and its first bytes."""

    EVENT = 0
    SAMPLED = 1
    REFUSED = 2
    TICK = 3
    FOREIGN = 4


class Fate(IntEnum):
    """What becomes of a record; the name in lower case is its disposition in the ledger.

    A tick is no event and has none.
    """

    COUNTED = 0
    DUPLICATE = 1
    QUARANTINED = 2
    TICK = 3
    BEYOND_HORIZON = 4
    ERASED = 5

    @property
    def disposition(self) -> str:
        """The name under which the ledger accounts for it."""
        return self.name.lower()


DISPOSITIONS = ("counted", "duplicate", "quarantined", "beyond_horizon", "erased")


class Use(IntEnum):
    """What one metric did with a counted event that it matches."""

    USED = 0
    VALUE_QUARANTINED = 1
    PANE_NOT_KEPT = 2

    @property
    def label(self) -> str:
        """The name under which the use of a version is counted."""
        return self.name.lower()
