"""Looks at a log in Kafka: what of it is not counted, and for how long it still holds that.

It needs neither the driver nor Redis: both ends and the retention are the log's own, and how
far counting is stands in the consumer group `weir-panes`, where the driver leaves it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from weir import log_place, names
from weir.clock import Clock
from weir.kafka import Kafka
from weir.log_left import LogLeft, PartitionLog, log_left, with_lane
from weir.log_place import LogPlace
from weir.log_race import Race, pursuits
from weir.log_start import LogStarts
from weir.retention import Retention

from weir_reading.offsets import EARLIEST, LATEST, Found, first_since, offsets_of

TIMEOUT_S: Final = 5.0
DAY_MS: Final = 86_400_000
_BOUNDS: Final = ("retention.ms", "retention.bytes", "segment.bytes", "max.message.bytes")


class GroupPlaces:
    """How far counting is, as the driver has left it in its consumer group."""

    def __init__(self, kafka: Kafka, topic: str = names.EVENTS) -> None:
        self._topic = topic
        told: dict[str, Any] = {"group.id": names.PANES_GROUP, "enable.auto.commit": False}
        # It subscribes to nothing, so it is no member of the group and commits nothing. An admin
        # client that asks for a group's offsets just when its broker comes back ends the whole
        # process (https://github.com/confluentinc/librdkafka/issues/4605; seen with 2.16.0).
        self._group = Consumer({**kafka.client_options(), **told, "log_level": 0})

    def read(self) -> dict[int, LogPlace] | None:
        """Return how far counting is in each partition of the topic.

        One of which nothing was left has not been counted. None: something was left that
        this release cannot read, so nothing is known.

        Raises:
            KafkaException: If a broker did not answer, or refused.
        """
        # What went wrong with connections waits in its queue until somebody takes it.
        self._group.poll(0)
        topic = self._group.list_topics(self._topic, timeout=TIMEOUT_S).topics[self._topic]
        if topic.error is not None:
            # Of a topic that this client may not see, or that is gone, it names no partition.
            raise KafkaException(topic.error)
        asked = [TopicPartition(self._topic, p) for p in sorted(topic.partitions)]
        # Asked for before the ends of the log, so no honest place lies beyond them.
        places: dict[int, LogPlace] = {}
        for one in self._group.committed(asked, timeout=TIMEOUT_S) if asked else []:
            if one.error is not None:
                raise KafkaException(one.error)
            place = log_place.read(one.offset, one.metadata) if one.offset >= 0 else LogPlace(0)
            if place is None:
                return None
            places[one.partition] = place
        return places


class LogLook:
    """One topic. Remembered are its partitions, and the paces of lanes and of deletion."""

    def __init__(self, kafka: Kafka, clock: Clock, topic: str = names.EVENTS) -> None:
        self._topic, self._clock = topic, clock
        self._admin = AdminClient({**kafka.client_options(), "log_level": 0})
        self._race, self._starts = Race(), LogStarts()
        self._known: set[int] = set()

    def start(self, partitions: Collection[int]) -> dict[int, int]:
        """Return the first offset of each partition that is still there.

        Raises:
            KafkaException: If a broker did not answer, or refused.
        """
        return {p: found.offset for p, found in self._places(EARLIEST, partitions).items()}

    def left(self, places: Mapping[int, LogPlace]) -> LogLeft:
        """Return how long the log still holds what is not counted.

        That is what live counting would lose first, or a lane that retention is about to
        overtake, whichever is sooner; what is needed, by the lanes that count something again,
        or of which that is not said.

        Args:
            places: By partition, how far counting is.

        Raises:
            KafkaException: If a broker did not answer, or refused.
            TimeoutError: If none answered in time.
        """
        now_ms, retention = self._clock.now_ms(), retention_of(self._admin, self._topic)
        counted = {p: (one.counted, one.received_ms) for p, one in places.items()}
        live = log_left(self._logs(counted, now_ms, retention), retention, now_ms)
        lanes = {p: (n, one.lane_ms) for p, one in places.items() if (n := one.lane) is not None}
        near = pursuits(self._logs(lanes, now_ms, retention), retention, now_ms)
        lost = self._race.overtaken(near, places, self._at_ms())
        if lost is None:
            return live
        return with_lane(live, lost, is_needed=any(places[p].again for p in lanes))

    def _logs(
        self, positions: Mapping[int, tuple[int, int | None]], now_ms: int, retention: Retention
    ) -> list[PartitionLog]:
        """Return what a reader has before it: by partition (first uncounted offset, since when)."""
        partitions = sorted(positions)
        ends = self._places(LATEST, partitions)
        oldest = self._since(0, partitions)
        of_today = self._since(now_ms - DAY_MS, partitions)
        logs = []
        for p in partitions:
            end, first = ends[p].offset, oldest.get(p)
            position, position_ms = positions[p]
            start = first.offset if first else end
            logs.append(
                PartitionLog(
                    partition=p,
                    oldest=start,
                    oldest_ms=first.at_ms if first else None,
                    end=end,
                    position=position,
                    position_ms=position_ms,
                    per_s=_per_s(of_today.get(p), end, now_ms),
                    start=self._starts.see(p, start, end, self._at_ms(), retention),
                )
            )
        return logs

    def _at_ms(self) -> int:
        """Return the present by a clock that never steps."""
        return round(self._clock.monotonic_s() * 1000)

    def _places(
        self, spec: OffsetSpec, partitions: Collection[int]
    ) -> dict[int, ListOffsetsResultInfo]:
        self._hear_of(partitions)
        return offsets_of(self._admin, self._topic, spec, partitions, timeout_s=TIMEOUT_S)

    def _since(self, at_ms: int, partitions: Collection[int]) -> dict[int, Found]:
        self._hear_of(partitions)
        return first_since(self._admin, self._topic, at_ms, partitions, timeout_s=TIMEOUT_S)

    def _hear_of(self, partitions: Collection[int]) -> None:
        if not self._known.issuperset(partitions):
            # The client looks a partition up in what it has heard of the topic: one that was
            # added since is unknown to it for up to a quarter of an hour.
            topics = self._admin.list_topics(self._topic, timeout=TIMEOUT_S).topics
            self._known = set(topics[self._topic].partitions)


def retention_of(admin: AdminClient, topic: str) -> Retention:
    """Return what a topic is set to keep.

    Raises:
        KafkaException: If a broker did not answer, or refused.
        TimeoutError: If none answered in time.
    """
    asked = ConfigResource(ResourceType.TOPIC, topic)
    answers = admin.describe_configs([asked], request_timeout=TIMEOUT_S)
    config: dict[str, ConfigEntry] = answers[asked].result(TIMEOUT_S)
    return Retention(*(_bound(config[name]) for name in _BOUNDS))


def _bound(entry: ConfigEntry) -> int | None:
    number = int(entry.value or -1)
    return number if number >= 0 else None


def _per_s(since: Found | None, end: int, now_ms: int) -> float:
    """Return the records a second since the first record of the last day; 0 if that is unknown."""
    if since is None or since.at_ms is None or since.at_ms >= now_ms:
        return 0.0
    return (end - since.offset) / (now_ms - since.at_ms) * 1000
