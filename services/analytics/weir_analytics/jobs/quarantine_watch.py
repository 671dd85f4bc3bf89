"""Beside the driver: how long `weir.quarantine` still holds what no replay has looked into.

A copy waits there for somebody to mend what it is about and to replay it, and retention does not
wait. So the topic is followed, from its start, a bounded time at each look: which copies have no
note stands all over it. Nothing here stops or delays a batch: it has a thread of its own, and
tries again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final

import structlog
from confluent_kafka import KafkaException, Message
from weir import names
from weir.clock import Clock
from weir.kafka import Kafka
from weir.log_left import LogLeft
from weir_reading.log_look import LogLook
from weir_reading.log_sight import LOOK_S, LogSight

from weir_analytics.jobs.unreplayed import Copies, DoneReplay
from weir_analytics.jobs.walk import Walk
from weir_analytics.panes.history import headers_of
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.vitals import Vitals

LOG = structlog.get_logger()
READ_S: Final = 0.5
"""For so long it is read at each look."""
CHUNK: Final = 500
TIMEOUT_S: Final = 5.0


class QuarantineWatch:
    """Follows `weir.quarantine`; not to be shared between threads.

    Attributes:
        is_through: Whether all was read once that was there as it began: what is told before may
            have a note.
    """

    def __init__(self, kafka: Kafka, clock: Clock, topic: str = names.QUARANTINE) -> None:
        self._kafka, self._clock, self._topic = kafka, clock, topic
        self._offsets = LogOffsets(kafka, topic, timeout_s=TIMEOUT_S)
        self._look = LogLook(kafka, clock, topic)
        self._copies = Copies()
        self._walk: Walk | None = None
        # Kafka's id of the topic, and the one that was found first.
        self._topic_id = self._first_id = ""
        # By partition, up to where it was read, and to where it is read now.
        self._read: dict[int, int] = {}
        self._end: dict[int, int] = {}
        self.is_through = self._is_short = False

    def run(self, vitals: Vitals, stop: threading.Event) -> None:
        """Look until told to stop; an absent broker is waited for."""
        sight = LogSight(lambda: self.look(vitals), self._clock)
        while not stop.is_set():
            sight.once()
            # A figure that stands still would be told for the present with each heartbeat.
            is_known = self.is_through and vitals.replays is not None
            vitals.quarantine_left = sight.lately() if is_known else None
            self._tell(vitals.quarantine_left)
            stop.wait(LOOK_S)
        self._close()

    def look(self, vitals: Vitals) -> LogLeft:
        """Read on, and return what is deleted first; of what was not read yet nothing is known.

        Raises:
            KafkaException: If a broker did not answer, or refused.
            TimeoutError: If none answered in time.
        """
        topic_id = self._offsets.topic_id()
        start, end = self._offsets.ends()
        if topic_id != self._topic_id:
            self._begin_anew(topic_id, vitals.replays)
        self._copies.share(len(start))
        self._read_on(start, end)
        if vitals.replays is not None:
            self._drop(vitals.replays, start)
        return self._look.left(self._copies.oldest())

    def _begin_anew(self, topic_id: str, replays: Sequence[DoneReplay] | None) -> None:
        """Begin to read a topic; what was read of another one of its name is gone with that."""
        if replays is not None:
            self._drop(replays, self._end)
        self._close()
        self._copies, self._read, self._end = Copies(), {}, {}
        self._first_id = self._first_id or topic_id
        self._topic_id, self.is_through = topic_id, False

    def _read_on(self, start: Mapping[int, int], end: Mapping[int, int]) -> None:
        if self._walk is None:
            again = self._copies.again()
            begin = {p: max(n, again.get(p, self._read.get(p, 0))) for p, n in start.items()}
            if begin == end:
                # Also of what was to be read again, and is deleted meanwhile.
                self._copies.all_read()
                self.is_through = True
                return
            self._walk = Walk(self._kafka, self._topic, begin, end, CHUNK)
            # Whatever fails on the way, it is read from here again: nothing counts twice.
            self._read, self._end = begin, dict(end)
        over_s = self._clock.monotonic_s() + READ_S
        try:
            is_done = self._walk.each(self._take, lambda: self._clock.monotonic_s() >= over_s)
        except KafkaException:
            self._close()
            raise
        if is_done:
            self._close()
            self._copies.all_read()
            self._read, self.is_through = self._end, True

    def _take(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._copies.take(
                message.partition() or 0,
                message.offset() or 0,
                message.timestamp()[1],
                dict(headers_of(message) or ()),
            )

    def _drop(self, replays: Sequence[DoneReplay], start: Mapping[int, int]) -> None:
        # What an earlier release has replayed was of the topic that was found first, or before it.
        here = [one for one in replays if (one.topic_id or self._first_id) == self._topic_id]
        deleted = self._copies.drop(here, start)
        if deleted:
            LOG.warning("quarantine_lost", copies=deleted)

    def _close(self) -> None:
        if self._walk is not None:
            self._walk.close()
            self._walk = None

    def _tell(self, left: LogLeft | None) -> None:
        """Log it once when time begins to run out, and when there is time again."""
        if left is None or left.is_short == self._is_short:
            return
        self._is_short = left.is_short
        if left.is_short:
            LOG.warning("quarantine_running_out", left_ms=left.ms, kept_ms=left.kept_ms)
        else:
            LOG.info("quarantine_lasts", left_ms=left.ms)
