"""By what a later replay knows what was put back, and where nobody knows it any more."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from weir import names
from weir.clock import SystemClock
from weir_analytics.panes.log_offsets import LogOffsets

from .test_jobs_log import COPIES, Log, Run, log, quarantine

__all__ = ["log"]
pytestmark = pytest.mark.kafka


def test_a_later_replay_goes_by_the_notes(log: Log) -> None:
    """Also when the log no longer holds what was put back."""
    quarantine(log)
    run = Run(log)
    assert run.end(run.facts())["replayed"] == COPIES
    later = Run(log)
    facts = later.facts()
    low, high = LogOffsets(log.settings.kafka, names.EVENTS).ends()
    assert facts["begin"] == {str(p): n for p, n in high.items()}
    assert high != low
    assert later.end(facts) == {
        "replayed": 0,
        "already": COPIES,
        "still": {},
        "not_copied": 0,
        "dry_run": False,
    }


def test_a_copy_that_outlives_its_note_stays(log: Log) -> None:
    """A rebuild has copied everything once more; the notes of before are gone, by retention."""
    quarantine(log)
    first = Run(log)
    assert first.end(first.facts())["replayed"] == COPIES
    _low, noted = LogOffsets(log.settings.kafka, names.QUARANTINE).ends()
    quarantine(log)
    take_before(log, noted)
    assert log.notes() == []

    again = Run(log)
    outcome = again.end(again.facts())
    assert (outcome["replayed"], outcome["still"]) == (0, {"forgotten": COPIES})
    assert len(log.origins()) == COPIES


def test_what_was_received_since_is_put_back(log: Log) -> None:
    """Of what came after the oldest record that is left every note is there."""
    quarantine(log)
    _low, end = LogOffsets(log.settings.kafka, names.QUARANTINE).ends()
    take_before(log, {p: n - 1 for p, n in end.items()})
    left = len(log.read(names.QUARANTINE))
    assert left == len(end)
    quarantine(log, topic_id="second", received_ms=SystemClock().now_ms())

    run = Run(log)
    outcome = run.end(run.facts())
    assert (outcome["replayed"], outcome["still"]) == (COPIES, {"forgotten": left})


def take_before(log: Log, places: Mapping[int, int]) -> None:
    """Take the beginning of each partition of the quarantine away, as retention does."""
    admin = AdminClient({"bootstrap.servers": log.settings.kafka.bootstrap})
    offsets = [TopicPartition(names.QUARANTINE, p, n) for p, n in places.items()]
    for done in admin.delete_records(offsets).values():
        done.result(10)
