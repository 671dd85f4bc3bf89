"""The log as Kafka keeps it, and what became of each of its records, by the rule alone.

The first half of `recount.py`; like that one it shares no code with Weir (a test holds that).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

HORIZON_MS = 3_600_000
BEYOND_MS = 400 * 86_400_000
MINUTE_MS = 60_000
PATIENCE_S = 30.0


@dataclass(frozen=True)
class LogRecord:
    """One record as Kafka keeps it; `received_ms` is the running maximum in its partition."""

    partition: int
    offset: int
    received_ms: int
    headers: Mapping[str, Any]
    value: bytes | None


def read_log(bootstrap: str, topic: str = "weir.events") -> list[LogRecord]:
    """Read a topic from its start to the end it has now, partition by partition."""
    return list(records_of(bootstrap, topic))


def records_of(bootstrap: str, topic: str = "weir.events") -> Iterator[LogRecord]:
    """Yield what `read_log` returns, for a log that is not to be in memory."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "recount",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
        }
    )
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    for partition in sorted(partitions):
        yield from _read_partition(consumer, topic, partition)
    consumer.close()


def _read_partition(consumer: Consumer, topic: str, partition: int) -> Iterator[LogRecord]:
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    received_ms = 0
    at = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[0]
    while at < end:
        for message in _next_messages(consumer):
            if message.error() is not None:
                raise RuntimeError(str(message.error()))
            offset: int = message.offset() or 0
            received_ms = max(received_ms, message.timestamp()[1])
            at = offset + 1
            if offset < end:
                headers: dict[str, Any] = dict(message.headers() or [])
                yield LogRecord(partition, offset, received_ms, headers, message.value())


def _next_messages(consumer: Consumer) -> list[Any]:
    """Return at least one message, and all that have come with it.

    `consume` with a timeout waits for its whole number of messages until the time is over.

    Raises:
        RuntimeError: If none came.
    """
    first = consumer.poll(PATIENCE_S)
    if first is None:
        msg = f"the log must have more records, got none within {PATIENCE_S:g} s"
        raise RuntimeError(msg)
    return [first, *consumer.consume(10_000, timeout=0)]


# ── what became of every record ──────────────────────────────────────────────


@dataclass
class Account:
    """The dispositions of a log.

    The events that count, the duplicates of each type, and a
    tally per received minute.
    """

    counted: list[dict[str, Any]] = field(default_factory=list)
    duplicates: Counter[str] = field(default_factory=Counter)
    minutes: dict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    @property
    def totals(self) -> Counter[str]:
        """Dispositions over all minutes."""
        total: Counter[str] = Counter()
        for tally in self.minutes.values():
            total.update(tally)
        return total


def account_for(records: Iterable[LogRecord], horizon_ms: int = HORIZON_MS) -> Account:
    """Give every record but ticks its disposition, by the rule of the log alone.

    A record is a duplicate if an earlier one in its partition with the same tenant, source
    and id, itself duplicate or not, was received within the horizon.
    """
    account = Account()
    seen: dict[tuple[int, str, str, str], int] = {}
    for record in records:
        if "weir-tick" in record.headers:
            continue
        minute = record.received_ms - record.received_ms % MINUTE_MS
        account.minutes[minute][_disposition(record, seen, horizon_ms, account)] += 1
    return account


def _disposition(
    record: LogRecord,
    seen: dict[tuple[int, str, str, str], int],
    horizon_ms: int,
    account: Account,
) -> str:
    if "weir-reason" in record.headers or record.value is None:
        return "quarantined"
    event = json.loads(record.value)
    identity = (record.partition, event["weirtenant"], event["source"], event["id"])
    before = seen.get(identity)
    seen[identity] = record.received_ms
    if before is not None and record.received_ms - before <= horizon_ms:
        account.duplicates[event["type"]] += 1
        return "duplicate"
    event["_time_ms"] = epoch_ms(event["time"])
    if record.received_ms - event["_time_ms"] > BEYOND_MS:
        return "beyond_horizon"
    account.counted.append(event)
    return "counted"


def epoch_ms(text: str) -> int:
    """Return an RFC 3339 time as milliseconds since the epoch."""
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(at.timestamp() * 1000)
