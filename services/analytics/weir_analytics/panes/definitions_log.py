"""`weir.definitions` as the driver uses it: read from its start, and written with read-back.

What the driver wrote counts only once it has been read back at its place in the
order: that, not the acknowledgement, tells whether a newer driver was faster.
"""

from __future__ import annotations

from typing import Any

import structlog
from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from weir import names
from weir.commit import Verdict
from weir.definitions.fold import Definitions
from weir.definitions.records import NewRecord
from weir.kafka import Kafka, refusal
from weir_reading.follower import Record
from weir_reading.passed_over import PassedOver

from weir_analytics.panes.recovery import VerdictError

LOG = structlog.get_logger()

TIMEOUT_S = 15.0
READ_AT_ONCE = 500


class DefinitionsLog:
    """The topic, read and appended to by one driver; not to be shared between threads.

    Attributes:
        fold: Everything read so far.
        writes: How many records were sent, whatever became of them.
    """

    def __init__(self, kafka: Kafka) -> None:
        common = {**kafka.client_options(), "log_level": 2, "error_cb": _tell_refusal}
        self._consumer = Consumer(
            common
            | {"group.id": "weir-panes", "enable.auto.commit": False, "fetch.wait.max.ms": 100}
            # A place that is gone is no reason to go on at the end.
            | {"auto.offset.reset": "error"}
        )
        self._place = TopicPartition(names.DEFINITIONS, 0)
        self._is_assigned = False
        self._producer = Producer(common | {"acks": "all", "enable.idempotence": True})
        self.fold = Definitions()
        self.writes = 0
        self._passed_over = PassedOver()

    def close(self) -> None:
        """Close both connections."""
        self._consumer.close()
        self._producer.flush(TIMEOUT_S)

    def end(self) -> int:
        """Return the offset that the next record will get; what is before it comes from now on.

        Raises:
            KafkaException: If no broker answered.
        """
        try:
            start, end = self._consumer.get_watermark_offsets(self._place, timeout=TIMEOUT_S)
        except KafkaException:
            self.poll()  # the library says why brokers refuse from there only
            raise
        if not self._is_assigned:
            # By its number: who asks for "the beginning" before the broker is known asks again
            # after half a second.
            self._consumer.assign([TopicPartition(names.DEFINITIONS, 0, int(start))])
            self._is_assigned = True
        return int(end)

    def poll(self) -> None:
        """Fold what has already arrived, without waiting.

        Raises:
            NewerFormatError: If a newer release wrote some of it.
        """
        self._take(self._consumer.consume(READ_AT_ONCE, timeout=0))

    def read_to(self, end: int) -> None:
        """Fold the records up to an offset, exclusive, waiting for them.

        Raises:
            NewerFormatError: If a newer release wrote some of them.
            KafkaException: If no broker answered.
            TimeoutError: If they did not come.
        """
        if not self._is_assigned:
            self.end()
        while self.fold.next_offset < end:
            first = self._consumer.poll(TIMEOUT_S)
            if first is None:
                msg = f"{names.DEFINITIONS} did not answer within {TIMEOUT_S:.0f} s"
                raise TimeoutError(msg)
            # `consume` waits for as many as are asked for, unless it may not wait at all.
            self._take([first, *self._consumer.consume(READ_AT_ONCE, timeout=0)])

    def append(self, record: NewRecord) -> int:
        """Append a record, read it back, and return its offset.

        What became of it tells `fold`, once it is read back.

        Raises:
            KafkaException: If it was not stored in time; it may be there all the same.
            TimeoutError: The same, or it could not be read.
        """
        stored: list[int] = []
        failed: list[Any] = []

        def delivered(error: Any, message: Message) -> None:
            if error is not None:
                failed.append(error)
            else:
                stored.append(message.offset() or 0)

        self.writes += 1
        self._producer.produce(names.DEFINITIONS, record.value, record.key, on_delivery=delivered)
        self._producer.flush(TIMEOUT_S)
        if failed:
            raise KafkaException(failed[0])
        if not stored:
            msg = f"could not write to {names.DEFINITIONS} within {TIMEOUT_S:.0f} s"
            raise TimeoutError(msg)
        self.read_to(stored[0] + 1)
        return stored[0]

    def append_fenced(self, record: NewRecord, fence: int) -> int:
        """Append a driver's own record, read it back, and return its offset.

        Args:
            record: What the driver says.
            fence: Its fence.

        Raises:
            VerdictError: FENCED if a newer driver has started: every reader ignores the record.
            KafkaException: If it was not stored in time; it may be there all the same.
            TimeoutError: The same, or it could not be read.
        """
        offset = self.append(record)
        self.check_fence(fence)
        return offset

    def check_fence(self, fence: int) -> None:
        """Do nothing while no newer start record was read than a driver's own.

        Raises:
            VerdictError: FENCED if there is one: every reader ignores the driver from there on.
        """
        newest = self.fold.fence()
        if newest != fence:
            msg = f"fence must be {fence}, the newest start record is {newest}: another driver runs"
            raise VerdictError(Verdict.FENCED, msg)

    def check_fence_now(self, fence: int) -> None:
        """Read up to the end, then check the fence: nobody else had started a moment ago.

        Raises:
            VerdictError: FENCED if somebody had.
            KafkaException: If no broker answered.
            TimeoutError: If what was written did not come.
        """
        self.read_to(self.end())
        self.check_fence(fence)

    def _take(self, messages: list[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            key, value = message.key() or b"", message.value() or b""
            record = Record(message.offset() or 0, key, value, message.timestamp()[1])
            change = self.fold.apply(record.offset, key, value)
            if change is not None:
                self._passed_over.take(record, change)
        self.fold.newer.check()


def _tell_refusal(error: KafkaError) -> None:
    why = refusal(error.name(), error.str())
    if why is not None:
        LOG.error("log_refused", why=why)
