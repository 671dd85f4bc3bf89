"""One rule watched: which panes it needs at a revision, and what they make of its series.

The same for the live job and for a backtest. Each look covers the windows from the one
after what is settled to the newest that has ended, and beside them old windows that an
alert rests on and that late events have changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from weir.alerts.machine import Core, Phase, Point
from weir.alerts.step import Observation, Series, Transition, end, step
from weir.changed import ChangedPanes, PaneSpan
from weir.definitions.durations import format_duration
from weir.definitions.rule import Rule
from weir.panes import ceil_to, floor_to
from weir.problems import ProblemError, Reason
from weir.query import (
    Answer,
    Evaluator,
    Facts,
    MetricShape,
    PaneKey,
    PaneRows,
    Plan,
    answer,
    parse_query,
    plan,
)
from weir.query.facts import Served
from weir.query.grouping import REST, Group
from weir.query.limits import check_multiple, refuse
from weir.query.states import COMPLETE, REBUILDING, newest_final_to

MAX_WINDOWS: Final = 2_000
"""Windows taken in one look; more are due only after a pause, and taken look by look."""
MAX_UNSEEN: Final = 300
"""Old windows read again in one look: as many as fit for the most groups of a query."""
MAX_RUN: Final = 500
"""Windows that an alert may rest on: all of them are kept with it."""

# What these end in is decided by windows that no record has.
_COUNTED: Final = frozenset((Phase.PENDING, Phase.RECOVERING))

Metrics = Mapping[str, Served]
Panes = Mapping[PaneKey, PaneRows | None]


@dataclass(frozen=True, slots=True)
class Change:
    """What one look changed of one series.

    Attributes:
        group: Its dimension values, in the order of the rule's `by`.
        series: What is known of it now; None if it was given up.
        transitions: What changed, in order; empty only of one that was given up.
    """

    group: Group
    series: Series | None
    transitions: list[Transition]


def check_rule(rule: Rule, metrics: Metrics, now_ms: int) -> None:
    """Refuse a rule that cannot be watched: its metric lacks something, or it asks too much.

    Raises:
        ProblemError: `metric_unknown` (404), `query_invalid` or `query_too_large` (422).
    """
    if rule.signal is not None:
        return
    metric = _metric(rule, metrics)
    check_multiple("/window/length", rule.window.length, min(metric.keep_ms))
    each_ms = step_of(rule, metric)
    now_ms = floor_to(now_ms, each_ms)
    facts = Facts(epoch=0, rev=0, processed_through_ms=None, now_ms=now_ms)
    _read(rule, metrics, facts, (now_ms - each_ms, now_ms))
    for name, length_ms, most in (
        ("/for", rule.hold, MAX_RUN),
        ("/window/step", metric.lateness_ms, MAX_WINDOWS),
    ):
        if length_ms > most * each_ms:
            least = format_duration(ceil_to(-(-length_ms // most), min(metric.keep_ms)))
            refuse(
                name,
                f"such that {format_duration(length_ms)} are at most {most} steps",
                format_duration(each_ms),
                f"take windows with a step of {least}",
            )


def step_of(rule: Rule, metric: MetricShape) -> int:
    """Return the step of a rule's windows, ms: as written, or a tenth of them in whole panes."""
    return rule.window.step or ceil_to(-(-rule.window.length // 10), min(metric.keep_ms))


class Watch:
    """One version of a rule.

    A look is `look`, then the panes that it named to `see`. While `see` returns that there
    is more, the same again.

    Attributes:
        rule: The rule.
        settled_ms: Windows that end up to here are settled for every series.
        series: What is known, by group.
    """

    def __init__(
        self, rule: Rule, from_ms: int, series: Mapping[Group, Series] | None = None
    ) -> None:
        """Begin.

        Args:
            rule: The rule.
            from_ms: Series that are not given begin with the first window that ends after it.
            series: What is known already.
        """
        self.rule = rule
        self.series = dict(series or {})
        known = (one.settled.at_ms for one in self.series.values())
        self.settled_ms = min([from_ms, *(at for at in known if at is not None)])
        self._from_ms = from_ms
        # Where the next look of this pass begins, if what came before is not settled.
        self._next_ms: int | None = None
        self._most = MAX_WINDOWS
        self._alive_ms: dict[Group, int] = {}
        self._each_ms = self._looked_to_ms = 0
        self._edges = (0, 0)
        self._evaluator: Evaluator | None = None
        self._plan: Plan | None = None
        self._old: Plan | None = None
        # Old windows that may have changed unseen: None: all that alerts rest on.
        self._unseen: list[int] | None = None
        self._looks_again = False
        self._taken: list[int] = []

    @classmethod
    def again(
        cls, rule: Rule, begun_ms: int, settled_ms: int, series: Mapping[Group, Series]
    ) -> Self:
        """Go on where a watch stood, from what was recorded.

        Of a series of which nothing was told the newest windows are looked at again: it may have
        fallen silent in them, and of a longer silence something was told. One that fires, or whose
        silence was told, is looked at for as long as it takes to be given up.

        Args:
            rule: The rule.
            begun_ms: Where it began at first.
            settled_ms: Windows that end up to here were settled for every series.
            series: What was recorded of each when something was told of it last.
        """
        back_ms = settled_ms - rule.window.length  # the window in which the last events were
        gone_ms = max(begun_ms, back_ms - rule.no_data.end_after)
        from_ms = max(begun_ms, back_ms - rule.no_data.tell_after)
        stand = {
            group: _stands(one, gone_ms if one.silence_told or one.core.episode else from_ms)
            for group, one in series.items()
        }
        return cls(rule, from_ms, stand)

    def is_due(self, metrics: Metrics, facts: Facts, changed: ChangedPanes) -> bool:
        """Tell whether a look may tell anything: a window ended or is final, or panes changed.

        Most batches change only panes of windows that have not ended.
        """
        served = metrics.get(self.rule.metric)
        if served is None or self._evaluator is None:
            return True
        if self._edges_of(metrics, facts.processed_through_ms or 0) != self._edges:
            return True
        vids = {version.vid for version in served.versions}
        return changed.of(vids).is_before(self._looked_to_ms // 1000)

    def forget(self) -> None:
        """Forget the panes that were given: a change of some may have been missed."""
        self._evaluator = None
        self._unseen = None
        self._next_ms = None

    def doubt(self, spans: Iterable[PaneSpan]) -> None:
        """Look again at old windows that panes of spans belong to, some in each look.

        Before the looks at what changed: whether those panes did change, nobody said.
        """
        if self._unseen is not None:
            touched = self._touched((one.first_s, one.last_s + one.res_s) for one in spans)
            self._unseen = sorted({*self._unseen, *touched})

    def look(self, metrics: Metrics, facts: Facts, changed: ChangedPanes) -> set[PaneKey]:
        """Prepare a look and return the panes that it must be given.

        Args:
            metrics: The metrics that are served, by name.
            facts: How far counting has come.
            changed: Panes that changed since the look before.

        Raises:
            ProblemError: If the metric is gone, or no longer has what the rule asks.
        """
        each_ms = step_of(self.rule, _metric(self.rule, metrics))
        through_ms = facts.processed_through_ms or 0
        self._plan = self._old = None
        self._each_ms = each_ms
        self._edges = self._edges_of(metrics, through_ms)
        from_ms = floor_to(self.settled_ms, each_ms) if self._next_ms is None else self._next_ms
        to_ms = min(floor_to(through_ms, each_ms), from_ms + self._most * each_ms)
        due = self._next_unseen(each_ms)
        # What was missed first; what changed now is looked at after it, in a look of its own.
        self._looks_again = bool(due)
        due = due or self._touched((at, at + res_s) for _, res_s, at in changed.listed)
        self._old = self._plan_of_old(self.rule, metrics, facts, due, each_ms)
        wanted = set(self._old.keys) if self._old is not None else set()
        self._looked_to_ms = to_ms
        if to_ms > from_ms:
            self._plan = _read(self.rule, metrics, facts, (from_ms, to_ms))
            wanted |= self._prepared(self._plan) | changed.among(self._plan.keys)
        return wanted

    def see(self, panes: Panes, facts: Facts) -> tuple[list[Change], bool]:
        """Take the panes that `look` named.

        Returns:
            What changed, and whether there are more windows to be looked at now.

        Raises:
            ProblemError: `query_too_large`, if there are more groups than can be watched.
        """
        through_ms = facts.processed_through_ms or 0
        points: dict[Group, list[Point]] = {}
        if self._old is not None:
            self._collect(points, answer(self._old, panes, facts), begins=False)
        if self._looks_again:
            points = self._without_same(points)
        if self._plan is None or self._evaluator is None:
            changes = self._step(points, Observation(through_ms, self.settled_ms))
            return changes, self._looks_again
        found = self._evaluator.update(panes, facts, also=self.series.keys())
        self._collect(points, found, begins=True)
        reached_ms = self._plan.windows.last_end_ms
        # Of a version before, which may wait longer, only what alerts rest on is looked at again.
        final_to_ms = min(reached_ms, newest_final_to(self._plan.readings[0], facts) or 0)
        changes = self._step(points, Observation(through_ms, final_to_ms))
        if self._next_ms is None:
            self._settle(found, final_to_ms)
        # Few windows at a time may all be provisional: newer ones are not to wait for them.
        is_narrow = self._most < MAX_WINDOWS and REBUILDING not in found.states
        more = reached_ms + self._each_ms <= through_ms
        more = more and (self.settled_ms == reached_ms or is_narrow)
        self._next_ms = reached_ms if more and self.settled_ms < reached_ms else None
        if not more:
            self._most = min(MAX_WINDOWS, 2 * self._most)  # there may be fewer groups by now
        return [*changes, *self._give_up(through_ms)], more or self._looks_again

    def narrow(self) -> bool:
        """Take half as many windows in a look from now on; return whether there were several.

        For a look that was too large: of many groups an answer holds few windows.
        """
        asked = 0 if self._plan is None else self._plan.windows.count
        self._most = asked // 2 if asked > 1 else MAX_WINDOWS
        if self._looks_again:  # what was to be seen beside them was not
            self._unseen = sorted({*(self._unseen or ()), *self._taken})
        return asked > 1

    def _step(self, points: Mapping[Group, list[Point]], seen: Observation) -> list[Change]:
        changes = []
        for group in sorted({*points, *self.series}, key=_by_name):
            shown = replace(seen, points=tuple(points.get(group, ())))
            before = self.series.get(group, Series())
            self.series[group], told = step(self.rule, before, shown)
            if told:
                changes.append(Change(group, self.series[group], told))
        return changes

    def _settle(self, found: Answer, final_to_ms: int) -> None:
        """Move on to the first window that some series has not settled."""
        held = zip(found.plan.windows.ends_ms, found.states, strict=True)
        open_ms = [end_ms for end_ms, letter in held if letter == REBUILDING]
        open_ms += [one.tail[0].end_ms for one in self.series.values() if one.tail]
        reached_ms = min([final_to_ms, *(end_ms - 1 for end_ms in open_ms)])
        self.settled_ms = max(self.settled_ms, reached_ms)

    def _give_up(self, through_ms: int) -> list[Change]:
        """End the groups of which nothing has come for long: they may never come again.

        Also those of which there is nothing to tell: what was recorded of them is void.
        As far as was looked: what lies behind it, after a pause, may have their events.
        """
        due = [
            group
            for group, alive_ms in self._alive_ms.items()
            if group and self._looked_to_ms - alive_ms >= self.rule.no_data.end_after
        ]
        changes = []
        for group in sorted(due, key=_by_name):
            del self._alive_ms[group]
            told = end(self.series.pop(group), through_ms, "no events")
            changes.append(Change(group, None, told))
        return changes

    def _collect(self, points: dict[Group, list[Point]], found: Answer, *, begins: bool) -> None:
        """Sort the windows of an answer by group.

        Args:
            points: Where they are added.
            found: The answer.
            begins: Whether groups that are not known begin, with their first events: not in old
                windows, which are no news of who sends.
        """
        for one in found.series:
            if one.group is REST:
                continue
            seen = [
                Point(end_ms, letter, cell.events, *(cell.value or ()))
                for end_ms, letter, cell in zip(
                    found.plan.windows.ends_ms, one.state, one.cells, strict=True
                )
            ]
            known = self.series.get(one.group)
            if not begins and known is not None and known.settled.at_ms is None:
                continue  # it began behind them
            if known is None and one.group:
                came = (p.end_ms for p in seen if p.events and p.end_ms > self._from_ms)
                first_ms = next(came, None)
                if first_ms is None or not begins:
                    continue
                seen = [point for point in seen if point.end_ms >= first_ms]
            points.setdefault(one.group, []).extend(seen)
            if begins:
                # Of what is gone, or being counted again, nobody knows that nothing came.
                alive = [p.end_ms for p in seen if p.events or p.state not in COMPLETE]
                known_ms = self._alive_ms.get(one.group) or self._silent_from(known, seen[0])
                self._alive_ms[one.group] = max([known_ms, *alive[-1:]])

    def _silent_from(self, known: Series | None, first: Point) -> int:
        """Return since when a group may have been silent, of which nothing else is known."""
        silent_ms = None if known is None else known.settled.silent_ms
        return first.end_ms if silent_ms is None else silent_ms - self._each_ms

    def _edges_of(self, metrics: Metrics, through_ms: int) -> tuple[int, int]:
        """Return which step processed-through stands in, and which pane is final."""
        metric = _metric(self.rule, metrics)
        final_ms = through_ms - metric.lateness_ms
        return through_ms // self._each_ms, final_ms // min(metric.keep_ms)

    def _prepared(self, made: Plan) -> frozenset[PaneKey]:
        """Go on to a plan; return the panes that were never given."""
        if self._evaluator is None:
            self._evaluator = Evaluator(made)
        else:
            self._evaluator.advance(made)
        return self._evaluator.missing()

    def _ends(self) -> set[int]:
        """Return the ends of the settled windows that alerts rest on."""
        return {end_ms for one in self.series.values() for end_ms in one.basis_ends}

    def _touched(self, changed: Iterable[tuple[int, int]]) -> list[int]:
        """Return the ends of those windows that have changed; from where to where panes have."""
        spans = [(start_s * 1000, end_s * 1000) for start_s, end_s in changed]
        length_ms = self.rule.window.length
        return [
            end_ms
            for end_ms in self._ends()
            if any(start < end_ms and end_ms - length_ms < stop for start, stop in spans)
        ]

    def _next_unseen(self, each_ms: int) -> list[int]:
        """Return the next of the windows whose change may have been missed, as many as fit."""
        if self._unseen is None:
            self._unseen = sorted(self._ends())
        most_ms = self._unseen[0] + MAX_UNSEEN * each_ms if self._unseen else 0
        due = [end_ms for end_ms in self._unseen if end_ms < most_ms]
        self._unseen = self._unseen[len(due) :]
        self._taken = due
        return due

    def _without_same(self, points: Mapping[Group, list[Point]]) -> dict[Group, list[Point]]:
        """Leave out old windows with as many events as before: nothing late came of them.

        A percentile that is merged anew may differ by chance, which is no correction.
        """
        found: dict[Group, list[Point]] = {}
        for group, seen in points.items():
            basis = self.series[group].basis_events if group in self.series else {}
            found[group] = [one for one in seen if basis.get(one.end_ms, -1) != one.events]
        return found

    @staticmethod
    def _plan_of_old(
        rule: Rule, metrics: Metrics, facts: Facts, due: Collection[int], each_ms: int
    ) -> Plan | None:
        """Return how to read settled windows, by their ends; None for none."""
        if not due:
            return None
        return _read(rule, metrics, facts, (min(due) - each_ms, max(due)))


def _metric(rule: Rule, metrics: Metrics) -> MetricShape:
    found = metrics.get(rule.metric)
    if found is None:
        message = f'metric must be one that is served, got "{rule.metric}"; define it first'
        raise ProblemError(404, Reason.METRIC_UNKNOWN, message)
    return found.newest.metric


def _stands(series: Series, at_ms: int) -> Series:
    """Return a series as it stands at a later instant up to which nothing was told of it.

    So it is where it was, but for windows beyond the limit, or back, that add up to a change: of
    these all are looked at again.
    """
    core = series.core
    if core.at_ms is None or core.at_ms >= at_ms or core.phase in _COUNTED:
        return _begun(series)
    # A silence that was told lasts, or its end were told; of another nobody knows.
    silent_ms = core.silent_ms if series.silence_told else None
    core = Core(core.phase, at_ms, silent_ms=silent_ms, episode=core.episode)
    told = tuple(replace(one, settled=one.episode.ended_ms is not None) for one in series.told)
    return replace(series, settled=core, core=core, told=told, tail=())


def _begun(series: Series) -> Series:
    """Return a series of which nothing was settled when it was recorded, with where it began.

    Else it would begin wherever its watch does, at windows of a group that was given up.
    """
    if series.settled.at_ms is not None or series.core.at_ms is None:
        return series
    rests_on = [one.episode.began_ms for one in series.told if not one.settled]
    rests_on += [point.end_ms for point in series.core.run[:1]]
    first_ms = min([series.core.at_ms, *rests_on])
    return replace(series, settled=Core(at_ms=first_ms - 1))


def _read(rule: Rule, metrics: Metrics, facts: Facts, span: tuple[int, int]) -> Plan:
    """Return how the windows are read that end within a span, its end included."""
    each_ms = step_of(rule, _metric(rule, metrics))
    tumbling = each_ms == rule.window.length
    asked = {
        "metric": rule.metric,
        "aggregate": rule.aggregate,
        "window": {
            "kind": "tumbling" if tumbling else "hopping",
            "length": format_duration(rule.window.length),
        },
        "step": format_duration(each_ms),
        "by": rule.by,
        "where": [[c.dimension, c.op, c.value] for c in rule.where],
        "range": {"from": span[0], "to": span[1]},
    }
    return plan(parse_query(asked), metrics, facts)


def _by_name(group: Group) -> tuple[tuple[bool, str], ...]:
    return tuple((value is None, value or "") for value in group or ())
