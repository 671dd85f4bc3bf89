"""By what a later replay knows what was put back, and where nobody knows it any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


@pytest.mark.parametrize("left", [0, 1])
def test_what_is_younger_than_what_is_kept_is_put_back(log: Log, left: int) -> None:
    """Retention has emptied the topic, or left what is too old: no note of these has gone."""
    quarantine(log)
    _low, end = LogOffsets(log.settings.kafka, names.QUARANTINE).ends()
    take_before(log, {p: n - left for p, n in end.items()})
    quarantine(log, topic_id="second", received_ms=SystemClock().now_ms() - 3_600_000)

    run = Run(log)
    outcome = run.end(run.facts())
    still = {"forgotten": left * len(end)} if left else {}
    assert (outcome["replayed"], outcome["still"]) == (COPIES, still)


def test_by_size_anything_may_have_gone(
    log: Log, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that is bounded in bytes may have lost a note of an hour ago."""
    bounded = new_topic("quarantine", 2, {"retention.bytes": "1000000000"})
    monkeypatch.setattr(names, "QUARANTINE", bounded)
    received_ms = SystemClock().now_ms() - 3_600_000
    quarantine(log, received_ms=received_ms)
    first = Run(log)
    assert first.end(first.facts())["replayed"] == COPIES
    _low, noted = LogOffsets(log.settings.kafka, names.QUARANTINE).ends()
    quarantine(log, received_ms=received_ms)
    take_before(log, noted)

    again = Run(log)
    outcome = again.end(again.facts())
    assert (outcome["replayed"], outcome["still"]) == (0, {"forgotten": COPIES})


def take_before(log: Log, places: Mapping[int, int]) -> None:
    """Take the beginning of each partition of the quarantine away, as retention does."""
    admin = AdminClient({"bootstrap.servers": log.settings.kafka.bootstrap})
    offsets = [TopicPartition(names.QUARANTINE, p, n) for p, n in places.items()]
    for done in admin.delete_records(offsets).values():
        done.result(10)
