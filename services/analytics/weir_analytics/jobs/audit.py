"""Audit: panes of a sample are recounted from the log and compared with what is served.

What is served is read pane by pane, each at one revision, while nothing commits; the log is then
read up to there. Both are done in slices, beside live counting. So a pane may change meanwhile,
and still both sides are about the same events. After a crash the audit begins anew, with the same
seed. How far back it reaches may be bounded by how much of the log that would be (`reach.py`), and
what retention takes while it reads costs what lacks it, and nothing else (`reading.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog
from weir import names
from weir.commit import furthest
from weir.definitions.history import Definition, Horizons
from weir.definitions.job import Audit
from weir.erasure import erasures
from weir.event_time import LEAD_LIMIT_MS
from weir.horizons import horizons_of, longest_ms

from weir_analytics.jobs.compare import Difference, compare
from weir_analytics.jobs.count_again import count_again, mending
from weir_analytics.jobs.event_times import event_time
from weir_analytics.jobs.ledger_audit import LEDGER_PARTS, LedgerAudit
from weir_analytics.jobs.reach import (
    FIRST_BACK_MS,
    MARGIN_MS,
    Reach,
    begin_within,
    margins,
    reach_of,
)
from weir_analytics.jobs.reading import Reading, Recounted
from weir_analytics.jobs.recount import MOST_HELD, Part, Recount, Terms
from weir_analytics.jobs.sample import (
    Audited,
    PaneAt,
    chain_of,
    draw,
    draw_places,
    minutes_of,
    panes_of,
    shares,
)
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
# What retention may take away while an audit that nobody watches reads all of the log.
RETAINED_MS: Final = 6 * 3_600_000
# Instants of events, each a read of the log in a slice of its own.
MOST_OF_EVENTS: Final = 16


class AuditTask:
    """One audit under way: look at what is served, go through the log twice, compare."""

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
        self._reader = Reader(settings, share)
        self._log = LogOffsets(settings.kafka, names.EVENTS)
        self._facts: Mapping[str, Any] = {}
        self._since_ms = self._minutes_since_ms = 0
        self._places: list[tuple[int, int]] = []
        self._log_end: Mapping[int, int] = {}
        self._times: list[int] = []
        self._instants: list[int] = []

    @property
    def progress(self) -> Progress:
        """Return how many records of the log were read, of both times through."""
        return self._reading.progress if self._reading is not None else Progress(0, 1)

    def facts(self, cycle: Cycle) -> Mapping[str, Any]:
        """Return the span, the seed and places in the log, which decide the sample.

        Of instants drawn by the clock few may lie where anything happened, and a pane that
        is gone shows only there: so up to half of them are those of events at these places.

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
        low, high = self._log.ends()
        to_ms, reach = cycle.through_ms, self._reach(cycle, low, high)
        starts_ms = self._starts(reach.from_ms, to_ms, low, high)
        places: list[tuple[int, int]] = []
        wanted = shares(min(self._wanted.sample // 2, MOST_OF_EVENTS), len(starts_ms))
        for way, (start_ms, count) in enumerate(zip(starts_ms, wanted, strict=True)):
            begin = {p: max(n, low[p]) for p, n in self._log.at(start_ms, high).items()}
            places += draw_places(seed + way, begin, high, count)
        return {
            "metrics": list(self._wanted.metrics) or known,
            "from_ms": reach.from_ms,
            "bounded_by": reach.bound.value,
            "begin_ms": reach.begin_ms,
            "to_ms": to_ms,
            "starts_ms": starts_ms,
            "seed": seed,
            "places": [list(place) for place in places],
        }

    def begin(self, cycle: Cycle, facts: Mapping[str, Any]) -> None:
        """Take note of what decides the sample; a job of the release before knows the instants."""
        self._facts = facts
        self._left = list(dict.fromkeys(facts["metrics"]))
        self._times = [int(at_ms) for at_ms in facts.get("event_times", ())]
        self._places = [(int(p), int(offset)) for p, offset in facts.get("places", ())]
        low, self._log_end = self._log.ends()
        whole_ms = self._whole_from_ms(cycle, low, self._log_end)
        self._since_ms = self._minutes_since_ms = whole_ms
        if begin_ms := int(facts.get("begin_ms", 0)):
            before = margins(longest_ms(_horizons(cycle)))
            self._since_ms = max(whole_ms, begin_ms + before.pane_ms)
            self._minutes_since_ms = max(whole_ms, begin_ms + before.minute_ms)

    def step(self, cycle: Cycle, is_over: Callable[[], bool]) -> Outcome | None:
        """Look at more panes, or read on in the log; compare at the end of it.

        Raises:
            NotNowError: While lanes count what is to be looked at.
            RefusedError: If the log has lost something of all of it.
        """
        if self.stopping:
            return {"metrics": [], "differences": []}
        if self._places:
            self._draw_at(*self._places.pop())
            return None
        if self._ledger is not None and not self._ledger.is_seen:
            minutes = self._minutes(cycle)
            self._ledger.look(cycle, self._reader, minutes, self._for_ledger, is_over)
            return None
        if self._left:
            self._look(cycle, self._left[0], is_over)
            return None
        if self._reading is None:
            self._open(cycle)
        if self._reading is not None and not self._reading.step(cycle.clock, is_over):
            return None
        return self._outcome(cycle)

    def close(self) -> None:
        """Close the connections."""
        if self._reading is not None:
            self._reading.close()
        self._reader.close()

    # ── what is drawn ───────────────────────────────────────────────────────

    def _whole_from_ms(self, cycle: Cycle, low: Mapping[int, int], high: Mapping[int, int]) -> int:
        """Return the event time from which the log, and what is served, has all of a pane."""
        start = cycle.stores.definitions.fold.start()
        said_ms = start.incomplete_before_ms if start else 0
        horizon_ms = longest_ms(_horizons(cycle), low)
        left_ms = self._log.complete_from_ms(low, high, horizon_ms, cycle.clock.now_ms())
        return max(said_ms, left_ms)

    def _reach(self, cycle: Cycle, low: Mapping[int, int], high: Mapping[int, int]) -> Reach:
        """Return how far back the sample is drawn, and why no further."""
        to_ms, whole_ms = cycle.through_ms, self._whole_from_ms(cycle, low, high)
        if self._wanted.recent is not None and whole_ms:
            # Retention goes on while the log is read. What is left out here was not left out
            # while it was younger.
            whole_ms += min(RETAINED_MS, max(0, to_ms - whole_ms) // 4)

        def received_since(at_ms: int) -> int:
            return sum(high[p] - max(n, low[p]) for p, n in self._log.at(at_ms, high).items())

        begin_ms = 0
        if self._wanted.most_records is not None:
            in_all = sum(high[p] - low[p] for p in high)
            begin_ms = begin_within(self._wanted.most_records, received_since, in_all, to_ms)
        margin_ms = margins(longest_ms(_horizons(cycle))).pane_ms
        return reach_of(to_ms - self._wanted.last, whole_ms, begin_ms, margin_ms, to_ms)

    def _starts(
        self, from_ms: int, to_ms: int, low: Mapping[int, int], high: Mapping[int, int]
    ) -> list[int]:
        """Return from when on instants are drawn, equally many from each.

        The second half is drawn of what the log holds: by the clock few of 400 days would lie
        where anything happened. Events that are older than the log are met by their places.
        """
        recent = self._wanted.recent
        if recent is None:
            return [from_ms]
        back_ms = FIRST_BACK_MS
        while from_ms < to_ms - back_ms and not _is_behind(self._log, to_ms - back_ms, low, high):
            back_ms *= 2
        return [max(from_ms, to_ms - recent), max(from_ms, to_ms - back_ms)]

    def _draw_at(self, partition: int, offset: int) -> None:
        """Take the instant of the event at a place of the log, if it lies in the span."""
        most = self._log_end.get(partition, 0) - offset
        log = LogPartition(self._settings.kafka, names.EVENTS, partition)
        at_ms = event_time(log, offset, most, self._asked.tenant)
        if at_ms is not None and self._facts["from_ms"] <= at_ms < self._facts["to_ms"]:
            self._times.append(at_ms)

    def _drawn(self) -> list[int]:
        """Return the sample: instants of events, and others that are drawn by the clock."""
        if not self._instants:
            seed, from_ms, to_ms = (int(self._facts[n]) for n in ("seed", "from_ms", "to_ms"))
            starts_ms = self._facts.get("starts_ms") or [from_ms]
            wanted = shares(self._wanted.sample - len(self._times), len(starts_ms))
            self._instants = list(self._times)
            for way, (start_ms, count) in enumerate(zip(starts_ms, wanted, strict=True)):
                self._instants += draw(seed + way, start_ms, to_ms, count)
        return self._instants

    def _minutes(self, cycle: Cycle) -> list[PaneAt]:
        """Return the sample of the ledger: where panes are bounded by the budget, further back.

        The log is read from the same place on; only panes need so much of it before them.
        """
        drawn, since_ms = self._drawn(), self._minutes_since_ms
        from_ms, to_ms = int(self._facts["from_ms"]), int(self._facts["to_ms"])
        if self._facts.get("begin_ms") and since_ms < from_ms:
            begin_ms, seed = max(since_ms, to_ms - self._wanted.last), int(self._facts["seed"])
            drawn = [*drawn, *draw(seed + WAYS, begin_ms, from_ms, self._wanted.sample)]
        through_ms = cycle.through_ms
        return minutes_of(drawn, since_ms=since_ms, over_ms=to_ms, through_ms=through_ms)

    @property
    def _for_ledger(self) -> int:
        """How many events the ledger may hold: all of them where there are no panes."""
        has_panes = self._facts["from_ms"] < self._facts["to_ms"]
        return self._most_held // LEDGER_PARTS if has_panes else self._most_held

    def _look(self, cycle: Cycle, name: str, is_over: Callable[[], bool]) -> None:
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
        panes = panes_of(chain, self._drawn(), since_ms=self._since_ms, through_ms=cycle.through_ms)
        left = [pane for pane in panes if pane not in seen.panes and pane not in seen.left_out]
        is_done = self._reader.look(cycle, seen, left, is_over)
        if is_done is None:
            msg = f"panes of {name} are being counted again"
            raise NotNowError(msg)
        if is_done:
            self._seen.append(seen)
            self._left.pop(0)
            self._looking = None

    def _open(self, cycle: Cycle) -> None:
        """Begin to read, from the first record that may lie in a pane, a horizon earlier."""
        firsts_ms = [
            1000 * pane.start_s - LEAD_LIMIT_MS for seen in self._seen for pane in seen.panes
        ]
        found_ends = [end for seen in self._seen for end in seen.ends.values()]
        if self._ledger is not None and self._ledger.begin_ms is not None:
            firsts_ms.append(self._ledger.begin_ms)
            found_ends += self._ledger.ends
        if not firsts_ms:
            return
        settings, horizon_ms = self._settings, longest_ms(_horizons(cycle))
        # Panes that were looked at in one slice share their place.
        end = furthest(list({id(end): end for end in found_ends}.values()))
        begin = self._log.at(min(firsts_ms) - horizon_ms - MARGIN_MS, end)
        walks = [Walk(settings.kafka, names.EVENTS, begin, end, CHUNK) for _ in range(2)]
        recounted = self._recounts(cycle, horizon_ms)
        self._reading = Reading(self._log, walks, (begin, end), recounted)
        # What was looked at a while ago may be gone by now.
        self._reading.lose_before(self._whole_from_ms(cycle, *self._log.ends()))

    def _recounts(self, cycle: Cycle, horizon_ms: int) -> list[Recounted]:
        """Return what counts the sample again: its panes, and minutes of the ledger."""
        parts = [
            Part(version, {p: n for p, n in seen.ends.items() if p.vid == version.vid})
            for seen in self._seen
            for version in seen.chain
        ]
        found, topic_id = erasures(cycle.stores.definitions.fold), cycle.footing.events_id
        erased = tuple(one.within(topic_id) for one in found)
        terms = Terms(_horizons(cycle), erased, self._settings.hash_key)
        sampled = [part for part in parts if part.panes]
        for_ledger = self._for_ledger if self._ledger is not None else 0
        again = Recount(sampled, terms, self._most_held - for_ledger)
        before = margins(horizon_ms)
        ends = {pane: end for part in sampled for pane, end in part.panes.items()}
        self._panes = Recounted(again, again.panes, ends, before.pane_ms)
        if self._ledger is None:
            return [self._panes]
        return [self._panes, self._ledger.open(terms, for_ledger, before.minute_ms)]

    # ── what came of it ─────────────────────────────────────────────────────

    def _outcome(self, cycle: Cycle) -> Outcome:
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
            # No metric is called so.
            not_compared.append("the ledger")
        if not_compared:
            LOG.warning("audit_compared_nothing", tenant=self._asked.tenant, of=not_compared)
        starts_ms = self._facts.get("starts_ms") or [self._facts["from_ms"]]
        about_ledger = {"ledger": ledger, "ledger_differences": rows[:TOLD_DIFFERENCES]}
        return {
            "verified": all(compared) if compared else None,
            "seed": self._facts["seed"],
            "from_ms": min((*starts_ms, *self._times)),
            "to_ms": self._facts["to_ms"],
            "bounded_by": self._facts.get("bounded_by"),
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


def _is_behind(
    log: LogOffsets, at_ms: int, low: Mapping[int, int], high: Mapping[int, int]
) -> bool:
    """Tell whether all of the log was received after an instant."""
    return all(offset <= low[p] for p, offset in log.at(at_ms, high).items())


def _horizons(cycle: Cycle) -> tuple[Horizons, ...]:
    return horizons_of(cycle.stores.definitions.fold, cycle.footing.events_id)
