"""Questions to Kafka about a topic's offsets: both its ends, a time's place, what it has lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec
from weir.commit import Offsets
from weir.commit_found import LogBounds
from weir.commit_recovery import incomplete_before_ms
from weir.kafka import Kafka
from weir_reading.log_look import retention_of
from weir_reading.offsets import EARLIEST, LATEST, ask_offsets, first_since, offsets_of

from weir_analytics.panes.history import LogPartition, record_from
from weir_analytics.panes.same_log import id_of

TIMEOUT_S: Final = 15.0
FIRST_BACK_MS: Final = 60_000
"""How far back it is asked first when records came."""


class LogOffsets:
    """One topic. Every question is asked anew: nothing is remembered."""

    def __init__(self, kafka: Kafka, topic: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._kafka, self._topic, self._timeout_s = kafka, topic, timeout_s
        self._admin = AdminClient({**kafka.client_options(), "log_level": 0})

    def topic_id(self) -> str:
        """Return Kafka's own id of the topic, as `same_log.topic_id` does.

        Raises:
            KafkaException: If there is none of that name, or no broker answered.
        """
        return id_of(self._admin, self._topic, timeout_s=self._timeout_s)

    def partitions(self) -> list[int]:
        """Return the partitions that the topic has.

        Raises:
            KafkaException: If no broker answered.
        """
        topics = self._admin.list_topics(self._topic, timeout=self._timeout_s).topics
        return sorted(topics[self._topic].partitions)

    def start(self) -> dict[int, int]:
        """Return the first offset of each partition that is still there.

        Raises:
            KafkaException: If a partition has no leader, or no broker answered.
        """
        return self._offsets(EARLIEST, self.partitions())

    def ends(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return the first offset of each partition that is still there, and the next one's.

        Raises:
            KafkaException: If a partition has no leader, or no broker answered.
        """
        partitions = self.partitions()
        return self._offsets(EARLIEST, partitions), self._offsets(LATEST, partitions)

    def bounds(self, topic_id: str) -> LogBounds:
        """Return both ends, as those of the log of some id.

        Raises:
            KafkaException: If a partition has no leader, or no broker answered.
        """
        return LogBounds(topic_id, *self.ends())

    def at(self, at_ms: int, end: Offsets) -> dict[int, int]:
        """Return the first offset of each partition that was appended at or after an instant.

        Args:
            at_ms: The instant.
            end: The partitions that are asked for; where nothing was appended since, and
                beyond it, this is the answer.

        Raises:
            KafkaException: If a partition has no leader, or no broker answered.
        """
        found = first_since(self._admin, self._topic, at_ms, end, timeout_s=self._timeout_s)
        return {p: min(found[p].offset, n) if p in found else n for p, n in end.items()}

    def deleted_before_ms(self, now_ms: int) -> dict[int, int]:
        """Return from when on each partition has every record that was appended; 0: it lost none.

        By age nothing goes that is younger than the topic is set to keep; by size anything may.

        Args:
            now_ms: The present.

        Raises:
            KafkaException: If a broker did not answer, or refused.
            TimeoutError: If none answered in time.
        """
        first, end = self.ends()
        there = {p: self.received_ms(p, n) if n < end[p] else now_ms for p, n in first.items() if n}
        kept = retention_of(self._admin, self._topic) if there else None
        if kept is not None and kept.bytes is None:
            least_ms = 0 if kept.ms is None else now_ms - kept.ms
            there = {p: min(ms, least_ms) for p, ms in there.items()}
        return {p: there.get(p, 0) for p in first}

    def oldest_ms(self, partitions: Iterable[int]) -> int:
        """Return when the oldest record was appended that the log still has; 0: it does not say.

        Raises:
            KafkaException: If a partition has no leader, or no broker answered.
        """
        found = first_since(self._admin, self._topic, 0, partitions, timeout_s=self._timeout_s)
        return min((one.at_ms or 0 for one in found.values()), default=0)

    def received_ms(self, partition: int, offset: int) -> int:
        """Return when a record was appended, or the next one if there is a hole.

        Raises:
            KafkaException: If the log does not reach back to it.
            TimeoutError: If the log ends before it, or does not answer.
        """
        log = LogPartition(self._kafka, self._topic, partition)
        return record_from(log, offset).timestamp()[1]

    def received_before(self, start: Offsets, known: Mapping[int, int]) -> dict[int, int]:
        """Return R of the last record before each offset, where the log still has it.

        Args:
            start: The offsets.
            known: What is known already, from more than the one record.

        Raises:
            KafkaException: If the log does not answer.
        """
        found = dict(known)
        if unknown := [p for p, n in start.items() if n and p not in known]:
            first = self._offsets(EARLIEST, unknown)
            there = [p for p in unknown if first[p] < start[p]]
            found |= {p: self.received_ms(p, start[p] - 1) for p in there}
        return found

    def first_received_ms(self, start: Offsets, end: Offsets, now_ms: int) -> int:
        """Return the instant from which no partition lacks a record; 0 if none ever lost one.

        Args:
            start: Where counting begins: offsets that the log still has.
            end: Where the log ends.
            now_ms: The present, from which on a partition counts of which nothing is left.

        Raises:
            KafkaException: If the log does not answer.
        """
        first: list[int] = []
        for partition, offset in start.items():
            if 0 < offset < end[partition]:
                first.append(self.received_ms(partition, offset))
            elif offset:
                first.append(now_ms)
        return max(first, default=0)

    def received_by_ms(self, start: Offsets, now_ms: int) -> int:
        """Return an instant by which no partition lacked a record; 0 if none ever lost one.

        Not before `first_received_ms`, and no record is read for it: brokers know when the records
        of each part of the log came. It is asked from now on backwards, twice as far each time,
        until one says no more, as of a part that cannot be read. So this lies nearer to
        the present than that instant, by half of what the log holds at worst where only the
        beginning cannot be read; where files of deleted records hide it, this is now.

        Args:
            start: Where counting begins: offsets that the log still has.
            now_ms: The present, from which on a partition counts of which nothing is known.
        """
        known = {p: now_ms for p, offset in start.items() if offset}
        asked, back_ms = set(known), FIRST_BACK_MS
        while asked and back_ms < now_ms:
            answers = self.ask(OffsetSpec.for_timestamp(now_ms - back_ms), sorted(asked))
            for partition, answer in answers.items():
                found = _answer(answer)
                if found is not None and found.offset < 0:
                    continue  # what is there is older, or deleted ones hide it (`first_since`)
                if found is not None and found.offset >= start[partition]:
                    known[partition] = min(known[partition], int(found.timestamp))
                if found is None or found.offset <= start[partition]:
                    asked.remove(partition)
            back_ms *= 2
        return max(known.values(), default=0)

    def complete_from_ms(self, start: Offsets, end: Offsets, horizon_ms: int, now_ms: int) -> int:
        """Return the event time from which the log holds all of a pane; 0 if it never lost any.

        Args:
            start: Where counting begins: offsets that the log still has.
            end: Where the log ends.
            horizon_ms: The dedup horizon.
            now_ms: The present.

        Raises:
            KafkaException: If the log does not answer.
        """
        first_ms = self.first_received_ms(start, end, now_ms)
        return incomplete_before_ms(first_ms, horizon_ms, start)

    def ask(
        self, spec: OffsetSpec, partitions: Iterable[int]
    ) -> Mapping[int, Future[ListOffsetsResultInfo]]:
        """Ask for an offset of each of some partitions; each answers, or fails, by itself."""
        return ask_offsets(self._admin, self._topic, spec, partitions, timeout_s=self._timeout_s)

    def _offsets(self, spec: OffsetSpec, partitions: Iterable[int]) -> dict[int, int]:
        timeout_s = self._timeout_s
        found = offsets_of(self._admin, self._topic, spec, partitions, timeout_s=timeout_s)
        return {p: int(one.offset) for p, one in found.items()}


def _answer(future: Future[ListOffsetsResultInfo]) -> ListOffsetsResultInfo | None:
    """Return what a partition says; None: nothing."""
    try:
        return future.result()
    except KafkaException:
        return None
