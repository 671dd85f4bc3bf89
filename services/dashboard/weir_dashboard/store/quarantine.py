"""Reads `weir.quarantine` from its end, without a group.

The topic holds the records of all tenants, each of up to a megabyte. So a reading takes
of each record only what it needs and drops the rest at once, and there is one reading at
a time. It goes back until it has what was asked for, within a bound: a tenant whose
records lie deeper under another's than that finds them by their ledger only. Whether the
bound was met is told, and so is of how many events there is no copy (`left_out.py`).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import cast

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from weir import names
from weir.clock import Clock
from weir.kafka import Kafka
from weir.problems import ProblemError, Reason

from weir_dashboard.store.left_out import Copied, Place, Tally

_SUBJECT = re.compile(r'"subject"\s*:\s*("(?:[^"\\]|\\.)*")')

# Of `topic/topic id/partition/offset`.
_PLACE = re.compile(r".*/([0-9]{1,9})/[0-9]+", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,18}")

TIMEOUT_S = 5.0
WAIT_S = 10.0
TEXT_BYTES = 65_536
# For so long the sums of a reading are told again.
SUMS_S = 30.0
# What one reading goes through at most, of all tenants.
MAX_RECORDS = 50_000
MAX_BYTES = 256 * 2**20
# Records of a partition read in one stretch: more and more while they are small.
FIRST_STRETCH = 50
LONGEST_STRETCH = 5_000
STRETCH_BYTES = 4 * 2**20
# What the client library may hold beyond the record at hand.
PREFETCH_KB = 8 * 1024


@dataclass(frozen=True, slots=True)
class Record:
    """What is told of a quarantined record.

    Attributes:
        key: The same for copies of one record.
        text: The beginning of its bytes as text; None where only a list was asked for.
        subjects: Whom its bytes may be about; the same.
        replayed_ms: When it was put back into the log; None if it was not, or where only
            this record was asked for.
        is_note: It is no copy, but says that the record of its key was put back.
        left_out: How many later ones of its version, partition and batch have no copy.
    """

    partition: int
    offset: int
    key: bytes | None
    at_ms: int
    tenant: str | None
    reason: str
    source: str
    origin: str | None
    version: int | None
    bytes: int
    text: str | None = None
    replayed_ms: int | None = None
    is_note: bool = False
    subjects: frozenset[str] = frozenset()
    left_out: int = 0

    @property
    def copy_of(self) -> Place:
        """Which version could not use the event, and of which partition of the log it is."""
        found = _PLACE.fullmatch(self.origin or "")
        return Place(self.version, int(found[1]) if found else None)


@dataclass(frozen=True, slots=True)
class Found:
    """What one reading has found.

    Attributes:
        records: The newest that were asked for, the newest first.
        copied: Of all of the tenant that it went through, for whatever reason.
        whole: There is nothing older than these: it went through the whole topic, and left out
            nothing of what was asked for.
    """

    records: list[Record]
    copied: list[Copied]
    whole: bool


class Quarantine:
    """Reads quarantined records."""

    def __init__(self, kafka: Kafka, clock: Clock) -> None:
        self._kafka, self._clock = kafka, clock
        self._one = asyncio.Lock()
        # By tenant the sums of a reading, and when it was.
        self._sums: dict[str, tuple[float, Found]] = {}

    async def newest(self, tenant: str, limit: int, reason: str | None) -> Found:
        """Return a tenant's newest records, the newest first; of copies only the newest.

        Raises:
            ProblemError: 503 if Kafka does not answer, or too many are reading.
        """
        async with _Taken(self._one):
            return await asyncio.to_thread(self._newest, tenant, limit, reason)

    async def sums(self, tenant: str) -> Found:
        """Return how much of a tenant's is copied, as far as a reading goes; no records.

        It goes as far as one may, and all read one after the other: so whoever asks within half
        a minute of another of the tenant is told the same.

        Raises:
            ProblemError: 503 if Kafka does not answer, or too many are reading.
        """
        async with _Taken(self._one):
            now_s = self._clock.monotonic_s()
            self._sums = {t: one for t, one in self._sums.items() if now_s - one[0] < SUMS_S}
            if tenant not in self._sums:
                found = await asyncio.to_thread(self._newest, tenant, None, None)
                self._sums[tenant] = now_s, found
            return self._sums[tenant][1]

    async def one(self, tenant: str, partition: int, offset: int) -> Record | None:
        """Return the record at a place, with its text; None if it is not this tenant's.

        Raises:
            ProblemError: 503 if Kafka does not answer, or too many are reading.
        """
        async with _Taken(self._one):
            found = await asyncio.to_thread(self._at, partition, offset)
        is_theirs = found is not None and found.tenant == tenant and not found.is_note
        return found if is_theirs else None

    def _newest(self, tenant: str, limit: int | None, reason: str | None) -> Found:
        consumer = _consumer(self._kafka)
        try:
            search = _Search(tenant, limit, reason)
            search.run(consumer)
        except KafkaException:
            raise _away() from None
        finally:
            consumer.close()
        newest = sorted(search.found, key=lambda r: (r.at_ms, r.offset), reverse=True)
        seen: dict[object, Record] = {}
        for record in newest:
            told = replace(record, replayed_ms=search.replayed_ms.get(record.key))
            seen.setdefault(record.key or (record.partition, record.offset), told)
        # A list that is cut is not whole, though all of the topic was read.
        whole = search.whole and (limit is None or len(seen) <= limit)
        return Found(list(seen.values())[:limit], search.tally.copied(), whole)

    def _at(self, partition: int, offset: int) -> Record | None:
        consumer = _consumer(self._kafka)
        try:
            low, high = _ends(consumer, partition)
            if not low <= offset < high:
                return None
            messages = list(_read(consumer, {partition: (offset, offset + 1)}))
        except KafkaException:
            raise _away() from None
        finally:
            consumer.close()
        if not messages:
            return None
        value = messages[0].value() or b""
        text = value[:TEXT_BYTES].decode("utf-8", "replace")
        return replace(_told(messages[0]), text=text, subjects=subjects_of(value))


def subjects_of(value: bytes) -> frozenset[str]:
    """Return every text that stands as a `subject` in bytes that may be JSON, or nearly.

    What is quarantined is often cut, broken, or a list; and of a name that comes twice a
    parser keeps one.
    """
    text = value.decode("utf-8", "replace")
    found: set[str] = set()

    def note(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found.update(said for name, said in pairs if name == "subject" and isinstance(said, str))
        return dict(pairs)

    with suppress(ValueError, RecursionError):
        json.loads(text, object_pairs_hook=note)
    for quoted in _SUBJECT.findall(text):
        with suppress(ValueError):
            found.add(json.loads(quoted))
    return frozenset(found)


class _Search:
    """Goes back from the end of each partition, stretch by stretch.

    Attributes:
        found: What was asked for; nothing without a limit: then all is added up alone.
        tally: Of the tenant's copies that were gone through, whatever their reason: of what
            has no copy nobody knows the reason.
        whole: Nothing of the topic was left.
    """

    def __init__(self, tenant: str, limit: int | None, reason: str | None) -> None:
        self.found: list[Record] = []
        self.tally = Tally()
        self.whole = True
        self.replayed_ms: dict[bytes | None, int] = {}
        self._wanted = (tenant, reason)
        self._limit = limit
        self._records = self._bytes = 0

    def run(self, consumer: Consumer) -> None:
        """Search until each partition gave enough, or has no more, or the bound is met."""
        topic = consumer.list_topics(names.QUARANTINE, timeout=TIMEOUT_S).topics[names.QUARANTINE]
        left = {p: _ends(consumer, p) for p in topic.partitions}
        stretch = FIRST_STRETCH
        while left := {p: (low, high) for p, (low, high) in left.items() if low < high}:
            ranges = {p: (max(low, high - stretch), high) for p, (low, high) in left.items()}
            before = self._bytes
            enough = self._take(consumer, ranges)
            older = {p: (left[p][0], begun) for p, (begun, _) in ranges.items()}
            left = {p: span for p, span in older.items() if p not in enough}
            if self._records >= MAX_RECORDS or self._bytes >= MAX_BYTES:
                left = {}
            self.whole &= all(low >= begun for p, (low, begun) in older.items() if p not in left)
            if self._bytes - before < STRETCH_BYTES:
                stretch = min(LONGEST_STRETCH, stretch * 2)

    def _take(self, consumer: Consumer, ranges: dict[int, tuple[int, int]]) -> set[int]:
        """Take what is wanted of some ranges; return the partitions that gave enough."""
        for message in _read(consumer, ranges):
            self._records += 1
            self._bytes += len(message.value() or b"")
            record = _told(message)
            if record.is_note:
                # It stands behind the copy, so going backwards it is met before.
                self.replayed_ms[record.key] = record.at_ms
            else:
                self._take_copy(record)
        if self._limit is None:
            return set()
        taken = [record.partition for record in self.found]
        return {partition for partition in ranges if taken.count(partition) >= self._limit}

    def _take_copy(self, record: Record) -> None:
        tenant, reason = self._wanted
        if record.tenant != tenant:
            return
        key = record.key or (record.partition, record.offset)
        order = record.at_ms, record.offset
        self.tally.take(key, record.copy_of, record.left_out, order=order)
        if self._limit is not None and reason in (None, record.reason):
            self.found.append(record)


class _Taken:
    """The right to read, within a time that a caller waits."""

    def __init__(self, lock: asyncio.Lock) -> None:
        self._lock = lock

    async def __aenter__(self) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                await self._lock.acquire()
        except TimeoutError:
            msg = "too many are reading the quarantine; try again shortly"
            raise ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=2) from None

    async def __aexit__(self, *_: object) -> None:
        self._lock.release()


def _told(message: Message) -> Record:
    found = dict(cast("list[tuple[str, bytes | None]]", message.headers() or []))
    return Record(
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        at_ms=message.timestamp()[1],
        tenant=_text(found.get(names.HEADER_TENANT)),
        reason=_text(found.get(names.HEADER_REASON)) or "",
        source=_text(found.get(names.HEADER_SOURCE)) or "",
        origin=_text(found.get(names.HEADER_ORIGIN)),
        version=_number(found.get(names.HEADER_VERSION)),
        bytes=len(message.value() or b""),
        is_note=names.HEADER_REPLAYED in found,
        left_out=_number(found.get(names.HEADER_LEFT_OUT)) or 0,
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _number(value: bytes | None) -> int | None:
    text = _text(value) or ""
    return int(text) if _NUMBER.fullmatch(text) else None


def _consumer(kafka: Kafka) -> Consumer:
    return Consumer(
        {
            **kafka.client_options(),
            "group.id": "weir-dashboard",
            "enable.auto.commit": False,
            "queued.max.messages.kbytes": PREFETCH_KB,
            "fetch.max.bytes": PREFETCH_KB * 1024,
            "log_level": 2,
        }
    )


def _ends(consumer: Consumer, partition: int) -> tuple[int, int]:
    where = TopicPartition(names.QUARANTINE, partition)
    low, high = consumer.get_watermark_offsets(where, timeout=TIMEOUT_S)
    return low, high


def _read(consumer: Consumer, ranges: dict[int, tuple[int, int]]) -> Iterator[Message]:
    """Return the records of ranges that lie below the ends of their partitions."""
    left = {partition: end for partition, (_, end) in ranges.items()}
    consumer.assign(
        [TopicPartition(names.QUARANTINE, p, start) for p, (start, _) in ranges.items()]
    )
    while left:
        message = consumer.poll(TIMEOUT_S)
        if message is None:
            raise _away()
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            raise _away()
        if offset < left.get(partition, 0):
            yield message
        if offset + 1 >= left.get(partition, offset + 2):
            del left[partition]


def _away() -> ProblemError:
    msg = "the log does not answer; what it holds is kept, try again shortly"
    return ProblemError(503, Reason.LOG_UNAVAILABLE, msg, retry_after_s=2)
