"""What the panes driver leaves in Kafka of each partition: how far it is, and since when.

It stands beside the offset that the group `weir-panes` has committed, so it outlives the driver
and Redis: whoever looks at the log later finds out from it what is not counted, and for how
long the log still holds that. Nobody counts by it: marks are the truth about progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

VERSION: Final = 1


@dataclass(frozen=True)
class LogPlace:
    """How far counting is in a partition.

    Attributes:
        counted: The first offset that is not counted.
        received_ms: R of what was counted last; None if that is not known.
        lane: The first offset that a backfill or a rebuild has still to count; None without one.
        lane_ms: When that record was appended; None if it is gone.
        again: Whether what is counted there, numbers have held: no backfill of a new version. Where
            that is not said it is taken to be so.
        rest: How many records backfills and rebuilds have still to count there, in each shard of
            theirs, so that one may be several: all that numbers need, or where those need none all,
            but for those that were set aside, which take nobody's turn. None if that is not known.
        left_out: Whether that lane has no turn coming: it was set aside, or waits after a failure.
    """

    counted: int
    received_ms: int | None = None
    lane: int | None = None
    lane_ms: int | None = None
    again: bool = True
    rest: int | None = None
    left_out: bool = False


class _Text(msgspec.Struct, omit_defaults=False):
    v: int
    received_ms: int | None = None
    lane: int | None = None
    lane_ms: int | None = None
    again: bool = True
    rest: int | None = None
    left_out: bool = False


def write(place: LogPlace) -> str:
    """Return what stands beside the offset: JSON, of some 130 characters."""
    text = _Text(
        VERSION,
        place.received_ms,
        place.lane,
        place.lane_ms,
        place.again,
        place.rest,
        place.left_out,
    )
    return msgspec.json.encode(text).decode()


def read(counted: int, text: str | None) -> LogPlace | None:
    """Return a place; None if an older release committed it, a newer one, or somebody else.

    Args:
        counted: The offset that was committed.
        text: What stands beside it.
    """
    try:
        found = msgspec.json.decode(text or "", type=_Text)
    except msgspec.DecodeError:
        return None
    if found.v != VERSION:
        return None
    return LogPlace(
        counted,
        found.received_ms,
        found.lane,
        found.lane_ms,
        found.again,
        found.rest,
        found.left_out,
    )
