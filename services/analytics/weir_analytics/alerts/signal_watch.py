"""One rule on a signal of Weir itself: readings in, what changes of its series out.

The same machine as for metrics, `weir.alerts.step`, with readings in place of windows and
the clock in place of processed-through: these rules must speak when counting does not go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from weir.alerts.machine import Core, Episode, Point
from weir.alerts.step import Observation, Series, end, step
from weir.alerts.watch import Change
from weir.definitions.rule import Rule
from weir.definitions.signals import EVERY_MS
from weir.query.grouping import Group
from weir.query.states import FINAL, INCOMPLETE

PAUSE_MS = 3 * EVERY_MS
"""Readings further apart were interrupted; the time between them counts for no `for`."""


class LowerBound(float):
    """A reading that may be more in truth: it can be beyond a limit, and no recovery."""


class SignalWatch:
    """One version of a rule on a signal.

    Attributes:
        rule: The rule.
        series: What is known, by group.
        newest: The newest readings, by group; None where there was none.
    """

    def __init__(self, rule: Rule, series: Mapping[Group, Series]) -> None:
        self.rule = rule
        self.series = dict(series)
        self.newest: Mapping[Group, float | None] = {}

    def see(self, readings: Mapping[Group, float | None], at_ms: int) -> list[Change]:
        """Take the readings of one moment.

        Args:
            readings: By group; None where nothing could be read, which changes nothing. A
                group that is not there is gone: what fires of it ends.
            at_ms: The moment, by the clock. Where that was put back since, all that is known
                of before is taken to have happened so much earlier.
        """
        self.newest = readings
        changes = [
            Change(group, None, told)
            for group in self.series.keys() - readings.keys()
            if (told := end(self.series.pop(group), at_ms, "it was deleted"))
        ]
        for group, value in readings.items():
            before = _earlier(self.series.get(group, Series()), at_ms)
            if isinstance(value, LowerBound) and value <= self.rule.limits[1]:
                value = None
            seen = Observation(at_ms, at_ms, tuple(_points(before, value, at_ms)))
            self.series[group], told = step(self.rule, before, seen)
            if told:
                changes.append(Change(group, self.series[group], told))
        return changes


def _points(before: Series, value: float | None, at_ms: int) -> Iterator[Point]:
    since_ms = before.core.at_ms
    if since_ms is not None and at_ms - since_ms > PAUSE_MS:
        yield Point(at_ms - EVERY_MS, INCOMPLETE, None)
    if value is None:
        yield Point(at_ms, INCOMPLETE, None)
    else:
        yield Point(at_ms, FINAL, 1, value, value, value)


def _earlier(series: Series, at_ms: int) -> Series:
    """Return a series whose newest reading lies before an instant, as it must.

    What is known of it keeps its place to that reading, and its identity: else a rule would say
    nothing until the clock has come again to where it was.
    """
    newest_ms = max(series.through_ms, series.core.at_ms or 0)
    if newest_ms < at_ms:
        return series
    by_ms = newest_ms - at_ms + EVERY_MS

    def point(one: Point) -> Point:
        return one._replace(end_ms=one.end_ms - by_ms)

    def instant(one_ms: int | None) -> int | None:
        return None if one_ms is None else one_ms - by_ms

    def episode(one: Episode) -> Episode:
        basis = tuple(map(point, one.basis))
        began_ms, fired_ms = one.began_ms - by_ms, one.fired_ms - by_ms
        return Episode(began_ms, fired_ms, basis, instant(one.ended_ms), one.gone)

    def core(one: Core) -> Core:
        return Core(
            one.phase,
            instant(one.at_ms),
            instant(one.since_ms),
            tuple(map(point, one.run)),
            instant(one.silent_ms),
            None if one.episode is None else episode(one.episode),
        )

    return Series(
        through_ms=series.through_ms - by_ms,
        settled=core(series.settled),
        tail=tuple(map(point, series.tail)),
        core=core(series.core),
        told=tuple(replace(one, episode=episode(one.episode)) for one in series.told),
        silence_told=series.silence_told,
    )
