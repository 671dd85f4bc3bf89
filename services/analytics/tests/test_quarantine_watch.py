"""How long quarantine holds what no replay has looked into: on a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from structlog.testing import capture_logs
from weir.clock import ManualClock, SystemClock
from weir.definitions.job import Replay
from weir.kafka import Kafka
from weir.log_left import LogLeft
from weir_analytics.jobs.quarantine_watch import QuarantineWatch
from weir_analytics.jobs.unreplayed import DoneReplay
from weir_analytics.panes.vitals import Vitals
from weir_local.waiting import wait_until

from .test_unreplayed import copy, note

HOUR_MS = 3_600_000


@pytest.fixture
def kept_an_hour(new_topic: Callable[..., str]) -> str:
    """Return a topic that keeps for an hour by the times that records are given."""
    settings = {"retention.ms": str(HOUR_MS), "message.timestamp.type": "CreateTime"}
    return new_topic("quarantined", 1, settings)


def append(kafka: str, topic: str, *records: tuple[dict[str, bytes | None], int]) -> None:
    """Append records that have headers and no value, each with its time."""
    producer = Producer({"bootstrap.servers": kafka})
    for headers, at_ms in records:
        producer.produce(topic, b"x", headers=list(headers.items()), timestamp=at_ms)
    assert producer.flush(10) == 0


@pytest.mark.kafka
class TestQuarantineWatch:
    def looked(self, watch: QuarantineWatch, vitals: Vitals, waits: bool) -> LogLeft:
        """Return what is told once all of the topic was read."""
        wait_until(
            lambda: (watch.look(vitals).ms is not None) == waits and watch.is_through,
            timeout_s=20,
            what="all of the topic",
        )
        return watch.look(vitals)

    def test_the_oldest_that_nobody_has_replayed_is_told(
        self, kafka: str, kept_an_hour: str
    ) -> None:
        """Until it has a note, or a replay that asked for it has ended, or it is deleted."""
        now_ms = time.time_ns() // 1_000_000
        old_ms, later_ms = now_ms - 3_000_000, now_ms - 600_000
        append(kafka, kept_an_hour, (copy(1), old_ms), (copy(2), later_ms), (copy(3), now_ms))
        watch = QuarantineWatch(Kafka(kafka), ManualClock(now_ms), kept_an_hour)
        vitals = Vitals(replays=())
        left = self.looked(watch, vitals, waits=True)
        assert (left.ms, left.kept_ms, left.is_short) == (600_000, HOUR_MS, True)

        append(kafka, kept_an_hour, (note(1), now_ms))
        wait_until(lambda: watch.look(vitals).ms == 3_000_000, timeout_s=20, what="its note")
        vitals.replays = [DoneReplay("acme", Replay(), {0: 2})]
        assert watch.look(vitals).ms == HOUR_MS
        admin = AdminClient({"bootstrap.servers": kafka})
        (deleted,) = admin.delete_records([TopicPartition(kept_an_hour, 0, 3)]).values()
        deleted.result(10)
        with capture_logs() as said:
            self.looked(watch, vitals, waits=False)
        assert [(line["event"], line["copies"]) for line in said] == [("quarantine_lost", 1)]

    def test_a_driver_tells_it_once_it_knows_of_replays(
        self, kafka: str, kept_an_hour: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not before: all of them may have been looked into."""
        monkeypatch.setattr("weir_analytics.jobs.quarantine_watch.LOOK_S", 0.01)
        old_ms = time.time_ns() // 1_000_000 - 3_000_000
        append(kafka, kept_an_hour, (copy(1), old_ms))
        watch = QuarantineWatch(Kafka(kafka), SystemClock(), kept_an_hour)
        vitals, stop = Vitals(), threading.Event()
        thread = threading.Thread(target=watch.run, args=(vitals, stop))
        with capture_logs() as said:
            thread.start()
            try:
                wait_until(lambda: watch.is_through, timeout_s=20, what="all of the topic")
                assert vitals.quarantine_left is None
                vitals.replays = ()
                wait_until(lambda: vitals.quarantine_left, timeout_s=20, what="what is left")
                vitals.replays = [DoneReplay("acme", Replay(), {0: 1})]
                wait_until(
                    lambda: vitals.quarantine_left == LogLeft(waiting=0), timeout_s=20, what="none"
                )
            finally:
                stop.set()
                thread.join(10)
        assert [line["event"] for line in said] == ["quarantine_running_out", "quarantine_lasts"]
