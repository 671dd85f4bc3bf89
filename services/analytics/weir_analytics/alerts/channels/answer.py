"""What became of one try to send a message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

NOT_ALLOWED: Final = "the address is not public, and allowed_hosts does not name it"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver answered, or why nothing did.

    Attributes:
        status: HTTP status; None if nothing answered, or by a way without one.
        took_ms: How long it took.
        why: What went wrong, in few words; empty if nothing did.
        taken: Whether it was taken, where no status says so.
        barred: Whether it must not be sent there at all.
        gone: Whether somebody has deleted its channel.
    """

    status: int | None
    took_ms: int
    why: str = ""
    taken: bool = False
    barred: bool = False
    gone: bool = False

    @property
    def delivered(self) -> bool:
        """Whether the receiver took it."""
        return self.taken or (self.status is not None and 200 <= self.status < 300)

    @property
    def final(self) -> bool:
        """Whether sending it again is of no use."""
        if self.status is None:
            return self.barred or self.gone
        return 300 <= self.status < 500 and self.status not in (408, 429)
