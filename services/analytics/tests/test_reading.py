"""A log that is read twice while retention takes of it, on a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from weir import names
from weir.clock import SystemClock
from weir.definitions.check import check
from weir.definitions.history import Horizons
from weir.definitions.metric import Metric
from weir.kafka import Kafka
from weir_analytics.jobs.ledger_recount import LedgerRecount
from weir_analytics.jobs.reach import margins
from weir_analytics.jobs.reading import Reading, Recounted
from weir_analytics.jobs.recount import Part, Recount, Terms
from weir_analytics.jobs.sample import Audited, PaneAt
from weir_analytics.jobs.task import RefusedError
from weir_analytics.jobs.walk import Walk
from weir_analytics.panes.log_offsets import LogOffsets

from .log_frames import EVENT, event

pytestmark = pytest.mark.kafka

HOUR_MS = 3_600_000
FIRST_MS = 1_700_000_000_000 // HOUR_MS * HOUR_MS
HOURS = 60
HORIZON_MS = HOUR_MS
TERMS = Terms((Horizons({}, HORIZON_MS, 400 * 24 * HOUR_MS),))
TEXT = "kind: metric\nname: amount\nevents: {type: t}\nresolution: 1h\nkeep: {1h: 90d}\n"


@dataclass
class HourlyLog:
    """A topic of two partitions; each has an event an hour, of a tenant acme."""

    kafka: str
    topic: str

    def send(self, **options: str) -> None:
        """Fill it; in a transaction if a name of one is given."""
        producer = Producer({"bootstrap.servers": self.kafka, **options})
        if options:
            producer.init_transactions(20)
        for hour in range(HOURS):
            if options:
                producer.begin_transaction()
            for partition in range(2):
                at_ms = FIRST_MS + hour * HOUR_MS
                value = event(f"{partition}/{hour}", at_ms)
                headers: list[tuple[str, str | bytes | None]] = [*EVENT]
                producer.produce(
                    self.topic, value, partition=partition, timestamp=at_ms, headers=headers
                )
            if options:
                producer.commit_transaction(20)
        assert producer.flush(20) == 0

    def take(self, partition: int, before: int) -> None:
        """Take the first records of a partition away, as retention does."""
        admin = AdminClient({"bootstrap.servers": self.kafka})
        (taken,) = admin.delete_records([TopicPartition(self.topic, partition, before)]).values()
        taken.result(10)

    def read(
        self, walks: Callable[[Mapping[int, int], Mapping[int, int]], list[Walk]]
    ) -> tuple[Recounted, Recounted]:
        """Count each hour again, and its first minute of the ledger."""
        log = LogOffsets(Kafka(self.kafka), self.topic)
        begin, end = log.ends()
        both = walks(begin, end)
        panes = {PaneAt(5, 3600, (FIRST_MS + n * HOUR_MS) // 1000): end for n in range(HOURS)}
        minutes = {PaneAt(-1, 60, pane.start_s): end for pane in panes}
        model = check("metric", "amount", TEXT).model
        assert isinstance(model, Metric)
        version = Audited(5, "acme", "amount", 1, model, {}, None, {})
        again = Recount([Part(version, panes)], TERMS)
        ledger = LedgerRecount("acme", minutes, TERMS, 1_000)
        before = margins(HORIZON_MS)
        found = (
            Recounted(again, again.panes, panes, before.pane_ms),
            Recounted(ledger, ledger.minutes, minutes, before.minute_ms),
        )
        reading, until_s = Reading(log, both, (begin, end), found), time.monotonic() + 60
        try:
            while not reading.step(SystemClock(), lambda: False):
                assert time.monotonic() < until_s
        finally:
            reading.close()
        return found

    def walk(self, begin: Mapping[int, int], end: Mapping[int, int]) -> Walk:
        """Return one over the whole log."""
        return Walk(Kafka(self.kafka), self.topic, begin, end, 100)


@pytest.fixture
def log(kafka: str, new_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> HourlyLog:
    """Return a log of this test's own, in which records have the time of their events."""
    topic = new_topic("events", 2, {"message.timestamp.type": "CreateTime", "retention.ms": "-1"})
    monkeypatch.setattr(names, "EVENTS", topic)
    return HourlyLog(kafka, topic)


def hours(panes: Mapping[PaneAt, Any] | set[PaneAt]) -> list[int]:
    """Return the hours of some panes."""
    return sorted((1000 * pane.start_s - FIRST_MS) // HOUR_MS for pane in panes)


def test_what_is_gone_costs_what_lacks_it(log: HourlyLog) -> None:
    """Partition 1 loses its first ten hours before anything is read; all else is counted right."""
    log.send()

    def walks(begin: Mapping[int, int], end: Mapping[int, int]) -> list[Walk]:
        log.take(1, 10)
        return [log.walk(begin, end) for _ in range(2)]

    panes, minutes = log.read(walks)
    # Behind the gap stands what came in hour 10; a pane needs 24 hours before it, a minute one.
    assert hours(panes.overtaken) == list(range(35))
    assert hours(minutes.overtaken) == list(range(12))
    assert (hours(panes.held), hours(minutes.held)) == ([*range(35, HOURS)], [*range(12, HOURS)])
    assert {sum(one.n for one in counted.values()) for counted in panes.held.values()} == {2}
    assert {counted.total() for counted in minutes.held.values()} == {2}


def test_what_is_gone_before_the_second_passage_costs_as_much(log: HourlyLog) -> None:
    """The first one has read it; what has expected it is left out all the same."""
    log.send()

    class Later(Walk):
        """A walk that begins to fetch when it is read."""

        def each(self, take: Any, is_over: Callable[[], bool]) -> bool:
            log.take(0, 10)
            return log.walk(*bounds).each(take, is_over)

    bounds: tuple[Mapping[int, int], Mapping[int, int]] = {}, {}

    def walks(begin: Mapping[int, int], end: Mapping[int, int]) -> list[Walk]:
        nonlocal bounds
        bounds = begin, end
        return [log.walk(begin, end), Later(Kafka(log.kafka), log.topic, begin, end)]

    panes, minutes = log.read(walks)
    assert (hours(panes.overtaken), hours(minutes.overtaken)) == ([*range(35)], [*range(12)])
    assert {sum(one.n for one in counted.values()) for counted in panes.held.values()} == {2}


def test_where_all_is_gone_nothing_is_compared(log: HourlyLog) -> None:
    """A partition of which nothing is left costs every pane that was looked at behind it."""
    log.send()

    def walks(begin: Mapping[int, int], end: Mapping[int, int]) -> list[Walk]:
        log.take(1, HOURS)
        return [log.walk(begin, end) for _ in range(2)]

    with pytest.raises(RefusedError, match="retention has taken something of all its 120 panes"):
        log.read(walks)


def test_holes_that_were_always_there_cost_nothing(log: HourlyLog) -> None:
    """A transaction ends with a record that nobody is given; the log begins before it."""
    log.send(**{"transactional.id": log.topic})
    panes, minutes = log.read(lambda begin, end: [log.walk(begin, end) for _ in range(2)])
    assert (panes.overtaken, minutes.overtaken) == (set(), set())
    assert {sum(one.n for one in counted.values()) for counted in panes.held.values()} == {2}
    assert len(minutes.held) == len(panes.held) == HOURS


def test_where_nothing_is_held_no_more_is_read(log: HourlyLog) -> None:
    """The last pane goes where there is no room for its first event; what follows stays unread."""
    log.send()
    offsets = LogOffsets(Kafka(log.kafka), log.topic)
    begin, end = offsets.ends()
    minutes = {PaneAt(-1, 60, (FIRST_MS + n * HOUR_MS) // 1000): end for n in range(5)}
    again = LedgerRecount("acme", minutes, TERMS, 0)
    walks = [Walk(Kafka(log.kafka), log.topic, begin, end, 1) for _ in range(2)]
    found = Recounted(again, again.minutes, minutes, margins(HORIZON_MS).minute_ms)
    reading, until_s = Reading(offsets, walks, (begin, end), [found]), time.monotonic() + 60
    try:
        while not reading.step(SystemClock(), lambda: False):
            assert time.monotonic() < until_s
    finally:
        reading.close()
    first, second = (walk.progress for walk in walks)
    assert again.minutes == {}
    assert (5 <= first.at < first.of == 2 * HOURS, second.at) == (True, 0)


@dataclass
class Interrupted:
    """A consumer that meets an error behind so many records, once, and has gone on behind it."""

    real: Consumer
    behind: int

    def consume(self, most: int, timeout: float) -> list[Any]:
        """Consume some."""
        found: list[Any] = list(self.real.consume(most, timeout=timeout))
        if 0 <= self.behind < len(found):
            found.insert(self.behind, Failure())
            self.behind = -1
        return found

    def __getattr__(self, name: str) -> Any:
        """Do all else as the real one does."""
        return getattr(self.real, name)


class Failure:
    """What a consumer gives out in place of a record."""

    def error(self) -> KafkaError:
        """Return what went wrong."""
        return KafkaError(KafkaError._TIMED_OUT)

    def partition(self) -> int:
        """Return where."""
        return 0

    def offset(self) -> int:
        """Return at which record."""
        return 3


@pytest.mark.parametrize("behind", [0, 1, 40])
def test_an_error_passes_nothing_over(log: HourlyLog, behind: int) -> None:
    """What came before it is given out, what came behind it is fetched again; each record once."""
    log.send()
    walk = log.walk(*LogOffsets(Kafka(log.kafka), log.topic).ends())
    walk._consumer = Interrupted(walk._consumer, behind)  # type: ignore[assignment]
    found, errors, until_s = list[Any](), 0, time.monotonic() + 60
    while not walk.done:
        assert time.monotonic() < until_s
        try:
            found += [(one.partition(), one.offset()) for one in walk.read()]
        except KafkaException:
            errors += 1
    walk.close()
    assert errors == (behind == 0)
    assert sorted(found) == [(p, n) for p in range(2) for n in range(HOURS)]
