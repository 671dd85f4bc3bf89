"""Jobs: read this file first. In slices, while no live batch runs, and tenants take turns.

Whose turn it is `turns.py` decides. One that has to wait, as an erasure for what is counted
anew, holds up nobody: it is asked again between two others.

    weir.definitions ─▶ open jobs ─▶ task (audit, replay, …)   ─▶ its outcome
                                       │ slice by slice                      │
                     weir:1:job:<vid> ◀┴─ progress, and the whole outcome ◀──┤ 24 h
                     weir.definitions ◀── running with its facts, then ended ┘ for ever

What a job must know again after a crash is recorded before it does anything; then a
crash anywhere leads back here, and it begins again by what was recorded. Whether that
does anything twice is for each task to say. A job with which one process after the other
ends is given up: it may be the job that ends them, and counting with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import structlog
from redis.exceptions import RedisError
from weir import names
from weir.clock import Clock
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.job import Adopt, Audit, Erase, Replay
from weir.definitions.jobs import JobAsked, JobReport, JobState, job_record
from weir.formats import NewerFormatError

from weir_analytics.jobs.adopt import AdoptTask
from weir_analytics.jobs.audit import AuditTask
from weir_analytics.jobs.compare import nameless
from weir_analytics.jobs.erase import EraseTask, Tenants
from weir_analytics.jobs.open_jobs import open_jobs, reads_the_log
from weir_analytics.jobs.replay import ReplayTask
from weir_analytics.jobs.schedule import Schedule
from weir_analytics.jobs.task import PASSING, NotNowError, Outcome, RefusedError, Task
from weir_analytics.jobs.turns import (
    MOST_ATTEMPTS,
    SHARES,
    Standing,
    Turns,
    is_scheduled,
    may_go_on,
)
from weir_analytics.panes.between import Step
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.recovery import VerdictError
from weir_analytics.panes.shard_wire import open_client
from weir_analytics.settings import Settings

LOG = structlog.get_logger()

SLICE_S: Final = 0.2
TELL_EVERY_S: Final = 1.0
TOLD_FOR_S: Final = 86_400
TOLD_BYTES: Final = 1_000_000
# Of each list of an outcome, what its record in the log keeps.
RECORDED_ITEMS: Final = 100
NOT_NOW_S: Final = 0.5
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0


Life = tuple[int, int]
"""In what a task goes on: an epoch and, of most tasks, a fence in it."""


@dataclass
class _UnderWay:
    """A job that was begun, in what it goes on, and what it may hold of all memory."""

    task: Task
    life: Life
    share: float


@dataclass
class Jobs:
    """Runs jobs between batches; a `Work` of the driver.

    Attributes:
        ended: Told with what each job ended.
    """

    settings: Settings
    clock: Clock
    ended: Callable[[Outcome], None] = lambda _outcome: None
    _under_way: dict[int, _UnderWay] = field(default_factory=dict)
    _turns: Turns = field(default_factory=Turns)
    _open: FoldMemo[list[JobAsked]] = field(default_factory=lambda: FoldMemo(open_jobs))
    _tenants: Tenants = field(default_factory=Tenants)
    _let_go_by: tuple[Sequence[JobAsked], int] | None = None
    _waits: dict[int, float] = field(default_factory=dict)
    _begun_here: set[int] = field(default_factory=set)
    _ask_at_s: float = 0.0
    _tell_at_s: dict[int, float] = field(default_factory=dict)
    _wait_until_s: float = 0.0
    _pause_s: float = FIRST_PAUSE_S
    _schedule: Schedule = field(init=False)
    _redis: Any = field(init=False)

    def __post_init__(self) -> None:
        self._schedule = Schedule(self.settings, self.clock)
        self._redis = open_client(self.settings, 2.0)

    def prepare(self) -> None:
        """Do nothing: a job needs nothing that takes long before its slice."""

    def step(self, cycle: Cycle) -> Step:
        """Do a slice of the job whose turn it is; what lasts is that one ended, or is asked for.

        Raises:
            VerdictError: FENCED if another driver has started.
            NewerFormatError: If a newer release wrote what a job reads.
        """
        if self.clock.monotonic_s() < self._wait_until_s:
            return Step.IDLE
        found = self._open.of(cycle.stores.definitions.fold)
        self._let_go(cycle, found)
        asked = self._next(found)
        scheduled = (one for one in found if is_scheduled(one))
        # While one of these has something to do, no further one is asked for.
        is_asked = any(one.definition.vid not in self._waits for one in scheduled)
        step = Step.SOON
        try:
            is_due = not is_asked and self._schedule.step(cycle)
            if asked is None:
                return Step.DONE if is_due else Step.IDLE
            self._turns.took(asked)
            step = self._slice(cycle, asked)
        except PASSING as error:
            self._wait(asked, error)
        else:
            self._pause_s = FIRST_PAUSE_S
        return step

    def _let_go(self, cycle: Cycle, found: Sequence[JobAsked]) -> None:
        """Drop what is open no more, or was begun in a life of the driver that is over."""
        now = found, cycle.footing.fence.fence
        if self._let_go_by == now:
            return
        self._let_go_by = now
        open_now = {one.definition.vid for one in found}
        for vid, one in list(self._under_way.items()):
            if vid not in open_now or one.life != _life(cycle, one.task):
                self._drop(vid)

    def _next(self, found: Sequence[JobAsked]) -> JobAsked | None:
        """Return the job whose turn it is; None if none is open, or all wait.

        Twice a second the one that waits longest is asked again.
        """
        allowed = may_go_on(found, Standing(self._under_way, self._waits, self._begun_here))
        if self._waits and self.clock.monotonic_s() >= self._ask_at_s:
            waiting = (one for one in allowed if one.definition.vid in self._waits)
            longest = min(waiting, key=lambda one: self._waits[one.definition.vid], default=None)
            if longest is not None:
                return longest
        return self._turns.next([one for one in allowed if one.definition.vid not in self._waits])

    def _give_way(self, asked: JobAsked) -> None:
        """Let others have their turn; this one's task stays while there is room for it."""
        now_s = self.clock.monotonic_s()
        self._waits[asked.definition.vid] = now_s
        self._ask_at_s = now_s + NOT_NOW_S

    def _slice(self, cycle: Cycle, asked: JobAsked) -> Step:
        try:
            outcome = self._outcome(cycle, asked)
        except (VerdictError, NewerFormatError, *PASSING):
            raise
        except NotNowError as error:
            self._give_way(asked)
            self._tell_at_times(asked, waits_for=str(error))
            return Step.SOON
        except RefusedError as error:
            self._end(cycle, asked, JobState.FAILED, {"error": str(error)})
        except Exception as error:
            # One job must not end the driver again and again.
            LOG.exception("job_failed", job=asked.definition.name)
            told = f"{type(error).__name__}: {error}"[:1_000]
            self._end(cycle, asked, JobState.FAILED, {"error": told})
        else:
            self._waits.pop(asked.definition.vid, None)
            if outcome is None:
                self._tell_at_times(asked)
                return Step.SOON
            state = JobState.CANCELLED if asked.stopping else JobState.DONE
            self._end(cycle, asked, state, outcome)
        return Step.DONE

    def _outcome(self, cycle: Cycle, asked: JobAsked) -> Outcome | None:
        vid = asked.definition.vid
        now = self._under_way.get(vid)
        if now is None:
            now = self._under_way[vid] = self._begun(cycle, asked)
        now.task.stopping = asked.stopping
        until_s = self.clock.monotonic_s() + SLICE_S
        return now.task.step(cycle, lambda: self.clock.monotonic_s() >= until_s)

    def _begun(self, cycle: Cycle, asked: JobAsked) -> _UnderWay:
        """Begin a job, or begin it again after a crash."""
        if asked.report is not None:
            self._attempt(cycle, asked, asked.report)
        share = self._room() if reads_the_log(asked) else 0.0
        task = _task(self.settings, asked, share, self._tenants)
        if asked.report is None:
            facts = task.facts(cycle)
            self._append(cycle, JobReport(asked.definition.vid, JobState.RUNNING, facts=facts))
            self._begun_here.add(asked.definition.vid)
        else:
            facts = asked.report.facts
        if asked.definition.vid not in self._waits:
            LOG.info("job", job=asked.definition.name, does=asked.model.do.job)
        task.begin(cycle, facts)
        return _UnderWay(task, _life(cycle, task), share)

    def _room(self) -> float:
        """Return what a job may hold that reads the log; one that waits makes room for it."""
        holds = [vid for vid, one in self._under_way.items() if one.share]
        if len(holds) >= len(SHARES):
            self._drop(min(holds, key=lambda vid: vid not in self._waits))
        free = list(SHARES)
        for one in self._under_way.values():
            if one.share:
                free.remove(one.share)
        return free[0]

    def _attempt(self, cycle: Cycle, asked: JobAsked, report: JobReport) -> None:
        """Record that this process begins what another one has begun.

        Raises:
            RefusedError: If too many have ended with it.
        """
        vid = asked.definition.vid
        if vid in self._begun_here or asked.stopping or not reads_the_log(asked):
            return
        if report.attempts >= MOST_ATTEMPTS:
            msg = (
                f"a job must end before its driver does, but {report.attempts} drivers ended while "
                "they worked on it; look at why they did, such as their memory, then ask again"
            )
            raise RefusedError(msg)
        self._append(cycle, replace(report, attempts=report.attempts + 1))
        self._begun_here.add(vid)

    def rest(self, cycle: Cycle) -> None:
        """Say that the process ends since it was told to, whatever it has begun.

        Raises:
            KafkaException: If the log did not confirm it; then it counts as an attempt.
            TimeoutError: The same.
        """
        for vid in list(self._under_way):
            self._drop(vid)
        definitions, fence = cycle.stores.definitions, cycle.footing.fence.fence
        for vid in sorted(self._begun_here):
            report = definitions.fold.jobs.get(vid)
            if report is not None and not report.state.final:
                report = replace(report, at_ms=self.clock.now_ms(), attempts=report.attempts - 1)
                # Who has started meanwhile counts alone; nobody reads this then.
                definitions.append(job_record(report, fence=fence))
        self._begun_here.clear()

    def _end(self, cycle: Cycle, asked: JobAsked, state: JobState, outcome: Outcome) -> None:
        """Say with what a job ended: whole to who looks now, without names and short for ever."""
        vid, fold = asked.definition.vid, cycle.stores.definitions.fold
        said = fold.jobs.get(vid, JobReport(vid, state))
        self._tell(asked, state, outcome)
        told = kept(outcome)
        self._append(cycle, replace(said, state=state, outcome=told))
        self._waits.pop(vid, None)
        self._begun_here.discard(vid)
        self._tell_at_s.pop(vid, None)
        self._drop(vid)
        self.ended(outcome)
        LOG.info("job_ended", job=asked.definition.name, state=state.value)

    def _append(self, cycle: Cycle, report: JobReport) -> None:
        fence = cycle.footing.fence.fence
        record = job_record(replace(report, at_ms=self.clock.now_ms()), fence=fence)
        cycle.stores.definitions.append_fenced(record, fence)

    def _tell_at_times(self, asked: JobAsked, waits_for: str | None = None) -> None:
        """Tell of a job that goes on, or waits: each once a second."""
        if self.clock.monotonic_s() >= self._tell_at_s.get(asked.definition.vid, 0.0):
            self._tell(asked, JobState.RUNNING, {}, waits_for)

    def _tell(
        self, asked: JobAsked, state: JobState, outcome: Outcome, waits_for: str | None = None
    ) -> None:
        """Tell who follows the job how far it is; without Redis nobody is told."""
        self._tell_at_s[asked.definition.vid] = self.clock.monotonic_s() + TELL_EVERY_S
        now = self._under_way.get(asked.definition.vid)
        at, of = now.task.progress if now is not None else (0, 0)
        told: dict[str, Any] = {"state": state.value, "at": at, "of": of}
        told |= {"at_ms": self.clock.now_ms(), "waits_for": waits_for}
        text = json.dumps(told | {"outcome": dict(outcome)}, ensure_ascii=False)
        if len(text.encode()) > TOLD_BYTES:
            outcome = shortened(outcome, RECORDED_ITEMS)
            text = json.dumps(told | {"outcome": dict(outcome)}, ensure_ascii=False)
        try:
            self._redis.set(names.job_key(asked.definition.vid), text, ex=TOLD_FOR_S)
        except RedisError as error:
            LOG.warning("job_not_told", error=type(error).__name__)

    def _wait(self, asked: JobAsked | None, error: Exception) -> None:
        """Go on with the job after a pause, or begin it again: a part outside is away."""
        LOG.warning("job_interrupted", error=f"{type(error).__name__}: {error}"[:300])
        one = self._under_way.get(asked.definition.vid) if asked is not None else None
        if asked is not None and one is not None and not one.task.goes_on:
            self._drop(asked.definition.vid)
        self._wait_until_s = self.clock.monotonic_s() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _drop(self, vid: int) -> None:
        one = self._under_way.pop(vid, None)
        if one is not None:
            one.task.close()


def _life(cycle: Cycle, task: Task) -> Life:
    return cycle.footing.epoch, 0 if task.goes_on else cycle.footing.fence.fence


def _task(settings: Settings, asked: JobAsked, share: float, tenants: Tenants) -> Task:
    match asked.model.do:
        case Audit() as wanted:
            return AuditTask(settings, asked.definition, wanted, share)
        case Replay() as wanted:
            return ReplayTask(settings, asked.definition, wanted, share)
        case Adopt():
            return AdoptTask(asked)
        case Erase():
            return EraseTask(settings, asked, tenants)


def kept(outcome: Outcome) -> dict[str, Any]:
    """Return what the log of definitions keeps of an outcome, for good: it names no series."""
    short = shortened(outcome, RECORDED_ITEMS)
    if "differences" in short:
        short["differences"] = [nameless(one) for one in short["differences"]]
    return short


def shortened(outcome: Outcome, most: int) -> dict[str, Any]:
    """Return an outcome whose lists have at most so many items; it says how many it leaves out."""
    short = {k: v[:most] if isinstance(v, list) else v for k, v in outcome.items()}
    left = {k: len(v) - most for k, v in outcome.items() if isinstance(v, list) and len(v) > most}
    return short | ({"left_out": left} if left else {})
