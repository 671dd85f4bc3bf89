"""Jobs as they are asked for, and what drivers say of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from weir.definitions.check import check
from weir.definitions.job import Adopt, Audit, Job, Replay
from weir.definitions.jobs import JobReport, JobState, job_record, read_report, withdrawn_by
from weir.problems import ProblemError


def job(**do: Any) -> Job:
    """Return the checked job of what is to be done."""
    model = check("job", "j1", json.dumps({"do": do})).model
    assert isinstance(model, Job)
    return model


class TestAsked:
    def test_each_job_has_its_own_members(self) -> None:
        """What is left out is filled in, and times are read as definitions write them."""
        audit = job(job="audit", metrics=["hits"], last="2h").do
        assert isinstance(audit, Audit)
        assert audit.last == 7_200_000
        assert audit == Audit(metrics=("hits",), last="2h")  # type: ignore[arg-type]
        replay = job(job="replay", reason="too_deep", since="2027-01-31T18:00:00Z").do
        assert isinstance(replay, Replay)
        assert replay.since == 1_801_418_400_000
        assert job(job="adopt", reason="new cluster").do == Adopt(reason="new cluster")

    @pytest.mark.parametrize(
        ("do", "told"),
        [
            ({"job": "audit", "sample": 0}, "greater than or equal to 1"),
            ({"job": "audit", "last": "soon"}, "a duration"),
            ({"job": "audit", "dry_run": True}, "a known member"),
            ({"job": "forget"}, "'audit', 'replay'"),
            ({"job": "adopt", "reason": ""}, "at least 1 characters"),
            (
                {
                    "job": "replay",
                    "since": "2027-01-31T18:00:00Z",
                    "until": "2027-01-31T18:00:00Z",
                },
                "a span that ends after it begins",
            ),
        ],
    )
    def test_what_cannot_be_done_is_refused(self, do: dict[str, Any], told: str) -> None:
        """A refusal says what was required."""
        with pytest.raises(ProblemError) as refused:
            job(**do)
        assert told in refused.value.message.replace("String", "string")


@pytest.mark.parametrize(
    ("told", "withdrawn"),
    [
        ({"vid": 5, "epoch": 3}, None),
        ({"vid": 4, "epoch": 3}, "version"),
        ({"vid": 5, "epoch": 2}, "epoch"),
        ({"vid": 4, "epoch": 2}, "version"),
        ({}, "version"),
    ],
)
def test_what_an_audit_says_holds_for_what_it_saw(
    told: dict[str, int], withdrawn: str | None
) -> None:
    """Of another version, or another life of the numbers, or of nobody knows which, it is none."""
    assert withdrawn_by(told, vid=5, epoch=3) == withdrawn


class TestReport:
    def test_a_record_reads_back(self) -> None:
        """What is written is what is read."""
        report = JobReport(7, JobState.DONE, 5, {"begin": {"0": 3}}, {"verified": True}, 2)
        record = job_record(report, fence=3)
        assert record.key == b"_/job"
        assert read_report(json.loads(record.value)) == report

    def test_the_first_layout_stays_readable(self) -> None:
        """A record as the first release wrote it; members that it did not know are empty."""
        text = '{"v":1,"record":"job","job":"panes","fence":3,"at_ms":5,"vid":7,"state":"running"}'
        assert read_report(json.loads(text)) == JobReport(7, JobState.RUNNING, 5)
