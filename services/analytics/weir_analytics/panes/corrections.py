"""Corrections: what late events changed in final panes, sent to `weir.corrections` (S5).

Delivery: at least once, before the batch record that covers them. A driver that dies in
between finds them in the outboxes again and sends them under the same keys, of which
readers keep the first. What is not acknowledged ends the batch: it comes again.

Who sent the late events is told by the tasks beside the parts, not by the shards: parts
are grouped by series, and the source is no part of a series. Tasks that count in Arrow tell it
of each series; of what they do not tell, it is known who sent late events of the metric's types.
A batch that comes again after a crash reads the same range, so it tells the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from weir import names
from weir.corrections import CorrectionRecord, encode
from weir.definitions.fold import Definitions
from weir.definitions.metric import Metric
from weir.kafka import Kafka
from weir.series import OTHER

from weir_analytics.panes.batch import Batch
from weir_analytics.panes.commit_job import Correction, OutboxEntry
from weir_analytics.panes.crowded import placed
from weir_analytics.panes.inbox import LateGroup, LateRow
from weir_analytics.panes.outcome import Outcome
from weir_analytics.panes.stored import StoredWriter
from weir_analytics.panes.versions import is_kept

FLUSH_S = 15.0


@dataclass(frozen=True)
class Arrival:
    """What a batch knows of the late events that it brought.

    Attributes:
        epoch: The batch's epoch.
        batch: Its number: an outbox may hold what an earlier one left.
        received_ms: The newest R at its end.
        late: Its groups of late events.
        late_cut: Tenants of whose groups `late` does not hold all.
        rows: The groups of late events that versions counted, by series.
        rows_cut: Tenants of whose groups `rows` does not hold all.
        shards: How many shards there are.
    """

    epoch: int
    batch: int
    received_ms: int
    late: Sequence[LateGroup]
    late_cut: Collection[str] = ()
    rows: Sequence[LateRow] = ()
    rows_cut: Collection[str] = ()
    shards: int = 1

    @classmethod
    def of(cls, batch: Batch, outcome: Outcome) -> Arrival:
        """Return what the tasks of a batch told."""
        newest_ms = max(outcome.received_ms.values(), default=0)
        return cls(
            batch.epoch,
            batch.number,
            newest_ms,
            outcome.late,
            outcome.late_cut,
            outcome.late_rows,
            outcome.late_rows_cut,
            batch.shards,
        )


def publish(
    kafka: Kafka,
    definitions: Definitions,
    outboxes: Mapping[int, Sequence[OutboxEntry]],
    arrival: Arrival,
) -> int:
    """Send the corrections of the outboxes and wait until they are stored; return how many.

    Costs nothing where there is none.

    Raises:
        TimeoutError: If Kafka did not store one; the batch must come again.
    """
    found = records_of(definitions, outboxes, arrival)
    return correction_writer(kafka).send(found) if found else 0


def records_of(
    definitions: Definitions,
    outboxes: Mapping[int, Sequence[OutboxEntry]],
    arrival: Arrival,
) -> list[CorrectionRecord]:
    """Return the corrections of the outboxes as records. Pure."""
    senders = Senders(arrival.late)
    counted = CountedSenders(arrival, _rows(outboxes))
    found: list[CorrectionRecord] = []
    for shard, entry, one in _rows(outboxes):
        definition = definitions.by_vid(one.vid)
        metric = definition.metric if definition is not None else None
        if definition is None or metric is None:
            continue
        own = (entry.epoch, entry.batch) == (arrival.epoch, arrival.batch)
        exact = counted.of(definition.tenant, metric, one) if own else None
        known = exact is not None or (own and definition.tenant not in arrival.late_cut)
        possible = senders.of(definition.tenant, metric, one) if own else Sent()
        sent = exact or possible
        record = CorrectionRecord(
            epoch=entry.epoch,
            batch=entry.batch,
            tenant=definition.tenant,
            metric=definition.name,
            version=definition.version,
            vid=one.vid,
            res_s=one.res_s,
            start_s=one.start_s,
            series=one.series,
            was=one.was,
            now=one.now,
            received_ms=sent.until_ms(arrival.received_ms) if known else arrival.received_ms,
            final_ms=(one.start_s + one.res_s) * 1000 + metric.lateness_ms,
            sources=sent.sources(),
            sources_known=known,
            sources_exact=exact is not None,
            shard=shard,
            texts=one.texts,
        )
        found.append(record)
    return found


def _rows(
    outboxes: Mapping[int, Sequence[OutboxEntry]],
) -> Iterator[tuple[int, OutboxEntry, Correction]]:
    for shard, entries in outboxes.items():
        for entry in entries:
            for one in entry.corrections:
                yield shard, entry, one


@dataclass
class Sent:
    """What late events came into one pane.

    Attributes:
        events: How many, by source.
        minute_s: The received minute of the last of them; None of none.
    """

    events: Counter[str] = field(default_factory=Counter)
    minute_s: int | None = None

    def take(self, source: str, minute_s: int, n: int) -> None:
        """Take in events of a source and a received minute."""
        self.events[source] += n
        self.minute_s = minute_s if self.minute_s is None else max(self.minute_s, minute_s)

    def sources(self) -> list[tuple[str, int]]:
        """Return (source, events), the most events first."""
        return sorted(self.events.items(), key=lambda item: (-item[1], item[0]))

    def until_ms(self, newest_ms: int) -> int:
        """Return by when the last of them had come, if that of the batch came at `newest_ms`.

        A batch of seconds lies in one minute, or in two. One that catches up may be of hours:
        nothing in a pane came later than in the last minute that has an event of it.
        """
        return newest_ms if self.minute_s is None else min(newest_ms, self.minute_s * 1000 + 59_999)


class Senders:
    """Who sent late events, by the span that they belong into."""

    def __init__(self, late: Iterable[LateGroup]) -> None:
        self._late = list(late)
        self._found: dict[tuple[int, int], dict[int, Sent]] = {}

    def of(self, tenant: str, metric: Metric, one: Correction) -> Sent:
        """Return what came into a pane."""
        key = (one.vid, one.res_s)
        if key not in self._found:
            self._found[key] = self._by_pane(tenant, metric, one.res_s)
        return self._found[key].get(one.start_s, Sent())

    def _by_pane(self, tenant: str, metric: Metric, res_s: int) -> dict[int, Sent]:
        panes: dict[int, Sent] = defaultdict(Sent)
        chosen = metric.events
        for owner, source, event_type, start_s, minute_s, n in self._late:
            if (
                owner == tenant
                and chosen.matches_type(event_type)
                and (not chosen.source or source in chosen.source)
            ):
                panes[start_s - start_s % res_s].take(source, minute_s, n)
        return panes


class CountedSenders:
    """Who sent the late events that versions counted, by pane and series."""

    def __init__(
        self, arrival: Arrival, rows: Iterable[tuple[int, OutboxEntry, Correction]]
    ) -> None:
        """Take what a batch told, and what it corrected: what is no row's own is of `other`."""
        self._cut, self._shards = arrival.rows_cut, arrival.shards
        self._late: dict[int, list[LateRow]] = defaultdict(list)
        for row in arrival.rows:
            self._late[row[1]].append(row)
        self._corrected = {
            (shard, one.vid, one.res_s, one.start_s, one.series)
            for shard, entry, one in rows
            if one.now is not None and (entry.epoch, entry.batch) == (arrival.epoch, arrival.batch)
        }
        self._found: dict[tuple[int, int], dict[tuple[int, str], Sent]] = {}

    def of(self, tenant: str, metric: Metric, one: Correction) -> Sent | None:
        """Return what came into a row; None: it is not known, or none of it came late."""
        if tenant in self._cut:
            return None
        key = (one.vid, one.res_s)
        if key not in self._found:
            self._found[key] = self._by_row(*key, metric.keep_ms[one.res_s * 1000] // 1000)
        return self._found[key].get((one.start_s, one.series))

    def _by_row(self, vid: int, res_s: int, keep_s: int) -> dict[tuple[int, str], Sent]:
        """Return what came into the rows of one length.

        A shard tells all rows of a pane that it changed, or none: of a pane that is counted again
        there. What changed no row that is told is nobody's here.
        """
        found: dict[tuple[int, str], Sent] = defaultdict(Sent)
        for _tenant, _vid, source, text, at_s, minute_s, n in self._late[vid]:
            start_s = at_s - at_s % res_s
            if not is_kept(start_s, res_s, keep_s, minute_s):
                continue
            shard, series = placed(text, self._shards)
            for row in (series, OTHER):
                if (shard, vid, res_s, start_s, row) in self._corrected:
                    found[start_s, row].take(source, minute_s, n)
                    break
        return dict(found)


class CorrectionWriter:
    """Sends records to `weir.corrections` and waits until they are stored."""

    def __init__(self, kafka: Kafka) -> None:
        self._writer = StoredWriter(
            kafka, **{"message.timeout.ms": int(FLUSH_S * 1000), "log_level": 2}
        )

    def send(self, records: Iterable[CorrectionRecord]) -> int:
        """Store records; return how many.

        Raises:
            TimeoutError: If Kafka did not store one within its time.
        """
        sent = 0
        for record in records:
            self._writer.queue(names.CORRECTIONS, record.key.encode(), encode(record))
            sent += 1
        missing = self._writer.missing(FLUSH_S)
        if missing is not None:
            self._writer.drop()
            msg = (
                f"corrections must be stored in {names.CORRECTIONS} before the batch is recorded, "
                f"got within {FLUSH_S:.0f} s: {missing.str()}; the batch comes again"
            )
            raise TimeoutError(msg)
        return sent


@cache
def correction_writer(kafka: Kafka) -> CorrectionWriter:
    """Return the writer of this process."""
    return CorrectionWriter(kafka)
