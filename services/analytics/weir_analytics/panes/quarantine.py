"""Quarantine: copies of records that could not be used, with the reason.

Delivery: at least once, before the batch commits (S3 before S4). A batch that
runs again sends the same copies under the same keys; readers keep one a key.
A producer belongs to one worker process and lives as long as it does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from confluent_kafka import KafkaException
from weir import names
from weir.event import DEFAULT_TENANT, FOREIGN_SOURCE, UNREADABLE, owner
from weir.kafka import Kafka
from weir.problems import Reason

from weir_analytics.panes.stored import StoredWriter

# Brokers take 1,048,588 bytes by default, headers and key among them.
MAX_COPY_BYTES = 1_000_000
CUT_BYTES = 64 * 1024
# Of what another producer put into a header; ours are a number and 64 digits.
MAX_HEADER_BYTES = 64
FLUSH_S = 30.0

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Origin:
    """Where a record stands in the log, and when it was appended there.

    Attributes:
        topic_id: Kafka's id of the topic: one that was made anew has the same offsets again.
            Copies of earlier releases go without, so they are of a log before.
    """

    topic: str
    topic_id: str
    partition: int
    offset: int
    at_ms: int

    @property
    def place(self) -> str:
        """Return what makes the identity of a record without an id, in one log."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    def __str__(self) -> str:
        return f"{self.topic}/{self.topic_id}/{self.partition}/{self.offset}"


@dataclass(frozen=True)
class Copy:
    """One record of `weir.quarantine`.

    Attributes:
        vid: The metric version that could not use the event; None: nobody could.
    """

    origin: Origin
    value: bytes | None
    reason: str
    tenant: str
    source: str
    vid: int | None = None
    extra: Mapping[str, bytes] | None = None

    def key(self) -> bytes:
        """Return the key by which readers keep one copy."""
        suffix = "" if self.vid is None else f"/{self.vid}"
        return f"{self.origin}{suffix}".encode()

    def record(self) -> tuple[bytes | None, list[tuple[str, str | bytes | None]]]:
        """Return value and headers; of an oversized record the value's beginning and digest."""
        headers: dict[str, str | bytes | None] = {
            names.HEADER_REASON: self.reason.encode(),
            names.HEADER_TENANT: self.tenant.encode(),
            names.HEADER_SOURCE: self.source.encode(),
            names.HEADER_ORIGIN: str(self.origin).encode(),
            names.HEADER_AT: str(self.origin.at_ms).encode(),
        }
        if self.vid is not None:
            headers[names.HEADER_VERSION] = str(self.vid).encode()
        headers |= self.extra or {}
        value = self.value
        if value is not None and len(value) + _size(headers) > MAX_COPY_BYTES:
            headers |= oversize_headers(value)
            value = value[:CUT_BYTES]
        return value, list(headers.items())


def _size(headers: Mapping[str, str | bytes | None]) -> int:
    return sum(len(name) + len(value or b"") for name, value in headers.items())


def oversize_headers(value: bytes) -> dict[str, bytes]:
    """Return the headers that stand for the part of a value that is not kept."""
    return {
        names.HEADER_LENGTH: str(len(value)).encode(),
        names.HEADER_SHA256: hashlib.sha256(value).hexdigest().encode(),
    }


class QuarantineWriter:
    """Sends copies to `weir.quarantine` and waits until they are stored."""

    def __init__(self, kafka: Kafka) -> None:
        self._writer = StoredWriter(
            kafka, **{"message.max.bytes": 2_000_000, "partitioner": "murmur2_random"}
        )
        self._sent = 0

    def send(self, copy: Copy) -> None:
        """Queue one copy; waits while the queue is full."""
        value, headers = copy.record()
        self._writer.queue(names.QUARANTINE, copy.key(), value, headers)
        self._sent += 1

    def flush(self) -> int:
        """Return how many copies were stored since the last call, once all of them are.

        Raises:
            KafkaException: If Kafka did not store one; the batch must run again.
        """
        missing = self._writer.missing(FLUSH_S)
        sent, self._sent = self._sent, 0
        if missing is not None:
            why = missing.str()
            msg = f"could not store copies in {names.QUARANTINE} within {FLUSH_S:.0f} s: {why}"
            raise KafkaException(msg)
        return sent


@cache
def quarantine_writer(kafka: Kafka) -> QuarantineWriter:
    """Return the writer of this process."""
    return QuarantineWriter(kafka)


def header_text(headers: Mapping[str, Any], name: str, default: str) -> str:
    """Return a header as text, whatever bytes another producer put there."""
    value = headers.get(name)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else default


def reason_of(headers: Mapping[str, Any]) -> str:
    """Return the reason that a record gives, if it reads like one of ours."""
    reason = header_text(headers, names.HEADER_REASON, Reason.NOT_AN_EVENT)
    return reason if _CODE.fullmatch(reason) else Reason.NOT_AN_EVENT


_CODE = re.compile("[a-z][a-z0-9_]{0,63}")
OTHER = "other"
_REASONS = frozenset(Reason)


def listed(reason: str) -> str:
    """Return a reason of ours as it is, and any other as one: figures are told by it."""
    return reason if reason in _REASONS else OTHER


def kept_headers(headers: Mapping[str, Any]) -> dict[str, bytes]:
    """Return what tells how a refused item was read, and of its part that was not kept."""
    told = (names.HEADER_MAPPING, names.HEADER_LENGTH, names.HEADER_SHA256)
    kept = {name: headers.get(name) for name in told}
    return {name: v for name, v in kept.items() if v is not None and len(v) <= MAX_HEADER_BYTES}


class _Owner(msgspec.Struct):
    weirtenant: str = DEFAULT_TENANT
    weirsource: str = FOREIGN_SOURCE


_OWNER = msgspec.json.Decoder(_Owner)


def event_owner(value: bytes | None) -> tuple[str, str]:
    """Return tenant and source that an event's record names; those of a foreign one else."""
    try:
        said = _OWNER.decode(value or b"")
    except UNREADABLE:
        return DEFAULT_TENANT, FOREIGN_SOURCE
    return owner(said.weirtenant, said.weirsource)
