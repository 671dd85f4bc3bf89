"""`weir.events`, written: an answer waits here until Kafka has every record.

Delivery: at least once. `append` returns only after all in-sync replicas have
acknowledged each record. If it raises "not confirmed", some records may be in
the log or still reach it: the client sends again with the same ids and the
engine counts them once.

Every record carries a delivery callback. One on the last record of a request
would be cheaper by a tenth of the whole path, and wrong: records of one request
lie in several partitions, each with an order of its own
(docs/decisions/0012-delivery-callbacks.md).

A producer that the library calls broken for good (a broker that lost what it had
acknowledged breaks the order that idempotence promises) is replaced by a new one;
what it had not confirmed is answered so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from weir import names
from weir.kafka import Kafka
from weir.problems import ProblemError, Reason
from weir_service.failpoints import failpoint

from weir_ingest.instruments import Instruments

RecordHeaders = list[tuple[str, str | bytes | None]]

# While something is outstanding the loop asks librdkafka this often; its own
# thread does the work, so the price of a look is a microsecond.
_POLL_S = 0.001
_ROOM_POLL_S = 0.005
# What stays unknown is given up here, well after the answer was 503.
_MESSAGE_TIMEOUT_MS = 30_000
_RECORD_OVERHEAD_BYTES = 200
# What a broker takes by default is 1,048,588 bytes for a batch of records.
_MAX_BATCH_BYTES = 1_048_000

_log = structlog.get_logger()


class Record(NamedTuple):
    """One record to append.

    Attributes:
        on_stored: Called with the acknowledged message; for the live tail.
    """

    value: bytes
    key: bytes
    headers: RecordHeaders
    on_stored: Callable[[Message], None] | None = None


@dataclass(frozen=True, slots=True)
class LogLimits:
    """How much may wait for Kafka, and how long an answer waits.

    Attributes:
        max_records: Most records without acknowledgement.
        max_bytes: Most bytes of them.
        timeout_s: Time for all records of one request.
    """

    max_records: int
    max_bytes: int
    timeout_s: float


class Delivery:
    """The acknowledgements of one request's records."""

    __slots__ = ("_last", "_on_closed", "_remaining", "done", "error", "size", "started_s")

    def __init__(self, count: int, size: int, on_closed: Callable[[Delivery], None]) -> None:
        loop = asyncio.get_running_loop()
        self._remaining = count
        self._last: dict[int | None, Message] = {}
        self._on_closed = on_closed
        # True once every record is reported on, False if that takes too long.
        self.done: asyncio.Future[bool] = loop.create_future()
        self.error: KafkaError | None = None
        self.size = size
        self.started_s = loop.time()

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Take one record's report. Kafka reports a partition's records in their order."""
        if error is None:
            self._last[message.partition()] = message
        else:
            self.error = error
        self._remaining -= 1
        if self._remaining == 0:
            self._close()

    def give_up(self, count: int) -> None:
        """Expect no report of records that were never handed to Kafka."""
        self._remaining -= count
        if self._remaining == 0:
            self._close()

    def fail(self, error: KafkaError) -> None:
        """Expect no report at all: the producer that owes them is given up."""
        self.error = error
        self._remaining = 0  # a report that still comes counts down from here and closes nothing
        self._close()

    def _close(self) -> None:
        self._on_closed(self)
        if not self.done.done():
            self.done.set_result(True)

    def expire(self) -> None:
        """Let the request be answered; the reports are still awaited."""
        if not self.done.done():
            self.done.set_result(False)

    def with_hook(self, hook: Callable[[Message], None]) -> Callable[[Any, Message], None]:
        """Return a report that also hands a stored record on."""

        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                try:
                    hook(message)
                except Exception:  # noqa: BLE001 - it is stored, whatever a hook makes of it
                    _log.exception("hook_failed", at=[message.partition(), message.offset()])
            self.report(error, message)

        return report

    def position(self) -> dict[int, int]:
        """Return the highest offset in each partition."""
        return {
            partition: message.offset() or 0
            for partition, message in self._last.items()
            if partition is not None
        }


class EventLog:
    """The producer of `weir.events`. Use it from the event loop's thread only."""

    def __init__(
        self, kafka: Kafka, linger_ms: int, limits: LogLimits, instruments: Instruments
    ) -> None:
        self._limits = limits
        self._instruments = instruments
        self._settings = _producer_settings(kafka, linger_ms, limits)
        self._producer = Producer(self._settings)
        self._broken: KafkaError | None = None
        self._is_renewed = False
        self._open: dict[Delivery, int] = {}
        self._records = self._bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    async def append(self, records: Sequence[Record]) -> dict[int, int]:
        """Append records; return the highest offset in each partition once all are stored.

        Raises:
            ProblemError: 503 `log_unavailable`: nothing was sent, or what was sent
                is not confirmed; the message says which. 413 `body_too_large`, if
                the records are more than may ever wait.
        """
        if not records:
            return {}
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._limits.timeout_s
        size = len(records) * _RECORD_OVERHEAD_BYTES + sum(len(r[0]) + len(r[1]) for r in records)
        has_waited = await self._wait_for_room(len(records), size, deadline_s)
        delivery = Delivery(len(records), size, self._closed)
        self._send(records, delivery)
        failpoint("C1")
        # `_poll` gives each delivery the whole time; one that has waited has less left.
        timer = loop.call_at(deadline_s, delivery.expire) if has_waited else None
        is_reported = await delivery.done
        if timer is not None:
            timer.cancel()
        if not is_reported:
            self._instruments.delivery_failures.inc(len(records))
            raise _unconfirmed(why="Kafka did not acknowledge in time")
        if delivery.error is not None:
            self._instruments.delivery_failures.inc(len(records))
            raise _unconfirmed(delivery.error.str())
        self._is_renewed = False
        self._instruments.delivery_seconds.observe(loop.time() - delivery.started_s)
        failpoint("C2")
        return delivery.position()

    async def _wait_for_room(self, count: int, size: int, deadline_s: float) -> bool:
        """Return once there is room for a request's records, and whether that took time."""
        if count > self._limits.max_records or size > self._limits.max_bytes:
            raise _never_fits(count, size, self._limits)
        loop = asyncio.get_running_loop()
        has_waited = False
        while not self._has_room(count, size) or self._is_stuck(loop.time()):
            if self._is_stuck(loop.time()) or loop.time() >= deadline_s:
                raise ProblemError(
                    503,
                    Reason.LOG_UNAVAILABLE,
                    "the log did not take events in time; nothing of this request is stored; "
                    "send it again, same ids",
                    retry_after_s=3,
                )
            has_waited = True
            await asyncio.sleep(_ROOM_POLL_S)
        return has_waited

    def _has_room(self, count: int, size: int) -> bool:
        return (
            self._records + count <= self._limits.max_records
            and self._bytes + size <= self._limits.max_bytes
        )

    def _is_stuck(self, now_s: float) -> bool:
        """Say whether the oldest request waits longer than any answer may.

        Then another would wait in vain and only fill the queue.
        """
        oldest = next(iter(self._open), None)
        return oldest is not None and now_s - oldest.started_s > self._limits.timeout_s

    def _send(self, records: Sequence[Record], delivery: Delivery) -> None:
        produce = self._producer.produce
        self._open[delivery] = len(records)
        self._records += len(records)
        self._bytes += delivery.size
        sent = 0
        try:
            for value, key, headers, hook in records:
                report = delivery.report if hook is None else delivery.with_hook(hook)
                produce(names.EVENTS, value, key, headers=headers, on_delivery=report)
                sent += 1
        except (BufferError, KafkaException) as error:
            delivery.give_up(len(records) - sent)
            if isinstance(error, KafkaException):
                self._on_error(error)
            raise _unconfirmed(str(error)) from None
        finally:
            self._watch()

    def _closed(self, delivery: Delivery) -> None:
        self._records -= self._open.pop(delivery)
        self._bytes -= delivery.size

    def _watch(self) -> None:
        if self._timer is None and (self._open or self._broken is not None):
            self._timer = asyncio.get_running_loop().call_later(_POLL_S, self._poll)

    def _on_error(self, error: KafkaException) -> None:
        """Note an error that ends a producer; the library mends all others itself.

        It raises the first word of it from `poll`, and a code without cause from each
        `produce` after it.
        """
        why: KafkaError = error.args[0]
        if self._broken is None and (why.fatal() or why.code() == KafkaError._FATAL):
            self._broken = why

    def _renew(self, error: KafkaError) -> None:
        """Put a new producer in the place of one that will never send again."""
        _log.error("producer_broken", error=error.str(), unconfirmed_records=self._records)
        broken, self._producer = self._producer, Producer(self._settings)
        self._broken, self._is_renewed = None, True
        for delivery in list(self._open):
            delivery.fail(error)
        # Its end waits for its threads, which must not hold up the loop.
        asyncio.get_running_loop().run_in_executor(None, broken.purge)

    def _poll(self) -> None:
        self._timer = None
        try:
            try:
                self._producer.poll(0)
            except KafkaException as error:
                self._on_error(error)
            if self._broken is not None:
                self._renew(self._broken)
            self._expire()
        finally:
            self._watch()

    def _expire(self) -> None:
        """Let those be answered that wait for too long."""
        # One timer for all requests: a timer each costs more than the record.
        overdue_s = asyncio.get_running_loop().time() - self._limits.timeout_s
        for delivery in self._open:
            if delivery.started_s > overdue_s:
                break  # the rest are younger
            delivery.expire()

    @property
    def unacknowledged(self) -> int:
        """Records that Kafka has not reported on yet."""
        return self._records

    @property
    def is_stuck(self) -> bool:
        """Whether Kafka has not answered for longer than a request may wait.

        Nor has it, since a producer broke, until the new one has stored something.
        """
        return self._is_renewed or self._is_stuck(asyncio.get_running_loop().time())

    @property
    def oldest_age_ms(self) -> int:
        """How long the oldest open request has waited, 0 if none is open."""
        oldest = next(iter(self._open), None)
        if oldest is None:
            return 0
        return round((asyncio.get_running_loop().time() - oldest.started_s) * 1000)

    async def close(self, timeout_s: float) -> int:
        """Wait for what is outstanding; return how many records stayed unconfirmed."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        # Its poll timer goes on and closes what Kafka reports.
        while self._open and loop.time() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(_ROOM_POLL_S)
        if self._timer is not None:
            self._timer.cancel()
        return self._records


def _producer_settings(kafka: Kafka, linger_ms: int, limits: LogLimits) -> dict[str, Any]:
    return {
        **kafka.client_options(),
        "client.id": "weir-ingest",
        "acks": "all",
        "enable.idempotence": True,
        # As Java clients place keys; the engine's dedup rests on it.
        "partitioner": "murmur2_random",
        "linger.ms": linger_ms,
        # The library's own check is of a single record; below its default lies the
        # largest event with key and headers.
        "message.max.bytes": _MAX_BATCH_BYTES,
        "message.timeout.ms": _MESSAGE_TIMEOUT_MS,
        "reconnect.backoff.max.ms": 1_000,
        "socket.keepalive.enable": True,
        # `LogLimits` are checked before a record is handed over; the library's
        # own bounds lie above them, so that a request is never cut in two.
        "queue.buffering.max.messages": 2 * limits.max_records,
        "queue.buffering.max.kbytes": 2 * limits.max_bytes // 1024,
        "log_level": 4,
    }


def _never_fits(count: int, size: int, limits: LogLimits) -> ProblemError:
    return ProblemError(
        413,
        Reason.BODY_TOO_LARGE,
        f"a request must make at most {limits.max_records} records of {limits.max_bytes} bytes "
        f"with their keys, got {count} of {size} bytes; send it in parts",
    )


def _unconfirmed(why: str) -> ProblemError:
    return ProblemError(
        503,
        Reason.LOG_UNAVAILABLE,
        f"not confirmed as stored; send again, same ids; {why}",
        retry_after_s=2,
    )
