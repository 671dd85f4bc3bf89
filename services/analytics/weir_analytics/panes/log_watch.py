"""Beside the driver: its offsets for Kafka's own tools, and how long the log still holds.

The offsets of the consumer group `weir-panes` are told, never read back: marks are the
truth about progress. They let `kafka-consumer-groups` and every exporter of lag see what
they see of any other consumer. Nothing here stops or delays a batch: it has a thread of its
own, asks nothing that is not asked for in the background, and tries again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin._config import ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from weir import names
from weir.clock import Clock
from weir.kafka import Kafka

from weir_analytics.panes.log_left import LogLeft, PartitionLog, Race, Retention, log_left
from weir_analytics.panes.log_offsets import EARLIEST, LATEST, LogOffsets
from weir_analytics.panes.vitals import Vitals

LOG = structlog.get_logger()
COMMIT_S = 1.0
LOOK_S = 15.0
TIMEOUT_S = 5.0
DAY_MS = 86_400_000


class GroupOffsets:
    """Tells Kafka how far the driver has counted; at most once a second, without waiting."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._topic = topic
        self._told: Mapping[int, int] = {}
        # It subscribes to nothing, so it is no member: the group stays empty, and nobody
        # is ever given a partition.
        self._consumer = Consumer(
            {
                **kafka.client_options(),
                "group.id": names.PANES_GROUP,
                "enable.auto.commit": False,
                "on_commit": self._done,
                "log_level": 2,
            }
        )

    def tell(self, ends: Mapping[int, int]) -> None:
        """Commit the first uncounted offset of each partition, if it has moved.

        Raises:
            KafkaException: If that cannot even be asked for.
        """
        self._consumer.poll(0)  # calls `_done`, and takes what else the client has to say
        if not ends or ends == self._told:
            return
        places = [TopicPartition(self._topic, p, end) for p, end in ends.items()]
        self._consumer.commit(offsets=places, asynchronous=True)
        self._told = dict(ends)

    def _done(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        if error is not None or any(place.error for place in places):
            self._told = {}  # tried again at the next call

    def close(self) -> None:
        """Let go of the connection; what was asked for last may be lost."""
        self._consumer.close()


class LogWatch:
    """Looks at both ends of the log, at its retention and at the driver's place in it."""

    def __init__(self, kafka: Kafka, clock: Clock, topic: str = names.EVENTS) -> None:
        self._kafka, self._clock, self._topic = kafka, clock, topic
        self._log = LogOffsets(kafka, topic, timeout_s=TIMEOUT_S)
        self._race = Race()

    def run(self, vitals: Vitals, stop: threading.Event) -> None:
        """Tell and look until told to stop; an absent broker is waited for."""
        group = GroupOffsets(self._kafka, self._topic)
        look_at_s = 0.0
        while not stop.wait(COMMIT_S):
            try:
                group.tell(vitals.counted)
                if self._clock.monotonic_s() >= look_at_s and vitals.counted:
                    look_at_s = self._clock.monotonic_s() + LOOK_S
                    live = self.look(vitals.counted, vitals.received_ms)
                    vitals.log_left = self.with_lanes(live, vitals.lanes)
            except (KafkaException, TimeoutError) as error:
                LOG.warning("log_not_watched", error=str(error) or type(error).__name__)
        group.close()

    def look(self, counted: Mapping[int, int], received_ms: Mapping[int, int]) -> LogLeft:
        """Return how long the log still holds what is not counted.

        Args:
            counted: By partition, the first uncounted offset.
            received_ms: By partition, R of what was counted last.

        Raises:
            KafkaException: If a broker did not answer, or refused.
        """
        now_ms = self._clock.now_ms()
        partitions = sorted(counted)
        ends = self._log.places(LATEST, partitions)
        oldest = self._log.places(OffsetSpec.for_timestamp(0), partitions)
        of_today = self._log.places(OffsetSpec.for_timestamp(now_ms - DAY_MS), partitions)
        logs = []
        for p in partitions:
            end, first = ends[p].offset, oldest[p]
            there = first.offset >= 0
            logs.append(
                PartitionLog(
                    partition=p,
                    oldest=first.offset if there else end,
                    oldest_ms=first.timestamp if there else None,
                    end=end,
                    position=counted[p],
                    position_ms=received_ms.get(p),
                    per_s=_per_s(of_today[p], end, now_ms),
                )
            )
        return log_left(logs, self._retention(), now_ms)

    def with_lanes(self, live: LogLeft, lanes: Mapping[int, int]) -> LogLeft:
        """Return what is lost first, with the lanes that retention is about to overtake.

        Args:
            live: What live counting would lose.
            lanes: By partition, the first offset that a lane has still to count.

        Raises:
            KafkaException: If a broker did not answer, or refused.
            TimeoutError: If the log did not answer.
        """
        now_ms = self._clock.now_ms()
        found = LogLeft()
        if lanes:
            first = self._log.places(EARLIEST, lanes)
            there = {p: n for p, n in lanes.items() if n >= first[p].offset}
            found = self.look(lanes, {p: self._log.received_ms(p, n) for p, n in there.items()})
        ms = self._race.overtaken_ms(found.ms, now_ms)
        if ms is None or (live.ms is not None and live.ms <= ms):
            return live
        return replace(live, ms=ms, partition=found.partition)

    def _retention(self) -> Retention:
        asked = ConfigResource(ResourceType.TOPIC, self._topic)
        answers = self._log.admin.describe_configs([asked], request_timeout=TIMEOUT_S)
        config: dict[str, ConfigEntry] = answers[asked].result(TIMEOUT_S)
        ms, size = (int(config[name].value or -1) for name in ("retention.ms", "retention.bytes"))
        return Retention(ms if ms >= 0 else None, size if size >= 0 else None)


def _per_s(since: ListOffsetsResultInfo, end: int, now_ms: int) -> float:
    """Return the records a second since the first record of the last day."""
    if since.offset < 0 or since.timestamp >= now_ms:
        return 0.0
    return (end - since.offset) / (now_ms - since.timestamp) * 1000
