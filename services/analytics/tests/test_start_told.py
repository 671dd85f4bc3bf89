"""S0 on real parts: what a start knows of what readers were told, and of what it cannot know."""

from __future__ import annotations

import pytest
from weir import names
from weir.batches import BatchRecord, LaneProgress
from weir.clock import SystemClock
from weir.commit import Verdict
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.stream import BatchStream

from .installation import Installation

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

RECORDS = 10


@pytest.mark.parametrize("starts", [1, 2, 12])
@pytest.mark.parametrize("is_lost", [False, True])
def test_lanes_that_readers_know_of_are_known_at_the_start(
    installation: Installation, starts: int, *, is_lost: bool
) -> None:
    """By the newest record, which epochs that began since and told nothing do not hide."""
    installation.append(RECORDS)
    footing = installation.start()
    assert footing.told == set()
    lane = LaneProgress(lane=41, kind="backfill", vid=7, shard=None, at=5, of=5)
    ends = {0: RECORDS}
    record = BatchRecord(
        epoch=footing.epoch,
        batch=0,
        rev=1,
        shards=2,
        from_offsets=ends,
        to_offsets=ends,
        processed_through_ms=1,
        at_ms=SystemClock().now_ms(),
        lanes=[lane],
    )
    stream = BatchStream(installation.settings.redis_url, timeout_s=5)
    assert stream.append(record) is Verdict.OK
    stream.close()
    for shard in (0, 1):
        installation.stand(shard, RECORDS)
    if is_lost:
        installation.client.delete(names.mark_key(1))
    again = [installation.start() for _ in range(starts)]
    assert [one.told for one in again] == [{41}] * starts


@pytest.mark.parametrize(
    ("deleted", "stands_at", "is_said"),
    [(0, 6, False), (4, 4, True), (4, 7, True), (4, 8, False)],
)
def test_what_a_shard_counts_near_the_start_of_the_log_may_be_repeats(
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    deleted: int,
    stands_at: int,
    *,
    is_said: bool,
) -> None:
    """A dump as old as the log: what is repeated within an hour of its start is gone.

    A record comes every thousand seconds.
    """
    monkeypatch.setattr(LogOffsets, "received_ms", lambda _log, _p, offset: offset * 1_000_000)
    installation.append(RECORDS)
    installation.start()
    installation.stand(0, RECORDS)
    installation.stand(1, stands_at)
    installation.delete_before(deleted)
    footing = installation.start()
    assert [level.shard for level in footing.levels] == [1]
    assert (installation.told().incomplete_before_ms > 0) is is_said
