"""Questions to Kafka about the offsets of a topic: both its ends, and where an instant is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec

EARLIEST: Final[OffsetSpec] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
LATEST: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]
YOUNGEST: Final[OffsetSpec] = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Found:
    """A record that was looked for.

    Attributes:
        offset: Its place.
        at_ms: When it was appended; None: the broker did not say.
    """

    offset: int
    at_ms: int | None


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


def first_since(
    admin: AdminClient,
    topic: str,
    at_ms: int,
    partitions: Iterable[int],
    *,
    timeout_s: float,
    asked: Callable[[], None] = lambda: None,
) -> dict[int, Found]:
    """Return the first record there of each partition that was appended at or after an instant.

    A partition without such a record is left out. A broker's word for that is not enough. It looks
    in the first segment that ever had such a record, and nowhere else; where all of that is
    deleted, and only the file is not gone yet, it finds none, whatever stands in later segments.
    So it is for minutes after records were deleted by a request, and where a broker becomes the
    leader before it has removed what the last one had. All that is left is younger then: what was
    deleted came before it. So none is believed only where nothing at all came since, deleted or
    not. Where a broker does not say what came last, that has just come, and followers have not got
    it yet; if all that is left is older, the first record that is there is named in its place until
    they have.

    Args:
        admin: Asks.
        topic: The topic.
        at_ms: The instant, in epoch milliseconds.
        partitions: Those that are looked at.
        timeout_s: Longest wait for each of up to five answers.
        asked: Called after each.

    Raises:
        KafkaException: If a partition has no leader, or no broker answered.
    """

    def ask(spec: OffsetSpec, of: Iterable[int]) -> dict[int, ListOffsetsResultInfo]:
        answers = offsets_of(admin, topic, spec, of, timeout_s=timeout_s)
        asked()
        return answers

    since: OffsetSpec = OffsetSpec.for_timestamp(max(0, at_ms))
    answers = ask(since, partitions)
    unfound = [p for p, one in answers.items() if one.offset < 0]
    youngest = ask(YOUNGEST, unfound).items()
    came = [p for p, one in youngest if one.offset < 0 or one.timestamp >= at_ms]
    # Once more, or one that came between both questions would be taken for deleted ones.
    answers |= ask(since, came)
    hidden = [p for p in came if answers[p].offset < 0]
    end = ask(LATEST, hidden)
    found = {p: Found(one.offset, one.timestamp) for p, one in answers.items() if one.offset >= 0}
    for p, first in ask(EARLIEST, hidden).items():
        if first.offset < end[p].offset:
            found[p] = Found(first.offset, None)
    return found
