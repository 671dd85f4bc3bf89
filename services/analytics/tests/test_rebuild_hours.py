"""No rebuild lane has more than some hours of the log, whatever the log is like."""

from __future__ import annotations

from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from weir.commit import Offsets
from weir.commit_found import LogBounds
from weir.definitions.records import OpenLane
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.open_lanes import CHUNK_MS, rebuilds

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
NOW_MS = 5_000 * HOUR_MS
WEEK = 7 * 24 * 60
CHUNK = CHUNK_MS // MINUTE_MS


class Minutes:
    """A record a minute for a week, and none since; what is older than some hours is not read."""

    def __init__(self, gap_h: int, unread_h: int | None = None, *, is_away: bool = False) -> None:
        self.first_ms = NOW_MS - gap_h * HOUR_MS - WEEK * MINUTE_MS
        self.read_ms = 0 if unread_h is None else NOW_MS - unread_h * HOUR_MS
        self.is_away, self.asked = is_away, 0

    def at(self, at_ms: int, end: Offsets) -> Offsets:
        """Return where an instant begins."""
        self.asked += 1
        if at_ms < self.read_ms:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return {0: min(end[0], max(0, -(-(at_ms - self.first_ms) // MINUTE_MS)))}

    def start(self) -> Offsets:
        """Return where the log begins."""
        if self.is_away:
            raise KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
        return {0: 0}

    def rebuilds(self) -> list[OpenLane]:
        """Return the lanes of all of it."""
        bounds = LogBounds("log", start={0: 0}, end={0: WEEK})
        log = cast("LogOffsets", self)
        lanes = rebuilds(log, bounds, {0: WEEK}, [1], NOW_MS, beside=1)
        assert [lane.start[0] for lane in lanes] == [lane.end[0] for lane in lanes[1:]] + [0]
        assert lanes[0].end[0] == WEEK
        return lanes


@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize("gap_h", [0, 5, 20, 45, 91, 2_000])
def test_behind_hours_without_a_record(gap_h: int, is_away: bool) -> None:
    """Its newest hours would come last; also where nobody says where the log begins by then."""
    log = Minutes(gap_h, is_away=is_away)
    lanes = log.rebuilds()

    assert max(one.end[0] - one.start[0] for one in lanes) <= CHUNK
    assert log.asked < 28 + 30


@pytest.mark.parametrize(("gap_h", "unread_h"), [(0, 60), (20, 40), (45, 80), (91, 150)])
def test_what_is_not_read_is_one_lane_and_all_else_is_not(gap_h: int, unread_h: int) -> None:
    """That one waits for as long as it is not read."""
    log = Minutes(gap_h, unread_h)
    *lanes, oldest = log.rebuilds()

    assert max(one.end[0] - one.start[0] for one in lanes) <= CHUNK
    assert oldest.end[0] <= WEEK - (unread_h - gap_h) * 60 + CHUNK
    assert log.asked < 28 + 30
