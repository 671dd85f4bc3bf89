"""A log that was made anew, or lost its end: what is given up is told when it is adopted."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest
from weir import names
from weir.clock import SystemClock
from weir.commit import Verdict
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import (
    Counting,
    DriverStart,
    Edit,
    activation_record,
    put_record,
    start_record,
)
from weir.erasure import erasures
from weir.event_time import LEAD_LIMIT_MS
from weir_analytics.jobs.adopting import adopted
from weir_analytics.panes import checkpoint
from weir_analytics.panes import start as start_module
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.recovery import Shards, VerdictError
from weir_analytics.panes.start import OwnStart

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


GONE = 10
ERASED = "a" * 64


@pytest.fixture
def cut(installation: Installation) -> Installation:
    """Return an installation whose log has lost ten records that were counted.

    A version and an erasure began within them. In a test the log cannot lose its end: what counted
    it stands behind the end.
    """
    installation.append(COUNTED)
    fence, log = installation.start().fence.fence, installation.told().events_id
    assert log is not None
    text = "kind: metric\nname: m\nevents: {type: t}\nkeep: {10s: 1h}\n"
    installation.define(put_record(Edit("acme", "metric", "m", None, "test", 0), text))
    do = {"do": {"job": "erase", "subject_hash": ERASED}}
    installation.define(put_record(Edit("acme", "job", "e", None, "test", 0), json.dumps(do)))
    (metric,), (job,) = (installation.fold().current("acme", kind) for kind in ("metric", "job"))
    begun = Counting(metric.vid, "acme", "m", 1, {0: COUNTED + 2}, fills=True, topic_id=log)
    installation.define(activation_record(begun, op="start", fence=fence, at_ms=0))
    facts = {"topic_id": log, "offsets": {"0": COUNTED + 5}}
    report = JobReport(job.vid, JobState.RUNNING, facts=facts)
    installation.define(job_record(report, fence=fence))
    for shard in range(installation.settings.shards):
        installation.stand(shard, COUNTED + GONE)
    return installation


def places(installation: Installation) -> list[Any]:
    """Return from where the version counts and the erasure holds."""
    fold = installation.fold()
    (activation,), (erasure,) = fold.activations.values(), erasures(fold)
    return [activation.begin, erasure.offsets]


class TestCutShort:
    def test_nothing_is_cut_until_somebody_decides(self, cut: Installation) -> None:
        """The log may still be brought back as it was."""
        with pytest.raises(VerdictError, match="got partition 0: 15 > 5: the log was cut short"):
            cut.start()
        assert places(cut) == [{0: COUNTED + 2}, {0: COUNTED + 5}]
        assert cut.told().cut_short is None

    def test_what_is_said_of_what_is_gone_stands_at_the_end(self, cut: Installation) -> None:
        """For the driver and for every reader, also once the log is as long again."""
        cut.decide(ADOPT)
        footing = cut.start()
        told = cut.told()

        assert (told.cut_short, told.epoch) == ({0: COUNTED}, footing.cut_epoch)
        assert places(cut) == [{0: COUNTED}] * 2
        gone = {"partition": 0, "first": 5, "last": 14, "shards": [0, 1], "count": GONE}
        assert given_up(cut)["gone"] == [gone]

        end_decision(cut)
        cut.append(2 * GONE)
        assert cut.start().cut_epoch == footing.cut_epoch
        assert cut.told().cut_short is None, "it is said once"
        assert places(cut) == [{0: COUNTED}] * 2

    def test_a_backup_of_what_is_gone_is_not_taken_for_what_came(self, cut: Installation) -> None:
        """Redis comes back from before, and the log is as long again: of other records."""
        before = [cut.mark(shard) for shard in range(2)]
        cut.decide(ADOPT)
        first = cut.start()
        end_decision(cut)
        cut.append(2 * GONE)
        for shard, mark in enumerate(before):
            cut.client.set(names.mark_key(shard), msgspec.json.encode(mark))
        with pytest.raises(VerdictError, match="got partition 0: 15 > 5: the log was cut short"):
            cut.start()
        cut.decide("adopt2")
        assert cut.start().cut_epoch > first.cut_epoch
        assert cut.told().cut_short == {0: COUNTED + 2 * GONE}

    def test_a_start_that_ends_on_its_way_is_made_good_by_the_next(
        self, cut: Installation, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between the record and the emptied shards; what came meanwhile is not gone."""
        cut.decide(ADOPT)
        with monkeypatch.context() as ending:
            ending.setattr(Shards, "recount", MagicMock(side_effect=InterruptedError))
            with pytest.raises(InterruptedError):
                cut.start()
        cut.append(2 * GONE)
        assert cut.start().cut_epoch == cut.told().epoch
        assert places(cut) == [{0: COUNTED}] * 2
        assert [cut.mark(shard).end for shard in range(2)] == [{0: COUNTED + 2 * GONE}] * 2

    @pytest.mark.parametrize("at", ["found", "checked"])
    def test_a_driver_that_was_paused_cuts_nothing_of_what_was_said_since(
        self, cut: Installation, monkeypatch: pytest.MonkeyPatch, at: str
    ) -> None:
        """Another one has taken over, and the log is longer; what begins there begins there.

        It looks before it appends; paused right behind that look, its record is a fence alone, and
        it begins again, from what there is then.
        """
        cut.decide(ADOPT)
        paused, said = list[int](), list[list[Any]]()

        def pause() -> None:
            if paused:
                return
            paused.append(1)
            cut.start()
            end_decision(cut)
            cut.append(2 * GONE)
            vid, fence = next(iter(cut.fold().activations)), cut.told().fence
            log = cut.told().events_id or ""
            begun = Counting(vid, "acme", "m", 1, {0: COUNTED + 7}, fills=True, topic_id=log)
            cut.define(activation_record(begun, op="start", fence=fence, at_ms=0))
            said.append([*places(cut), cut.told().epoch, cut.fold().next_offset])

        def found(*given: Any, **named: Any) -> Any:
            recovery = adopted(*given, **named)
            if at == "found":
                pause()
            return recovery

        def checked(log: DefinitionsLog, fence: int) -> None:
            check_fence_now(log, fence)
            if at == "checked":
                pause()

        check_fence_now, own = DefinitionsLog.check_fence_now, OwnStart()
        monkeypatch.setattr(start_module, "adopted", found)
        monkeypatch.setattr(DefinitionsLog, "check_fence_now", checked)
        with pytest.raises(VerdictError) as caught:
            cut.start(own=own)
        ((begin, erased, epoch, length),) = said
        assert begin == {0: COUNTED + 7}
        assert [*places(cut), cut.told().epoch] == [begin, erased, epoch]
        if at == "found":
            assert caught.value.verdict is Verdict.FENCED
            assert cut.fold().next_offset == length
        else:
            assert caught.value.verdict is Verdict.RETRY
            assert (cut.told().overtaken, cut.told().cut_short) == (True, None)
            cut.start(own=own)
            assert not cut.told().overtaken
            assert places(cut) == [begin, erased]

    def test_with_redis_emptied_too_the_definitions_know(self, cut: Installation) -> None:
        """Nobody has to decide then: there is nothing left to keep. It is told all the same."""
        cut.client.flushall()
        before_ms = SystemClock().now_ms()
        footing = cut.start()
        assert footing.cut_epoch == cut.told().epoch
        assert places(cut) == [{0: COUNTED}] * 2
        assert cut.told().incomplete_before_ms >= before_ms + LEAD_LIMIT_MS + HORIZON_MS
