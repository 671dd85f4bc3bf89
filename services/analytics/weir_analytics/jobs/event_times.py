"""When events of the log happened, found by a read at a place that was drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
from confluent_kafka import Message
from weir.event import UNREADABLE, owner, placed

from weir_analytics.panes.history import LogPartition, headers_of, reader
from weir_analytics.panes.kinds import Kind
from weir_analytics.panes.states import kind_of

# Between two events of a quiet log lie ticks.
CHUNK: Final = 500
WAIT_S: Final = 0.5

_JSON = msgspec.json.Decoder(dict[str, Any])


def event_time(log: LogPartition, offset: int, most: int, tenant: str) -> int | None:
    """Return the event time of the first event of a tenant at or after a place.

    Args:
        log: The partition.
        offset: The place.
        most: How many records there are from there on: who asks for more waits for them. Of a
            log that was made anew, or lost its end, none.
        tenant: Whose events.

    Returns:
        Epoch milliseconds; None if near the place there is no such event, or retention has taken
        it meanwhile.

    Raises:
        KafkaException: If the log cannot be read.
    """
    with reader(log.kafka) as consumer:
        consumer.assign([log.at(offset)])
        return _first(consumer.consume(max(0, min(CHUNK, most)), timeout=WAIT_S), tenant)


def _first(messages: Iterable[Message], tenant: str) -> int | None:
    for message in messages:
        value = message.value()
        if message.error() is not None or value is None:
            continue
        if kind_of(headers_of(message), value) not in (Kind.EVENT, Kind.SAMPLED):
            continue
        if _tenant_of(value) == tenant:
            return placed(value).time_ms
    return None


def _tenant_of(value: bytes) -> str | None:
    try:
        told = _JSON.decode(value).get("weirtenant")
    except UNREADABLE:
        return None
    return owner(told, "")[0] if isinstance(told, str) else None
