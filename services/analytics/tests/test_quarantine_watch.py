"""How long quarantine holds what no replay has looked into: on a real broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from structlog.testing import capture_logs
from weir import names
from weir.clock import ManualClock, SystemClock
from weir.definitions.job import Replay
from weir.kafka import Kafka
from weir.log_left import LogLeft
from weir.topics import Topic
from weir_analytics.jobs import quarantine_watch
from weir_analytics.jobs.quarantine_watch import QuarantineWatch
from weir_analytics.jobs.unreplayed import Copies, DoneReplay
from weir_analytics.panes.same_log import topic_id
from weir_analytics.panes.vitals import Vitals
from weir_local.kafka import Broker
from weir_local.waiting import wait_until

from .conftest import settings_for
from .live_job import World
from .test_jobs_log import Log, Run
from .test_unreplayed import copy, note

HOUR_MS = 3_600_000
SETTINGS = {"retention.ms": str(HOUR_MS), "message.timestamp.type": "CreateTime"}


@pytest.fixture
def kept_an_hour(new_topic: Callable[..., str]) -> str:
    """Return a topic that keeps for an hour by the times that records are given."""
    return new_topic("quarantined", 1, SETTINGS)


def append(
    kafka: str, topic: str, *records: tuple[dict[str, bytes | None], int], partition: int = 0
) -> None:
    """Append records that have headers and no value, each with its time."""
    producer = Producer({"bootstrap.servers": kafka})
    for headers, at_ms in records:
        producer.produce(
            topic, b"x", partition=partition, headers=list(headers.items()), timestamp=at_ms
        )
    assert producer.flush(10) == 0


def make_anew(broker: Broker, topic: str) -> None:
    """Delete a topic, and create it again under its name."""
    before = topic_id(Kafka(broker.bootstrap), topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(10)

    def is_another() -> bool:
        try:
            return topic_id(Kafka(broker.bootstrap), topic) != before
        except KafkaException:
            broker.create_topics([Topic(topic, 1, SETTINGS)])
            return False

    wait_until(is_another, timeout_s=20, what="the new topic")


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
        vitals.replays = [DoneReplay(8, "acme", Replay(), {0: 2})]
        assert watch.look(vitals).ms == HOUR_MS
        admin = AdminClient({"bootstrap.servers": kafka})
        (deleted,) = admin.delete_records([TopicPartition(kept_an_hour, 0, 3)]).values()
        deleted.result(10)
        with capture_logs() as said:
            self.looked(watch, vitals, waits=False)
        assert [(line["event"], line["copies"]) for line in said] == [("quarantine_lost", 1)]

    def test_a_record_is_taken_in_once(
        self, kafka: str, kept_an_hour: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Looks go on where the one before has ended."""
        taken: list[int] = []
        take = Copies.take

        def noted(copies: Copies, partition: int, offset: int, *rest: Any) -> None:
            taken.append(offset)
            take(copies, partition, offset, *rest)

        monkeypatch.setattr(Copies, "take", noted)
        now_ms = time.time_ns() // 1_000_000
        append(kafka, kept_an_hour, (copy(1), now_ms), (copy(2), now_ms))
        watch, vitals = QuarantineWatch(Kafka(kafka), SystemClock(), kept_an_hour), Vitals()
        self.looked(watch, vitals, waits=True)
        append(kafka, kept_an_hour, (note(1), now_ms), (note(2), now_ms))
        self.looked(watch, vitals, waits=False)
        watch.look(vitals)
        assert taken == [0, 1, 2, 3]

    def test_the_oldest_of_each_partition_is_known(
        self, kafka: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """However many wait in another one that was read before."""
        monkeypatch.setattr(quarantine_watch, "Copies", partial(Copies, 2))
        topic, now_ms = new_topic("quarantined", 2, SETTINGS), time.time_ns() // 1_000_000
        append(kafka, topic, *((copy(n), now_ms) for n in range(3)))
        watch = QuarantineWatch(Kafka(kafka), ManualClock(now_ms), topic)
        vitals = Vitals(replays=())
        assert self.looked(watch, vitals, waits=True).ms == HOUR_MS
        append(kafka, topic, (copy(7), now_ms - 600_000), partition=1)
        wait_until(lambda: watch.look(vitals).ms == 3_000_000, timeout_s=20, what="the older one")
        assert watch._copies._held_in == {0: 1, 1: 1}, "together no more than are held of one"
        append(kafka, topic, (note(7), now_ms), partition=1)
        wait_until(lambda: watch.look(vitals).ms == HOUR_MS, timeout_s=20, what="its note")

    def test_what_there_was_no_room_for_is_read_once_there_is(
        self, kafka: str, kept_an_hour: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At no look is it told that nothing waits."""
        monkeypatch.setattr(quarantine_watch, "Copies", partial(Copies, 2))
        now_ms = time.time_ns() // 1_000_000
        # The third has a note at the end, where it was not held.
        later = [(copy(n), now_ms - (5 - n) * 100_000) for n in range(5)]
        append(kafka, kept_an_hour, *later, (note(2), now_ms))
        watch = QuarantineWatch(Kafka(kafka), ManualClock(now_ms), kept_an_hour)
        vitals = Vitals(replays=())
        assert self.looked(watch, vitals, waits=True).ms == HOUR_MS - 500_000
        vitals.replays = [DoneReplay(8, "acme", Replay(), {0: 2})]
        told: list[int | None] = []

        def is_read() -> bool:
            told.append(watch.look(vitals).ms)
            return told[-1] == HOUR_MS - 200_000

        wait_until(is_read, timeout_s=20, what="the fourth")
        assert set(told) == {HOUR_MS - 300_000, HOUR_MS - 200_000}
        vitals.replays = [DoneReplay(9, "acme", Replay(), {0: 5})]
        self.looked(watch, vitals, waits=False)

    def test_an_emptied_topic_is_warned_of_no_more(
        self, kafka: str, kept_an_hour: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also where there was no room for all that waited: nothing does any more."""
        monkeypatch.setattr(quarantine_watch, "Copies", partial(Copies, 2))
        now_ms = time.time_ns() // 1_000_000
        append(kafka, kept_an_hour, *((copy(n), now_ms - 3_000_000) for n in range(5)))
        watch = QuarantineWatch(Kafka(kafka), ManualClock(now_ms), kept_an_hour)
        vitals = Vitals(replays=())
        assert self.looked(watch, vitals, waits=True).is_short
        admin = AdminClient({"bootstrap.servers": kafka})
        (deleted,) = admin.delete_records([TopicPartition(kept_an_hour, 0, 5)]).values()
        deleted.result(10)
        with capture_logs() as said:
            wait_until(lambda: not watch.look(vitals).is_short, timeout_s=20, what="no warning")
            left = self.looked(watch, vitals, waits=False)
        assert (left.ms, left.is_gone) == (None, False)
        assert [(line["event"], line["copies"]) for line in said] == [("quarantine_lost", 3)]

    def test_a_topic_that_is_made_anew_is_read_from_its_start(
        self, kafka_broker: Broker, kept_an_hour: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was held is lost with the old one, and replays of that have seen none of the new."""
        monkeypatch.setattr(quarantine_watch, "Copies", partial(Copies, 3))
        kafka, now_ms = kafka_broker.bootstrap, time.time_ns() // 1_000_000
        append(kafka, kept_an_hour, *((copy(n), now_ms - 600_000) for n in range(5)))
        watch = QuarantineWatch(Kafka(kafka), ManualClock(now_ms), kept_an_hour)
        former = topic_id(Kafka(kafka), kept_an_hour)
        seen = DoneReplay(8, "acme", Replay(), {0: 1}, former)
        vitals = Vitals(replays=[seen])
        assert self.looked(watch, vitals, waits=True).ms == 3_000_000

        monkeypatch.setattr(quarantine_watch, "READ_S", 0)
        append(kafka, kept_an_hour, (copy(6), now_ms))
        watch.look(vitals)
        begun = watch._walk
        assert begun is not None
        make_anew(kafka_broker, kept_an_hour)
        append(kafka, kept_an_hour, (copy(5), now_ms - 900_000))
        # What an earlier release has replayed does not say of which topic that was.
        vitals.replays = [seen, DoneReplay(9, "acme", Replay(), {0: 3})]
        with capture_logs() as said:
            wait_until(lambda: not self.is_through(watch, vitals), timeout_s=20, what="another id")
            assert watch._walk is not begun, "that was to end where the old one ended"
            monkeypatch.setattr(quarantine_watch, "READ_S", 0.5)
            wait_until(lambda: self.is_through(watch, vitals), timeout_s=20, what="all of it")
        lost = [line["copies"] for line in said if line["event"] == "quarantine_lost"]
        assert lost == [3], "at least: what was not held is known by its first one"
        assert watch.look(vitals).ms == 2_700_000
        here = topic_id(Kafka(kafka), kept_an_hour)
        vitals.replays = [*vitals.replays, DoneReplay(10, "acme", Replay(), {0: 1}, here)]
        assert watch.look(vitals).ms is None

    def test_what_was_replayed_before_the_topic_was_made_anew_hides_nothing(
        self, kafka: str, kept_an_hour: str
    ) -> None:
        """Though an earlier release did not say of which topic that was, and nobody saw it go."""
        now_ms = time.time_ns() // 1_000_000
        append(kafka, kept_an_hour, (copy(1), now_ms - 3_000_000), (copy(2), now_ms - 600_000))
        watch = QuarantineWatch(Kafka(kafka), ManualClock(now_ms), kept_an_hour)
        done = DoneReplay(8, "acme", Replay(), {0: 5_000}, done_ms=now_ms - 1_000_000)
        left = self.looked(watch, Vitals(replays=[done]), waits=True)
        assert left.ms == HOUR_MS - 600_000

    def is_through(self, watch: QuarantineWatch, vitals: Vitals) -> bool:
        """Look, whatever the broker says just then; tell whether all was read."""
        with suppress(KafkaException):
            watch.look(vitals)
        return watch.is_through

    def test_a_driver_tells_it_once_it_knows_of_replays(
        self, kafka: str, kept_an_hour: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not before, and not before all was read: all of them may have been looked into."""
        monkeypatch.setattr(quarantine_watch, "READ_S", 0)
        old_ms = time.time_ns() // 1_000_000 - 3_000_000
        append(kafka, kept_an_hour, (copy(1), old_ms))
        watch = QuarantineWatch(Kafka(kafka), SystemClock(), kept_an_hour)
        vitals = Vitals(replays=())
        with running(watch, vitals, monkeypatch) as wait_looks:
            wait_looks()
            assert (watch.is_through, vitals.quarantine_left) == (False, None)
        assert watch._walk is None, "it was told to stop, and reads no more"
        vitals.replays = None
        monkeypatch.setattr(quarantine_watch, "READ_S", 0.5)
        with capture_logs() as said, running(watch, vitals, monkeypatch) as wait_looks:
            wait_until(lambda: watch.is_through, timeout_s=20, what="all of the topic")
            wait_looks()
            assert vitals.quarantine_left is None
            vitals.replays = ()
            wait_until(lambda: vitals.quarantine_left, timeout_s=20, what="what is left")
            wait_looks()
            vitals.replays = [DoneReplay(8, "acme", Replay(), {0: 1})]
            wait_until(
                lambda: vitals.quarantine_left == LogLeft(waiting=0), timeout_s=20, what="none"
            )
            wait_looks()
        assert [line["event"] for line in said] == ["quarantine_running_out", "quarantine_lasts"]
        told = {name: said[0][name] for name in ("left_ms", "kept_ms")}
        assert told == {"left_ms": pytest.approx(600_000, abs=20_000), "kept_ms": HOUR_MS}


@pytest.mark.kafka
def test_a_replay_says_of_which_topic_it_is(
    kafka: str,
    tmp_path: Path,
    new_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By its id: one that is made anew under the name has other copies at the same places."""
    for name in ("EVENTS", "QUARANTINE"):
        monkeypatch.setattr(names, name, new_topic(name.lower(), 1, {}))
    log = Log(settings_for(tmp_path, kafka), World(kafka, "redis://127.0.0.1:1/0"))
    assert Run(log).facts()["quarantine_id"] == topic_id(Kafka(kafka), names.QUARANTINE)


@contextmanager
def running(
    watch: QuarantineWatch, vitals: Vitals, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], None]]:
    """Run a watch in a thread; give what waits until some more of its looks have been told."""
    looks: list[LogLeft] = []
    look, stop = watch.look, threading.Event()

    def counted(vitals: Vitals) -> LogLeft:
        looks.append(look(vitals))
        return looks[-1]

    def wait_looks() -> None:
        until = len(looks) + 3
        wait_until(lambda: len(looks) >= until, timeout_s=20, what="some looks")

    monkeypatch.setattr(quarantine_watch, "LOOK_S", 0.01)
    monkeypatch.setattr(watch, "look", counted)
    thread = threading.Thread(target=watch.run, args=(vitals, stop))
    thread.start()
    try:
        yield wait_looks
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def test_what_was_seen_long_ago_is_told_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure that stands still would be taken for the present one."""
    clock, vitals = ManualClock(0), Vitals(replays=())
    watch = QuarantineWatch(Kafka("127.0.0.1:1"), clock, "quarantined")
    watch.is_through = True
    left = LogLeft(0, 5, HOUR_MS)
    answers: list[LogLeft | Exception] = [left, TimeoutError()]

    def look(_vitals: Vitals) -> LogLeft:
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(watch, "look", look)
    told: list[LogLeft | None] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            told.append(vitals.quarantine_left)
            clock.advance(round((timeout or 0) * 1000))
            if len(told) == 7:
                self.set()
            return self.is_set()

    watch.run(vitals, Stop())
    assert told == [left] * 5 + [None] * 2
