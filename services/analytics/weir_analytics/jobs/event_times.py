"""When events of the log happened, found by a few reads at places that were drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from confluent_kafka import Message, TopicPartition
from weir.event import UNREADABLE, owner, placed
from weir.kafka import Kafka

from weir_analytics.panes.history import headers_of, reader
from weir_analytics.panes.kinds import Kind
from weir_analytics.panes.states import kind_of

# Between two events of a quiet log lie ticks.
CHUNK: Final = 500
WAIT_S: Final = 0.5

_JSON = msgspec.json.Decoder(dict[str, Any])


def event_times(
    kafka: Kafka, topic: str, places: Sequence[tuple[int, int]], tenant: str
) -> list[int]:
    """Return the event time of the first event of a tenant at or after each of some places.

    Args:
        kafka: How brokers are reached.
        topic: The topic.
        places: Partitions and offsets. Near some there may be no such event, and what
            retention has taken meanwhile is passed over: then there are fewer times.
        tenant: Whose events.

    Returns:
        Epoch milliseconds, in the order of the places.

    Raises:
        KafkaException: If the log cannot be read.
    """
    found: list[int] = []
    with reader(kafka) as consumer:
        for partition, offset in places:
            consumer.assign([TopicPartition(topic, partition, offset)])
            messages = consumer.consume(CHUNK, timeout=WAIT_S)
            found += _first(messages, partition, tenant)
    return found


def _first(messages: Iterable[Message], partition: int, tenant: str) -> list[int]:
    for message in messages:
        value = message.value()
        if message.error() is not None or message.partition() != partition or value is None:
            continue
        if kind_of(headers_of(message), value) not in (Kind.EVENT, Kind.SAMPLED):
            continue
        if _tenant_of(value) == tenant:
            return [placed(value).time_ms]
    return []


def _tenant_of(value: bytes) -> str | None:
    try:
        told = _JSON.decode(value).get("weirtenant")
    except UNREADABLE:
        return None
    return owner(told, "")[0] if isinstance(told, str) else None
