"""What the sketches of one row say, as a query of that one pane would have answered it.

The writer of a final pane asks this of the row before and after late events: a sketch is too
large to be kept in a record of what changed, and what it said is not (`weir/corrections.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from weir.frequent import Moved, Texts, moved
from weir.query.aggregates import Aggregate, Percentile
from weir.query.aggregates_of_texts import Distinct, Frequent, Members
from weir.query.named import aggregate_named, short_name
from weir.rows import Row
from weir.sketches import Bounded

_OF_SKETCHES: Final = (Percentile, Distinct, Members, Frequent)
# Late events may change thousands of rows, and each is told.
MOST_TEXTS: Final = 5


def estimated(declared: Iterable[str]) -> tuple[str, ...]:
    """Return by which names those of a metric's aggregates are asked that sketches answer."""
    names = dict.fromkeys(map(short_name, declared))
    return tuple(name for name in names if isinstance(_aggregate(name), _OF_SKETCHES))


def estimates_of(row: Row, names: Iterable[str]) -> dict[str, Bounded]:
    """Return what a row says, by name; what it has too few values for is missing."""
    found: dict[str, Bounded] = {}
    for name in names:
        aggregate = _aggregate(name)
        if aggregate is None or isinstance(aggregate, Frequent):
            continue  # a list is no number
        value = aggregate.read(aggregate.of([row]))
        if value is not None:
            found[name] = value
    return found


def texts_moved(was: Row | None, added: Row, now: Row, names: Iterable[str]) -> list[Moved]:
    """Return how often texts of late events came in a row before and now; see `moved`.

    Args:
        was: The row before; None: there was none.
        added: What came late.
        now: Both.
        names: What `estimated` returned.
    """
    came = _top_in(added)
    if came is None or not any(isinstance(_aggregate(name), Frequent) for name in names):
        return []
    return moved(_top_in(was), came, _top_in(now), MOST_TEXTS)


def _top_in(row: Row | None) -> Texts | None:
    return None if row is None or row.further is None else row.further.top


@lru_cache(maxsize=1_000)
def _aggregate(name: str) -> Aggregate | None:
    return aggregate_named(name)
