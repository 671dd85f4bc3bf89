"""Audit: panes of a sample are recounted from the log and compared with what is served.

How far back it reaches is asked of the log first (`span.py`), and may be bounded by how much of it
would be read. What is served is then read pane by pane, each at one revision, while nothing
commits, and the log up to there. All is done in slices, beside live counting. So a pane may change
meanwhile, and still both sides are about the same events. What retention takes while the log is
read costs what lacks it, and nothing else (`reading.py`).

What is away for a while costs an audit that time. In another epoch, or another process, it begins
anew, with the same seed: what it had looked at is served no more, or nobody knows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, ClassVar, Final

import structlog
from weir import names
from weir.audited import LEDGER
from weir.commit import Offsets, furthest
from weir.definitions.history import Definition
from weir.definitions.job import Audit
from weir.erasure import erasures

from weir_analytics.jobs.compare import Difference, compare
from weir_analytics.jobs.count_again import count_again, mending
from weir_analytics.jobs.event_times import event_time
from weir_analytics.jobs.ledger_audit import LEDGER_PARTS, LedgerAudit
from weir_analytics.jobs.reading import Reading, Recounted
from weir_analytics.jobs.recount import MOST_HELD, Part, Recount, Terms
from weir_analytics.jobs.sample import Audited, PaneAt, chain_of, draw, minutes_of, panes_of, shares
from weir_analytics.jobs.span import Known, Span, begin_within, find_span, whole_from
from weir_analytics.jobs.task import NotNowError, Outcome, Progress, RefusedError
from weir_analytics.jobs.walk import Walk
from weir_analytics.jobs.was_served import Reader, Seen
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.history import LogPartition
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.settings import Settings

LOG = structlog.get_logger()

TOLD_DIFFERENCES: Final = 1_000
# Records between two looks at the clock: each is evaluated for every metric of the audit.
CHUNK: Final = 100
# A sample is drawn from two beginnings, each with a seed of its own.
WAYS: Final = 2
# Longest wait for an answer about offsets: live counting stands still meanwhile.
ANSWER_S: Final = 5.0


class AuditTask:
    """One audit under way: look at what is served, go through the log twice, compare."""

    goes_on: ClassVar = True

    def __init__(
        self, settings: Settings, asked: Definition, wanted: Audit, share: float = 1.0
    ) -> None:
        """Begin with nothing looked at; `share` is what it may hold of what all audits may."""
        self.stopping = False
        self._settings, self._asked, self._wanted = settings, asked, wanted
        self._most_held = int(MOST_HELD * share)
        self._ledger = LedgerAudit(asked.tenant) if wanted.ledger else None
        self._left: list[str] = []
        self._looking: Seen | None = None
        self._seen: list[Seen] = []
        self._panes: Recounted | None = None
        self._reading: Reading | None = None
        self._is_open = False
        self._reader = Reader(settings, share)
        self._log = LogOffsets(settings.kafka, names.EVENTS, timeout_s=ANSWER_S)
        self._asking: Iterator[None] | None = None
        self._seed = 0
        self._span: Span | None = None
        self._places: list[tuple[int, int]] = []
        self._times: list[int] = []
        self._instants: list[int] = []

    @property
    def progress(self) -> Progress:
        """Return how many records of the log were read, of both times through."""
        return self._reading.progress if self._reading is not None else Progress(0, 1)

    def facts(self, cycle: Cycle) -> Mapping[str, Any]:
        """Return the metrics and the seed; what else decides is found whenever it begins.

        Raises:
            RefusedError: If a metric is not there.
        """
        fold, tenant = cycle.stores.definitions.fold, self._asked.tenant
        known = [d.name for d in fold.current(tenant, "metric")]
        unknown = sorted(set(self._wanted.metrics) - set(known))
        if unknown:
            msg = f"metrics must be defined, got {', '.join(unknown)}; ask for those there are"
            raise RefusedError(msg)
        if not cycle.through_ms:
            msg = "something must have been counted, got nothing; ask again when it has"
            raise RefusedError(msg)
        seed = self._asked.vid if self._wanted.seed is None else self._wanted.seed
        return {"metrics": list(self._wanted.metrics) or known, "seed": seed}

    def begin(self, cycle: Cycle, facts: Mapping[str, Any]) -> None:
        """Take note of them; a release before has recorded more, of the log as it was then."""
        del cycle
        self._left = list(dict.fromkeys(facts["metrics"]))
        self._seed = int(facts["seed"])

    def step(self, cycle: Cycle, is_over: Callable[[], bool]) -> Outcome | None:
        """Look at more panes, or read on in the log; compare at the end of it.

        Raises:
            NotNowError: While lanes count what is to be looked at.
            RefusedError: If the log has lost something of all of it.
        """
        if self.stopping:
            return {"metrics": [], "differences": []}
        if self._span is None:
            self._ask_on(lambda: self._find(cycle), is_over)
            return None
        if self._places:
            self._draw_at(self._span, *self._places.pop())
            return None
        if self._ledger is not None and not self._ledger.is_seen:
            minutes = self._minutes(self._span, cycle)
            self._ledger.look(cycle, self._reader, minutes, self._for_ledger, is_over)
            return None
        if self._left:
            self._look(cycle, self._span, self._left[0], is_over)
            return None
        if not self._is_open:
            self._ask_on(lambda: self._open(cycle), is_over)
            return None
        if self._reading is not None and not self._reading.step(cycle.clock, is_over):
            return None
        return self._outcome(cycle, self._span)

    def close(self) -> None:
        """Close the connections."""
        if self._reading is not None:
            self._reading.close()
        self._reader.close()

    def _ask_on(self, questions: Callable[[], Iterator[None]], is_over: Callable[[], bool]) -> None:
        """Ask the log some more, until `is_over`; where it does not answer all is asked anew."""
        asking, self._asking = self._asking or questions(), None
        for _answer in asking:
            if is_over():
                self._asking = asking
                return

    # ── what is drawn ───────────────────────────────────────────────────────

    def _find(self, cycle: Cycle) -> Iterator[None]:
        known = Known.of(cycle)
        self._span = yield from find_span(self._log, self._wanted, self._seed, known)
        self._places = list(self._span.places)

    def _draw_at(self, span: Span, partition: int, offset: int) -> None:
        """Take the instant of the event at a place of the log, if it lies in the span."""
        most = span.end.get(partition, 0) - offset
        log = LogPartition(self._settings.kafka, names.EVENTS, partition)
        at_ms = event_time(log, offset, most, self._asked.tenant)
        if at_ms is not None and span.from_ms <= at_ms < span.to_ms:
            self._times.append(at_ms)

    def _drawn(self, span: Span) -> list[int]:
        """Return the sample: instants of events, and others that are drawn by the clock."""
        if not self._instants:
            wanted = shares(self._wanted.sample - len(self._times), len(span.starts_ms))
            self._instants = list(self._times)
            for way, (start_ms, count) in enumerate(zip(span.starts_ms, wanted, strict=True)):
                self._instants += draw(self._seed + way, start_ms, span.to_ms, count)
        return self._instants

    def _minutes(self, span: Span, cycle: Cycle) -> list[PaneAt]:
        """Return the sample of the ledger: where panes are bounded by the budget, further back.

        The log is read from the same place on; only panes need so much of it before them.
        """
        drawn, since_ms = self._drawn(span), span.minutes_since_ms
        if span.begin_ms and since_ms < span.from_ms:
            begin_ms = max(since_ms, span.to_ms - self._wanted.last)
            drawn = [*drawn, *draw(self._seed + WAYS, begin_ms, span.from_ms, self._wanted.sample)]
        through_ms = cycle.through_ms
        return minutes_of(drawn, since_ms=since_ms, over_ms=span.to_ms, through_ms=through_ms)

    @property
    def _for_ledger(self) -> int:
        """How many events the ledger may hold: all of them where there are no panes."""
        has_panes = self._span is None or self._span.has_panes
        return self._most_held // LEDGER_PARTS if has_panes else self._most_held

    def _look(self, cycle: Cycle, span: Span, name: str, is_over: Callable[[], bool]) -> None:
        """Take more of what is served of a metric, unless its panes are being counted back.

        Once others serve it than did, as after a takeover, it is looked at anew.
        """
        fold = cycle.stores.definitions.fold
        chain = chain_of(fold, self._asked.tenant, name, cycle.footing.events_id)
        seen = self._looking
        if seen is None or seen.chain != tuple(chain):
            if seen is not None:
                self._reader.drop(seen)
            seen = self._looking = self._reader.begin(name, chain, len(self._left))
        drawn, through_ms = self._drawn(span), cycle.through_ms
        panes = panes_of(chain, drawn, since_ms=span.since_ms, through_ms=through_ms)
        left = [pane for pane in panes if pane not in seen.panes and pane not in seen.left_out]
        is_done = self._reader.look(cycle, seen, left, is_over)
        if is_done is None:
            msg = f"panes of {name} are being counted again"
            raise NotNowError(msg)
        if is_done:
            self._seen.append(seen)
            self._left.pop(0)
            self._looking = None

    # ── what is read ────────────────────────────────────────────────────────

    def _open(self, cycle: Cycle) -> Iterator[None]:
        """Begin to read, from the first record that may lie in a pane, a horizon earlier."""
        known = Known.of(cycle)
        if self._first_ms(known) is None:
            self._is_open = True
            return
        found_ends = [end for seen in self._seen for end in seen.ends.values()]
        if self._ledger is not None:
            found_ends += self._ledger.ends
        # Panes that were looked at in one slice share their place.
        end = furthest(list({id(one): one for one in found_ends}.values()))
        begin = yield from self._first_offsets(end, known)
        # Asked after that: what is gone from now on is missing where it is read.
        low, high = self._log.ends()
        yield
        whole_ms = yield from whole_from(self._log, low, high, known)
        self._is_open = True
        if begin is not None:
            walks = [Walk(self._settings.kafka, names.EVENTS, begin, end, CHUNK) for _ in range(2)]
            self._reading = Reading(self._log, walks, (begin, end), self._recounts(cycle, known))
            self._reading.lose_before(whole_ms)

    def _first_offsets(self, end: Offsets, known: Known) -> Generator[None, None, Offsets | None]:
        """Find from where on the log is read, and leave out what would take more than may be.

        While it waited, as for a metric that is counted again, more has come. None: there is
        nothing to be read.
        """
        first_ms, most = self._first_ms(known), self._wanted.most_records
        if first_ms is None:
            return None
        begin = self._log.at(first_ms, end)
        yield
        if most is None or sum(end[p] - n for p, n in begin.items()) <= most:
            return begin
        begin_ms = yield from begin_within(self._log, most, ({}, end), known.to_ms)
        for seen in self._seen:
            seen.leave_before(begin_ms + known.margins.pane_ms)
        if self._ledger is not None:
            self._ledger.leave_before(begin_ms + known.margins.minute_ms)
        first_ms = self._first_ms(known)
        return None if first_ms is None else self._log.at(first_ms, end)

    def _first_ms(self, known: Known) -> int | None:
        """Return since when records count for something that was looked at; None: for nothing."""
        before = known.margins
        firsts_ms = [
            1000 * pane.start_s - before.pane_ms for seen in self._seen for pane in seen.panes
        ]
        if self._ledger is not None and self._ledger.begin_ms is not None:
            firsts_ms.append(self._ledger.begin_ms - before.minute_ms)
        return min(firsts_ms, default=None)

    def _recounts(self, cycle: Cycle, known: Known) -> list[Recounted]:
        """Return what counts the sample again: its panes, and minutes of the ledger."""
        parts = [
            Part(version, {p: n for p, n in seen.ends.items() if p.vid == version.vid})
            for seen in self._seen
            for version in seen.chain
        ]
        found, topic_id = erasures(cycle.stores.definitions.fold), cycle.footing.events_id
        erased = tuple(one.within(topic_id) for one in found)
        terms = Terms(known.horizons, erased, self._settings.hash_key)
        sampled = [part for part in parts if part.panes]
        for_ledger = self._for_ledger if self._ledger is not None else 0
        again = Recount(sampled, terms, self._most_held - for_ledger)
        ends = {pane: end for part in sampled for pane, end in part.panes.items()}
        self._panes = Recounted(again, again.panes, ends, known.margins.pane_ms)
        if self._ledger is None:
            return [self._panes]
        return [self._panes, self._ledger.open(terms, for_ledger, known.margins.minute_ms)]

    # ── what came of it ─────────────────────────────────────────────────────

    def _outcome(self, cycle: Cycle, span: Span) -> Outcome:
        told = [self._compared(seen) for seen in self._seen]
        different = [difference for _metric, found in told for difference in found]
        metrics = [metric for metric, _found in told]
        for name, many in Counter(d.metric for d in different).items():
            LOG.error("metric_differs", tenant=self._asked.tenant, name=name, differences=many)
        looked_at = {seen.name: seen.chain[0].vid for seen in self._seen if seen.chain}
        differ = {d.metric: looked_at[d.metric] for d in different}
        found = mending(cycle.stores.definitions.fold, self._asked, differ)
        for name in found.still:
            LOG.error("metric_differs_still", tenant=self._asked.tenant, name=name)
        mended = found.again if self._wanted.mend else ()
        for metric in mended:
            count_again(cycle, metric, self._asked)
        ledger, rows = self._ledger.outcome() if self._ledger is not None else ({}, [])
        if rows:
            LOG.error("ledger_differs", tenant=self._asked.tenant, differences=len(rows))
        compared = [
            one["verified"] for one in (*metrics, ledger) if one.get("verified") is not None
        ]
        not_compared = [one["metric"] for one in metrics if not one["panes"]]
        if ledger and not ledger["minutes"]:
            not_compared.append(LEDGER)
        if not_compared:
            LOG.warning("audit_compared_nothing", tenant=self._asked.tenant, of=not_compared)
        about_ledger = {"ledger": ledger, "ledger_differences": rows[:TOLD_DIFFERENCES]}
        return {
            "verified": all(compared) if compared else None,
            "seed": self._seed,
            "from_ms": min((*span.starts_ms, *self._times)),
            "to_ms": span.to_ms,
            "bounded_by": span.bound.value,
            "not_compared": not_compared,
            "metrics": metrics,
            "differences": [d.told() for d in different[:TOLD_DIFFERENCES]],
            "differences_in_all": len(different),
            "mended": [metric.name for metric in mended],
            "still_different": list(found.still),
            **(about_ledger if self._ledger is not None else {}),
        }

    def _compared(self, seen: Seen) -> tuple[dict[str, Any], list[Difference]]:
        versions: dict[int, Audited] = {version.vid: version for version in seen.chain}
        found: list[Difference] = []
        recounted = self._panes.held if self._panes is not None else {}
        overtaken = self._panes.overtaken if self._panes is not None else set()
        compared = [pane for pane in seen.panes if pane in recounted]
        lost = sum(pane in overtaken for pane in seen.panes)
        series = events = unsure = 0
        for pane in compared:
            served, counted = seen.panes[pane], recounted[pane]
            version = versions[pane.vid]
            series += len({text for shard in served for text in shard} | counted.keys())
            events += sum(exact.n for exact in counted.values())
            unsure += sum(exact.unsure for exact in counted.values())
            found += compare(version.metric, version.version, pane, served, counted)
        metric = {
            "metric": seen.name,
            "version": seen.chain[0].version if seen.chain else None,
            "vid": seen.chain[0].vid if seen.chain else None,
            # Where nothing happened, and nothing is served, nothing is verified.
            "verified": not found if found or events else None,
            "panes": len(compared),
            "series": series,
            "events": events,
            # Whether these count hangs on last digits, or on whether they were counted again since
            # somebody was erased; of their series only n is compared.
            "unsure": unsure,
            # Panes for which there was no room, when they were looked at or when recounted.
            "left_out": len(seen.left_out) + len(seen.panes) - len(compared) - lost,
            # Of which retention took something before it was counted again.
            "overtaken": lost,
            "epoch": seen.epoch,
            "rev": seen.rev,
        }
        return metric, found
