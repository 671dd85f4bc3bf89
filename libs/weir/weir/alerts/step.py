"""step(state, observation) -> state, transitions: what changes, and what is to be told of it.

A window is provisional until late events are no longer expected, and even a final one may
be corrected. So a series has two parts: what is *settled*, the machine run over all
windows that are final, and a *tail* of those that are not, run over again with each
observation. What was told before is held against the outcome:

    in the outcome, not yet told      firing
    told, and now on final windows    confirmed
    told, with another value          amended
    told, no longer in the outcome    withdrawn, also when it had been resolved
    ended in the outcome, not told    resolved, or ended where the series fell silent

A correction of a settled window reaches the alerts that rest on it: each keeps the windows
that made it fire. Time is processed-through, and an observation with a lower one is
ignored: so an epoch that begins anew repeats nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from weir.alerts.machine import Core, Episode, Phase, Point, Reading, play, read
from weir.definitions.rule import Rule
from weir.query.states import FINAL, PROVISIONAL

REMEMBERED_MS: Final = 86_400_000
"""For how long after its end an alert can still be amended or withdrawn."""
MAX_REMEMBERED: Final = 100


class Kind(StrEnum):
    """What a transition is."""

    PENDING = "pending"
    CLEARED = "cleared"
    """Pending no more, without having fired."""
    FIRING = "firing"
    CONFIRMED = "confirmed"
    AMENDED = "amended"
    WITHDRAWN = "withdrawn"
    RECOVERING = "recovering"
    RELAPSED = "relapsed"
    """Recovering no more, without having resolved."""
    RESOLVED = "resolved"
    ENDED = "ended"
    """The series fell silent for good, or its rule is gone."""
    NO_DATA = "no_data"
    DATA = "data"
    """Data again, after `no_data` was told."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of one series at one revision.

    Attributes:
        through_ms: Received time up to which every event is counted.
        final_to_ms: Windows that end up to here are final.
        points: Windows that ended, or whose values changed, since the observation before;
            oldest first. One that has not ended yet may stand among them if nothing that
            is still to come can take its verdict back.
    """

    through_ms: int
    final_to_ms: int
    points: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True)
class Told:
    """An alert as it was last told.

    Attributes:
        key_ms: The beginning that it was first told with: its identity.
        episode: It, as last told.
        confirmed: Whether all windows that it rests on were final.
        settled: Whether its end lies behind what is settled, so that only a correction
            of its basis can change it.
    """

    key_ms: int
    episode: Episode
    confirmed: bool = False
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """All that is known of one series of one rule.

    Attributes:
        through_ms: Processed-through of the last observation.
        settled: The machine after all final windows.
        tail: The windows after them.
        core: The machine after the tail: the present.
        told: Alerts that can still change, oldest first.
        silence_told: Whether it was told that there is no data.
    """

    through_ms: int = 0
    settled: Core = field(default_factory=Core)
    tail: tuple[Point, ...] = ()
    core: Core = field(default_factory=Core)
    told: tuple[Told, ...] = ()
    silence_told: bool = False

    @property
    def basis_ends(self) -> frozenset[int]:
        """Ends of the settled windows whose correction would matter."""
        return frozenset(self.basis_events)

    @property
    def basis_events(self) -> dict[int, int | None]:
        """How many events each of these windows had, by its end."""
        episodes = (told.episode for told in self.told)
        basis = (point for one in episodes for point in one.basis)
        return {point.end_ms: point.events for point in (*self.settled.run, *basis)}


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of a series, before it is written to `weir.alerts`.

    Attributes:
        kind: What changed.
        at_ms: End of the window that made the change.
        through_ms: Processed-through when it was seen.
        key_ms: Identity of the alert within its series; None where there is none.
        confirmed: Whether what the alert rests on is final.
        point: The window that says it; None for silence.
        before: The value that was told before; of an amendment and a withdrawal.
        before_low, before_high: Its bounds.
        reason: Why, where the kind does not say it.
    """

    kind: Kind
    at_ms: int
    through_ms: int
    key_ms: int | None = None
    confirmed: bool = False
    point: Point | None = None
    before: float | None = None
    reason: str = ""
    before_low: float | None = None
    before_high: float | None = None


def step(rule: Rule, series: Series, seen: Observation) -> tuple[Series, list[Transition]]:
    """Take one observation.

    Args:
        rule: The rule.
        series: What was known before.
        seen: What is seen now.

    Returns:
        What is known now, and what changed, in the order in which it is to be told.
    """
    if seen.through_ms < series.through_ms:
        return series, []
    corrected, corrections = _correct(rule, series, seen)
    tail = _tail(corrected, seen.points)
    final = _final(rule, tail, seen.final_to_ms)
    settled, _ = play(rule, corrected.settled, tail[:final])
    looked_at = tail if rule.decide == "fast" else tail[:final]
    core, ended = play(rule, corrected.settled, looked_at)
    outcome = ended if core.episode is None else [*ended, core.episode]

    telling = _Telling(tail, settled, core, seen.through_ms)
    told = telling.alerts(corrected.told, outcome)
    silence_told = series.silence_told
    if _reached(core) >= _reached(series.core):
        telling.phase(series.core.phase, told)
        silence_told = telling.silence(rule, silence_told)
    else:
        # Windows of before are being counted again: what was known stands until they are.
        core = series.core
    after = Series(seen.through_ms, settled, tuple(tail[final:]), core, told, silence_told)
    return after, [*corrections, *telling.transitions]


def end(series: Series, through_ms: int, reason: str) -> list[Transition]:
    """Return what is to be told if the rule is gone: the end of what still fires."""
    at_ms = series.core.at_ms or through_ms
    return [
        Transition(Kind.ENDED, at_ms, through_ms, told.key_ms, told.confirmed, reason=reason)
        for told in series.told
        if told.episode.ended_ms is None
    ]


def _final(rule: Rule, tail: Sequence[Point], final_to_ms: int) -> int:
    """Return how many windows of the tail, from its beginning, can be settled."""
    for at, point in enumerate(tail):
        if point.end_ms > final_to_ms or read(rule, point) is Reading.HELD:
            return at
    return len(tail)


def _tail(series: Series, points: Sequence[Point]) -> list[Point]:
    """Return the windows after what is settled, with those that are new or have changed."""
    after_ms = series.settled.at_ms
    tail = {point.end_ms: point for point in series.tail}
    for point in points:
        if after_ms is not None and point.end_ms <= after_ms:
            continue
        tail[point.end_ms] = point
    return [tail[end_ms] for end_ms in sorted(tail)]


def _correct(rule: Rule, series: Series, seen: Observation) -> tuple[Series, list[Transition]]:
    """Put corrections of settled windows into what rests on them."""
    at_ms = series.settled.at_ms
    wanted = series.basis_ends
    news = {
        point.end_ms: point
        for point in seen.points
        if at_ms is not None and point.end_ms <= at_ms and point.end_ms in wanted
        # Panes being recounted, or lost since, are no news of what was counted before.
        if point.state in (FINAL, PROVISIONAL)
    }
    if not news:
        return series, []
    settled = _renewed(rule, series.settled, news)
    kept: list[Told] = []
    transitions: list[Transition] = []
    for told in series.told:
        if at_ms is None or told.episode.fired_ms > at_ms:
            # It rests on the tail too, which is run over anew anyway.
            kept.append(told)
            continue
        episode = replace(told.episode, basis=_with(told.episode.basis, news))
        if all(read(rule, point) is Reading.BEYOND for point in episode.basis):
            transitions += _amendment(told, episode, seen.through_ms)
            kept.append(replace(told, episode=episode))
            continue
        transitions.append(_withdrawal(told, episode.point, seen.through_ms))
        if settled.episode is not None and settled.episode.fired_ms == episode.fired_ms:
            # Whether it fires for what came since is seen from here on.
            settled = Core(at_ms=settled.at_ms)
    return replace(series, settled=settled, told=tuple(kept)), transitions


def _renewed(rule: Rule, core: Core, news: Mapping[int, Point]) -> Core:
    """Return the machine as if it had seen the corrected values."""
    if core.episode is not None:
        episode = replace(core.episode, basis=_with(core.episode.basis, news))
        core = replace(core, episode=episode)
    basis = _with(core.run, news)
    beyond = [read(rule, point) is Reading.BEYOND for point in basis]
    if all(beyond) or core.since_ms is None:
        return replace(core, run=basis)
    left = basis[len(beyond) - beyond[::-1].index(False) :]
    if not left:
        return Core(at_ms=core.at_ms)
    # Time without data, which does not count, is taken as if it all lay in what is left.
    silent_ms = core.since_ms - basis[0].end_ms
    return replace(core, run=left, since_ms=left[0].end_ms + silent_ms)


def _with(basis: tuple[Point, ...], news: Mapping[int, Point]) -> tuple[Point, ...]:
    return tuple(news.get(point.end_ms, point) for point in basis)


def _withdrawal(told: Told, point: Point | None, through_ms: int) -> Transition:
    fired_ms, before = told.episode.fired_ms, told.episode.point
    withdrawn = Transition(Kind.WITHDRAWN, fired_ms, through_ms, told.key_ms, point=point)
    return withdrawn if before is None else _told_before(withdrawn, before)


def _told_before(transition: Transition, point: Point) -> Transition:
    return replace(transition, before=point.value, before_low=point.low, before_high=point.high)


def _amendment(told: Told, episode: Episode, through_ms: int) -> list[Transition]:
    """Return what is to be told of an alert that rests on other numbers than before."""
    before, after = told.episode.point, episode.point
    if before is None or after is None or before.value == after.value:
        return []
    key_ms, confirmed = told.key_ms, told.confirmed
    amended = Transition(Kind.AMENDED, episode.fired_ms, through_ms, key_ms, confirmed, after)
    return [_told_before(amended, before)]


class _Telling:
    """Holds the outcome of one step against what was told."""

    def __init__(self, tail: Sequence[Point], settled: Core, core: Core, through_ms: int) -> None:
        self._points = {point.end_ms: point for point in tail}
        self._settled_ms = _reached(settled)
        self._core = core
        self._through_ms = through_ms
        self.transitions: list[Transition] = []

    def alerts(self, told: Iterable[Told], outcome: Sequence[Episode]) -> tuple[Told, ...]:
        """Tell what became of alerts; return those that can still change."""
        after, left = [], list(outcome)
        for one in told:
            if one.settled:
                after.append(one)
                continue
            found = next((e for e in left if _meet(one.episode, e)), None)
            if max(one.episode.fired_ms, one.episode.ended_ms or 0) > _reached(self._core):
                after.append(one)
                left = [episode for episode in left if episode is not found]
                continue
            if found is None:
                point = self._points.get(one.episode.fired_ms)
                self.transitions.append(_withdrawal(one, point, self._through_ms))
                continue
            left.remove(found)
            after.append(self._again(one, found))
        after += [self._new(episode) for episode in left]
        since_ms = self._through_ms - REMEMBERED_MS
        kept = [one for one in after if not one.settled or (one.episode.ended_ms or 0) > since_ms]
        return tuple(sorted(kept[-MAX_REMEMBERED:], key=lambda one: one.episode.fired_ms))

    def phase(self, before: Phase, alerts: Iterable[Told]) -> None:
        """Tell a change of phase that no alert tells."""
        key_ms = next((one.key_ms for one in alerts if one.episode.ended_ms is None), None)
        now, fired = self._core.phase, {t.kind for t in self.transitions} & {Kind.FIRING}
        if now is Phase.PENDING and before is not Phase.PENDING:
            self._add(Kind.PENDING, self._core.run[0].end_ms, self._core.run[-1])
        elif now is Phase.RECOVERING and before is not Phase.RECOVERING:
            self._add(Kind.RECOVERING, key_ms, self._newest())
        elif now is Phase.FIRING and before is Phase.RECOVERING:
            self._add(Kind.RELAPSED, key_ms, self._newest())
        elif now is Phase.OK and before is Phase.PENDING and not fired:
            self._add(Kind.CLEARED, None, self._newest())

    def silence(self, rule: Rule, told: bool) -> bool:
        """Tell that there is no data, once it has lasted; return whether that is told."""
        silent = self._core.silent_ms is not None
        if told and not silent:
            self._add(Kind.DATA, None, self._newest())
            return False
        # Where silence fires, the alert tells it.
        due = silent and self._core.silence_ms >= rule.no_data.tell_after
        if due and not told and rule.no_data.then == "keep":
            self._add(Kind.NO_DATA, None, None)
            return True
        return told

    def _again(self, told: Told, episode: Episode) -> Told:
        self.transitions += _amendment(told, episode, self._through_ms)
        if told.episode.ended_ms is not None and episode.ended_ms is None:
            self._fire(told.key_ms, episode, "its end is taken back")
        confirmed = self._is_settled(episode.fired_ms)
        if confirmed and not told.confirmed:
            self._add(Kind.CONFIRMED, told.key_ms, episode.point, at_ms=episode.fired_ms)
        if told.episode.ended_ms is None and episode.ended_ms is not None:
            self._end(told.key_ms, episode)
        return Told(told.key_ms, episode, confirmed, self._is_settled(episode.ended_ms))

    def _new(self, episode: Episode) -> Told:
        self._fire(episode.began_ms, episode, "" if episode.basis else "no data")
        if episode.ended_ms is not None:
            self._end(episode.began_ms, episode)
        confirmed = self._is_settled(episode.fired_ms)
        return Told(episode.began_ms, episode, confirmed, self._is_settled(episode.ended_ms))

    def _fire(self, key_ms: int, episode: Episode, reason: str) -> None:
        self._add(Kind.FIRING, key_ms, episode.point, at_ms=episode.fired_ms, reason=reason)

    def _end(self, key_ms: int, episode: Episode) -> None:
        ended_ms = episode.ended_ms or 0
        kind = Kind.ENDED if episode.gone else Kind.RESOLVED
        reason = "no data" if episode.gone else ""
        self._add(kind, key_ms, self._points.get(ended_ms), at_ms=ended_ms, reason=reason)

    def _add(
        self,
        kind: Kind,
        key_ms: int | None,
        point: Point | None,
        *,
        at_ms: int | None = None,
        reason: str = "",
    ) -> None:
        at_ms = (self._core.at_ms or 0) if at_ms is None else at_ms
        self.transitions.append(
            Transition(
                kind, at_ms, self._through_ms, key_ms, self._is_settled(at_ms), point, None, reason
            )
        )

    def _is_settled(self, at_ms: int | None) -> bool:
        return at_ms is not None and at_ms <= self._settled_ms

    def _newest(self) -> Point | None:
        return self._points.get(self._core.at_ms or 0)


def _reached(core: Core) -> int:
    """Return the end of the last window taken."""
    return -1 if core.at_ms is None else core.at_ms


def _meet(one: Episode, other: Episode) -> bool:
    """Tell whether two accounts of an alert have an instant in common."""
    return (one.ended_ms is None or other.began_ms <= one.ended_ms) and (
        other.ended_ms is None or one.began_ms <= other.ended_ms
    )
