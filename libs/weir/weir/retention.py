"""How long a topic keeps its records, and what of a log its size may have taken: pure.

Kafka does not tell how many bytes a record takes, and looks see offsets. So it is told what
cannot be: deletion by size leaves `retention.bytes` at least, and a record, compressed or not,
takes no more than a batch may.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Retention:
    """How long a topic keeps its records.

    Attributes:
        ms: Their age; None: any.
        bytes: The size of a partition; None: any.
        segment_bytes: The size of a segment, which is deleted as a whole; None: not known, a small
            part of what is kept.
        batch_bytes: The most that is stored as one, such as a single record; None: not known.
    """

    ms: int | None
    bytes: int | None
    segment_bytes: int | None = None
    batch_bytes: int | None = None

    def may_be_full(self, held: int) -> bool:
        """Tell whether a partition that holds so many records may be as large as it is kept."""
        if self.bytes is None:
            return False
        return self.batch_bytes is None or held * self.batch_bytes >= self.bytes

    def may_have_taken(self, moved: int, held: int) -> bool:
        """Tell whether deletion by size may have taken so many records, and left so many.

        It may have taken several segments since the look before, up to as much as is left, and a
        segment that is larger than that.
        """
        if self.bytes is None or not self.may_be_full(held):
            return False
        return moved <= held * (1 + (self.segment_bytes or 0) / max(1, self.bytes))
