"""What a rule sees now: the newest window of each of its groups.

Whoever asks fetches panes, as for a backtest:

    present = Present(rule, through_ms)
    present.run({key: panes for key in present.ask(metrics, facts)})
    present.worst()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from weir.alerts.machine import Point
from weir.alerts.step import Observation
from weir.alerts.watch import Change, Metrics, Panes, Watch, step_of
from weir.changed import ChangedPanes
from weir.definitions.rule import Rule
from weir.query import Facts, PaneKey
from weir.query.grouping import Group


class Present(Watch):
    """One look at the newest window that has ended.

    Attributes:
        points: That window of each group that has events in it, or of all together.
    """

    def __init__(self, rule: Rule, through_ms: int) -> None:
        super().__init__(rule, through_ms)
        self.points: dict[Group, Point] = {}
        self._now: Facts | None = None

    def ask(self, metrics: Metrics, facts: Facts) -> set[PaneKey]:
        """Return the panes that `run` must be given.

        Raises:
            ProblemError: If the rule cannot be watched.
        """
        served = metrics.get(self.rule.metric)
        if served is not None:
            self.settled_ms -= step_of(self.rule, served.newest.metric)
            self._from_ms = self.settled_ms
        self._now = replace(facts, processed_through_ms=facts.processed_through_ms or 0)
        return self.look(metrics, self._now, ChangedPanes())

    def run(self, panes: Panes) -> None:
        """Take the panes that `ask` named.

        Raises:
            ProblemError: `query_too_large`, if there are more groups than can be watched.
        """
        if self._now is not None:
            self.see(panes, self._now)

    def worst(self) -> tuple[Group, Point] | None:
        """Return the group that is farthest towards or beyond the limit; None without any."""
        return worst_of(self.rule, self.points)

    def _step(self, points: Mapping[Group, list[Point]], seen: Observation) -> list[Change]:  # noqa: ARG002
        self.points |= {group: found[-1] for group, found in points.items() if found}
        return []


def worst_of(rule: Rule, points: Mapping[Group, Point]) -> tuple[Group, Point] | None:
    """Return the group whose value is farthest towards or beyond a rule's limit.

    One without a value comes after all others; None if there are no groups.
    """
    low, high = rule.limits

    def distance(one: tuple[Group, Point]) -> float:
        value = one[1].value
        return float("inf") if value is None else min(high - value, value - low)

    return min(points.items(), key=distance, default=None)
