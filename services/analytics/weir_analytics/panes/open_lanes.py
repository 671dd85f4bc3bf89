"""Which ranges of the log lanes are opened for: its start, and its hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from weir import names
from weir.commit import Offsets, furthest, same_offsets
from weir.commit_found import Level, LogBounds
from weir.commit_recovery import incomplete_before_ms
from weir.definitions.records import OpenLane
from weir.kafka import Kafka

from weir_analytics.panes.history import LogPartition, read_range

TIMEOUT_S: Final = 15.0
CHUNK_MS: Final = 6 * 3_600_000
"""How much of the log one rebuild lane counts: the newest is shown first."""
ABOVE_START_MS: Final = 10 * 60_000
"""How far above the log's start a backfill begins, or retention overtakes its first slice."""
NEAR_MS: Final = 10 * 60_000
"""How much of the log a shard that is behind counts before live counting goes on."""
CLOCK_MS: Final = 5_000
"""How far a broker's clock may be ahead of ours."""


class Range(NamedTuple):
    """A range of the log, all of it received before an instant."""

    start: dict[int, int]
    end: dict[int, int]
    until_ms: int


def log_bounds(kafka: Kafka, topic: str, events_id: str) -> LogBounds:
    """Return what the log holds now.

    Raises:
        KafkaException: If a partition has no leader, or no broker answered.
    """
    log = _Log.open(kafka, topic)
    start = log.offsets(OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    end = log.offsets(OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return LogBounds(events_id, start, end)


def log_start(kafka: Kafka) -> dict[int, int]:
    """Return the first offset of each partition that the log still has."""
    return _Log.open(kafka, names.EVENTS).offsets(OffsetSpec.earliest())  # type: ignore[no-untyped-call]


def first_received_ms(kafka: Kafka, start: Offsets, end: Offsets, now_ms: int) -> int:
    """Return the instant from which no partition lacks a record; 0 if none ever lost one.

    Args:
        kafka: How brokers are reached.
        start: Where counting begins: offsets that the log still has.
        end: Where the log ends.
        now_ms: The present, from which on a partition counts of which nothing is left.
    """
    first: list[int] = []
    for partition, offset in start.items():
        if 0 < offset < end[partition]:
            log = LogPartition(kafka, names.EVENTS, partition)
            first.append(next(read_range(log, offset, offset + 1))[0].timestamp()[1])
        elif offset:
            first.append(now_ms)
    return max(first, default=0)


def near(kafka: Kafka, bounds: LogBounds, ends: Sequence[Offsets]) -> dict[int, int] | None:
    """Return the place `NEAR_MS` of log before where shards stand furthest; None if they agree.

    Args:
        kafka: How brokers are reached.
        bounds: What the log holds.
        ends: Where the shards stand.
    """
    target = furthest(ends)
    if all(same_offsets(end, target) for end in ends):
        return None
    last: list[int] = []
    for partition, offset in target.items():
        if bounds.start.get(partition, 0) < offset <= bounds.end.get(partition, 0):
            log = LogPartition(kafka, names.EVENTS, partition)
            last.append(next(read_range(log, offset - 1, offset))[0].timestamp()[1])
    if not last:
        return None
    at = _Log.open(kafka, names.EVENTS).at(max(last) - NEAR_MS, bounds.end)
    # Where the log itself is not longer, all of it is near.
    whole = {p for p, n in at.items() if n <= bounds.start.get(p, 0)}
    return {p: 0 if p in whole else min(n, target.get(p, 0)) for p, n in at.items()}


def bridge(bounds: LogBounds, level: Level, now_ms: int) -> OpenLane:
    """Return the lane that counts what one shard lacks."""
    return OpenLane(
        kind="rebuild",
        topic_id=bounds.topic_id,
        start={p: level.read_from.get(p, 0) for p in level.to_offsets},
        end=dict(level.to_offsets),
        shards=(level.shard,),
        until_ms=now_ms + CLOCK_MS,
    )


def backfill(
    kafka: Kafka,
    bounds: LogBounds,
    begin: Offsets,
    vids: Sequence[int],
    *,
    horizon_ms: int,
    now_ms: int,
) -> OpenLane:
    """Return the lane that counts for versions what lies before their activation.

    Args:
        kafka: How brokers are reached.
        bounds: What the log holds.
        begin: The activation offsets.
        vids: The versions.
        horizon_ms: The dedup horizon.
        now_ms: The present.
    """
    start = dict(bounds.start)
    if any(start.values()):
        first_ms = first_received_ms(kafka, bounds.start, bounds.end, now_ms)
        above = _Log.open(kafka, names.EVENTS).at(first_ms + ABOVE_START_MS, bounds.end)
        start = {p: above[p] if n else 0 for p, n in start.items()}
    start = {p: min(n, begin.get(p, 0)) for p, n in start.items() if p in begin}
    first_ms = first_received_ms(kafka, start, bounds.end, now_ms)
    return OpenLane(
        kind="backfill",
        topic_id=bounds.topic_id,
        start=start,
        end=dict(begin),
        vids=tuple(vids),
        complete_from_ms=incomplete_before_ms(first_ms, horizon_ms, start),
    )


def rebuilds(
    kafka: Kafka, bounds: LogBounds, target: Offsets, shards: Sequence[int], now_ms: int
) -> list[OpenLane]:
    """Return the lanes that count for lost shards what lies before `target`, newest first.

    Args:
        kafka: How brokers are reached.
        bounds: What the log holds.
        target: Where live counting goes on.
        shards: The shards that were lost.
        now_ms: The present.
    """
    log = _Log.open(kafka, names.EVENTS)
    found: list[Range] = []
    end, until_ms = {p: target.get(p, 0) for p in bounds.start}, now_ms + CLOCK_MS
    while not same_offsets(end, bounds.start):
        begin_ms = until_ms - CHUNK_MS
        at = log.at(begin_ms, bounds.end)
        start = {p: min(end[p], max(n, bounds.start[p])) for p, n in at.items()}
        if not same_offsets(start, end):
            found.append(Range(start, end, until_ms))
        end, until_ms = start, begin_ms
    return [
        OpenLane(
            kind="rebuild",
            topic_id=bounds.topic_id,
            start=one.start,
            end=one.end,
            shards=tuple(shards),
            until_ms=one.until_ms,
        )
        for one in found
    ]


class _Log(NamedTuple):
    """A topic's partitions, for questions about offsets."""

    admin: AdminClient
    topic: str
    partitions: tuple[int, ...]

    @classmethod
    def open(cls, kafka: Kafka, topic: str) -> _Log:
        admin = AdminClient({**kafka.client_options(), "log_level": 0})
        found = admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
        return cls(admin, topic, tuple(sorted(found)))

    def offsets(self, spec: Any) -> dict[int, int]:
        asked = {TopicPartition(self.topic, partition): spec for partition in self.partitions}
        futures = self.admin.list_offsets(asked, request_timeout=TIMEOUT_S)
        return {place.partition: future.result().offset for place, future in futures.items()}

    def at(self, at_ms: int, end: Mapping[int, int]) -> dict[int, int]:
        """Return the first offset of each partition that was appended at or after a time."""
        found = self.offsets(OffsetSpec.for_timestamp(max(0, at_ms)))
        return {p: end[p] if n < 0 else min(n, end[p]) for p, n in found.items()}
