"""One batch after the other: S1 to S6 of the commit protocol, as the driver does them.

Returning from `on_batch` means that the batch is committed everywhere and recorded;
raising means that the same range comes again. What a number is, is decided elsewhere:
this chooses the plan, asks the shards, and tells the readers; `changes.py` records what
begins and ends between two batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from weir import names
from weir.batches import BatchRecord
from weir.changed import MOST_LISTED, folded
from weir.clock import Clock
from weir.commit import Verdict, not_after
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Definition

from weir_analytics.failpoints import failpoint
from weir_analytics.panes import checkpoint
from weir_analytics.panes.activation import shown_from
from weir_analytics.panes.arrow_plan import AnyPlan, ArrowPlan
from weir_analytics.panes.batch import Batch, Offsets
from weir_analytics.panes.changes import Changes
from weir_analytics.panes.commit_job import OutboxEntry, Untold
from weir_analytics.panes.corrections import Arrival, publish
from weir_analytics.panes.countable import Countable
from weir_analytics.panes.crowded import Crowded
from weir_analytics.panes.due import About, Due, Gate, Open
from weir_analytics.panes.fault import Repeats, at_fault
from weir_analytics.panes.forgetting import Forgetting
from weir_analytics.panes.holes import Hole, check_read, up_to
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.outcome import Outcome, outcome_of, processed_through
from weir_analytics.panes.passing import first_line, is_outside, missing
from weir_analytics.panes.plans import Plans, run, run_beside
from weir_analytics.panes.recovery import VerdictError, changed_panes, last_entries
from weir_analytics.panes.same_log import SameLog
from weir_analytics.panes.start import Footing, Stores
from weir_analytics.panes.states import Frontier, received_before
from weir_analytics.panes.trial import Trial, try_out
from weir_analytics.panes.versions import SYSTEM, versions_from_json, versions_to_json
from weir_analytics.panes.writer import Report, commit
from weir_analytics.settings import Settings

LOG = structlog.get_logger()

# Finding out costs a walk over the panes of each shard.
FORGET_EVERY_S = 6 * 3_600.0


@dataclass(frozen=True)
class Done:
    """A batch that is committed and recorded, for figures and logs."""

    batch: Batch
    outcome: Outcome
    record: BatchRecord
    seconds: float
    corrections: int = 0


@dataclass
class Cycle:
    """The batches of one driver's life between two start records.

    Attributes:
        book: Where the lanes stand.
        received_ms: R of each partition at the end of the last batch.
        through_ms: Processed-through of the last batch; 0 before the first.
        end: Where the last batch ended.
        commits: How many live batches have written to every shard.
        repeats: How often the range at hand has failed.
        gate: What may be said with the batch at hand of what is counted after it.
        recounted: What was counted again when the newest record was written, or at the start.
        followers: Told of every entry of the outboxes, by shard, when it is recorded.
    """

    spark: SparkSession
    settings: Settings
    stores: Stores
    footing: Footing
    plans: Plans
    book: LaneBook
    clock: Clock
    gate: Gate = field(default_factory=Open)
    repeats: Repeats = field(default_factory=Repeats)
    recounted: tuple[Untold, ...] = ()
    followers: list[Callable[[Mapping[int, Sequence[OutboxEntry]]], None]] = field(
        default_factory=list
    )
    end: Offsets = field(init=False)
    commits: int = 0
    received_ms: dict[int, int] = field(init=False)
    through_ms: int = field(init=False)
    _had_events: bool = field(init=False)
    _changes: Changes = field(init=False)
    _crowded: Crowded = field(init=False)
    _trim: Mapping[int, int] = field(default_factory=dict)
    _forgetting: Forgetting = field(init=False)
    _forget_at_s: float = 0.0
    _corrections: int = 0
    _shown_from: FoldMemo[Callable[[int], Offsets | None]] = field(init=False)
    _same_log: SameLog = field(init=False)
    _frontier: Frontier = field(default_factory=Frontier)

    def __post_init__(self) -> None:
        self._had_events = not self.footing.empty
        self.end = self.footing.target
        self._changes = Changes(
            self.stores, self.settings, self.footing, self.book, self.clock, self.gate
        )
        self._crowded = Crowded(self.settings.shards)
        self._forgetting = Forgetting(
            self.stores.shards, self.settings.shards, self.footing.fence, self.clock
        )
        self.followers.append(self._forgetting.note)
        events_id = self.footing.events_id
        self._same_log = SameLog(self.settings.kafka, names.EVENTS, events_id)
        self._shown_from = FoldMemo(lambda fold: cache(partial(shown_from, fold, events_id)))
        self.through_ms = self.footing.through_ms
        self.received_ms = received_before(self.range_of(self.footing.target, {}, -1))

    def on_batch(self, log: DataFrame, number: int) -> Done:
        """Count one batch of the stream, S1 to S6.

        Raises:
            VerdictError: If a shard refused it: the driver must begin again, or end.
            NewerFormatError: If a newer release has written meanwhile: the driver must end.
        """
        began_s = self.clock.monotonic_s()
        planned = checkpoint.planned(self.settings.checkpoint_dir, number, names.EVENTS)
        batch = self.range_of(planned.from_offsets, planned.to_offsets, number)
        batch = replace(
            batch,
            final_through_ms=self._final_through_ms(batch.start) or None,
            trim_outbox=dict(self._trim),
            bounds=self._crowded.bounds(),
        )
        failpoint("C4")
        outcome = self.count(log, batch)
        self._crowded.take(outcome.bounds)
        self.end = batch.end
        self._had_events = self._had_events or outcome.received > 0
        self.received_ms.update(outcome.received_ms)
        self.through_ms = processed_through(self.received_ms, batch.end, self.through_ms)
        self.stores.definitions.poll()
        self.stores.definitions.check_fence(self.footing.fence.fence)
        if not outcome.repeated:
            self.commits += 1
            self.book.confirm(self.stores.definitions.fold)
        if not_after(self.footing.may_activate_from, batch.end):
            through_s = self.through_ms // 1000
            self._changes.record(batch.end, had_events=self._had_events, through_s=through_s)
        record = self._record(batch, outcome)
        self._forget()
        seconds = self.clock.monotonic_s() - began_s
        return Done(batch, outcome, record, seconds, self._corrections)

    def _final_through_ms(self, start: Offsets) -> int:
        """Return processed-through where a batch begins, also where an epoch begins with it.

        A new epoch knows no record before it, but its shards have kept panes that were
        final; what the first batch changes in them is a correction like any other.
        """
        if self.through_ms:
            return self.through_ms
        known = received_before(self.range_of(start, {}, -1))
        log = LogOffsets(self.settings.kafka, names.EVENTS)
        return processed_through(log.received_before(start, known), start, 0)

    def count(self, log: DataFrame, batch: Batch, *, begins_later: bool = False) -> Outcome:
        """Evaluate a range and commit it to its shards, S2 to S4.

        A range that fails again and again is tried without each of its versions: one that fails
        with what the range holds is left out, and everybody else is counted. That the log or the
        store failed it is no reason for that.

        Args:
            log: The range as Spark's source reads it, once somebody asks for its rows.
            batch: The range.
            begins_later: Whether the log no longer has all of it: who reads a batch's own range
                would find an error there, and the source reads what is left.

        Raises:
            VerdictError: If a shard refused it.
            Exception: What making its plan raised, or its tasks, if no version is to blame.
        """
        plan = self._plan_of(batch)
        given = None if isinstance(plan, ArrowPlan) and not begins_later else log
        try:
            return self.evaluate(given, replace(batch, untold=self._untold(batch, plan)), plan)
        except (PySparkException, Py4JError) as error:
            if missing(error) or is_outside(error) or not self.repeats.is_due(batch.start):
                raise
            self._blame(batch, error)
        return self.count(log, batch, begins_later=begins_later)

    def _blame(self, batch: Batch, error: Exception) -> None:
        """Leave out the versions that a range fails with.

        Raises:
            Exception: The error, if there is none.
        """
        LOG.warning("batch_fails_again", start=batch.start, end=batch.end, error=first_line(error))
        counting = self.plans.versions_for(batch.start, batch.end)
        trial = Trial(self.plans, lambda plan: try_out(self.spark, plan, batch))
        self.leave_out(at_fault(trial, counting, error))

    def _plan_of(self, batch: Batch) -> AnyPlan:
        """Return the plan of a range, without the versions that no plan can be made of."""
        counting = self.plans.versions_for(batch.start, batch.end)
        try:
            return self.plans.plan_of(counting, in_use=True)
        except Exception as error:  # noqa: BLE001  whatever a definition brings about
            self.leave_out(at_fault(Trial(self.plans), counting, error))
        left = self.plans.versions_for(batch.start, batch.end)
        return self.plans.plan_of(left, in_use=True)

    def due(self, choose: Callable[[About, Definition], bool]) -> Due:
        """Return what is to be said next of what is counted, as if the last batch ended now.

        Args:
            choose: Whether something is to be said together with the rest.
        """
        through_s = self.through_ms // 1000
        return self._changes.due(self.end, choose, had_events=self._had_events, through_s=through_s)

    def leave_out(self, faults: Mapping[int, str]) -> None:
        """Count versions no further than to where the last batch ended; `faults` says why.

        Raises:
            VerdictError: FENCED if a newer driver has started.
        """
        self._changes.leave_out(faults, self.end)

    def set_aside(self, vid: int, why: str | None) -> None:
        """Record that a version is not counted, and why; None: that it may be.

        Raises:
            VerdictError: FENCED if a newer driver has started.
        """
        self._changes.set_aside(vid, why)

    def _untold(self, batch: Batch, plan: AnyPlan) -> tuple[Untold, ...]:
        """Return of which panes a change is no correction: readers have not seen them.

        By the record before the batch: what its own record lets them see has the change in it.
        """
        shown = self._shown_from.of(self.stores.definitions.fold)
        begins = ((one.vid, shown(one.vid)) for one in plan.versions)
        hidden = (vid for vid, at in begins if at is None or not not_after(at, batch.start))
        return (*(Untold(vid=vid) for vid in hidden), *self.recounted)

    def evaluate(self, log: DataFrame | None, batch: Batch, plan: AnyPlan) -> Outcome:
        """Evaluate a range by a plan and commit it to the shards that it names.

        Raises:
            VerdictError: If a shard refused it, or the log is another.
            HoleError: If records of it are missing; see `holes.py`.
        """
        self._begin([batch])
        return self._settled(run(self.spark, log, plan, batch), plan, batch)

    def evaluate_beside(
        self, batches: Sequence[Batch], plan: AnyPlan
    ) -> list[Outcome | VerdictError]:
        """Evaluate ranges of several lanes by one plan, in Arrow, at a time, and commit each.

        Returns:
            What became of each, or what a shard refused it with.

        Raises:
            HoleError: If records of one are missing; see `holes.py`.
            VerdictError: If besides shards are to be counted anew, which nobody says again.
            Exception: What else one failed with, as when the store or the log is away.
        """
        self._begin(batches)
        texts = run_beside(self.spark, plan, batches)
        settled: list[Outcome | VerdictError] = []
        failed: list[Exception] = []
        for text, batch in zip(texts, batches, strict=True):
            try:
                settled.append(self._settled([text], plan, batch))
            except VerdictError as error:
                settled.append(error)
            except Exception as error:  # noqa: BLE001  raised once all were looked at
                failed.append(error)
        if failed:
            short = [one for one in settled if isinstance(one, VerdictError) and one.shards]
            if short:
                shards = frozenset().union(*(one.shards for one in short))
                raise VerdictError(short[0].verdict, str(short[0]), shards) from failed[0]
            raise failed[0]
        return settled

    def _begin(self, batches: Sequence[Batch]) -> None:
        """Check that the log is the same, and delete dedup files of what is counted again.

        Whoever has taken over meanwhile may have counted beyond that, and needs what is there.

        Raises:
            VerdictError: If the log is another, or a newer driver has started.
            NewerFormatError: If a newer release has written meanwhile.
            KafkaException: If no broker answered.
            TimeoutError: If what was written to the definitions did not come.
            OSError: If a file cannot be deleted.
        """
        self._same_log.check()
        stale = [path for batch in batches for path in self._frontier.stale(batch)]
        if stale:
            self.stores.definitions.check_fence_now(self.footing.fence.fence)
            for path in stale:
                path.unlink(missing_ok=True)
        for batch in batches:
            self._frontier.move(batch)

    def _settled(self, texts: Sequence[str], plan: AnyPlan, batch: Batch) -> Outcome:
        """Put the reports of a range's tasks together, and commit what none of them did."""
        reports = [Report.from_json(text) for text in texts]
        if not any(report.short for report in reports):
            reports += self._commit_silent(reports, plan, batch)
        outcome = outcome_of(reports, {v.vid: v.name for v in plan.versions})
        if outcome.verdict is not Verdict.OK:
            verdicts = [report.verdicts for report in reports if report.verdicts]
            msg = f"batch {batch.number} must find every shard at its start, got {verdicts}"
            decides = (one for one in reports if outcome.verdict.value in one.verdicts.values())
            why = next((report.why for report in decides if report.why), msg)
            raise VerdictError(outcome.verdict, why, outcome.short)
        self._check_read(batch, outcome)
        return outcome

    def _check_read(self, batch: Batch, outcome: Outcome) -> None:
        """Look for partitions of which no task saw a record: each task looks at its own.

        Raises:
            HoleError: If one has records that were not read.
        """
        start, unread = batch.start, batch.end.keys() - outcome.received_ms.keys()
        holes = [
            Hole(p, start.get(p, 0), batch.end[p] - 1)
            for p in sorted(unread)
            if start.get(p, 0) < batch.end[p]
        ]
        check_read(holes, batch.lost, lambda _: LogOffsets(batch.kafka, batch.topic).start())

    def range_of(self, start: Offsets, end: Offsets, number: int) -> Batch:
        """Return a batch over a range, under this driver's fence."""
        settings = self.settings
        batch = Batch(
            topic=names.EVENTS,
            topic_id=self.footing.events_id,
            definitions_id=self.footing.fence.topic_id,
            epoch=self.footing.epoch,
            fence=self.footing.fence.fence,
            number=number,
            start=dict(start),
            end=dict(end),
            shards=settings.shards,
            horizons=self.plans.horizons(start, end),
            lost=up_to(self.footing.lost, end),
            cut_epoch=self.footing.cut_epoch,
            kafka_bootstrap=settings.kafka_bootstrap,
            kafka_security_protocol=settings.kafka_security_protocol,
            kafka_sasl_mechanism=settings.kafka_sasl_mechanism,
            redis_url=settings.redis_url,
            dedup_dir=str(settings.dedup_dir),
            secrets_dir=str(settings.secrets_dir) if settings.secrets_dir else None,
        )
        return replace(batch, single=batch.records <= settings.small_batch)

    def _commit_silent(
        self, reports: Sequence[Report], plan: AnyPlan, batch: Batch
    ) -> list[Report]:
        """Move the mark of the shards that no task reported: they had no rows."""
        told = {shard for report in reports for shard in report.verdicts}
        versions = versions_from_json(versions_to_json(plan.versions))
        found: list[Report] = []
        for shard in batch.committed_shards():
            if shard not in told:
                report = Report()
                report.note(shard, commit(shard, [], batch, versions))
                found.append(report)
                if report.short:
                    break  # what another shard may raise would take this report along
        return found

    # ── S5 ──────────────────────────────────────────────────────────────────

    def _record(self, batch: Batch, outcome: Outcome) -> BatchRecord:
        """Append the batch record.

        Raises:
            VerdictError: FENCED if a newer driver runs, LOST or BEHIND if a shard has gone back,
                or the stream is not where it was left.
        """
        try:
            return self._append(batch, outcome)
        except VerdictError:
            # Whoever has taken over since S4 has moved both. The stream has no fence, and a new
            # epoch, begun because of that, would throw out the one that runs.
            self.stores.shards.check_fence(self.footing.fence)
            self.stores.definitions.check_fence_now(self.footing.fence.fence)
            raise

    def _append(self, batch: Batch, outcome: Outcome) -> BatchRecord:
        """Do that; what changed comes from the outboxes, also on a replay."""
        outboxes = self.stores.shards.read_committed(batch.end)
        for follow in self.followers:
            follow(outboxes)
        fold = self.stores.definitions.fold
        arrival = Arrival.of(batch, outcome)
        changed, spans = folded(changed_panes(outboxes), MOST_LISTED)
        self._corrections = publish(self.settings.kafka, fold, outboxes, arrival)
        record = BatchRecord(
            epoch=batch.epoch,
            batch=batch.number,
            rev=batch.number + 1,
            shards=batch.shards,
            from_offsets=dict(batch.start),
            to_offsets=dict(batch.end),
            processed_through_ms=self.through_ms,
            received_to_ms=max(self.received_ms.values(), default=None),
            at_ms=self.clock.now_ms(),
            held_by=self._held_by(batch.end),
            received=outcome.received,
            ticks=outcome.seen - outcome.received,
            ledger=list(outcome.ledger),
            changed=changed,
            spans=spans,
            activations=fold.activated.begun_at(batch.end),
            takeovers=fold.activated.taken_at(batch.end),
            lanes=self.book.progress(fold),
            fates=list(outcome.fates),
            outbox=last_entries(outboxes),
        )
        verdict = self.stores.stream.append(record)
        if verdict is Verdict.LOST:
            msg = f"the stream must end before revision {record.rev} of epoch {record.epoch}"
            raise VerdictError(verdict, msg)
        self._trim = record.outbox
        self.recounted = self.book.untold(fold)
        return record

    def _forget(self) -> None:
        """Free the names of series that nothing shows any more: a slice, some times a day.

        No task commits now, between two batches.
        """
        now_s = self.clock.monotonic_s()
        if not self._forgetting.is_under_way:
            if now_s < self._forget_at_s:
                return
            self._forget_at_s = now_s + FORGET_EVERY_S
            fold = self.stores.definitions.fold
            countable = Countable(fold, self.footing.events_id)
            over = countable.ended(self.through_ms // 1000)
            system = [version.vid for version in SYSTEM]
            versions = {*system, *fold.activations}
            self._forgetting.begin(versions, over, countable.is_readable)
        self._forgetting.go_on(self.end)
        if self._forgetting.freed and not self._forgetting.is_under_way:
            LOG.info("series_forgotten", series=self._forgetting.freed)

    def _held_by(self, end: Offsets) -> int | None:
        """Return the partition that holds processed-through, if nothing is known of it."""
        return next((p for p in sorted(end) if p not in self.received_ms), None)
