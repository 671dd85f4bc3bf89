"""The driver's reader of `weir.definitions`, beside a producer that checks nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import structlog
from confluent_kafka import Producer
from weir import names
from weir.commit import Verdict
from weir.definitions.jobs import JobReport, JobState, job_record
from weir.definitions.records import DriverStart, Edit, put_record, start_record
from weir.kafka import Kafka
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.recovery import VerdictError

pytestmark = pytest.mark.kafka
TEXT = "kind: metric\nname: {name}\nevents: {{type: order.placed}}\n"


def test_what_cannot_be_used_changes_nothing(kafka: str) -> None:
    """Junk and a text that is no metric are told and passed over; what follows is read."""
    texts = (TEXT, "kind: [metric]\n", TEXT + "unit: ms\n")
    log = DefinitionsLog(Kafka(kafka))
    producer = Producer({"bootstrap.servers": kafka, "acks": "all"})
    producer.produce(names.DEFINITIONS, b"\xff", b"acme/metric/of_the_log")
    for version, text in enumerate(texts):
        edit = Edit("acme", "metric", "of_the_log", version or None, by="other", at_ms=1)
        record = put_record(edit, text.format(name="of_the_log"))
        producer.produce(names.DEFINITIONS, record.value, record.key)
    producer.flush(30)
    try:
        with structlog.testing.capture_logs() as said:
            log.read_to(log.end())
        found = log.fold.get("acme", "metric", "of_the_log")
        assert found is not None
        assert found.metric is not None
        assert (found.version, found.metric.unit) == (3, "ms")
        (waiting,) = (d for d in log.fold.metrics_to_start() if d.name == "of_the_log")
        assert waiting.version == 3
        told = [one["why"] for one in said if one.get("name") == "of_the_log"]
        assert len(told) == 2
        assert told[0].startswith("the record must be a change of a definition, got ")
        assert told[1].startswith("/kind must be ")
    finally:
        log.close()


def test_what_a_driver_says_counts_until_another_has_started(
    kafka: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record is read back at its place: behind the start of a newer one it counts nothing."""
    monkeypatch.setattr(names, "DEFINITIONS", new_topic("definitions"))
    older, newer = DefinitionsLog(Kafka(kafka)), DefinitionsLog(Kafka(kafka))
    try:
        fence = older.append(start_record(DriverStart("a", 1, "start"), at_ms=0))
        running = job_record(JobReport(7, JobState.RUNNING), fence=fence)
        assert older.append_fenced(running, fence) == fence + 1
        assert older.fold.jobs[7].state is JobState.RUNNING
        older.check_fence(fence)

        newest = newer.append(start_record(DriverStart("b", 1, "start"), at_ms=0))
        older.check_fence(fence)  # it has not read that yet
        done = job_record(JobReport(7, JobState.DONE), fence=fence)
        why = f"fence must be {fence}, the newest start record is {newest}: another driver runs"
        with pytest.raises(VerdictError, match=why) as caught:
            older.append_fenced(done, fence)
        assert caught.value.verdict is Verdict.FENCED
        assert older.fold.jobs[7].state is JobState.RUNNING
        with pytest.raises(VerdictError, match=why):
            older.check_fence(fence)
    finally:
        older.close()
        newer.close()
