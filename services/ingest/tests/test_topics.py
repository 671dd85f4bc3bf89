"""The topics that an installation wants: what is done, what is never done, on a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from weir.kafka import Kafka
from weir.topics import DAY_MS, Sizes, Topic, topics
from weir_ingest.topics.broker import Topics
from weir_ingest.topics.plan import Allowed, Found, Wanted, plan
from weir_local.kafka import Broker
from weir_local.ports import free_port

WEEK = str(7 * DAY_MS)
EVENTS = Wanted(Topic("weir.events", 6, {"retention.ms": WEEK}), replication=3, min_isr=2)


def found(
    partitions: int = 6, replication: int = 3, retention_ms: str = WEEK, min_isr: str = "2"
) -> Found:
    """Return a topic as wanted, or other in one thing."""
    config = {"retention.ms": retention_ms, "min.insync.replicas": min_isr}
    return Found(partitions, replication, config)


class TestPlan:
    def test_one_that_is_missing_is_created(self) -> None:
        """It gets all settings at once, the number of acknowledging replicas too."""
        one = plan(EVENTS, None, Allowed())
        assert (one.create, one.is_done) == (True, False)
        assert one.config == {"retention.ms": WEEK, "min.insync.replicas": "2"}

    def test_one_that_is_as_wanted_is_left(self) -> None:
        """Nothing is done, nothing is told."""
        one = plan(EVENTS, found(), Allowed(grow=True, shorten=True))
        assert (one.is_done, one.kept, one.refused) == (True, (), ())

    @pytest.mark.parametrize("longer", ["-1", str(8 * DAY_MS)])
    def test_a_retention_is_raised_and_never_shortened_unasked(self, longer: str) -> None:
        """Longer is taken at once, for ever too; shorter only with the flag, which is named."""
        asked = Wanted(Topic("weir.events", 6, {"retention.ms": longer}), 3, 2)
        assert plan(asked, found(), Allowed()).config == {"retention.ms": longer}
        less = plan(EVENTS, found(retention_ms=longer), Allowed())
        assert (less.is_done, less.refused) == (True, ())
        told = f"retention.ms {longer}, asked for {WEEK}; --allow-shorten shortens it, and"
        assert less.kept[0].startswith(told)
        assert plan(EVENTS, found(retention_ms=longer), Allowed(shorten=True)).config == {
            "retention.ms": WEEK
        }

    def test_partitions_are_added_only_when_allowed(self) -> None:
        """Fewer than asked is refused without the flag; more than asked stays."""
        few = plan(EVENTS, found(partitions=5), Allowed())
        assert few.partitions is None
        assert few.refused[0].startswith("partitions 5, asked for 6; --allow-grow adds them")
        assert plan(EVENTS, found(partitions=5), Allowed(grow=True)).partitions == 6
        many = plan(EVENTS, found(partitions=7), Allowed(grow=True))
        assert (many.is_done, many.refused) == (True, ())
        assert many.kept == ("partitions 7, asked for 6; they never become fewer",)

    def test_acknowledging_replicas_are_raised_as_far_as_there_are_replicas(self) -> None:
        """One more than there are would stop all writing; fewer would weaken a promise."""
        assert plan(EVENTS, found(min_isr="1"), Allowed()).config == {"min.insync.replicas": "2"}
        single = plan(EVENTS, found(replication=1, min_isr="1"), Allowed())
        assert single.config == {}
        assert single.refused[0].startswith("replication 1, asked for 3; move it with")
        assert plan(EVENTS, found(min_isr="3"), Allowed()).config == {}

    def test_another_clean_up_or_clock_is_set_right(self) -> None:
        """A topic that somebody made by hand gets the log's own times and no compaction."""
        events = Wanted(topics(Sizes())[0])
        other = {**events.topic.config, "message.timestamp.type": "CreateTime"}
        one = plan(events, Found(6, 1, {**other, "cleanup.policy": "compact"}), Allowed())
        assert one.config == {
            "message.timestamp.type": "LogAppendTime",
            "cleanup.policy": "delete",
        }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Return a broker without topics: those of the session's are shared, and stay as they are."""
    broker = Broker(tmp_path_factory.mktemp("topics"))
    broker.start()
    yield broker
    broker.kill()


def environment(bootstrap: str, **settings: object) -> dict[str, str]:
    """Return the command's environment with some settings."""
    mine = {f"WEIR_TOPICS_{name.upper()}": str(value) for name, value in settings.items()}
    return {**os.environ, "WEIR_TOPICS_KAFKA_BOOTSTRAP": bootstrap, **mine}


def apply(
    bootstrap: str, *flags: str, code: int = 0, **settings: object
) -> subprocess.CompletedProcess[str]:
    """Run the command; assert its exit code."""
    done = subprocess.run(  # noqa: S603  the command is ours
        [sys.executable, "-m", "weir_ingest.topics", "apply", *flags],
        env=environment(bootstrap, **settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_a_setting_that_is_wrong_is_named() -> None:
    """All that is wrong is told at once by variable, and nothing is done."""
    done = apply("", code=2, events_days="0", replication_factor="many")
    assert "WEIR_TOPICS_EVENTS_DAYS: " in done.stderr
    assert "WEIR_TOPICS_REPLICATION_FACTOR: " in done.stderr
    assert done.stdout == ""


def test_brokers_that_do_not_answer_are_told_in_time() -> None:
    """At the deadline it ends with what the client last said."""
    began_s = time.monotonic()
    done = apply(f"127.0.0.1:{free_port()}", code=1, wait_s=1)
    assert "weir: the topics must be as wanted within 1 s, found: " in done.stderr
    assert time.monotonic() - began_s < 30


@pytest.mark.kafka
class TestApply:
    def test_from_nothing_and_again(self, broker: Broker) -> None:
        """Every topic is there as wanted; the second run changes nothing and says so."""
        first = apply(broker.bootstrap).stdout
        wanted = topics(Sizes())
        names = [topic.name for topic in wanted]
        assert [line for line in first.splitlines() if line.startswith("created")] == [
            f"created  {name}" for name in names
        ]
        there = Topics(Kafka(broker.bootstrap)).read(names)
        for topic in wanted:
            one = there[topic.name]
            assert (one.partitions, one.replication) == (topic.partitions, 1)
            assert topic.config.items() <= one.config.items()
            assert one.config["min.insync.replicas"] == "1"
        again = apply(broker.bootstrap).stdout
        assert {line.split()[0] for line in again.splitlines()} == {"read"}
        assert (
            "read     weir.definitions: 1 partitions, 1 replicas, cleanup.policy=delete "
            "retention.ms=-1 retention.bytes=-1 message.timestamp.type=LogAppendTime"
        ) in again

    def test_what_is_there_grows_and_never_shrinks_unasked(self, broker: Broker) -> None:
        """Retention is raised; partitions and a shorter retention need their flag."""
        apply(broker.bootstrap)
        raised = apply(broker.bootstrap, quarantine_days=60)
        assert (
            f"changed  weir.quarantine: retention.ms {30 * DAY_MS} -> {60 * DAY_MS}"
            in raised.stdout
        )
        kept = apply(broker.bootstrap, quarantine_days=30)
        assert f"kept     weir.quarantine: retention.ms {60 * DAY_MS}, asked for" in kept.stdout
        refused = apply(broker.bootstrap, code=3, events_partitions=7)
        assert "refused  weir.events: partitions 6, asked for 7; --allow-grow" in refused.stdout

        both = apply(broker.bootstrap, "--allow-grow", "--allow-shorten", events_partitions=7)
        assert "changed  weir.events: partitions 6 -> 7" in both.stdout
        read = Topics(Kafka(broker.bootstrap)).read(["weir.events", "weir.quarantine"])
        assert read["weir.events"].partitions == 7
        assert read["weir.quarantine"].config["retention.ms"] == str(30 * DAY_MS)

    def test_records_and_other_topics_stay(self, broker: Broker) -> None:
        """What was written is there after a run, and a topic of somebody else is not touched."""
        broker.create_topics([Topic("of.somebody.else", 2, {"retention.ms": "1000"})])
        apply(broker.bootstrap)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
        producer.produce("weir.corrections", b"kept")
        assert producer.flush(10) == 0
        apply(broker.bootstrap, corrections_days=91)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        other = Topics(Kafka(broker.bootstrap)).read(["of.somebody.else"])
        assert other["of.somebody.else"].partitions == 2
        assert other["of.somebody.else"].config["retention.ms"] == "1000"
        assert len(admin.list_topics(timeout=10).topics["weir.corrections"].partitions) == 1

    def test_fewer_replicas_than_asked_is_told(self, broker: Broker) -> None:
        """Topics that are there with one replica keep it, and each is named."""
        apply(broker.bootstrap)
        done = apply(broker.bootstrap, code=3, replication_factor=3)
        assert done.stdout.count("replication 1, asked for 3; move it with") == 5

    def test_two_at_once_do_no_harm(self, tmp_path: Path) -> None:
        """Both end well on an empty broker that is still starting, and all topics are there.

        Before, one run on the same broker asks for more replicas than there are brokers: it
        waits for them, says at its deadline why it could not go on, and has made nothing.
        """
        broker = Broker(tmp_path / "late")
        broker.start()
        done = apply(broker.bootstrap, code=1, replication_factor=3, wait_s=1)
        assert "must be as wanted within 1 s, found: " in done.stderr
        assert "replication factor" in done.stderr
        broker.stop()
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "weir_ingest.topics", "apply"],
                env=environment(broker.bootstrap),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for _ in range(2)
        ]
        try:
            broker.start()
            written = [process.communicate(timeout=120)[0] for process in running]
        finally:
            for process in running:
                process.kill()
            broker.kill()
        assert [process.returncode for process in running] == [0, 0], written
        names = [topic.name for topic in topics(Sizes())]
        assert all(text.count("read ") == len(names) for text in written)
        created = [line for text in written for line in text.splitlines() if "created" in line]
        assert sorted(created) == sorted(f"created  {name}" for name in names)
