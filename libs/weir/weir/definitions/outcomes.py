"""What became of a record of `weir.definitions`, as the fold tells it to who reads it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from weir.definitions.history import Activation, Definition


class Outcome(Enum):
    """What became of a record in the fold."""

    APPLIED = "applied"
    """It changed the state."""
    HELD = "held"
    """It changes nothing until the last record of its bundle has come."""
    CONFLICT = "conflict"
    """It was made from a version that is no longer current: its writer lost the race."""
    FENCED = "fenced"
    """A later driver had started: its writer must end."""
    UNKNOWN = "unknown"
    """Its format version, or its kind of driver record, is not known to this release."""
    UNREADABLE = "unreadable"
    """It is no record of ours."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A change of a bundle that does not count.

    Attributes:
        version: The version that it would have made.
        why: Why it did not, for a log.
    """

    version: Definition
    why: str


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one record.

    Attributes:
        offset: The record.
        outcome: What became of it.
        versions: The versions that it made, in the order of the log: of the last record of a
            bundle all of its changes'.
        activation: What is known now of a version that it started, stopped or let take over.
        note: Why not, for a log.
        lost: What was held until this record and does not count; the record itself may.
    """

    offset: int
    outcome: Outcome
    versions: tuple[Definition, ...] = ()
    activation: Activation | None = None
    note: str = ""
    lost: tuple[Lost, ...] = ()

    @property
    def applied(self) -> bool:
        """Whether the record counts: to its writer, whether it won."""
        return self.outcome is Outcome.APPLIED
