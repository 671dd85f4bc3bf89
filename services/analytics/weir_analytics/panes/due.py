"""What a driver has to say at the end of a batch, before it says so: with what is counted then.

Each of it changes what the next batch counts, and so its plan. Until that plan is there
nothing of it is said: from which offsets it holds is the driver's to choose.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol

from weir.definitions.fold import Definitions
from weir.definitions.history import Definition
from weir.definitions.records import NewRecord

from weir_analytics.panes.batch import Offsets

Op = Literal["erase", "stop", "start", "take"]


class About(NamedTuple):
    """What is said of which version or job: the same with each batch until it is."""

    op: Op
    vid: int


class Said(NamedTuple):
    """A record to be appended.

    Attributes:
        about: What it says.
        record: The record.
        event: What is logged of it.
        fields: What else is.
    """

    about: About
    record: NewRecord
    event: str
    fields: dict[str, Any]


@dataclass
class Due:
    """Records in the order in which they are to be appended.

    Attributes:
        end: Where the batch ends, which is from where they hold.
        fold: The definitions as they are once all of them were.
    """

    end: Offsets
    fold: Definitions
    said: list[Said] = field(default_factory=list)

    def add(self, said: Said) -> None:
        """Take one more; each is decided by those before it."""
        if not self.said:
            self.fold = self.fold.fork()
        self.said.append(said)
        self.fold.apply(self.fold.next_offset, said.record.key, said.record.value)

    @property
    def abouts(self) -> frozenset[About]:
        """Return what it is about."""
        return frozenset(said.about for said in self.said)


class Gate(Protocol):
    """Holds back what the next batch would have to make a plan for."""

    @property
    def prepared(self) -> Container[About]:
        """Return what may hold together where not all that is due may."""
        ...

    def may_begin(self, definition: Definition) -> bool:
        """Tell whether a version may begin to be counted."""
        ...

    def may_hold(self, due: Due) -> bool:
        """Tell whether all of it may be said now."""
        ...


class Open:
    """Holds nothing back."""

    prepared: Final[frozenset[About]] = frozenset()

    def may_begin(self, definition: Definition) -> bool:
        """Say yes."""
        del definition
        return True

    def may_hold(self, due: Due) -> bool:
        """Say yes."""
        del due
        return True
