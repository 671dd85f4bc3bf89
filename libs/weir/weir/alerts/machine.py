"""The machine of one series: windows in, one after another, phase and episodes out.

    ok ── beyond ──▶ pending ── for ──▶ firing ── back ──▶ recovering ── recover_for ──▶ ok
                        │                  ▲                   │
                        └── within ─▶ ok   └────── not back ───┘

It knows nothing of provisional and final, of what was told before, nor of clocks: an
instant is the end of a window. `step.py` runs it over what is final once, and over what
is not again and again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from weir.definitions.rule import Rule
from weir.query.states import INCOMPLETE, NOT_KEPT, REBUILDING


class Phase(StrEnum):
    """Where a series stands."""

    OK = "ok"
    PENDING = "pending"
    FIRING = "firing"
    RECOVERING = "recovering"


class Reading(StrEnum):
    """What one window says to a rule."""

    BEYOND = "beyond"
    """The limit is crossed."""
    WITHIN = "within"
    """The limit is kept, but it is no recovery: between the two of a hysteresis."""
    BACK = "back"
    """Also a recovery."""
    SILENT = "silent"
    """No value, or too few events for one that counts."""
    UNTOLD = "untold"
    """Part of the log or of the panes is gone: no verdict can rest on it."""
    HELD = "held"
    """It is being counted again: whatever comes after it must wait."""


class Point(NamedTuple):
    """One window of one series, as a query answers it.

    Attributes:
        end_ms: The window is [end - length, end).
        state: Its letter, see `weir/query/states.py`.
        events: How many; None if that is not known.
        value: The aggregate; None if there is none to be said.
        low, high: Its bounds.
    """

    end_ms: int
    state: str
    events: int | None
    value: float | None = None
    low: float | None = None
    high: float | None = None


_STATES: Final = {
    REBUILDING: Reading.HELD,
    NOT_KEPT: Reading.UNTOLD,
    INCOMPLETE: Reading.UNTOLD,
}


def read(rule: Rule, point: Point) -> Reading:
    """Return what a window says to a rule."""
    if point.state in _STATES:
        return _STATES[point.state]
    if point.value is None or point.events is None or point.events < rule.min_events:
        return Reading.SILENT
    low, high = rule.limits
    least, most = point.value, point.value
    if rule.certain and point.low is not None and point.high is not None:
        least, most = point.low, point.high
    if least > high or most < low:
        return Reading.BEYOND
    back_low, back_high = rule.back
    return Reading.BACK if back_low <= point.value <= back_high else Reading.WITHIN


@dataclass(frozen=True, slots=True)
class Episode:
    """One alert on one series, from the first window beyond to the one that ended it.

    Attributes:
        began_ms: End of the first window beyond.
        fired_ms: End of the window at which it fired.
        basis: The windows beyond, from the first to the one that fired; none where
            silence fired.
        ended_ms: End of the window that ended it; None while it lasts.
        gone: Whether it ended because the series fell silent, and not by a recovery.
    """

    began_ms: int
    fired_ms: int
    basis: tuple[Point, ...]
    ended_ms: int | None = None
    gone: bool = False

    @property
    def point(self) -> Point | None:
        """The window that fired; None where silence did."""
        return self.basis[-1] if self.basis else None


@dataclass(frozen=True, slots=True)
class Core:
    """The machine between two windows.

    Attributes:
        phase: Where it stands.
        at_ms: End of the last window taken; None before the first.
        since_ms: From when `for` or `recover_for` is counted; time without data moves it on.
        run: While pending, the windows beyond so far.
        silent_ms: End of the first window of a silence that lasts; None without one.
        episode: What fires, also while it recovers.
    """

    phase: Phase = Phase.OK
    at_ms: int | None = None
    since_ms: int | None = None
    run: tuple[Point, ...] = ()
    silent_ms: int | None = None
    episode: Episode | None = None

    @property
    def silence_ms(self) -> int:
        """For how long nothing has been said."""
        return 0 if self.silent_ms is None or self.at_ms is None else self.at_ms - self.silent_ms


def play(rule: Rule, core: Core, points: Iterable[Point]) -> tuple[Core, list[Episode]]:
    """Take windows up to the first that is held.

    Args:
        rule: The rule.
        core: Where to begin.
        points: Windows after `core.at_ms`, oldest first.

    Returns:
        Where it stands then, and the episodes that ended on the way.
    """
    ended = []
    for point in points:
        reading = read(rule, point)
        if reading is Reading.HELD:
            break
        before, core = core, advance(rule, core, point, reading)
        if before.episode is not None and core.episode is None:
            gone = core.silent_ms is not None
            ended.append(replace(before.episode, ended_ms=point.end_ms, gone=gone))
    return core, ended


def advance(rule: Rule, core: Core, point: Point, reading: Reading) -> Core:
    """Take one window."""
    if reading is Reading.UNTOLD:
        return replace(core, at_ms=point.end_ms, since_ms=_moved(core, point))
    if reading is Reading.SILENT:
        return _silent(rule, core, point)
    taken = replace(core, at_ms=point.end_ms, silent_ms=None)
    if core.episode is not None:
        return _firing(rule, taken, point, reading)
    if reading is not Reading.BEYOND:
        return Core(at_ms=point.end_ms)
    since_ms = point.end_ms if core.since_ms is None else core.since_ms
    beyond = (*core.run, point)
    if point.end_ms - since_ms < rule.hold:
        return replace(taken, phase=Phase.PENDING, since_ms=since_ms, run=beyond)
    episode = Episode(beyond[0].end_ms, point.end_ms, beyond)
    return Core(Phase.FIRING, point.end_ms, episode=episode)


def _firing(rule: Rule, core: Core, point: Point, reading: Reading) -> Core:
    if reading is not Reading.BACK:
        return replace(core, phase=Phase.FIRING, since_ms=None)
    since_ms = point.end_ms if core.since_ms is None else core.since_ms
    if point.end_ms - since_ms < rule.recover_for:
        return replace(core, phase=Phase.RECOVERING, since_ms=since_ms)
    return Core(at_ms=point.end_ms)


def _silent(rule: Rule, core: Core, point: Point) -> Core:
    """Keep the phase: silence is never a recovery, and no time of it counts."""
    silent_ms = point.end_ms if core.silent_ms is None else core.silent_ms
    core = replace(core, at_ms=point.end_ms, since_ms=_moved(core, point), silent_ms=silent_ms)
    if core.silence_ms >= rule.no_data.end_after:
        return Core(at_ms=point.end_ms, silent_ms=silent_ms)
    if rule.no_data.then == "fire" and core.silence_ms >= rule.no_data.tell_after:
        episode = core.episode or Episode(silent_ms, point.end_ms, ())
        return replace(core, phase=Phase.FIRING, since_ms=None, run=(), episode=episode)
    return core


def _moved(core: Core, point: Point) -> int | None:
    """Return `since` moved on by a window that says nothing."""
    if core.since_ms is None or core.at_ms is None:
        return core.since_ms
    return core.since_ms + point.end_ms - core.at_ms
