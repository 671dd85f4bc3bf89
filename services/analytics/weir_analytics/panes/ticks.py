"""Ticks: empty records that let time go on where the log is quiet.

Processed-through is the minimum of R over all partitions, so one quiet partition
would hold it for ever. A tick is an ordinary record with a header and no value:
it makes an ordinary batch, and every batch verifies marks and fences. It is no
event: not in received, not in dedup, not in lag. It also tells the time of the broker
that stores it, so that one that is never quiet gets one now and then.

`Quiet` decides which partitions are due and `BrokerClocks` whether a broker's clock has
stepped, without I/O; `Ticker` is the thread that looks at the log and writes.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from weir import names
from weir.clock import Clock
from weir.kafka import Kafka
from weir_reading.offsets import LATEST

from weir_analytics.panes.log_offsets import LogOffsets

LOG = structlog.get_logger()

QUIET_S = 0.5
# Once nothing but ticks has come for a minute, every second one is left out.
IDLE_AFTER_S = 60.0
IDLE_FACTOR = 2
# Within this long a step of a broker's clock is seen, however busy its partitions are.
CLOCK_S = 10.0
TIMEOUT_S = 5.0
# So many ticks of a partition are known that are not counted: hours of them, if none is. Those
# before them are told as records that wait.
MOST_TICKS = 10_000


@dataclass
class Quiet:
    """Which partitions have been quiet for long enough to be ticked.

    Attributes:
        tick_s: Time between two ticks of a partition.
        news: By partition, the end that something else than a tick of ours made last.
        ticks: By partition, the offsets of ticks of ours that may not be counted yet, in order.
    """

    tick_s: float = 1.0
    news: dict[int, int] = field(default_factory=dict)
    ticks: dict[int, deque[int]] = field(default_factory=dict)
    _end: dict[int, int] = field(default_factory=dict)
    _changed_s: dict[int, float] = field(default_factory=dict)
    _ticked_s: dict[int, float] = field(default_factory=dict)
    _busy_s: float | None = None

    def observe(self, ends: Mapping[int, int], now_s: float) -> list[int]:
        """Take the log's ends; return the partitions to be ticked now.

        One that is busy is ticked too, when its broker's clock was not told for a while.

        Args:
            ends: The offset that the next record of each partition will get.
            now_s: A clock that never steps back.
        """
        if self._busy_s is None:
            self._busy_s = now_s
        for partition, end in ends.items():
            if self._end.get(partition) != end:
                known = partition in self._end
                self._end[partition] = self.news[partition] = end
                self._changed_s[partition] = now_s if known else now_s - QUIET_S
                self._busy_s = now_s
        wait_s = self.interval_s(now_s)
        return [p for p in ends if self._is_due(p, now_s, wait_s)]

    def ticked(self, partition: int, offset: int, now_s: float) -> None:
        """Note a tick that was stored: the end that it made is no news."""
        self._ticked_s[partition] = now_s
        known = self.ticks.setdefault(partition, deque(maxlen=MOST_TICKS))
        if known and known[-1] >= offset:  # another log under the same name
            known.clear()
        known.append(offset)
        if self._end.get(partition) == offset:
            self._end[partition] = offset + 1

    def forget(self, counted: Mapping[int, int]) -> None:
        """Forget the ticks that are counted.

        Args:
            counted: By partition, the first offset that is not.
        """
        for partition, known in self.ticks.items():
            while known and known[0] < counted.get(partition, 0):
                known.popleft()

    def interval_s(self, now_s: float) -> float:
        """Return the time between two ticks as of now."""
        idle = self._busy_s is not None and now_s - self._busy_s > IDLE_AFTER_S
        return self.tick_s * (IDLE_FACTOR if idle else 1)

    def _is_due(self, partition: int, now_s: float, wait_s: float) -> bool:
        if now_s - self._changed_s[partition] < QUIET_S:
            return now_s - self._ticked_s.setdefault(partition, now_s) >= CLOCK_S
        # A thread wakes a little early or late; half a step decides.
        return now_s - self._ticked_s.get(partition, -wait_s) >= wait_s - QUIET_S / 2


@dataclass
class BrokerClocks:
    """The clocks that give records their time, held against one that never steps.

    Attributes:
        most_ms: What a step is: more than this, for certain.
    """

    most_ms: int = 5_000
    _ahead_ms: dict[int, tuple[float, float]] = field(default_factory=dict)

    def stepped_ms(self, partition: int, appended_ms: int, sent_s: float, told_s: float) -> int:
        """Return by how much the clock of a partition's broker has stepped; 0: it has not.

        Args:
            partition: Where a tick was stored.
            appended_ms: The time that the broker gave it.
            sent_s: When it was sent, by the clock that never steps.
            told_s: When it was known to be stored, by the same.
        """
        least, most = appended_ms - told_s * 1000, appended_ms - sent_s * 1000
        before = self._ahead_ms.get(partition)
        self._ahead_ms[partition] = (least, most)
        if before is None:
            return 0
        # Somewhere between sending and answer it was stored: the least that it can have been.
        forward, back = least - before[1], before[0] - most
        if forward > self.most_ms:
            return round(forward)
        return -round(back) if back > self.most_ms else 0


@dataclass
class LogEnds:
    """What the ticker saw of the log last; read by other threads.

    Attributes:
        ends: The offset that the next record of each partition will get; of one that nobody
            answers for, as it was known last.
        news: The same, but for the ticks at the end: up to there somebody waits for counting.
        ticks: By partition, the offsets of ticks among the records before that, in order; those of
            an earlier driver nobody knows until they are counted.
        leaderless: Partitions that nobody answers for; they hold processed-through.
        clock_ahead_ms: Append time minus the time of sending, of the last ticks; of the broker
            that is furthest off.
    """

    ends: Mapping[int, int] = field(default_factory=dict)
    news: Mapping[int, int] = field(default_factory=dict)
    leaderless: tuple[int, ...] = ()
    clock_ahead_ms: int = 0
    ticks: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def waiting(self, counted: Mapping[int, int]) -> int:
        """Return how many records wait to be counted that are no ticks.

        Args:
            counted: By partition, the first offset that is not counted.
        """
        return sum(self._waiting(p, counted.get(p, 0), end) for p, end in self.news.items())

    def _waiting(self, partition: int, begin: int, end: int) -> int:
        known = self.ticks.get(partition, ())
        ticks = bisect_left(known, end) - bisect_left(known, begin)
        return max(0, end - begin - ticks)


class Ticker:
    """Looks at the ends of `weir.events` twice a second and ticks what is quiet."""

    def __init__(self, kafka: Kafka, clock: Clock, *, tick_s: float, topic: str) -> None:
        self._log = LogOffsets(kafka, topic, timeout_s=TIMEOUT_S)
        self._producer = Producer(
            {
                **kafka.client_options(),
                "acks": "all",
                "linger.ms": 0,
                "message.timeout.ms": 5_000,
                "log_level": 0,
            }
        )
        self._clock, self._topic = clock, topic
        self._quiet, self._clocks = Quiet(tick_s), BrokerClocks()
        self._ahead_ms: dict[int, int] = {}
        self.seen = LogEnds()

    def run(self, stop: threading.Event, tell: Callable[[LogEnds], Mapping[int, int]]) -> None:
        """Tick until told to stop; an absent broker is waited for, not a reason to end.

        Args:
            stop: Set to end the thread.
            tell: Called with what was seen, at each step that succeeded; returns by partition
                the first offset that is not counted.
        """
        while not stop.is_set():
            try:
                self.step()
                self._quiet.forget(tell(self.seen))
            except KafkaException:
                pass  # seen by all as lag and age of the heartbeat's figures
            idle = self._quiet.interval_s(self._clock.monotonic_s()) > self._quiet.tick_s
            stop.wait(self._quiet.tick_s * IDLE_FACTOR if idle else QUIET_S)

    def step(self) -> list[int]:
        """Look once; return the partitions that were ticked, acknowledged."""
        ends, leaderless = self._ends()
        due = self._quiet.observe(ends, self._clock.monotonic_s())
        sent = [partition for partition in due if self._send(partition)]
        self._producer.flush(TIMEOUT_S)
        known = {**self.seen.ends, **ends}
        ahead_ms = max((self._ahead_ms[p] for p in ends if p in self._ahead_ms), key=abs, default=0)
        ticks = {p: tuple(offsets) for p, offsets in self._quiet.ticks.items()}
        self.seen = LogEnds(known, dict(self._quiet.news), leaderless, ahead_ms, ticks)
        return sent

    def _send(self, partition: int) -> bool:
        """Send a tick; return False where the producer does not know the partition yet."""
        told = partial(self._delivered, self._clock.monotonic_s())
        headers: list[tuple[str, str | bytes | None]] = [
            (names.HEADER_TICK, str(self._clock.now_ms()).encode())
        ]
        try:
            self._producer.produce(
                self._topic, partition=partition, headers=headers, on_delivery=told
            )
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:
                raise
            # By itself it looks for new ones after five minutes, and time would stand still.
            self._producer.list_topics(self._topic, timeout=TIMEOUT_S)
            return False
        return True

    def _delivered(self, sent_s: float, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            return
        self._quiet.ticked(partition, offset, self._clock.monotonic_s())
        _, appended_ms = message.timestamp()
        self._ahead_ms[partition] = appended_ms - self._clock.now_ms()
        now_s = self._clock.monotonic_s()
        by_ms = self._clocks.stepped_ms(partition, appended_ms, sent_s, now_s)
        if by_ms:
            LOG.warning("broker_clock_stepped", partition=partition, by_ms=by_ms)

    def _ends(self) -> tuple[dict[int, int], tuple[int, ...]]:
        ends: dict[int, int] = {}
        silent: list[int] = []
        for partition, future in self._log.ask(LATEST, self._log.partitions()).items():
            try:
                ends[partition] = future.result().offset
            except KafkaException:
                silent.append(partition)
        return ends, tuple(silent)
