"""Events of every protocol, from request to answer: the hot way, in front of the framework.

The way of a request: credential → quota → body within limits → items by its protocol →
each item judged → records appended → the protocol's answer, once Kafka has acknowledged
all of them. Where the body carries the credential, it is read first. One bad item is
stored with its reason and harms no other; a request that cannot be read is refused
whole, before anything of it is stored.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import structlog
from confluent_kafka import Message
from weir import names
from weir.admission import Admitted, Refused, Terms
from weir.clock import Clock
from weir.event import MAX_KEPT_BYTES
from weir.position import format_position
from weir.problems import ProblemError, Reason
from weir.quick import admit_all
from weir_service.last_used import LastUsed

from weir_ingest.answers import Answer, Item
from weir_ingest.body import (
    BodyLimits,
    Budget,
    ClientGoneError,
    Held,
    check_framing,
    read_body,
)
from weir_ingest.cors import cors_headers
from weir_ingest.event_log import EventLog, Record, RecordHeaders
from weir_ingest.head import Head, Receive, Scope, Send
from weir_ingest.instruments import Instruments
from weir_ingest.keys import Keys, StoredKey, presented
from weir_ingest.protocols.batch import Batch, BatchLimits
from weir_ingest.quota import Quota, Size
from weir_ingest.tail import Tail, refused_entry_of
from weir_ingest.wire import Stored, Wire

# The first header tells what a record is (docs/interfaces.md 1).
EVENT_HEADERS: RecordHeaders = [(names.HEADER_CONTENT_TYPE, names.CLOUDEVENT_JSON)]
TAIL_HEADERS: RecordHeaders = [(names.HEADER_TAIL, b"1"), *EVENT_HEADERS]

_IDEMPOTENCY_KEY = b"idempotency-key"
_MAX_IDEMPOTENCY_KEY = 512
# A request of 10,000 events takes a tenth of a second, a megabyte of the oddest JSON as
# much: others get a turn between.
_SLICE = 1_000
_SLICE_BYTES = 131_072
_SMALL_BYTES = 1_024
_new = tuple.__new__

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Parts:
    """What the route works with."""

    keys: Keys
    log: EventLog
    tail: Tail
    clock: Clock
    instruments: Instruments
    budget: Budget
    body_limits: BodyLimits
    batch_limits: BatchLimits
    max_decoded_bytes: int
    quota: Quota
    last_used: LastUsed


@dataclass(slots=True)
class _Request:
    """A request while it is answered.

    Attributes:
        head: Its head.
        held: What it holds of the budget.
        caller: Who sends it; None until that is known.
    """

    head: Head
    held: Held
    caller: StoredKey | None = None


class Accept:
    """What answers requests that carry events."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, wire: Wire, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request in a protocol."""
        parts = self._parts
        head = Head(scope, parts.clock.now_ms())
        request = _Request(head, Held(parts.budget))
        try:
            answer = await self._answered(wire, request, receive)
        except ProblemError as problem:
            parts.instruments.refused(problem.reason)
            answer = wire.refused(head, problem)
        except ClientGoneError:
            return
        finally:
            request.held.release()
        if request.caller is not None:
            told = parts.quota.headers(request.caller, parts.clock.monotonic_s())
            answer.headers.extend(told)
        origin = head.headers.get(b"origin")
        if origin is not None:
            answer.headers.extend(cors_headers(origin))
        parts.instruments.answered(answer.status)
        await answer.send(send)

    async def _answered(self, wire: Wire, request: _Request, receive: Receive) -> Answer:
        parts, head, held = self._parts, request.head, request.held
        check_framing(head)
        token = presented(head, wire.query_keys)
        caller = None
        if token or not wire.has_key_in_body:
            caller = self._admit(parts.keys.caller(token), request)
        body = await read_body(
            head, receive, parts.body_limits, held, may_be_empty=wire.may_be_empty
        )
        parts.instruments.body_bytes.inc(len(body))
        body = wire.decode(head, body, parts.max_decoded_bytes)
        held.grow(len(body))
        await _give_turn(body)
        if caller is None:
            caller = self._admit(wire.caller_in(head, body, parts.keys), request)
        batch = wire.read(head, body, parts.batch_limits)
        await _give_turn(body)
        return await self._store(wire, head, caller, batch, len(body))

    def _admit(self, caller: StoredKey, request: _Request) -> StoredKey:
        """Return a caller that may send now; what is held is held by its tenant."""
        parts = self._parts
        request.caller = caller
        if caller.id:
            parts.last_used.note(caller.tenant, caller.id)
        request.held.assign(caller.tenant)
        parts.quota.check(caller, parts.clock.monotonic_s())
        return caller

    async def _store(
        self, wire: Wire, head: Head, caller: StoredKey, batch: Batch, body_bytes: int
    ) -> Answer:
        terms = terms_of(head, caller, batch)
        judged = await judge(batch.items, terms)
        first = judged[0] if judged else None
        if batch.whole and isinstance(first, Refused) and first.reason in _UNREADABLE:
            raise ProblemError(400, first.reason, f"body must be JSON; {first.detail}")
        records = self._records(batch, judged, caller)
        # Of a body without events nothing is stored.
        size = Size(len(records), body_bytes if records else 0)
        offsets = await self._append(records, caller, size)
        stored = self._counted(head, batch.items, judged, format_position(offsets), terms)
        answer = wire.stored(stored)
        answer.headers.append((b"weir-position", stored.position.encode()))
        return answer

    async def _append(self, records: list[Record], caller: StoredKey, size: Size) -> dict[int, int]:
        """Append records, counted against the quotas only if they are stored."""
        quota, clock = self._parts.quota, self._parts.clock
        quota.take(caller, size, clock.monotonic_s())
        try:
            return await self._parts.log.append(records)
        except ProblemError:
            quota.give_back(caller, size, clock.monotonic_s())
            raise

    def _records(
        self, batch: Batch, judged: Sequence[Admitted | Refused], caller: StoredKey
    ) -> list[Record]:
        """Return one record for each item; the first few of them go to the tail."""
        tail, tenant = self._parts.tail, caller.tenant
        sampled = min(tail.sampler.room(tenant, self._parts.clock.now_ms()), len(judged))
        tail.sampler.take(tenant, sampled)
        records = []
        for index, item in enumerate(judged):
            if isinstance(item, Refused):
                record = refusal_record(batch.items[index], item, caller, batch.mapped)
                hook = self._shown_refusal(item, caller) if index < sampled else None
                records.append(record._replace(on_stored=hook))
            elif index < sampled:
                show = lambda stored: tail.show(tenant, stored)  # noqa: E731
                records.append(Record(item.value, item.key, TAIL_HEADERS, show))
            else:
                # What `Record(...)` does, at half the price: there are thousands of them.
                records.append(_new(Record, (item[0], item[1], EVENT_HEADERS, None)))
        return records

    def _shown_refusal(self, refused: Refused, caller: StoredKey) -> Callable[[Message], None]:
        reason, tail = refused.reason.value, self._parts.tail

        def show(stored: Message) -> None:
            tail.add(caller.tenant, refused_entry_of(stored, reason, caller.source))

        return show

    def _counted(
        self,
        head: Head,
        sent: Sequence[bytes],
        judged: Sequence[Admitted | Refused],
        position: str,
        terms: Terms,
    ) -> Stored:
        """Count what is stored, and return what became of it."""
        refused = [(n, item) for n, item in enumerate(judged) if isinstance(item, Refused)]
        for _, item in refused:
            self._parts.instruments.refused(item.reason)
        items = [Item(n, "quarantined", item.reason.value, item.detail) for n, item in refused]
        accepted = len(judged) - len(items)
        safe = all(item.retry_safe for item in judged if isinstance(item, Admitted))
        self._parts.instruments.stored(accepted, len(items), terms.arrived_ms)
        self._parts.tail.count(terms.tenant, accepted)
        return Stored(head, sent, judged, items, position, safe)


_UNREADABLE = frozenset({Reason.INVALID_JSON, Reason.INVALID_UTF8})


def terms_of(head: Head, caller: StoredKey, batch: Batch) -> Terms:
    """Return what holds for every item of a request."""
    key = head.text(_IDEMPOTENCY_KEY)
    random = os.urandom(16)
    return Terms(
        tenant=caller.tenant,
        source=caller.source,
        arrived_ms=head.arrived_ms,
        protocol=batch.protocol,
        strict=batch.strict,
        request_id=_uuid4(random.hex()),
        type=batch.type,
        subject=batch.subject,
        idempotency_key=_idempotency_key(key or ""),
        seed=int.from_bytes(random[:9], "big"),
        mapping=batch.mapping,
        time_field=caller.time_field,
    )


def _idempotency_key(header: str) -> str | None:
    """Return what a header field says, None if nothing; of one that is long its digest."""
    key = header.strip().strip('"')
    if len(key) > _MAX_IDEMPOTENCY_KEY:
        return hashlib.sha256(key.encode(errors="replace")).hexdigest()
    return key or None


def _uuid4(digits: str) -> str:
    """Return a random UUID; `uuid.UUID` takes five times as long."""
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


async def _give_turn(body: bytes) -> None:
    """Let others be answered between two steps that took long for a large body."""
    if len(body) > _SLICE_BYTES:
        await asyncio.sleep(0)


async def judge(items: Sequence[bytes], terms: Terms) -> list[Admitted | Refused]:
    """Return what each item becomes, in order."""
    judged: list[Admitted | Refused] = []
    for part in _slices(items):
        if judged:
            await asyncio.sleep(0)
        judged.extend(admit_all(part, len(judged), terms))
    return judged


def _slices(items: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Cut items into runs of few and of few bytes; a large item is alone."""
    largest = max(map(len, items), default=0)
    if largest <= _SMALL_BYTES:
        count = min(_SLICE, _SLICE_BYTES // max(1, largest))
        for start in range(0, len(items), count):
            yield items[start : start + count]
        return
    start = size = 0
    for index, item in enumerate(items):
        if index - start == _SLICE or (size and size + len(item) > _SLICE_BYTES):
            yield items[start:index]
            start, size = index, 0
        size += len(item)
    yield items[start:]


def refusal_record(raw: bytes, refused: Refused, caller: StoredKey, mapped: str = "") -> Record:
    """Return the record of an item that cannot be used: its own bytes, why, and how it was read."""
    headers: RecordHeaders = [
        (names.HEADER_REASON, refused.reason.value.encode()),
        (names.HEADER_TENANT, caller.tenant.encode()),
        (names.HEADER_SOURCE, caller.source.encode()),
    ]
    if mapped:
        headers.append((names.HEADER_MAPPING, mapped.encode()))
    if refused.reason is Reason.EVENT_TOO_LARGE:
        headers.append((names.HEADER_LENGTH, str(len(raw)).encode()))
        headers.append((names.HEADER_SHA256, hashlib.sha256(raw).hexdigest().encode()))
        raw = raw[:MAX_KEPT_BYTES]
    digest = hashlib.md5(raw, usedforsecurity=False).digest()
    return Record(raw, digest, headers)
