"""The log as Kafka keeps it, and what became of each of its records, by the rule alone.

The first half of `recount.py`; like that one it shares no code with Weir (a test holds that).
"""

from __future__ import annotations

import json
import sys
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

# From which offset on, by partition, an erasure holds, by tenant and subject.
Erased = Mapping[tuple[str, str], Mapping[int, int]]
NOBODY: Erased = {}


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


def account_for(
    records: Iterable[LogRecord],
    horizon_ms: int = HORIZON_MS,
    tenant: str | None = None,
    erased: Erased = NOBODY,
) -> Account:
    """Give every record but ticks its disposition, and keep what counts.

    Args:
        records: Of a whole log, partition by partition.
        horizon_ms: The dedup horizon.
        tenant: Only what is this tenant's; all by default.
        erased: Of whom no metric counts anything, whenever it came.
    """
    account = Account()
    for record, disposition, event in dispositions(records, horizon_ms, erased):
        if tenant not in (None, tenant_of(record, event)):
            continue
        minute = record.received_ms - record.received_ms % MINUTE_MS
        account.minutes[minute][disposition] += 1
        if event is not None and disposition == "counted" and _subject(event) not in erased:
            account.counted.append(event)
        elif event is not None and disposition == "duplicate":
            account.duplicates[event["type"]] += 1
    return account


def dispositions(
    records: Iterable[LogRecord], horizon_ms: int = HORIZON_MS, erased: Erased = NOBODY
) -> Iterator[tuple[LogRecord, str, dict[str, Any] | None]]:
    """Yield every record but ticks with its disposition, and the event if it is one.

    A record is a duplicate if an earlier one in its partition with the same tenant, source
    and id, itself duplicate or not, was received within the horizon. An event that counts
    has its time in `_time_ms`, when it was received in `_received_ms`, and partition and offset
    in `_place`. A first event about somebody erased is `erased` from where that holds on.
    """
    seen: dict[tuple[int, str, str, str], int] = {}
    for record in records:
        if "weir-tick" in record.headers:
            continue
        event = None if "weir-reason" in record.headers else event_of(record.value)
        if event is None:
            yield record, "quarantined", None
        else:
            disposition = _disposition(record, event, seen, horizon_ms)
            gone = erased.get(_subject(event))
            if gone is not None and disposition != "duplicate":
                is_gone = record.offset >= gone.get(record.partition, 0)
                disposition = "erased" if is_gone else disposition
            yield record, disposition, event


def event_of(value: bytes | None) -> dict[str, Any] | None:
    """Return a record as an event of ingest's; None if another producer's bytes are none.

    A CloudEvent of another producer is counted, too; no test sends one to what is recounted.
    """
    try:
        event = json.loads(value or b"")
    except ValueError:
        return None
    return event if isinstance(event, dict) and "weirtenant" in event else None


def _subject(event: Mapping[str, Any]) -> tuple[str, str]:
    return event["weirtenant"], str(event.get("subject"))


def tenant_of(record: LogRecord, event: dict[str, Any] | None) -> str:
    """Return whose a record is: an event says it itself, of what was refused a header does."""
    if event is not None:
        return str(event["weirtenant"])
    return bytes(record.headers.get("weir-tenant", b"default")).decode()


def _disposition(
    record: LogRecord,
    event: dict[str, Any],
    seen: dict[tuple[int, str, str, str], int],
    horizon_ms: int,
) -> str:
    # Interned: of millions of events few are of another tenant or source.
    owner = sys.intern(event["weirtenant"]), sys.intern(event["source"])
    identity = (record.partition, *owner, event["id"])
    before = seen.get(identity)
    seen[identity] = record.received_ms
    if before is not None and record.received_ms - before <= horizon_ms:
        return "duplicate"
    event["_time_ms"], event["_received_ms"] = epoch_ms(event["time"]), record.received_ms
    event["_place"] = record.partition, record.offset
    if record.received_ms - event["_time_ms"] > BEYOND_MS:
        return "beyond_horizon"
    return "counted"


def epoch_ms(text: str) -> int:
    """Return an RFC 3339 time as milliseconds since the epoch."""
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(at.timestamp() * 1000)
