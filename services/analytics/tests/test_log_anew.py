"""A log that was made anew: what is given up is told when it is adopted."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest
from weir.clock import SystemClock
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import DriverStart, start_record
from weir.event_time import LEAD_LIMIT_MS
from weir_analytics.panes import checkpoint
from weir_analytics.panes.recovery import VerdictError

from .installation import Installation

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

COUNTED = 5
ADOPT = "adopt1"
HORIZON_MS = 3_600_000


@pytest.fixture
def counted(installation: Installation) -> Installation:
    """Return an installation that has counted a log, and whose log has been made anew."""
    installation.append(COUNTED)
    installation.start()
    for shard in range(installation.settings.shards):
        installation.stand(shard, COUNTED)
    installation.new_log()
    return installation


def given_up(installation: Installation) -> Any:
    """Return what the decision has given up."""
    report = installation.job(ADOPT).report
    assert report is not None
    return report.facts["given_up"]


def end_decision(installation: Installation) -> None:
    """Tell that the decision is used up, as counting does."""
    report = JobReport(installation.job(ADOPT).definition.vid, JobState.DONE, 0)
    installation.define(job_record(report, fence=installation.told().fence))


def test_an_epoch_of_an_older_release_is_known_by_its_marks(installation: Installation) -> None:
    """Its start record does not say what it counts; the next one does."""
    installation.start()
    events_id, epoch = installation.told().events_id, installation.told().epoch
    assert events_id is not None
    older = DriverStart("older", installation.settings.shards, "start", epoch=epoch)
    installation.define(start_record(older, at_ms=0))
    ends = installation.fold().next_offset
    assert installation.told().events_id is None
    with pytest.MonkeyPatch.context() as ending:
        ending.setattr(checkpoint, "last_planned", MagicMock(side_effect=InterruptedError))
        with pytest.raises(InterruptedError):
            installation.start()
    assert installation.fold().next_offset == ends + 1, "it went on with the epoch"
    assert installation.told().events_id == events_id


def test_what_is_given_up_is_named_and_no_pane_is_just_smaller(counted: Installation) -> None:
    """All that was counted of the old log: whole panes of it, and part of the one at hand."""
    before_ms = SystemClock().now_ms()
    counted.decide(ADOPT)
    counted.start()

    gone = {"partition": 0, "first": 0, "last": COUNTED - 1, "shards": [0, 1], "count": COUNTED}
    assert given_up(counted)["gone"] == [gone]
    lead_ms = counted.told().incomplete_before_ms - LEAD_LIMIT_MS - HORIZON_MS
    assert before_ms <= lead_ms <= SystemClock().now_ms()


def test_with_redis_emptied_too_the_last_epoch_knows_the_log(counted: Installation) -> None:
    """Else what was counted of the old log would be gone without a word, and nothing incomplete."""
    counted.client.flushall()
    for _ in range(2):
        with pytest.raises(VerdictError, match="the topic was created anew"):
            counted.start()
    before_ms = SystemClock().now_ms()
    counted.decide(ADOPT)
    counted.start()
    assert "the topic was created anew" in given_up(counted)["because"]
    incomplete_ms = counted.told().incomplete_before_ms
    assert incomplete_ms >= before_ms + LEAD_LIMIT_MS + HORIZON_MS

    # The decision is used up, and the new log is the one that is counted.
    end_decision(counted)
    counted.client.flushall()
    counted.start()
    assert counted.told().incomplete_before_ms == incomplete_ms
