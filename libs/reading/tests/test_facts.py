"""What queries and rules are told of counting."""

from __future__ import annotations

import pytest
from weir.batches import BatchRecord, LaneProgress
from weir.clock import SystemClock
from weir.definitions.records import DriverStart, start_record
from weir.event_time import LEAD_LIMIT_MS
from weir_reading.batches import Batches
from weir_reading.catalog import Catalog
from weir_reading.facts import facts_of
from weir_reading.follower import Record

LOST_MS = 1_000_000
RECOUNTED_MS = LOST_MS + LEAD_LIMIT_MS


def catalog(incomplete_before_ms: int) -> Catalog:
    """Return definitions whose driver says before which start panes are incomplete."""
    start = DriverStart("a", 1, "start", incomplete_before_ms=incomplete_before_ms)
    found, record = Catalog(), start_record(start, at_ms=0)
    found.take([Record(0, record.key, record.value, 0)])
    return found


def batches(*lanes: LaneProgress) -> Batches:
    """Return batch records of which the newest tells of some lanes."""
    found = Batches(None, SystemClock())  # type: ignore[arg-type]
    found.epoch, found.rev = 3, 8
    found.records.append(
        BatchRecord(
            epoch=3,
            batch=7,
            rev=8,
            shards=1,
            from_offsets={},
            to_offsets={},
            processed_through_ms=0,
            at_ms=0,
            lanes=list(lanes),
        )
    )
    return found


REBUILD = LaneProgress(lane=7, kind="rebuild", vid=None, shard=None, at=1, of=100, until_ms=LOST_MS)


@pytest.mark.parametrize(
    ("said_ms", "lanes", "incomplete_ms"),
    [
        (0, (), 0),
        (5, (), 5),
        (0, (REBUILD,), RECOUNTED_MS),
        (RECOUNTED_MS - 1, (REBUILD,), RECOUNTED_MS),
        (RECOUNTED_MS + 1, (REBUILD,), RECOUNTED_MS + 1),
    ],
)
def test_a_pane_is_complete_if_both_sources_say_so(
    said_ms: int, lanes: tuple[LaneProgress, ...], incomplete_ms: int
) -> None:
    """What the log has lost, and what is not counted again yet: the later of the two."""
    facts = facts_of(catalog(said_ms), batches(*lanes), processed_through_ms=40, now_ms=50)

    assert facts.incomplete_before_ms == incomplete_ms
    assert (facts.epoch, facts.rev, facts.processed_through_ms, facts.now_ms) == (3, 8, 40, 50)
    assert [span.to_ms for span in facts.rebuilding] == [LOST_MS] * len(lanes)
