"""Which partitions are due for a tick: both sides of every edge, by a clock of the test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from weir.clock import SystemClock
from weir.kafka import Kafka
from weir_analytics.panes.ticks import IDLE_AFTER_S, QUIET_S, LogEnds, Quiet, Ticker


def tick(quiet: Quiet, ends: dict[int, int], now_s: float) -> list[int]:
    """Observe, and store a tick in each partition that is due."""
    due = quiet.observe(ends, now_s)
    for partition in due:
        quiet.ticked(partition, ends[partition], now_s)
        ends[partition] += 1
    return due


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

    def test_ticks_behind_the_last_event_are_not_waited_for(self) -> None:
        """The end that counts for lag is the one that somebody else's record made."""
        quiet, ends = Quiet(), {0: 5}
        for at_s in range(4):
            tick(quiet, ends, float(at_s))
        assert (ends, quiet.news) == ({0: 9}, {0: 5})
        ends[0] += 2
        quiet.observe(ends, 4.0)
        assert quiet.news == {0: 11}

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
    assert ticker.seen == LogEnds({0: 2, 1: 1}, {0: 2, 1: 0}, (1,), ticker.seen.clock_ahead_ms)
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": topic})
    consumer.assign([TopicPartition(topic, 1, 0)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None
    assert message.value() is None
    headers: Any = message.headers()
    assert [name for name, _value in headers] == ["weir-tick"]
