"""Questions to Kafka about the offsets of a topic: where it begins, where it ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec

EARLIEST: Final[OffsetSpec] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]


def ask_offsets(
    admin: AdminClient,
    topic: str,
    spec: OffsetSpec,
    partitions: Iterable[int],
    *,
    timeout_s: float,
) -> Mapping[int, Future[ListOffsetsResultInfo]]:
    """Ask for an offset of each of some partitions; each answers, or fails, by itself.

    The answers have the offset, -1 where there is no such record, and the time of its record.
    """
    asked = {TopicPartition(topic, partition): spec for partition in partitions}
    if not asked:
        return {}
    futures = admin.list_offsets(asked, request_timeout=timeout_s)
    return {place.partition: future for place, future in futures.items()}


def offsets_of(
    admin: AdminClient,
    topic: str,
    spec: OffsetSpec,
    partitions: Iterable[int],
    *,
    timeout_s: float,
) -> dict[int, ListOffsetsResultInfo]:
    """Return what `ask_offsets` asks for, of all of the partitions.

    Raises:
        KafkaException: If a partition has no leader, or no broker answered.
    """
    asked = ask_offsets(admin, topic, spec, partitions, timeout_s=timeout_s)
    return {p: future.result() for p, future in asked.items()}
