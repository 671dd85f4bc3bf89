"""Where dedup runs are kept, and how a state is read back from the log without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from weir.clock import SystemClock
from weir.event import placed
from weir.kafka import Kafka
from weir_analytics.panes import history
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.dedup import PartitionState
from weir_analytics.panes.holes import Hole
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.runs import NEVER, Identities, Run, identity_order, write_run
from weir_analytics.panes.states import (
    dedup_folder,
    forget_lanes,
    received_before,
    state_before,
)
from weir_local.waiting import wait_until

from .log_frames import EVENT, batch_of, event

NewTopic = Callable[[str, int, dict[str, str]], str]


@pytest.mark.parametrize("topic_id", ["/zM3ftIlTvCjGcdSGGqfow", "zM3f/IlTv/CjGcdSGGqfow", "zM3+"])
def test_an_id_of_the_log_names_one_folder(topic_id: str, tmp_path: Path) -> None:
    """An id is base64: as it is, one in 64 began at the root of the disk."""
    live = replace(batch_of(tmp_path, 1), topic_id=topic_id)
    lane = replace(live, lane="7")
    for batch in (live, lane):
        dedup_folder(batch, 0).mkdir(parents=True)

    (log,) = tmp_path.iterdir()
    assert {folder.name for folder in log.iterdir()} == {"live", "7"}
    forget_lanes(log, {"live"})
    assert {folder.name for folder in log.iterdir()} == {"live"}


@dataclass
class Log:
    """A log of one partition whose dedup runs are lost.

    Attributes:
        folder: Where runs are kept; there are none.
        bootstrap: Where its broker is.
        topic: Its name.
    """

    folder: Path
    bootstrap: str
    topic: str

    def append(self, *ids: str, transaction: str | None = None) -> None:
        """Append events; a transaction ends in a marker, which is no record."""
        options: dict[str, Any] = {"bootstrap.servers": self.bootstrap}
        if transaction is not None:
            options["transactional.id"] = transaction
        producer = Producer(options)
        if transaction is not None:
            producer.init_transactions(30)
            producer.begin_transaction()
        for one in ids:
            producer.produce(self.topic, event(one), b"k", headers=list(EVENT))
        producer.flush(30)
        if transaction is not None:
            end = self.end() + 1
            producer.commit_transaction(30)
            # The broker answers before it writes the marker.
            wait_until(lambda: self.end() == end, timeout_s=30, what="the marker")

    def fill(self, segments: int) -> None:
        """Append what is no event, a record in each of some segments of the least size."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for _ in range(segments):
            producer.produce(self.topic, b"x" * 600_000, b"k")
            producer.flush(30)

    def end(self) -> int:
        """Return the offset of the next record."""
        _start, end = LogOffsets(Kafka(self.bootstrap), self.topic).ends()
        return end[0]

    def retain_from(self, offset: int) -> None:
        """Take the records before an offset, as retention does."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        place = TopicPartition(self.topic, 0, offset)
        (done,) = admin.delete_records([place]).values()
        done.result(30)

    def batch(self, start: int, *lost: Hole) -> Batch:
        """Return a batch of one record."""
        return batch_of(
            self.folder,
            start + 1,
            start={0: start},
            topic=self.topic,
            kafka_bootstrap=self.bootstrap,
            lost=lost,
        )


def known(state: PartitionState, *ids: str) -> list[bool]:
    """Return which events a state calls repeats now."""
    digests = b"".join(placed(event(one)).digest for one in ids)
    pairs = np.frombuffer(digests, ">u8").astype(np.uint64)
    now_ms = np.full(len(ids), SystemClock().now_ms(), np.int64)
    order = state.repeats(pairs[0::2], pairs[1::2], now_ms, np.full(len(ids), 3_600_000))
    return [bool(one) for one in order]


@pytest.fixture
def log(kafka: str, new_topic: NewTopic, tmp_path: Path) -> Log:
    """Return an empty log."""
    topic = new_topic("states", 1, {"message.timestamp.type": "LogAppendTime"})
    return Log(tmp_path, kafka, topic)


@pytest.mark.kafka
class TestReadBack:
    """Without its runs a state is read from the log again."""

    def test_who_leads_is_known_before_offsets_are_asked_for(
        self, log: Log, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A new client that learns it meanwhile may miss that, and waits for three seconds."""
        asked: list[str] = []

        class Seen(AdminClient):
            def list_topics(self, *given: Any, **named: Any) -> Any:
                asked.append("topics")
                return super().list_topics(*given, **named)

            def list_offsets(self, *given: Any, **named: Any) -> Any:
                asked.append("offsets")
                return super().list_offsets(*given, **named)

        monkeypatch.setattr(history, "AdminClient", Seen)
        log.append("a")
        state_before(log.batch(1), 0, SystemClock().now_ms())
        assert asked[:2] == ["topics", "offsets"]

    def test_what_was_seen_is_known(self, log: Log) -> None:
        """Every event before the batch, and no other; and it is read once."""
        log.append("a", "b", "c", "d")
        now_ms = SystemClock().now_ms()
        state, holes = state_before(log.batch(3), 0, now_ms)
        assert (known(state, "a", "c", "e"), holes) == ([True, True, False], [])
        (run,) = log.folder.rglob("*.run")
        assert run.name == f"{0:020d}-{3:020d}.run"

    def test_what_a_trial_has_read_is_not_read_again(self, log: Log) -> None:
        """It may be an hour of the log, and who counts then has everybody wait."""
        log.append("a", "b", "c", "d")
        state, _ = state_before(replace(log.batch(3), dry=True), 0, SystemClock().now_ms())
        assert known(state, "a", "c", "e") == [True, True, False]
        (run,) = log.folder.rglob("*.run")
        assert run.name == f"{0:020d}-{3:020d}.run"

    def test_records_that_lack_are_told(self, log: Log) -> None:
        """A repeat of one of them would be counted twice; so nothing is kept of the rest."""
        log.append("a", "b", transaction="small")
        log.append("c", "d")
        _state, holes = state_before(log.batch(4), 0, SystemClock().now_ms())
        assert holes == [Hole(0, 2, 2)]
        assert not list(log.folder.rglob("*.run"))

    def test_what_is_lost_is_not_looked_for(self, log: Log) -> None:
        """It was told, and panes that it may touch are incomplete; the others are known."""
        log.append("a", "b", transaction="given_up")
        log.append("c", "d")
        state, holes = state_before(log.batch(4, Hole(0, 2, 2)), 0, SystemClock().now_ms())
        assert (known(state, "a", "b", "c", "e"), holes) == ([True, True, True, False], [])
        assert list(log.folder.rglob("*.run"))

    def test_what_retention_took_is_no_hole(self, log: Log) -> None:
        """What is left is read: of what is gone nobody knows any more."""
        log.append("a", "b", "c", "d")
        log.retain_from(2)
        state, holes = state_before(log.batch(3), 0, SystemClock().now_ms())
        assert (known(state, "a", "b", "c"), holes) == ([False, False, True], [])

    def test_behind_a_segment_that_is_deleted_all_is_known(
        self, kafka: str, new_topic: NewTopic, tmp_path: Path
    ) -> None:
        """Its file is there for minutes, and until then a broker finds no record of any time."""
        settings = {"message.timestamp.type": "LogAppendTime", "segment.bytes": "1048576"}
        log = Log(tmp_path, kafka, new_topic("states", 1, settings))
        log.fill(segments=2)
        log.append("a", "b", "c")
        log.retain_from(1)
        state, holes = state_before(log.batch(4), 0, SystemClock().now_ms())
        assert (known(state, "a", "b", "c"), holes) == ([True, True, False], [])

    def test_nothing_may_be_left(self, log: Log) -> None:
        """Retention has come up to the batch itself."""
        log.append("a", "b", "c", "d")
        log.retain_from(3)
        state, holes = state_before(log.batch(3), 0, SystemClock().now_ms())
        assert (known(state, "a"), holes) == ([False], [])


@pytest.mark.kafka
def test_a_log_that_was_cut_short_has_other_runs(log: Log) -> None:
    """Under its id those of records that are gone are kept: the longest would be taken for it."""
    log.append("a", "b", "c", "d")
    now_ms, batch = SystemClock().now_ms(), log.batch(3)
    gone = b"".join(placed(event(one)).digest for one in ("a", "gone"))
    pairs = np.frombuffer(gone, ">u8").astype(np.uint64)
    high, low = pairs[0::2], pairs[1::2]
    order = identity_order(high, low)
    seen = Identities.of_ordered(high[order], low[order], np.full(2, now_ms, np.int64))
    write_run(dedup_folder(batch, 0), Run(0, 3, NEVER, now_ms, seen), batch.horizon_ms)
    stale, _ = state_before(batch, 0, now_ms)
    assert known(stale, "a", "b", "c", "gone") == [True, False, False, True]

    after = replace(batch, cut_epoch=7)
    assert received_before(after) == {}
    state, holes = state_before(after, 0, now_ms)

    assert (known(state, "a", "b", "c", "gone"), holes) == ([True, True, True, False], [])
    assert Batch.from_json(after.to_json()) == after
