"""What one shard counts by itself to stand where the others do, in pieces."""

from __future__ import annotations

from collections.abc import Iterator

from weir.borders import Borders
from weir.commit_found import Level
from weir.lanes import advance


def slices(
    level: Level, most: int, borders: Borders
) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
    """Yield a level's range in pieces of at most about `most` records, in order.

    No piece lies on both sides of a border, from which an erasure holds.
    """
    end = level.to_offsets
    at = {p: level.from_offsets.get(p, 0) for p in end}
    while any(at[p] < n for p, n in end.items()):
        upto = advance(at, borders.first(at, end), most)
        yield at, upto
        at = upto
