"""What the quarantine has copies of, and what it has none of, by version and partition. Pure.

Of what one version cannot use in a batch the engine copies the 1,000 events with the lowest
offsets of a partition and task, and the last copy says how many more there were (RELIABILITY 2.3,
S3). So the sum over the copies is what is missing. A batch that ran again has copied under the
same keys: of each key the newest copy counts, or one event would be told twice.

The sum is exact for what was counted once, and for whatever began again at the same place. What
is counted again in other ranges, as a backfill is after a loss of Redis, leaves last copies under
other keys beside those of before: then it is too high. So it is told as the most that it can be;
the ledger has the true number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

Key = bytes | tuple[int, int]
"""A copy's key, or, of a record without one, its place."""


class Place(NamedTuple):
    """Of what the copies are.

    Attributes:
        vid: The version that could not use the events; None: nobody could use the records.
        partition: Of the log, where they stood; None if the copy does not say it.
    """

    vid: int | None
    partition: int | None


@dataclass(frozen=True, slots=True)
class Copied:
    """What became of the events of one place.

    Attributes:
        place: See `Place`.
        copies: How many have a copy.
        left_out: How many more have none.
    """

    place: Place
    copies: int
    left_out: int


class _Newest(NamedTuple):
    order: tuple[int, int]
    place: Place
    left_out: int


class Tally:
    """Adds up copies as they are met, in any order."""

    def __init__(self) -> None:
        """Begin with none."""
        self._newest: dict[Key, _Newest] = {}

    def take(self, key: Key, place: Place, left_out: int, *, order: tuple[int, int]) -> None:
        """Take a copy.

        Args:
            key: The same for copies of one record.
            place: Of what it is.
            left_out: How many more it says that there were.
            order: When it was written, and its offset: what is greater is newer.
        """
        before = self._newest.get(key)
        if before is None or before.order < order:
            self._newest[key] = _Newest(order, place, left_out)

    def copied(self) -> list[Copied]:
        """Return the sums: where most is missing first, else where most is copied."""
        sums: dict[Place, tuple[int, int]] = {}
        for one in self._newest.values():
            copies, left_out = sums.get(one.place, (0, 0))
            sums[one.place] = (copies + 1, left_out + one.left_out)
        found = [Copied(place, *sum_) for place, sum_ in sums.items()]
        return sorted(found, key=lambda one: (-one.left_out, -one.copies, _numbers(one.place)))


def _numbers(place: Place) -> tuple[int, int]:
    """Return a place as numbers, which None is before."""
    vid, partition = (-1 if number is None else number for number in place)
    return vid, partition
