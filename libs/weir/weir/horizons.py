"""By which horizons a place of the log is counted: they change only at recorded offsets. Pure.

Whether an event repeats another one, and whether it is too old when it comes, is decided by two
settings of the installation (RELIABILITY 2.1). What was counted by some must be counted by the
same whenever that is done again, or a rebuild and an audit would find other numbers than were
served. So a driver whose settings are others writes down from where its own hold, and counts what
lies before that by those before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weir.commit import Offsets, not_after
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons


def horizons_of(definitions: Definitions, topic_id: str) -> tuple[Horizons, ...]:
    """Return the horizons that hold somewhere in a log, the first ones first.

    Those that were in force when an earlier log was given up hold from this one's start.

    Args:
        definitions: The fold.
        topic_id: Kafka's id of the log.
    """
    known = definitions.horizons
    here = [at for at, one in enumerate(known) if one.topic_id == topic_id]
    first = here[0] if here else len(known)
    before = (replace(one, topic_id=topic_id, begin={}) for one in known[max(0, first - 1) : first])
    return (*before, *known[first:])


def horizons_within(
    known: Sequence[Horizons], start: Offsets, end: Offsets
) -> tuple[Horizons, ...]:
    """Return those of some horizons by which a range of their log is counted.

    Of each record the last of them that begins at or before it; the first one, where none does.

    Args:
        known: The horizons of the log, the first ones first.
        start: Partition -> first offset; 0 where it names none.
        end: Partition -> offset after the last.
    """
    begun = [
        at for at, one in enumerate(known) if _holds_at(one, {p: start.get(p, 0) for p in end})
    ]
    first = begun[-1] if begun else 0
    return (
        *known[first : first + 1],
        *(one for one in known[first + 1 :] if not not_after(end, one.begin)),
    )


def horizons_at(known: Sequence[Horizons], partition: int, offset: int) -> Horizons:
    """Return by which horizons one record is counted; see `horizons_within`."""
    begun = (one for one in reversed(known) if one.begin.get(partition, 0) <= offset)
    return next(begun, known[0])


def longest_ms(known: Sequence[Horizons], start: Offsets | None = None) -> int:
    """Return the longest dedup horizon that holds for records from some offsets on.

    Args:
        known: The horizons of a log, the first ones first; at least one.
        start: Partition -> offset; None: from the log's first record ever on.
    """
    held = known if start is None else horizons_within(known, start, dict.fromkeys(start, 2**63))
    return max(one.horizon_ms for one in held)


def _holds_at(one: Horizons, start: Offsets) -> bool:
    return all(one.begin.get(p, 0) <= n for p, n in start.items())
