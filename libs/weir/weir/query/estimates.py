"""What the sketches of one row say, as a query of that one pane would have answered it.

The writer of a final pane asks this of the row before and after late events: a sketch is too
large to be kept in a record of what changed, and what it said is not (`weir/corrections.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from weir.frequent import Moved, moved
from weir.query.aggregates import Aggregate, Percentile
from weir.query.aggregates_of_texts import Distinct, Frequent, Members
from weir.query.named import aggregate_named, short_name
from weir.rows import Row
from weir.sketches import Bounded

_OF_SKETCHES: Final = (Percentile, Distinct, Members, Frequent)
# A list has up to a hundred texts, and is told before and after for each row that changed.
MOST_TEXTS: Final = 10


def estimated(declared: Iterable[str]) -> tuple[str, ...]:
    """Return by which names those of a metric's aggregates are asked that sketches answer.

    A `top` stays as it is declared, since that says how long its list is.
    """
    names = dict.fromkeys(
        one if isinstance(_aggregate(one), Frequent) else short_name(one) for one in declared
    )
    return tuple(name for name in names if isinstance(_aggregate(name), _OF_SKETCHES))


def estimates_of(row: Row, names: Iterable[str]) -> dict[str, Bounded]:
    """Return what a row says, by name; what it has too few values for is missing."""
    found: dict[str, Bounded] = {}
    for name in names:
        aggregate = _aggregate(name)
        value = None if aggregate is None else aggregate.read(aggregate.of([row]))
        if value is not None:
            found[name] = value
    return found


def texts_moved(was: Row | None, now: Row | None, names: Iterable[str]) -> list[Moved]:
    """Return what changed in the list of frequent texts of a row, `MOST_TEXTS` of it at most.

    Args:
        was: The row before; None: there was none.
        now: The row after; None: it is none of its own any more, so nothing is told.
        names: What `estimated` returned.
    """
    lists = (one for one in map(_aggregate, names) if isinstance(one, Frequent))
    asked = next(lists, None)
    if asked is None or now is None:
        return []
    before, after = (row.further.top if row and row.further else None for row in (was, now))
    return moved(before, after, asked.items, MOST_TEXTS)


@lru_cache(maxsize=1_000)
def _aggregate(name: str) -> Aggregate | None:
    return aggregate_named(name)
