"""Backfills and rebuilds: the log counted beside live counting, slice by slice (C11).

`weir.lanes` decides what comes next; this knows where each shard stands and runs the
slices. A slice is a batch like any other, with a lane of its own in the marks: a crash
anywhere is found in the mark, and the lane goes on from there.

Retention may overtake a lane. Of a version that does not serve yet its takeover says what
it lacks; what is served says it at once: before a lane passes what is gone, a start record
of the driver has said which panes are incomplete.

A slice that fails, whatever with, lets its lane wait (`lane_waits.py`), and so does one of which no
plan can be made: others go on, and so does live counting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, Literal

import structlog
from pyspark.sql import DataFrame
from weir import names
from weir.clock import Clock
from weir.commit import Offsets, Verdict, furthest, nearest, same_offsets
from weir.commit_recovery import incomplete_before_ms
from weir.definitions.fold import Definitions
from weir.definitions.history import Lane
from weir.horizons import horizons_of, longest_ms
from weir.lanes import Slice, filled_by

from weir_analytics.failpoints import failpoint
from weir_analytics.panes.arrow_plan import AnyPlan, ArrowPlan
from weir_analytics.panes.batch import Batch
from weir_analytics.panes.between import Pace, Step
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.fault import at_fault, is_due
from weir_analytics.panes.holes import OvertakenError
from weir_analytics.panes.lane_waits import LaneWaits
from weir_analytics.panes.log_offsets import LogOffsets
from weir_analytics.panes.outcome import Outcome, gravest
from weir_analytics.panes.passing import (
    PASSING,
    TrialError,
    ends_life,
    first_line,
    is_outside,
)
from weir_analytics.panes.plans import Counting, Plans
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.slice_size import (
    LEAST_RECORDS,
    NOTHING_KNOWN,
    Last,
    failed,
    measured,
    next_size,
)
from weir_analytics.panes.states import forget_lanes, log_folder
from weir_analytics.panes.trial import Trial, try_out
from weir_analytics.panes.turns import GivenUpError

LOG = structlog.get_logger()

LOOK_AT_LOG_S: Final = 10.0


@dataclass
class _Tried:
    """A slice that is to go through a trial, beside live batches, before it is counted.

    Attributes:
        counting: What it is counted for.
        run: Counts it by a plan, for nothing.
        passed: Whether that went well.
    """

    found: Slice
    counting: Counting
    run: Callable[[AnyPlan], None]
    passed: bool = False

    def is_of(self, other: Slice) -> bool:
        """Tell whether another slice is this one, but for how long it is."""
        mine, lanes = self.found, (self.found.lane, other.lane)
        is_same = lanes[0].offset == lanes[1].offset and mine.shards == other.shards
        return is_same and same_offsets(mine.there, other.there)


@dataclass
class Filler:
    """The slices of lanes, as work between batches.

    Attributes:
        plans: Plans of lanes; another set than that of live batches, since a plan is made
            without the turn.
        read: Returns a range of the log as Spark's source reads it.
        most: The most records of a batch; see `next_size`.
        pace: How long a slice may take.
        last: The last slice. Of the first one what live counting does, or nothing is known.
        beside: How many slices of rebuilds are counted at a time, a task each.
        waits: The lanes of which nothing is counted now.
        ending: Set when the thread is to end that prepares slices.
    """

    plans: Plans
    read: Callable[[Offsets, Offsets], DataFrame]
    clock: Clock
    most: int
    pace: Callable[[], Pace]
    last: Last = NOTHING_KNOWN
    beside: int = 1
    waits: LaneWaits = field(default_factory=LaneWaits)
    ending: threading.Event = field(default_factory=threading.Event)
    _wanted: Counting | None = None
    _log_start: Mapping[int, int] = field(default_factory=dict)
    _look_at_s: float = 0.0
    _open: set[str] | None = None
    _lane: Lane | None = None
    _refused: dict[int, str] = field(default_factory=dict)
    _faults: Mapping[int, str] = field(default_factory=dict)
    _tried: _Tried | None = None

    def prepare(self) -> None:
        """Make the plan of the next slice, which takes long the first time, and try it if need be.

        Versions that are to blame for a plan that cannot be made, or for a slice that fails, are
        counted no further; the others go on. If none is, and no plan can be made still, the lane
        waits: for as long as this driver lives if it is a backfill of which nobody is left.

        Raises:
            Exception: What ends the driver's life; see `ends_life`.
        """
        wanted, lane = self._wanted, self._lane
        if wanted is not None and lane is not None:
            began_s = self.clock.monotonic_s()
            try:
                self.plans.plan_of(wanted)
            except Exception as error:
                if ends_life(error):
                    raise
                self._wanted = None
                self._blame(lane, wanted, error, began_s)
        if self._tried is not None and not self._tried.passed:
            self._try(self._tried)

    def _blame(self, lane: Lane, counting: Counting, error: Exception, began_s: float) -> None:
        """Look whose failure it is that no plan can be made; if nobody's, the lane waits."""
        faults = dict[int, str]()
        try:
            faults = at_fault(Trial(self.plans), counting, error)
        except Exception as found:
            if ends_life(found):
                raise
            again = _failure(lambda: self.plans.plan_of(counting))
            if again is None:
                return  # that was a worker's end
            error = again
            # Where Spark makes no plan at all, it is no lane's failure.
            is_nobodys = lane.kind != "backfill" or is_outside(error)
            if is_nobodys or _failure(self.plans.prove) is not None:
                self._wait(lane, error, began_s)
                return
        self._judge(lane, counting, faults, error)

    def _judge(
        self, lane: Lane, counting: Counting, faults: dict[int, str], error: Exception
    ) -> None:
        """Leave out who is to blame: nobody alone, or everybody, and then it is the lane."""
        vids = {one.version.vid for one in counting.versions}
        if lane.kind == "backfill" and (not faults or vids <= faults.keys()):
            why = _why(error)
            LOG.error("lane_set_aside", lane=lane.offset, why=why)
            self._refused[lane.offset] = why
        else:
            self._faults = faults

    def _wait(self, lane: Lane, error: Exception, began_s: float) -> None:
        """Let a lane wait for what failed without the turn."""
        now_s = self.clock.monotonic_s()
        took_s, outside = now_s - began_s, is_outside(error)
        pause_s = self.waits.fail_trial(lane.offset, _why(error), now_s, took_s, is_outside=outside)
        _tell_wait(lane, error, pause_s)

    def _try(self, tried: _Tried) -> None:
        """Count a slice for nothing, without the turn; if that fails, its lane waits on."""
        lane, began_s = tried.found.lane, self.clock.monotonic_s()
        try:
            tried.run(self.plans.plan_of(tried.counting))
        except GivenUpError:
            raise
        except Exception as error:
            if ends_life(error):
                raise
            self._tried = None
            self._wait(lane, error, began_s)
            if not is_outside(error) and is_due(self.waits.suspect(lane.offset)):
                self._blame_records(tried, error)
                now_s = self.clock.monotonic_s()
                self.waits.leave_time(now_s, now_s - began_s)
        else:
            tried.passed = True

    def _blame_records(self, tried: _Tried, error: Exception) -> None:
        """Look whether a version is to blame for a slice that fails: if others can be counted."""
        lane = tried.found.lane
        try:
            faults = at_fault(Trial(self.plans, tried.run), tried.counting, error)
        except Exception as found:
            if ends_life(found):
                raise
            return
        self.waits.go_on(lane.offset)
        self._judge(lane, tried.counting, faults, error)

    def step(self, cycle: Cycle) -> Step:
        """Count one slice; see `between.Work`."""
        definitions = cycle.stores.definitions.fold
        if self._faults:
            cycle.leave_out(self._faults)
            self._faults = {}
        lanes = cycle.book.open(definitions)
        self._forget(cycle, {lane.name for lane in lanes})
        self.waits.keep({lane.offset for lane in lanes})
        first = self._first(cycle) if lanes else {}
        left_out = self._left_out()
        needed = (lane.offset for lane in cycle.book.needed(definitions))
        size = self._size(is_lost=not left_out.issuperset(needed))
        found = cycle.book.next(definitions, size, first, left_out)
        self._tell_refused(cycle)
        if found is not None and self.waits.is_wary_of(found.lane.offset):
            # It may be its size that fails; and a trial runs beside live batches.
            found = cycle.book.next(definitions, LEAST_RECORDS, first, left_out)
        if found is None:
            self._wanted = None
            return Step.IDLE
        self._lane = found.lane
        if self.waits.is_wary_of(found.lane.offset):
            return self._step_warily(cycle, found)
        slices = [found, *self._beside(cycle, found, size, first)]
        plan = self._plan_of(self._counting(cycle, slices))
        if plan is not None and not isinstance(plan, ArrowPlan) and len(slices) > 1:
            # A metric that only columns can count: as with all of them.
            del slices[1:]
            plan = self._plan_of(self._counting(cycle, slices))
        return Step.SOON if plan is None else self._do(cycle, slices, plan, size)

    def _left_out(self) -> set[int]:
        """Return the lanes of which nothing is counted now."""
        return {*self._refused, *self.waits.left_out(self.clock.monotonic_s())}

    def _step_warily(self, cycle: Cycle, found: Slice) -> Step:
        """Count a small slice that went through its trial, or want that trial.

        By the plan that holds now: since the trial somebody may have been erased.
        """
        tried, self._tried = self._tried, None
        if tried is not None and tried.passed and tried.is_of(found):
            found = tried.found
        else:
            tried = None
        counting = self._counting(cycle, [found])
        plan = self._plan_of(counting)
        if plan is None:
            self._tried = tried
        elif tried is not None:
            return self._do(cycle, [found], plan, LEAST_RECORDS)
        else:
            batch = replace(self._batch(cycle, found), start=dict(found.there))
            self._tried = _Tried(
                found, counting, lambda plan: try_out(cycle.spark, plan, batch, self.ending)
            )
        return Step.SOON

    def _do(self, cycle: Cycle, slices: Sequence[Slice], plan: AnyPlan, size: int) -> Step:
        """Count slices; lanes of which one fails wait."""
        began_s = self.clock.monotonic_s()
        try:
            done = self._count(cycle, slices, plan)
        except Exception as error:
            if ends_life(error):
                raise
            self.last = failed(self.last, max(one.records for one in slices))
            lanes = [one.lane for one in slices]
            now_s = self.clock.monotonic_s()
            offsets, took_s = [lane.offset for lane in lanes], now_s - began_s
            pause_s = self.waits.fail(offsets, _why(error), now_s, took_s)
            for lane in lanes:
                _tell_wait(lane, error, pause_s)
            if not isinstance(error, PASSING):
                raise  # of ours: where it came from is to be told
            return Step.SOON
        if done:
            failpoint("C11")
            took_s = self.clock.monotonic_s() - began_s
            self.last = measured(self.last, size, [(s.records, n) for s, n in done], took_s)
        for one, _events in done:
            self.waits.done(one.lane.offset)
            cycle.book.moved(one, cycle.stores.definitions.fold)
            self._tell_aside(cycle, one.lane, None)
            _tell(one, self.last.took_s)
        return Step.DONE if done else Step.SOON

    def _plan_of(self, counting: Counting) -> AnyPlan | None:
        """Return a plan that there is; None: it is made before the next step, without the turn."""
        self._wanted = counting
        return self.plans.plan_of(counting) if self.plans.is_made(counting) else None

    def _size(self, *, is_lost: bool) -> int:
        """Return how many records the next slice has at most."""
        pace = self.pace()
        return next_size(self.last, pace.lost_s if is_lost else pace.slice_s, self.most)

    def _beside(self, cycle: Cycle, found: Slice, size: int, first: Offsets) -> Iterator[Slice]:
        """Yield slices of other rebuilds that are counted at the same time, by the same plan.

        What the log has lost a part of is counted alone, and read in another way; so is what lies
        on the other side of an erasure, since a plan knows of whom it counts nothing.
        """
        if found.lane.kind != "rebuild" or not same_offsets(found.there, found.start):
            return
        if self.plans.columns:  # tasks of that plan do not read the log themselves
            return
        erased, left_out = self.plans.erased(found.there, found.end), self._left_out()
        fitting = (
            one
            for one in cycle.book.beside(found, cycle.stores.definitions.fold, size, first)
            if one.lane.offset not in left_out
            and not self.waits.is_wary_of(one.lane.offset)
            and same_offsets(one.there, one.start)
            and self.plans.erased(one.there, one.end) == erased
        )
        yield from islice(fitting, self.beside - 1)

    def _count(
        self, cycle: Cycle, slices: Sequence[Slice], plan: AnyPlan
    ) -> list[tuple[Slice, int]]:
        """Count slices; return those that are committed, each with its events.

        Where a shard moved, its place is read again.

        Raises:
            VerdictError: What else a shard refused one with, the gravest: who is fenced ends.
        """
        if len(slices) == 1:
            found = [self._alone(cycle, slices[0], plan)]
        else:
            batches = [replace(self._batch(cycle, one), single=True) for one in slices]
            found = cycle.evaluate_beside(batches, plan)
        moved = (Verdict.BEHIND, Verdict.REWIND)
        refused = [one for one in found if isinstance(one, VerdictError)]
        ends = [error for error in refused if error.verdict not in moved]
        if ends:
            grave = gravest(error.verdict for error in ends)
            said = next(error for error in ends if error.verdict is grave)
            raise VerdictError(grave, str(said), {n for error in ends for n in error.shards})
        done: list[tuple[Slice, int]] = []
        for one, outcome in zip(slices, found, strict=True):
            if isinstance(outcome, VerdictError):
                cycle.book.forget(one.lane)
            else:
                done.append((one, outcome.received))
        return done

    def _alone(self, cycle: Cycle, found: Slice, plan: AnyPlan) -> Outcome | VerdictError:
        """Count a slice by itself; return what became of it, or what a shard refused it with."""
        try:
            return cycle.evaluate(*self._range(cycle, found, isinstance(plan, ArrowPlan)), plan)
        except VerdictError as error:
            return error

    def _tell_refused(self, cycle: Cycle) -> None:
        """Append what the authors of versions that are not filled read of that."""
        for offset, why in self._refused.items():
            cycle.book.refused.add(offset)
            self._tell_aside(cycle, cycle.stores.definitions.fold.lanes[offset], why)

    def _tell_aside(self, cycle: Cycle, lane: Lane, why: str | None) -> None:
        """Append that a lane's versions are set aside, or are no more; nothing if that is told."""
        fold = cycle.stores.definitions.fold
        for vid in filled_by(fold, lane):
            if (fold.set_aside(vid) is None) is not (why is None):
                cycle.set_aside(vid, why)

    def _forget(self, cycle: Cycle, lanes: set[str]) -> None:
        """Free what lanes that are done, and what the log has lost, have left on the disk."""
        if lanes != self._open:
            self._open = lanes
            footing = cycle.footing
            folder = log_folder(cycle.settings.dedup_dir, footing.events_id, footing.cut_epoch)
            forget_lanes(folder, {names.LIVE_LANE, *lanes})

    def _counting(self, cycle: Cycle, slices: Sequence[Slice]) -> Counting:
        """Return what one plan counts slices for: whatever any of them is counted for.

        A metric begins at a place in each partition. Lanes of different partitions reach it in
        different slices, and the plan tells by its place whether an event is the metric's.
        """
        start, end = spanned([(one.there, one.end) for one in slices])
        lane = slices[0].lane
        if lane.kind == "rebuild":
            return self.plans.rebuilding(start, end, cycle.end, cycle.through_ms // 1000)
        vids = filled_by(cycle.stores.definitions.fold, lane)
        return self.plans.filling(start, end, cycle.end, vids)

    def _batch(self, cycle: Cycle, found: Slice) -> Batch:
        return replace(
            cycle.range_of(found.start, found.end, -1),
            lane=found.lane.name,
            lane_start=dict(found.lane.start),
            only=found.shards,
            copies=_copies_of(found.lane),
            accounts=found.lane.kind == "rebuild",
        )

    def _range(self, cycle: Cycle, found: Slice, by_tasks: bool) -> tuple[DataFrame | None, Batch]:
        batch = self._batch(cycle, found)
        if same_offsets(found.there, found.start):
            by_tasks = by_tasks or batch.single
            return (None if by_tasks else self.read(found.start, found.end)), batch
        self._check_told(cycle, found)
        # What retention has left begins later than the range: by Spark, however small.
        lost = sum(n - found.start[p] for p, n in found.there.items())
        LOG.error("log_lost", lane=found.lane.offset, count=lost, start=found.there)
        return self.read(found.there, found.end), replace(batch, single=False)

    def _check_told(self, cycle: Cycle, found: Slice) -> None:
        """Do nothing if readers know what a slice that begins behind its place will lack.

        Of a rebuild no more is asked for than its lane could hold: where nothing is left of a
        partition, the log says "now", which is later each time until a tick comes.

        Raises:
            OvertakenError: If panes that are served would be short, and nothing said so.
        """
        definitions = cycle.stores.definitions.fold
        if not _is_served(definitions, found.lane):
            return
        log = LogOffsets(cycle.settings.kafka, names.EVENTS)
        start, end = log.ends()
        horizon_ms = longest_ms(horizons_of(definitions, cycle.footing.events_id), start)
        lacks_ms = log.complete_from_ms(start, end, horizon_ms, self.clock.now_ms())
        if until_ms := found.lane.until_ms:
            lacks_ms = min(lacks_ms, incomplete_before_ms(until_ms, horizon_ms, found.there))
        said = definitions.start()
        if said is None or said.incomplete_before_ms < lacks_ms:
            raise OvertakenError(found.lane.offset, lacks_ms)

    def _first(self, cycle: Cycle) -> Offsets:
        """Return the first offsets that the log still has."""
        now_s = self.clock.monotonic_s()
        if now_s >= self._look_at_s:
            self._look_at_s = now_s + LOOK_AT_LOG_S
            self._log_start = LogOffsets(cycle.settings.kafka, names.EVENTS).start()
        return self._log_start


def spanned(ranges: Sequence[tuple[Offsets, Offsets]]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the start and the end of what holds all records of some ranges.

    A partition of which one has nothing does not count: what lies between there and another one's
    part of it is neither's, and an erasure may be there.
    """
    filled = [{p for p, n in end.items() if start.get(p, 0) < n} for start, end in ranges]
    pairs = list(zip(ranges, filled, strict=True))
    starts = ({p: start.get(p, 0) for p in own} for (start, _end), own in pairs)
    ends = [{p: end[p] for p in own} for (_start, end), own in pairs]
    return nearest(starts), furthest(ends)


def _tell(done: Slice, took_s: float) -> None:
    LOG.info(
        "slice",
        lane=done.lane.offset,
        kind=done.lane.kind,
        records=done.records,
        ms=round(took_s * 1000),
    )


def _tell_wait(lane: Lane, error: Exception, pause_s: float) -> None:
    LOG.warning("lane_waits", lane=lane.offset, kind=lane.kind, error=_why(error), pause_s=pause_s)


def _failure(make: Callable[[], object]) -> Exception | None:
    """Return what making something fails with, None if it does not; raise what ends a life."""
    try:
        make()
    except Exception as error:
        if ends_life(error):
            raise
        return error
    return None


def _why(error: Exception) -> str:
    """Return in a line what a slice failed with."""
    return error.why if isinstance(error, TrialError) else first_line(error)


def _copies_of(lane: Lane) -> Literal["all", "values", "none"]:
    """Return what a lane copies to quarantine of what it cannot use."""
    if lane.kind == "backfill":
        return "values"
    return "all" if lane.copies else "none"


def _is_served(definitions: Definitions, lane: Lane) -> bool:
    """Tell whether readers look at what a lane counts: after a loss, also at a backfill's."""
    filled = filled_by(definitions, lane)
    return lane.kind == "rebuild" or any(definitions.activations[vid].serves for vid in filled)
