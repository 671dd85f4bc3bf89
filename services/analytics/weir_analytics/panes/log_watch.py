"""Beside the driver: its offsets for Kafka's own tools, and how long the log still holds.

The offsets of the consumer group `weir-panes` are told, never counted by: marks are the
truth about progress. They let `kafka-consumer-groups` and every exporter of lag see what
they see of any other consumer; and what stands beside them lets the dashboard say how long
the log still holds what waits while there is no driver (`weir_reading/log_look.py`). Nothing
here stops or delays a batch: it has a thread of its own, asks nothing that is not asked for
in the background, and tries again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from weir import log_place, names
from weir.clock import Clock
from weir.definitions.fold import Definitions
from weir.kafka import Kafka
from weir.log_left import LogLeft
from weir.log_place import LogPlace
from weir_reading.log_look import LogLook
from weir_reading.log_sight import LOOK_S, LogSight

from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.vitals import LanesLeft, Vitals

LOG = structlog.get_logger()
COMMIT_S = 1.0
# While a broker starts some are refused: not worth a word.
REFUSALS = 10
TIMEOUT_S = 5.0


def lanes_left(book: LaneBook, definitions: Definitions) -> LanesLeft:
    """Return what lanes have still to count: those that numbers need, or else all."""
    needed = book.needed(definitions)
    lanes = needed or book.open(definitions)
    out = {lane.offset for lane in book.left_out(lanes)}
    first, stuck, rest = dict[int, int](), dict[int, int](), dict[int, int]()
    for lane, at in book.standing(lanes):
        # Nobody waits for one that was set aside, as one does for those that are tried again. For a
        # minute it looks as if it had been counted: that delays a warning, and makes no false one.
        counts = lane.offset not in book.refused
        for p, end in lane.end.items():
            n = at.get(p, 0)
            rest[p] = rest.get(p, 0) + (max(0, end - n) if counts else 0)
            if n < end:
                first[p] = min(n, first.get(p, n))
                if lane.offset in out:
                    stuck[p] = min(n, stuck.get(p, n))
    left_out = frozenset(p for p, n in stuck.items() if n == first[p])
    return LanesLeft(first, rest, left_out, again=bool(needed))


@dataclass(frozen=True)
class _Seen:
    """What a look has found of lanes.

    Attributes:
        lanes: What they had still to count.
        since_ms: By partition, when what they count next was appended; None if it is gone.
    """

    lanes: LanesLeft = field(default_factory=LanesLeft)
    since_ms: Mapping[int, int | None] = field(default_factory=dict)


class GroupOffsets:
    """Tells Kafka how far the driver has counted; at most once a second, without waiting."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._topic = topic
        self._told: Mapping[int, LogPlace] = {}
        self._refusals = 0
        # It subscribes to nothing, so it is no member: the group stays empty, and nobody
        # is ever given a partition.
        self._consumer = Consumer(
            {
                **kafka.client_options(),
                "group.id": names.PANES_GROUP,
                "enable.auto.commit": False,
                "on_commit": self._done,
                "log_level": 2,
            }
        )

    def tell(self, places: Mapping[int, LogPlace]) -> None:
        """Commit how far counting is in each partition, if that has changed."""
        self._consumer.poll(0)  # calls `_done`, and takes what else the client has to say
        if not places or places == self._told:
            return
        offsets = [
            TopicPartition(self._topic, p, place.counted, metadata=log_place.write(place))
            for p, place in places.items()
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            self._refuse(str(error))
            return
        self._told = dict(places)

    def _done(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        why = next((one for one in (error, *(place.error for place in places)) if one), None)
        if why is None:
            self._refusals = 0
        else:
            self._refuse(str(why))

    def _refuse(self, why: str) -> None:
        """Have it tried again at the next call; told once, if it goes on."""
        self._told = {}
        self._refusals += 1
        if self._refusals == REFUSALS:
            LOG.warning("group_not_told", error=why)

    def close(self) -> None:
        """Let go of the connection; what was asked for last may be lost."""
        self._consumer.close()


class LogWatch:
    """Looks at both ends of the log, at its retention and at the driver's place in it."""

    def __init__(self, kafka: Kafka, clock: Clock, topic: str = names.EVENTS) -> None:
        self._kafka, self._clock, self._topic = kafka, clock, topic
        self._log = LogOffsets(kafka, topic, timeout_s=TIMEOUT_S)
        self._look = LogLook(kafka, clock, topic)
        self._seen = _Seen()

    def run(self, vitals: Vitals, stop: threading.Event) -> None:
        """Tell and look until told to stop; an absent broker is waited for."""
        group = GroupOffsets(self._kafka, self._topic)
        sight = LogSight(partial(self.look, vitals), self._clock)
        look_at_s = 0.0
        while not stop.wait(COMMIT_S):
            group.tell(self.places(vitals))
            if self._clock.monotonic_s() >= look_at_s and vitals.counted:
                look_at_s = self._clock.monotonic_s() + LOOK_S
                sight.once()
            # A figure that stands still would be told for the present with each heartbeat.
            vitals.log_left = sight.lately()
        group.close()

    def places(self, vitals: Vitals) -> dict[int, LogPlace]:
        """Return what is told of each partition: live as it is now, lanes as of the last look."""
        lanes, since_ms = self._seen.lanes, self._seen.since_ms
        return {
            p: LogPlace(
                counted=n,
                received_ms=vitals.received_ms.get(p),
                lane=lanes.first.get(p),
                lane_ms=since_ms.get(p),
                again=lanes.again,
                rest=lanes.rest.get(p),
                left_out=p in lanes.left_out,
            )
            for p, n in vitals.counted.items()
        }

    def look(self, vitals: Vitals) -> LogLeft:
        """Return what is lost first; see `LogLook.left`.

        Raises:
            KafkaException: If a broker did not answer, or refused.
            TimeoutError: If the log did not answer.
        """
        lanes = vitals.lanes
        start = self._look.start(lanes.first)
        since_ms = {
            p: self._log.received_ms(p, n) if n >= start[p] else None
            for p, n in lanes.first.items()
        }
        self._seen = _Seen(lanes, since_ms)
        return self._look.left(self.places(vitals))
