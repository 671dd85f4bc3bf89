"""Which partitions are due for a tick: both sides of every edge, by a clock of the test."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from weir.clock import SystemClock
from weir.kafka import Kafka
from weir_analytics.panes.ticks import (
    CLOCK_S,
    IDLE_AFTER_S,
    MOST_TICKS,
    QUIET_S,
    BrokerClocks,
    LogEnds,
    Quiet,
    Ticker,
)
from weir_local.waiting import wait_until


def tick(quiet: Quiet, ends: dict[int, int], now_s: float) -> list[int]:
    """Observe, and store a tick in each partition that is due."""
    due = quiet.observe(ends, now_s)
    for partition in due:
        quiet.ticked(partition, ends[partition], now_s)
        ends[partition] += 1
    return due


class TestBrokerClocks:
    @pytest.mark.parametrize(
        ("later_ms", "by_ms"),
        [
            (1_000, 0),
            (6_000, 0),
            (6_101, 5_001),
            (3_601_000, 3_599_900),
            (-4_000, 0),
            (-4_101, -5_001),
            (-3_599_000, -3_599_900),
        ],
    )
    def test_a_step_is_told_by_the_least_that_it_was(self, later_ms: int, by_ms: int) -> None:
        """A tick a second later, each a tenth under way: less than that nobody can know."""
        clocks = BrokerClocks()
        assert clocks.stepped_ms(0, 1_000, 1.0, 1.1) == 0
        assert clocks.stepped_ms(0, 1_000 + later_ms, 2.0, 2.1) == by_ms
        assert clocks.stepped_ms(0, 2_000 + later_ms, 3.0, 3.1) == 0, "it is told once"
        assert clocks.stepped_ms(1, 99_999, 3.0, 3.1) == 0, "each broker has its own"

    def test_an_answer_that_comes_late_is_no_step(self) -> None:
        """As long as it may be under way."""
        clocks = BrokerClocks()
        times = [(1_000, 1.0, 1.1), (2_000, 2.0, 12.0), (12_050, 12.0, 12.1), (13_100, 13.0, 13.2)]
        assert [clocks.stepped_ms(0, *one) for one in times] == [0] * 4


class TestQuiet:
    def test_a_partition_seen_for_the_first_time_is_ticked_at_once(self) -> None:
        """At start nothing is known of a partition; a tick makes its time known."""
        assert tick(Quiet(), {0: 5, 1: 0}, 0.0) == [0, 1]

    def test_its_own_tick_is_no_news(self) -> None:
        """A quiet partition gets a tick each second, not at each look."""
        quiet, ends = Quiet(), {0: 5}
        due = [tick(quiet, ends, at * QUIET_S) for at in range(5)]

        assert due == [[0], [], [0], [], [0]]

    @pytest.mark.parametrize(("later_s", "due"), [(QUIET_S - 0.01, []), (QUIET_S, [0])])
    def test_a_partition_with_news_waits_until_it_is_quiet(
        self, later_s: float, due: list[int]
    ) -> None:
        """A tick comes half a second after the last record, not before."""
        quiet, ends = Quiet(), {0: 5}
        tick(quiet, ends, 0.0)
        ends[0] = 9
        assert tick(quiet, ends, 5.0) == []

        assert tick(quiet, ends, 5.0 + later_s) == due

    def test_one_that_is_never_quiet_tells_its_clock_now_and_then(self) -> None:
        """Or nobody would hear of a broker's clock that steps under load."""
        quiet, ends, due = Quiet(), {0: 5}, []
        for look in range(2 * round(2 * CLOCK_S) + 1):
            ends[0] += 3
            due += [look * QUIET_S for _ in tick(quiet, ends, look * QUIET_S)]

        assert due == [0.0, CLOCK_S, 2 * CLOCK_S]

    def test_ticks_behind_the_last_event_are_not_waited_for(self) -> None:
        """The end that counts for lag is the one that somebody else's record made."""
        quiet, ends = Quiet(), {0: 5}
        for at_s in range(4):
            tick(quiet, ends, float(at_s))
        assert (ends, quiet.news) == ({0: 9}, {0: 5})
        ends[0] += 2
        quiet.observe(ends, 4.0)
        assert quiet.news == {0: 11}

    def test_ticks_before_the_last_event_do_not_wait_either(self) -> None:
        """Of what is not counted those are left out that were written here, wherever they lie."""
        quiet, ends = Quiet(), {0: 5, 1: 0}
        for at_s in range(4):
            tick(quiet, ends, float(at_s))
        ends[0] += 2
        quiet.observe(ends, 4.0)
        log = LogEnds(dict(ends), dict(quiet.news), ticks=quiet.ticks)
        assert (quiet.news, ends) == ({0: 11, 1: 0}, {0: 11, 1: 4})
        assert [log.waiting({0: n}) for n in (3, 5, 7, 9, 10, 11, 12)] == [4, 2, 2, 2, 1, 0, 0]

    def test_what_is_counted_is_forgotten(self) -> None:
        """And of what is not the oldest, so that no stall fills memory; of another log, all."""
        quiet = Quiet()
        for offset in (5, 6, 9):
            quiet.ticked(0, offset, 0.0)
        quiet.forget({0: 6})
        assert list(quiet.ticks[0]) == [6, 9]
        for offset in range(10, 10 + MOST_TICKS):
            quiet.ticked(0, offset, 0.0)
        assert (len(quiet.ticks[0]), quiet.ticks[0][0]) == (MOST_TICKS, 10)
        quiet.ticked(0, 0, 0.0)
        assert list(quiet.ticks[0]) == [0]

    def test_after_a_minute_of_ticks_every_second_one_is_left_out(self) -> None:
        """An idle log costs half as many batches; the first record ends that."""
        quiet, ends = Quiet(), {0: 5}
        tick(quiet, ends, 0.0)
        idle_s = IDLE_AFTER_S + 1
        tick(quiet, ends, idle_s)

        assert tick(quiet, ends, idle_s + 1) == []
        assert tick(quiet, ends, idle_s + 2) == [0]
        ends[0] += 1
        quiet.observe(ends, idle_s + 2.5)
        assert quiet.interval_s(idle_s + 2.5) == 1.0


@pytest.mark.kafka
def test_partitions_that_are_added_are_ticked(
    kafka: str, new_topic: Callable[[str, int, dict[str, str]], str]
) -> None:
    """Though the producer looks for new ones by itself only after minutes."""
    topic = new_topic("grows", 2, {})
    ticker = Ticker(Kafka(kafka), SystemClock(), tick_s=60, topic=topic)

    def has_ticked(partitions: int) -> bool:
        with suppress(KafkaException):  # what was just made may have no leader yet
            ticker.step()
        ends = ticker.seen.ends
        return sorted(ends) == list(range(partitions)) and all(ends.values())

    wait_until(lambda: has_ticked(2), timeout_s=30, what="both partitions")
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(10)
    wait_until(lambda: has_ticked(4), timeout_s=30, what="two more")


@pytest.mark.kafka
def test_a_tick_is_an_empty_record_with_its_header(
    kafka: str,
    new_topic: Callable[[str, int, dict[str, str]], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ticker writes to each quiet partition of a real log, once."""
    topic = new_topic("ticks", 2, {})
    ticker = Ticker(Kafka(kafka), SystemClock(), tick_s=60, topic=topic)

    # A partition just made may have no leader yet at the first look.
    written: list[int] = []
    deadline_s = time.monotonic() + 30
    while len(written) < 2 and time.monotonic() < deadline_s:
        written += ticker.step()
    assert sorted(written) == [0, 1]
    assert ticker.step() == []
    assert dict(ticker.seen.ends) == {0: 1, 1: 1}
    assert dict(ticker.seen.news) == {0: 0, 1: 0}
    monkeypatch.setattr(ticker, "_ends", lambda: ({0: 2}, (1,)))
    ticker.step()
    ahead_ms, ticks = ticker.seen.clock_ahead_ms, {0: (0,), 1: (0,)}
    assert ticker.seen == LogEnds({0: 2, 1: 1}, {0: 2, 1: 0}, (1,), ahead_ms, ticks)
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic})
    consumer.assign([TopicPartition(topic, 1, 0)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert message.value() is None
    headers: Any = message.headers()
    assert [name for name, _value in headers] == ["weir-tick"]
