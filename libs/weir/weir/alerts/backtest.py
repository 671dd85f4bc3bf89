"""When a rule would have fired: the live machine over stored panes, as they are known now.

Whoever runs it fetches panes, as for the live job:

    test = Backtest(rule, from_ms, to_ms)
    while not test.done:
        test.run({key: panes for key in test.ask(metrics, facts)})
    test.outcome()

Nothing is provisional here, so the machine runs over each window once. Where it would have
fired and been withdrawn, or fired late, is not known from panes alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Final, NamedTuple

from weir.alerts.machine import Core, Phase, Point, Reading, advance, read
from weir.alerts.step import Observation, Series
from weir.alerts.sweep import Trial, trials
from weir.alerts.watch import Change, Metrics, Panes, Watch
from weir.changed import ChangedPanes
from weir.definitions.rule import Rule
from weir.query import Facts, PaneKey
from weir.query.grouping import Group

MAX_GROUPS: Final = 50


class Span(NamedTuple):
    """A time in which a series was not ok.

    Attributes:
        from_ms: End of the window at which it began.
        to_ms: End of the window at which it ended, or the end of the test.
        state: `pending`, `firing` or `no_data`.
    """

    from_ms: int
    to_ms: int
    state: str

    @property
    def is_firing(self) -> bool:
        """Whether it fires, also while it recovers."""
        return self.state == "firing"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a backtest says.

    Attributes:
        fired: How often it would have fired.
        firing_ms: For how long in all.
        longest_ms: For how long at most.
        matched: How many groups there were.
        coverage: Share of the windows that said anything, 0 to 1; None without windows.
        groups: The busiest, with their spans, oldest first.
        sweep: The same at other limits, lowest first; empty if none were asked for.
    """

    fired: int
    firing_ms: int
    longest_ms: int
    matched: int
    coverage: float | None
    groups: list[tuple[Group, list[Span]]]
    sweep: list[Trial] = field(default_factory=list)


@dataclass
class _Track:
    """One series under test."""

    core: Core = field(default_factory=Core)
    windows: int = 0
    silent: int = 0
    fired: int = 0
    state: str | None = None
    spans: list[Span] = field(default_factory=list)

    def take(self, rule: Rule, point: Point) -> bool:
        """Take the next window; return whether there may be another."""
        reading = read(rule, point)
        if reading is Reading.HELD:
            return False
        before, self.core = self.core, advance(rule, self.core, point, reading)
        self.windows += 1
        self.silent += reading in (Reading.SILENT, Reading.UNTOLD)
        self.fired += self.core.episode is not None and before.episode is None
        self._note(_state(self.core), point.end_ms)
        return True

    def _note(self, state: str | None, at_ms: int) -> None:
        """Let the span that lasts go on to this window, and begin another on a change."""
        if self.state is not None:
            self.spans[-1] = self.spans[-1]._replace(to_ms=at_ms)
        if state is not None and state != self.state:
            self.spans.append(Span(at_ms, at_ms, state))
        self.state = state


class Backtest(Watch):
    """One test.

    Attributes:
        done: Whether all windows were looked at.
    """

    def __init__(self, rule: Rule, from_ms: int, to_ms: int, *, sweep: int = 0) -> None:
        """Begin.

        Args:
            rule: The rule.
            from_ms: Windows that end after it are looked at.
            to_ms: Windows that end up to here are looked at.
            sweep: How many limits are tried beside each other, its own among them.
        """
        super().__init__(rule, from_ms)
        self._to_ms = to_ms
        self._sweep = trials(rule, sweep) if sweep else []
        self._tracks: dict[Group, _Track] = {}
        self._then: Facts | None = None
        self.done = False

    def ask(self, metrics: Metrics, facts: Facts) -> set[PaneKey]:
        """Return the panes that `run` must be given.

        Raises:
            ProblemError: If the rule cannot be watched.
        """
        through_ms = min(self._to_ms, facts.processed_through_ms or 0)
        self._then = replace(facts, processed_through_ms=through_ms)
        return self.look(metrics, self._then, ChangedPanes())

    def run(self, panes: Panes) -> None:
        """Take the panes that `ask` named.

        Raises:
            ProblemError: `query_too_large`, if there are more groups than can be watched.
        """
        if self._then is not None:
            _, more = self.see(panes, self._then)
            self.done = not more

    def outcome(self) -> Outcome:
        """Return what was seen."""
        tracks = self._tracks
        firing = [s.to_ms - s.from_ms for t in tracks.values() for s in t.spans if s.is_firing]
        windows = sum(track.windows for track in tracks.values())
        silent = sum(track.silent for track in tracks.values())
        busiest = sorted(tracks.items(), key=lambda one: -len(one[1].spans))[:MAX_GROUPS]
        return Outcome(
            fired=sum(track.fired for track in tracks.values()),
            firing_ms=sum(firing),
            longest_ms=max(firing, default=0),
            matched=len(tracks),
            coverage=1 - silent / windows if windows else None,
            groups=[(group, track.spans) for group, track in busiest],
            sweep=self._sweep,
        )

    def _step(self, points: Mapping[Group, list[Point]], seen: Observation) -> list[Change]:  # noqa: ARG002
        for group, found in points.items():
            self.series.setdefault(group, Series())
            track = self._tracks.setdefault(group, _Track())
            reached_ms = track.core.at_ms
            new = [one for one in found if reached_ms is None or one.end_ms > reached_ms]
            taken = list(takewhile(lambda point: track.take(self.rule, point), new))  # noqa: B023
            for trial in self._sweep:
                trial.take(group, taken)
        return []


def _state(core: Core) -> str | None:
    if core.phase in (Phase.FIRING, Phase.RECOVERING):
        return "firing"
    if core.phase is Phase.PENDING:
        return "pending"
    return "no_data" if core.silent_ms is not None else None
