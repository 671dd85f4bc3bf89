"""What a recount reads of each record of the log: R, its kind, and the event that it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Message
from weir.admission import Refused, admit_foreign
from weir.event import placed

from weir_analytics.panes.history import Headers, headers_of
from weir_analytics.panes.kinds import Kind
from weir_analytics.panes.states import kind_of


@dataclass(frozen=True, slots=True)
class LogEvent:
    """An event, as ingest wrote it or would have written it."""

    identity: bytes
    time_ms: int
    received_ms: int
    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record that is no tick.

    Attributes:
        partition: Where it stands.
        offset: Its place there.
        kind: What it is.
        headers: Its headers.
        received_ms: R.
        event: None of one that is quarantined whole.
    """

    partition: int
    offset: int
    kind: Kind
    headers: Headers
    received_ms: int
    event: LogEvent | None


class Gap(NamedTuple):
    """Offsets without a record, where reading went on behind them.

    Attributes:
        partition: Where.
        start: The first offset.
        received_ms: R of the record behind them; None: none is read there.
    """

    partition: int
    start: int
    received_ms: int | None


class Passage:
    """One time through a range of the log, each partition in its order.

    Attributes:
        gaps: What was passed over. Retention has taken it, or there never was a record that anybody
            is given: the log's start tells which.
    """

    def __init__(self, begin: Mapping[int, int] | None = None) -> None:
        """Begin with nothing read; from where on is known of the partitions in `begin`."""
        self.gaps: list[Gap] = []
        self._next = dict(begin or {})
        self._received: dict[int, int] = {}

    def records(self, messages: Iterable[Message]) -> Iterator[LogRecord]:
        """Yield all records but ticks, with R."""
        for message in messages:
            partition, offset = message.partition() or 0, message.offset() or 0
            received_ms = max(self._received.get(partition, 0), message.timestamp()[1])
            self._received[partition] = received_ms
            expected = self._next.get(partition, offset)
            if offset > expected:
                self.gaps.append(Gap(partition, expected, received_ms))
            self._next[partition] = offset + 1
            headers = headers_of(message)
            kind = kind_of(headers, message.value())
            if kind != Kind.TICK:
                event = _event_of(message, kind, received_ms)
                yield LogRecord(partition, offset, kind, headers, received_ms, event)

    def end(self, end: Mapping[int, int]) -> None:
        """Note what is missing at the end of the range, when all of it is behind."""
        for partition, offset in end.items():
            expected = self._next.get(partition, offset)
            if expected < offset:
                self.gaps.append(Gap(partition, expected, None))
                self._next[partition] = offset


def _event_of(message: Message, kind: Kind, received_ms: int) -> LogEvent | None:
    partition, offset, value = message.partition() or 0, message.offset() or 0, message.value()
    if kind == Kind.FOREIGN:
        origin = f"{message.topic()}/{partition}/{offset}"
        found = admit_foreign(value, received_ms=received_ms, recheck=True, origin=origin)
        value = None if isinstance(found, Refused) else found.value
    if value is None or kind == Kind.REFUSED:
        return None
    place = placed(value)
    return LogEvent(place.digest, place.time_ms, received_ms, partition, offset, value)
