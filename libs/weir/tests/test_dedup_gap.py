"""The dedup gap of partitions that were added: from when to when, and of which log."""

from __future__ import annotations

import pytest
from weir.dedup_gap import DedupGap, dedup_gap, spread_of
from weir.definitions.fold import Definitions
from weir.definitions.history import Horizons, Spread
from weir.definitions.records import DriverStart, horizons_record, spread_record, start_record

HORIZON_MS = 1_000
FOUR, EIGHT = Spread(4, "events", 100), Spread(8, "events", 5_000)
ANOTHER = Spread(8, "another", 6_000)


def folded(*spreads: Spread) -> Definitions:
    """Return what readers know after a driver has met partitions, one after the other."""
    fold = Definitions()
    first = Horizons({}, HORIZON_MS, 90_000, "events")
    records = [
        start_record(DriverStart("panes", 1, "start"), at_ms=0),
        horizons_record(first, fence=0, at_ms=0),
        *(spread_record(one, fence=0) for one in spreads),
    ]
    for offset, record in enumerate(records):
        done = fold.apply(offset, record.key, record.value)
        assert done is not None
        assert done.applied, done
    return fold


@pytest.mark.parametrize("spreads", [(), (FOUR,), (FOUR, ANOTHER)])
def test_a_log_that_was_always_so_wide_has_none(spreads: tuple[Spread, ...]) -> None:
    """Nor has one that took the place of a narrower one: nothing of that is in it."""
    assert dedup_gap(folded(*spreads), 6_001) is None


def test_it_is_open_for_one_horizon() -> None:
    """From when a driver met the new partitions: after that no repeat of before counts again."""
    fold = folded(FOUR, EIGHT)
    until_ms = EIGHT.at_ms + HORIZON_MS

    assert dedup_gap(fold, until_ms - 1) == DedupGap(4, 8, EIGHT.at_ms, until_ms)
    assert dedup_gap(fold, until_ms) is None


def test_what_was_met_is_known_by_log() -> None:
    """The newest record of each."""
    fold = folded(FOUR, EIGHT, ANOTHER)

    assert [spread_of(fold, name) for name in ("events", "another", "no")] == [EIGHT, ANOTHER, None]
