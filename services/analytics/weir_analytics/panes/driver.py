"""The driver: takes over, counts batch after batch, and begins again when it must.

There is one stream at a time. Whatever ends it (a verdict of a shard, a broker or a
Redis that went away) leads back to S0 in the same process, so that a warm JVM goes on
within a second of healing. The process ends only when it is told to, when a newer
driver has taken over, when the state is of another log, or when a part of it died.
"""

from __future__ import annotations

import itertools
import json
import threading
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import structlog
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from weir import names
from weir.clock import Clock
from weir.commit import Verdict
from weir.commit_found import Level
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.erasure import Erasures, erasures
from weir.formats import NewerFormatError

from weir_analytics.failpoints import failpoint
from weir_analytics.jobs.runner import Jobs
from weir_analytics.jobs.unreplayed import DoneReplay, done_replays
from weir_analytics.panes import checkpoint
from weir_analytics.panes.ahead import Ahead, Proven
from weir_analytics.panes.arrow_plan import AnyPlan
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.between import Between, Pace, Work, pace_of
from weir_analytics.panes.cycle import Cycle, Done
from weir_analytics.panes.definitions_log import DefinitionsLog
from weir_analytics.panes.dry_runs import DryRuns, set_to
from weir_analytics.panes.fault import Repeats
from weir_analytics.panes.holes import Met
from weir_analytics.panes.lane_book import LaneBook
from weir_analytics.panes.lane_waits import LaneWaits
from weir_analytics.panes.lanes import Filler
from weir_analytics.panes.levels import slices
from weir_analytics.panes.life import Life, let_go
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.log_watch import lanes_left
from weir_analytics.panes.loss_watch import LossWatch
from weir_analytics.panes.open_lanes import lanes_beside
from weir_analytics.panes.ops import Figures
from weir_analytics.panes.passing import PASSING, StreamEndedError, first_line, missing
from weir_analytics.panes.plans import Plans, first_words
from weir_analytics.panes.recovery import Shards, VerdictError
from weir_analytics.panes.redaction import Redaction
from weir_analytics.panes.same_log import topic_id
from weir_analytics.panes.session import source_options
from weir_analytics.panes.shard_wire import TIMEOUT_S
from weir_analytics.panes.slice_size import live_as_last
from weir_analytics.panes.start import OwnStart, Stores, take_over
from weir_analytics.panes.stream import BatchStream
from weir_analytics.panes.ticks import Ticker
from weir_analytics.panes.trial import end_trials
from weir_analytics.panes.turns import Turns
from weir_analytics.panes.vitals import Vitals
from weir_analytics.panes.wall_clock import MOST_BACK_S, WallClock
from weir_analytics.settings import Settings

LOG = structlog.get_logger()

EXIT_STOPPED = 0
EXIT_FENCED = 3
EXIT_FOREIGN = 4
EXIT_BROKEN = 70

# A life that has lasted is followed by the next at once; one after the other waits longer.
LASTING_S = 10.0
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0
# Start records are kept for ever: after so many that no batch followed there are fewer of them.
MOST_STARTS = 10
STARTS_PAUSE_S = 30.0
# Failures one after the other without a batch between them; then a fresh process tries.
MOST_FAILURES = 60
# How often it is looked whether slices have ended a life; and every how many looks at the stream,
# which the JVM is asked for.
LOOK_S = 0.1
STREAM_LOOKS = 5
# Longest wait to connect, and for one answer, where marks are looked at between batches.
MARKS_TIMEOUT_S = 0.5

_SET_BACK = (
    "the clock must not be set back, was by {:.0f} s: the stream begins anew, since Spark would "
    "sleep for as long; keep the machine's clock by a time server that does not step it"
)


@dataclass
class Driver:
    """One panes driver.

    Attributes:
        stop: Set to end it; the batch at hand is finished first.
    """

    settings: Settings
    spark: SparkSession
    vitals: Vitals
    figures: Figures
    ticker: Ticker
    clock: Clock
    stop: threading.Event = field(default_factory=threading.Event)
    _turns: Turns = field(default_factory=Turns)
    _failures: int = 0
    # Lives one after the other that wrote to the definitions and counted nothing.
    _vain: int = 0
    _met: Met = field(default_factory=Met)
    _own: OwnStart = field(default_factory=OwnStart)
    _plans: dict[tuple[object, ...], AnyPlan] = field(default_factory=dict)
    _lane_plans: dict[tuple[object, ...], AnyPlan] = field(default_factory=dict)
    _jobs: Jobs | None = None
    _replays: FoldMemo[Sequence[DoneReplay]] = field(default_factory=lambda: FoldMemo(done_replays))
    _proven: Proven = field(default_factory=Proven)
    _repeats: Repeats = field(default_factory=Repeats)
    _waits: LaneWaits = field(default_factory=LaneWaits)
    _ended: Counter[str] = field(default_factory=Counter)

    def run(self) -> int:
        """Count until told to stop; return the exit code."""
        try:
            code = self._lives()
            if code not in (EXIT_FENCED, EXIT_FOREIGN):
                self._say_losses()
            return code
        finally:
            if self._own.short:  # no later process knows of them
                LOG.error("shards_left_short", shards=sorted(self._own.short))

    def _lives(self) -> int:
        """Live one life after the other; return the exit code."""
        pause_s = 0.0
        while not self.stop.is_set():
            stores, began_s = self._open(), self.clock.monotonic_s()
            try:
                self._life(stores)
            except (VerdictError, NewerFormatError) as error:
                # What a newer release wrote is another's state as well.
                verdict = Verdict.FOREIGN
                if isinstance(error, VerdictError):
                    verdict = error.verdict
                    self._own.short |= error.shards
                LOG.error("verdict", verdict=verdict.value, reason=str(error))
                self.figures.found(verdict)
                if verdict is Verdict.FENCED:
                    return EXIT_FENCED
                if verdict is Verdict.FOREIGN:
                    return EXIT_FOREIGN
            except PASSING as error:
                self._failures += 1
                if self._met.take(error, missing(error)):
                    self._failures, self._vain, pause_s = 0, 0, FIRST_PAUSE_S
                self.vitals.trouble = first_line(error)
                LOG.warning("counting_interrupted", error=first_line(error))
                if self._failures > MOST_FAILURES or self._jvm_is_gone():
                    return EXIT_BROKEN
            finally:
                self._vain += stores.definitions.writes > 0
                _close(stores)
            self.vitals.doing = "waiting for Kafka and Redis"
            let_go(self.spark)
            if self.clock.monotonic_s() - began_s > LASTING_S:
                pause_s = 0.0
            self.stop.wait(STARTS_PAUSE_S if self._vain > MOST_STARTS else pause_s)
            pause_s = min(max(2 * pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        return EXIT_STOPPED

    def _say_losses(self) -> None:
        """Have a start record say what was found to be lost as counting ended.

        Counting has passed a hole, and the mark of a shard that is short says that nothing is
        amiss: no later process finds out by itself.
        """
        met, own, note = self._met, self._own, self.figures.found
        if own.said.issuperset(met.lost) and not own.short:
            return
        stores = self._open()
        try:
            take_over(stores, self.settings, self.clock, met.lost, met.lacks_ms, own, note)
        except (VerdictError, NewerFormatError, *PASSING) as error:
            holes = [hole._asdict() for hole in met.lost if hole not in own.said]
            LOG.error("losses_not_said", holes=holes, error=first_line(error))
        finally:
            _close(stores)

    def warm_up(self) -> None:
        """Run the plans of the first batches on nothing: most of that is compiling.

        Without Kafka there is nothing to know of them; then the first batches take longer.
        """
        self.vitals.doing = "warming up"
        settings = self.settings
        definitions = DefinitionsLog(settings.kafka)
        events_id = ""
        end: Offsets = {}
        try:
            definitions.read_to(definitions.end())
            events_id = topic_id(settings.kafka, names.EVENTS)
            _start, end = LogOffsets(settings.kafka, names.EVENTS).ends()
        except PASSING as error:
            LOG.warning("warm_up_without_definitions", error=first_line(error))
        finally:
            definitions.close()
        plans = self._plans_of(definitions.fold, events_id, self._plans)
        # What counts now, and what counts once all that wait have begun: once it was rehearsed.
        fold = definitions.fold
        fresh = {one.vid for one in fold.metrics_to_start() if fold.set_aside(one.vid) is None}
        try:
            plans.plan_of(plans.versions_for(end, _beyond(end)))
            plans.plan_of(plans.soon(end, fresh))
        except Exception as error:  # noqa: BLE001  whose failure that is, is found out later
            LOG.warning("plan_not_made", error=first_words(error))

    # ── one life: from a start record to whatever ends it ───────────────────

    def _life(self, stores: Stores) -> None:
        self.vitals.doing = "taking over"
        met, own, note = self._met, self._own, self.figures.found
        footing = take_over(stores, self.settings, self.clock, met.lost, met.lacks_ms, own, note)
        self.vitals.counted = footing.target
        plans = self._plans_of(stores.definitions.fold, footing.events_id, self._plans)
        book = LaneBook(stores.shards, footing.events_id, self._waits)
        ending = threading.Event()
        rehearse = partial(DryRuns(self.settings, self.spark).rehearse, ending)
        ahead = Ahead(plans, rehearse, self.clock, self._proven)
        cycle = Cycle(
            self.spark,
            self.settings,
            stores,
            footing,
            plans,
            book,
            self.clock,
            gate=ahead,
            repeats=self._repeats,
        )
        book.doubt(footing.told)
        cycle.recounted = book.untold(stores.definitions.fold)
        for level in footing.levels:
            self._level(cycle, level)
        self.vitals.epoch, self.vitals.doing = footing.epoch, "counting"
        life = Life(weakref.ref(cycle))
        looked_at = self._shards(MARKS_TIMEOUT_S)
        # The look comes last: the plans before it are made without the turn, which it waits for.
        between = self._between(
            cycle, (ahead, *self._works(cycle, ending), LossWatch(looked_at)), ending
        )
        # What was lost is counted again while Spark starts the stream.
        between.start()
        query: StreamingQuery | None = None
        try:
            query = self._stream(cycle, life)
            self._follow(query, between, life)
        except PASSING as error:
            if between.failure is not None:  # such as that a newer driver runs
                life.fail(between.failure)
            life.fail(error)
        finally:
            self._end(query, between, life)
            looked_at.close()
            own.short |= life.short
            for hole in life.holes():  # counting has passed it, and meets it no more
                met.take(hole, hole.holes)
        if (failure := life.take_failure()) is not None:
            raise failure
        if self._jobs is not None:
            self._jobs.rest(cycle)

    def _between(self, cycle: Cycle, works: Sequence[Work], ending: threading.Event) -> Between:
        return Between(
            cycle,
            works,
            self._turns,
            self.clock,
            self._pace,
            ending=ending,
            give_up=lambda: end_trials(self.spark),
            ended=self._ended,
        )

    def _stream(self, cycle: Cycle, life: Life) -> StreamingQuery:
        starting = checkpoint.starting_offsets(names.EVENTS, cycle.footing.target)
        options = source_options(self.settings, starting) | {"subscribe": names.EVENTS}
        log = self.spark.readStream.format("kafka").options(**options).load()
        writer = log.writeStream.foreachBatch(
            lambda frame, number: self._on_batch(life, frame, number)
        ).option("checkpointLocation", str(self.settings.checkpoint_dir))
        if self.settings.trigger_ms:
            writer = writer.trigger(processingTime=f"{self.settings.trigger_ms} milliseconds")
        return writer.start()

    def _works(self, cycle: Cycle, ending: threading.Event) -> Sequence[Work]:
        """Return what is done between batches, until that is to end."""
        footing, fold = cycle.footing, cycle.stores.definitions.fold
        plans = self._plans_of(fold, footing.events_id, self._lane_plans)
        self._jobs = self._jobs or Jobs(self.settings, self.clock, self.figures.audited)
        redaction = Redaction(self.clock, self.settings.hash_key)
        most = self.settings.max_records
        beside = lanes_beside(self.settings.cores)
        last = live_as_last(self.vitals.capacity_per_s, most, beside)
        cycle.followers.append(redaction.note)
        return (
            Filler(
                plans,
                self._range,
                self.clock,
                most,
                self._pace,
                last,
                beside,
                self._waits,
                ending,
            ),
            self._jobs,
            redaction,
        )

    def _plans_of(
        self, fold: Definitions, topic_id: str, made: dict[tuple[object, ...], AnyPlan]
    ) -> Plans:
        settings = self.settings
        key, shards = settings.hash_key, settings.shards
        usual, columns = set_to(settings), settings.columns
        warm = DryRuns(settings, self.spark).warm
        return Plans(fold, topic_id, usual, warm, shards, key, columns, made)

    def _on_batch(self, life: Life, frame: DataFrame, number: int) -> None:
        with self._turns.live(lambda: self.stop.is_set() or life.ending.is_set()):
            life.count(lambda cycle: self._count(cycle, frame, number), number)

    def _count(self, cycle: Cycle, frame: DataFrame, number: int) -> None:
        failpoint("C10")
        self._tell(cycle.on_batch(frame, number))
        fold = cycle.stores.definitions.fold
        self.vitals.lanes = lanes_left(cycle.book, fold)
        self.vitals.replays = self._replays.of(fold)

    def _pace(self) -> Pace:
        vitals = self.vitals
        return pace_of(
            vitals.received_per_s,
            vitals.quiet_s,
            waits=vitals.lag_records != 0,
            # Before the first batch nothing is known of how old numbers are.
            is_behind=vitals.last_batch_s is not None and vitals.is_behind(self.clock.now_ms()),
        )

    def _follow(self, query: StreamingQuery, between: Between, life: Life) -> None:
        """Wait until the stream ends, or must begin anew, or the driver is told to stop."""
        wall = WallClock(self.clock)
        for look in itertools.count(1):
            if self.stop.wait(LOOK_S):
                return
            if (back_s := wall.back_s()) > MOST_BACK_S:
                life.fail(StreamEndedError(_SET_BACK.format(back_s)))
                return
            if between.failure is not None:
                life.fail(between.failure)
                return
            if look % STREAM_LOOKS == 0 and not query.isActive:
                if (error := query.exception()) is not None:
                    life.fail(StreamEndedError(first_line(error)))
                return

    def _end(self, query: StreamingQuery | None, between: Between, life: Life) -> None:
        """Stop the stream between two batches: within one, Spark prints a stack overflow.

        Spark stops waiting for a stream's thread after a while, which is less than why it ends, and
        than what the slice at hand fails with. That may come when nobody looks any more, since
        the driver is told to stop: so it is taken in here, also if it was before.
        """
        late: Exception | None = None
        try:
            with self._turns.live():
                life.ending.set()
                if query is not None:
                    query.stop()
        except PASSING as error:
            LOG.warning("stream_not_stopped", error=first_line(error))
            late = error
        finally:
            between.end()
            if between.failure is not None:
                life.fail(between.failure)
            if late is not None:
                life.fail(late)

    def _level(self, cycle: Cycle, level: Level) -> None:
        """Count what one shard lacks, in slices, before live counting goes on."""
        self.vitals.doing = f"levelling shard {level.shard}"
        known = Erasures(erasures(cycle.stores.definitions.fold), cycle.footing.events_id)
        for start, end in slices(level, self.settings.max_records, known.borders):
            read_from = {p: max(n, level.read_from.get(p, 0)) for p, n in start.items()}
            batch = cycle.range_of(start, end, -1)
            # By Spark, however small: what retention has left begins later than the range.
            batch = replace(
                batch,
                only=(level.shard,),
                copies="all" if cycle.footing.copies else "none",
                single=False,
            )
            cycle.count(self._range(read_from, end), batch, begins_later=True)

    def _range(self, start: Offsets, end: Offsets) -> DataFrame:
        options = source_options(self.settings, checkpoint.starting_offsets(names.EVENTS, start))
        options |= {
            # By partition: a lane may be of some, and Spark wants a place in each that it reads.
            "assign": json.dumps({names.EVENTS: sorted(end)}),
            "endingOffsets": checkpoint.starting_offsets(names.EVENTS, end),
        }
        return self.spark.read.format("kafka").options(**options).load()

    # ── around a batch ──────────────────────────────────────────────────────

    def _tell(self, done: Done) -> None:
        """Publish the figures of a batch."""
        self._failures = self._vain = 0
        vitals, figures, outcome = self.vitals, self.figures, done.outcome
        now_s = self.clock.monotonic_s()
        since_s = now_s - (vitals.last_batch_s or now_s - done.seconds)
        vitals.rev, vitals.processed_through_ms = done.record.rev, done.record.processed_through_ms
        vitals.take(done.batch.end, outcome.received_ms)
        vitals.busy = 0.8 * vitals.busy + 0.2 * min(1.0, done.seconds / max(since_s, 0.001))
        vitals.receive(outcome.received, max(since_s, done.seconds))
        vitals.measure(outcome.received, done.seconds)
        vitals.last_batch_s, vitals.ready = now_s, True
        vitals.held_by = done.record.held_by
        vitals.clock_ahead_ms = self.ticker.seen.clock_ahead_ms
        figures.tell(done, vitals)
        LOG.info(
            "batch",
            rev=done.record.rev,
            received=outcome.received,
            ticks=done.record.ticks,
            small=done.batch.single,
            ms=round(done.seconds * 1000),
            **{name: round(amount, 1) for name, amount in outcome.work.items()},
        )

    def _open(self) -> Stores:
        settings, password = self.settings, self.settings.redis_password
        return Stores(
            DefinitionsLog(settings.kafka),
            self._shards(),
            BatchStream(settings.redis_url, password=password),
        )

    def _shards(self, timeout_s: float = TIMEOUT_S) -> Shards:
        settings, password = self.settings, self.settings.redis_password
        return Shards(settings.redis_url, settings.shards, password=password, timeout_s=timeout_s)

    def _jvm_is_gone(self) -> bool:
        try:
            return bool(self.spark.sparkContext._jsc.sc().isStopped())
        except (Py4JError, OSError, AttributeError):
            return True


def _beyond(at: Offsets) -> dict[int, int]:
    """Return the end of the least range that begins at some offsets."""
    return {p: n + 1 for p, n in at.items()}


def _close(stores: Stores) -> None:
    stores.definitions.close()
    stores.shards.close()
    stores.stream.close()
