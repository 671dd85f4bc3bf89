"""Plans made ahead: what is counted changes when the plan of it is ready; no batch waits for that.

A plan that Spark has never run costs the first batch that uses it seconds: it is analysed,
written as Java, compiled, and interpreted until the machine's compiler comes round to it.
So the thread between batches makes the plan of what will be counted next and rehearses it
over the log's last records, for nothing, while live batches go on with the one they have.
From which offsets on a version begins, ends or takes over, and an erasure holds, is the
driver's to choose; it chooses those after that.

A plan that cannot be made, or that fails with records of the log, is nobody's but its author's:
the versions that wait are halved until the one is found that it fails with, and that one is set
aside. A record says so. A log or a store that fails is nobody's: the versions wait, and are tried
again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import structlog
from weir.clock import Clock
from weir.definitions.fold import Definitions
from weir.definitions.fold_memo import FoldMemo
from weir.definitions.history import Definition
from weir.definitions.records import Edit, put_record

from weir_analytics.panes.arrow_plan import AnyPlan
from weir_analytics.panes.batch import Offsets
from weir_analytics.panes.between import Step
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.due import About, Due
from weir_analytics.panes.fault import halves, prove, still_fails
from weir_analytics.panes.passing import first_line, is_outside
from weir_analytics.panes.plans import Counting, Plans, first_words
from weir_analytics.panes.trial import Trial
from weir_analytics.panes.turns import GivenUpError

LOG = structlog.get_logger()

# What waits longer is said without: nothing that goes wrong here keeps it from being counted.
LONGEST_S: Final = 20.0
# A version that begins untried may hold up everybody, so this is for a thread that hangs. Where
# nothing can be tried, as with a log that does not answer, it waits no longer than all else.
UNTRIED_S: Final = 600.0
# What nobody is to blame for passes, such as a log that does not answer.
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
# A version that fails with records is not tried again for so many times as long as that took: one
# that hangs takes minutes, and the thread has lanes and jobs to count.
OTHERS: Final = 100
BY: Final = "engine"
"""The author of a version that is an older one once more."""


class Wanted(NamedTuple):
    """A plan to be made.

    Attributes:
        counting: What it counts.
        vids: The versions that are tried with it.
        abouts: What is said once it is there.
        places: Where records lie that one of the versions failed with.
    """

    counting: Counting
    vids: tuple[int, ...]
    abouts: frozenset[About]
    places: tuple[Offsets, ...] = ()


class Refused(NamedTuple):
    """That a version cannot be counted.

    Attributes:
        why: What trying it said.
        among: The metrics that were in force then: when they change it is tried again.
        until_s: And not before that, by the clock that never steps back.
    """

    why: str
    among: frozenset[int]
    until_s: float = 0.0


@dataclass
class Proven:
    """What is known of versions that nobody counts yet; outlives a driver's lives.

    Nothing in it is changed, only replaced: live batches look at it meanwhile.

    Attributes:
        ready: Those whose plan was made and tried.
        left_out: Those that were counted before, and that were met as left out.
        refused: Those whose plan cannot be made, or fails.
        groups: Those that some plan failed with, to be tried by themselves.
    """

    ready: frozenset[int] = frozenset()
    left_out: frozenset[int] = frozenset()
    refused: Mapping[int, Refused] = field(default_factory=dict)
    groups: tuple[tuple[int, ...], ...] = ()

    @property
    def doubtful(self) -> set[int]:
        """Return those that do not begin, however long they wait."""
        return {*self.refused, *(vid for group in self.groups for vid in group)}


@dataclass
class Ahead:
    """The plan of the next live batches, as work between batches (see `between.Work`).

    Attributes:
        plans: Those of live batches. What is made here is found there.
        rehearse: Runs a plan for nothing, over the log's last records and behind some places.
        prepared: What that plan is of which was made last, beside what was counted then.
    """

    plans: Plans
    rehearse: Callable[[AnyPlan, Sequence[Offsets]], None]
    clock: Clock
    proven: Proven = field(default_factory=Proven)
    prepared: frozenset[About] = frozenset()
    _wanted: Wanted | None = None
    _has_proven: bool = False
    _hopeless: Counting | None = None
    _in_hand: frozenset[int] = frozenset()
    _untriable: frozenset[int] = frozenset()
    _among: frozenset[int] = frozenset()
    _seen_s: dict[About, float] = field(default_factory=dict)
    _rest_until_s: float = 0.0
    _pause_s: float = FIRST_PAUSE_S
    _began_s: float = 0.0
    _waiting: FoldMemo[list[Definition]] = field(
        default_factory=lambda: FoldMemo(lambda fold: [*fold.metrics_to_start(), *fold.left_out()])
    )
    _metrics: FoldMemo[frozenset[int]] = field(
        default_factory=lambda: FoldMemo(
            lambda fold: frozenset(one.vid for one in fold.current(kind="metric"))
        )
    )

    def may_begin(self, definition: Definition) -> bool:
        """Tell whether a version's plan is ready, or it has waited long enough for a look."""
        vid = definition.vid
        longest_s = LONGEST_S if vid in self._untriable else UNTRIED_S
        has_waited = self._has_waited(About("start", vid), longest_s)
        if vid in self._in_hand or vid in self.proven.doubtful:
            return False
        return vid in self.proven.ready or has_waited

    def may_hold(self, due: Due) -> bool:
        """Tell whether the next batch finds its plan, or some of it has waited long enough."""
        has_waited = [self._has_waited(about) for about in sorted(due.abouts)]
        return any(has_waited) or self.plans.is_made(self._counting(due))

    def prepare(self) -> None:
        """Make the plan that is wanted, and rehearse it.

        Raises:
            Exception: What making it raised, if Spark makes no other either.
        """
        if self._wanted is None:
            return
        wanted, self._wanted = self._wanted, None
        self._began_s = self.clock.monotonic_s()
        try:
            if self._is_tried(wanted):
                self._prove(wanted)
        finally:
            self._in_hand = frozenset()

    def _is_tried(self, wanted: Wanted) -> bool:
        """Make a plan and rehearse it; tell whether it is to be used."""
        counting, vids = wanted.counting, wanted.vids
        try:
            plan = self.plans.plan_of(counting)
        except Exception as error:  # noqa: BLE001  whatever a definition brings about
            self._fail(Trial(self.plans), counting, vids, error)
            return False
        try:
            self.rehearse(plan, wanted.places)
        except GivenUpError:
            raise
        except Exception as error:  # noqa: BLE001  and whatever a record does
            if not vids:
                # What is due is of versions that are counted already, with these very records.
                LOG.warning("not_rehearsed", error=first_line(error))
                return True
            self.plans.drop(counting)
            self._refuse(wanted, error)
            return False
        return True

    def _refuse(self, wanted: Wanted, error: Exception) -> None:
        """Look whose failure it is that records of the log cannot be counted.

        Nobody's, if without the versions it fails as well, or if the log or the store failed.
        """
        trial = Trial(self.plans, lambda plan: self.rehearse(plan, wanted.places))
        if not is_outside(error):
            try:
                self._fail(trial, wanted.counting, wanted.vids, error)
            except Exception as found:  # noqa: BLE001  whatever trying them raised
                error = found
            else:
                return
        LOG.warning("not_rehearsed", error=first_line(error))
        self._untriable = frozenset(wanted.vids)
        self._rest_until_s = self.clock.monotonic_s() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _prove(self, wanted: Wanted) -> None:
        """Take note that a plan is there, and counts."""
        self._pause_s, self._untriable, self._has_proven = FIRST_PAUSE_S, frozenset(), True
        self.prepared = wanted.abouts
        for about in wanted.abouts:
            self._seen_s.pop(about, None)  # what is not said with this plan waits anew
        self.proven.ready |= frozenset(wanted.vids)
        refused = self.proven.refused
        self.proven.refused = {vid: one for vid, one in refused.items() if vid not in wanted.vids}

    def step(self, cycle: Cycle) -> Step:
        """Say what is wanted, and tell of what was set aside; the rest needs no turn."""
        self._want(cycle)
        if self._has_proven:
            self._has_proven = False
            return Step.DONE
        return Step.IDLE if self._wanted is None else Step.SOON

    def _want(self, cycle: Cycle) -> None:
        """Say what is wanted, after what was set aside."""
        fold = cycle.stores.definitions.fold
        waiting = {one.vid: one for one in self._waiting.of(fold)}
        left_out = frozenset(vid for vid in waiting if fold.is_left_out(vid))
        # Its plan was made, before it could not be made any more.
        self.proven.ready -= left_out - self.proven.left_out
        self.proven.left_out = left_out
        self._tell(cycle, waiting)
        if self.clock.monotonic_s() < self._rest_until_s:
            return
        vids = self._next(fold, waiting)
        others = (waiting.keys() & self.proven.ready) - self.proven.refused.keys()
        begun = {*others, *vids}
        due = cycle.due(lambda about, one: about.op != "start" or one.vid in begun)
        if not vids and not due.said:
            return
        counting = self._counting(due, vids)
        if vids or (counting != self._hopeless and not self.plans.is_made(counting)):
            abouts = due.abouts.union(About("start", vid) for vid in vids)
            ends = (fold.activations[vid].finish for vid in vids if fold.is_left_out(vid))
            places = tuple(end for end in ends if end is not None)
            self._wanted = Wanted(counting, vids, abouts, places)
            self._in_hand = frozenset(vids)

    def _counting(self, due: Due, vids: Container[int] = ()) -> Counting:
        """Return what is counted once all that is due was said, and some versions have begun."""
        return self.plans.after(due.fold).soon(due.end, vids)

    def _has_waited(self, about: About, longest_s: float = LONGEST_S) -> bool:
        """Tell whether something has waited long enough for a plan, since this first saw it."""
        now_s = self.clock.monotonic_s()
        return now_s - self._seen_s.setdefault(about, now_s) > longest_s

    def _next(self, fold: Definitions, waiting: dict[int, Definition]) -> tuple[int, ...]:
        """Return the versions to be tried next, together: new ones first, doubtful ones last."""
        proven = self.proven
        proven.refused = {vid: one for vid, one in proven.refused.items() if vid in waiting}
        self._among = self._metrics.of(fold)
        known = proven.ready | proven.doubtful
        told = {vid for vid in waiting if fold.set_aside(vid) is not None}
        if fresh := tuple(vid for vid in waiting if vid not in known | told):
            return fresh
        while proven.groups:
            first, *others = proven.groups
            proven.groups = tuple(others)
            if group := tuple(vid for vid in first if vid in waiting):
                return group
        return next(((vid,) for vid in waiting if self._is_due(vid, told)), ())

    def _is_due(self, vid: int, told: Container[int]) -> bool:
        """Tell whether to try again what failed: once a process, and once a change."""
        refused = self.proven.refused.get(vid)
        if refused is None:
            return vid in told and vid not in self.proven.ready
        return refused.among != self._among and self.clock.monotonic_s() >= refused.until_s

    def _fail(
        self, trial: Trial, counting: Counting, vids: tuple[int, ...], error: Exception
    ) -> None:
        """Look whose failure it is: of several the halves are tried, one alone is refused.

        One plan a round, unlike `at_fault`: what others define and fill goes on meanwhile. Of
        what is no beginning it is nobody's here: the batch that needs the plan finds that out,
        when what is due has waited for it.
        """
        if not vids:
            prove(trial, counting._replace(versions=()), error)
            LOG.warning("plan_not_made", error=first_words(error))
            self._hopeless = counting
            return
        base = tuple(one for one in counting.versions if one.version.vid not in vids)
        prove(trial, counting._replace(versions=base), error)
        if len(vids) > 1:
            self.proven.groups = (*halves(vids), *self.proven.groups)
            return
        why = still_fails(trial, counting, base, error)
        if why is None:
            self.proven.groups = (vids, *self.proven.groups)
            return
        (vid,) = vids
        if vid not in self.proven.refused:
            LOG.error("version_set_aside", vid=vid, why=why)
        until_s = 0.0
        if trial.run is not None:
            now_s = self.clock.monotonic_s()
            until_s = now_s + OTHERS * (now_s - self._began_s)
        refused = Refused(why, self._among, until_s)
        self.proven.refused = {**self.proven.refused, vid: refused}

    def _tell(self, cycle: Cycle, waiting: dict[int, Definition]) -> None:
        """Append what readers do not know yet: who was set aside, and who is no more.

        Who was counted before is counted again as a new version of the same text: what came
        since then is in the log. The first reason stays: another one at each try would be a
        record at each start.
        """
        fold = cycle.stores.definitions.fold
        for vid, definition in waiting.items():
            is_told, refused = fold.set_aside(vid) is not None, self.proven.refused.get(vid)
            if refused is not None and not is_told:
                cycle.set_aside(vid, refused.why)
            elif vid in self.proven.left_out & self.proven.ready:
                _count_again(cycle, definition, self.clock)
            elif is_told and vid in self.proven.ready:
                cycle.set_aside(vid, None)


def _count_again(cycle: Cycle, metric: Definition, clock: Clock) -> None:
    """Append the same text as the next version; who edited it since wins."""
    edit = Edit(metric.tenant, "metric", metric.name, metric.version, BY, clock.now_ms())
    cycle.stores.definitions.append(put_record(edit, metric.text))
    LOG.info("metric_counted_again", tenant=metric.tenant, name=metric.name)
