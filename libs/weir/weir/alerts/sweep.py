"""The same rule at other limits: how much a little more or less would change.

A backtest holds each window against all of them while it has it, so that panes are read
once, however many limits there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weir.alerts.machine import Core, Phase, Point, advance, read
from weir.definitions.rule import Rule
from weir.query.grouping import Group

MAX_LIMITS: Final = 9
_STEPS: Final = (1, 2, 5, 10)
_SHARE: Final = 8
"""A step is at most this part of the limit, so that four of them leave half of it."""


@dataclass
class Trial:
    """One of the limits under test.

    Attributes:
        rule: The rule with that limit.
        fired: How often it would have fired so far.
    """

    rule: Rule
    fired: int = 0
    _ended_ms: int = 0
    _cores: dict[Group, Core] = field(default_factory=dict)
    _seen_ms: dict[Group, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._limits, self._back = self.rule.limits, self.rule.back

    @property
    def firing_ms(self) -> int:
        """For how long it would have fired so far, all groups together."""
        lasting = (
            self._seen_ms[group] - core.episode.fired_ms
            for group, core in self._cores.items()
            if core.episode is not None
        )
        return self._ended_ms + sum(lasting)

    def take(self, group: Group, points: Sequence[Point]) -> None:
        """Take the next windows of a group; none of them is held."""
        core = self._cores.get(group, Core())
        for point in points:
            if self._is_idle(core, point):
                continue
            before, core = core, advance(self.rule, core, point, read(self.rule, point))
            self.fired += core.episode is not None and before.episode is None
            if before.episode is not None and core.episode is None:
                self._ended_ms += point.end_ms - before.episode.fired_ms
        self._cores[group] = core
        if points:
            self._seen_ms[group] = points[-1].end_ms

    def _is_idle(self, core: Core, point: Point) -> bool:
        """Tell whether a window would change nothing but the time, as most by far."""
        if core.since_ms is not None or core.run:
            return False
        _, _, events, value, _, _ = point
        fires = core.phase is Phase.FIRING
        if value is None or events is None or events < self.rule.min_events:
            unheard = self.rule.no_data
            if not fires:
                return unheard.then == "keep"
            begun_ms = core.silent_ms
            return begun_ms is not None and point.end_ms - begun_ms < unheard.end_after
        low, high = self._back if fires else self._limits
        return core.silent_ms is None and (low <= value <= high) != fires


def trials(rule: Rule, count: int) -> list[Trial]:
    """Return a rule at `count` limits around its own, from the lowest to the highest.

    Its own is the middle one. What a rule recovers at keeps its distance from the limit. Two
    limits move apart by turns and towards each other; where they would meet, and where a limit
    would change its sign, there are fewer.
    """
    each = step_of(rule)
    reach = min(count, MAX_LIMITS) // 2
    moves = (_sum(nth * each, 0.0) for nth in range(-reach, reach + 1))
    return [Trial(moved) for move in moves if (moved := _moved(rule, move)) is not None]


def step_of(rule: Rule) -> float:
    """Return how far two limits lie apart: 1, 2 or 5 of some power of ten.

    Whole limits stay whole.
    """
    ends = rule.limit if isinstance(rule.limit, tuple) else (0.0, rule.limit)
    size = abs(ends[1] - ends[0]) / (2 if rule.outside else 1) or 1.0
    # Just below a power of ten the logarithm is rounded up to it.
    most = float(f"{size / _SHARE:.12g}")
    power = 10.0 ** math.floor(math.log10(most))
    step = max((s for s in _STEPS if s * power <= most), default=1) * power
    whole = all(float(end).is_integer() for end in ends)
    return max(step, 1.0) if whole else step


def _moved(rule: Rule, by: float) -> Rule | None:
    """Return the rule with its limit moved; None where that is no limit any more."""
    if rule.outside is not None:
        low, high = _sum(rule.outside[0], -by), _sum(rule.outside[1], by)
        back = (_sum(rule.back[0], -by), _sum(rule.back[1], by))
        ordered = low <= back[0] <= back[1] <= high and low < high
        return _with(rule, back, outside=(low, high)) if ordered else None
    limit = rule.below if rule.above is None else rule.above
    moved = _sum(limit or 0.0, by)
    if limit and moved and (moved < 0) != (limit < 0):
        return None
    return _with(rule, by, **{rule.side: moved})


def _with(rule: Rule, back: float | tuple[float, float], **limit: Any) -> Rule:
    if rule.recover is None:
        return rule.model_copy(update=limit)
    recover = back if isinstance(back, tuple) else _sum(float(rule.recover), back)  # type: ignore[arg-type]  # one number beside one limit
    return rule.model_copy(update={**limit, "recover": recover})


def _sum(value: float, by: float) -> float:
    """Return a sum without the dust of binary fractions."""
    return float(f"{value + by:.12g}")
