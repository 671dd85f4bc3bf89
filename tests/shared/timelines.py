"""Timelines of alerts as data: what panes hold from when on, and what must be told when.

    rule: {metric: m, window: 1m, above: 10, for: 2m, recover: 5}
    at:   {0m: 3, 1m: 12, 3m30s: restart, 5m: 2, 6m: "correct(3m, 4)"}
    want: [{firing: [3m, 4m]}, {resolved: [5m, 6m]}, {withdrawn: [6m, 7m]}]

A number is how many events each pane has, from the one that ends at this instant on;
`30 x 420` are thirty events whose value is 420. What else can happen:

    correct(3m, 4)          late events: the pane that ends at 3m holds 4 now
    rebuilding(0m, 5m)      the panes of this span are being counted again; rebuilt() ends it
    incomplete(2m, 3m)      part of the log of these panes is gone
    stall, go               processed-through stands still, and moves again
    back(2m)                an observation two minutes behind the last one, of empty panes
    restart                 the evaluator is ended and started again
    silence(6m), unsilence()            up to an instant nobody is told of this rule's alerts
    silence(6m, 3m)         as it, made at 3m: counting is behind
    acknowledge(6m), unacknowledge()    somebody has taken on what fires, up to an instant

`want` lists what is told, in order, each with the span of processed-through within which
it must be told; whatever else is told is a failure. Beside the kind it may name `value`,
`before` and `state` (`provisional` or `confirmed`). With `follow: all` the list also has
`confirmed` and `amended`. What is `held: true` happens and is told to nobody; what is
`again: true` is told although nothing has changed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import datasketches as ds
from ruamel.yaml import YAML
from weir.alerts.machine import Point
from weir.definitions.durations import format_duration, parse_duration_ms
from weir.definitions.metric import Metric
from weir.definitions.rule import Rule
from weir.rows import Row, part

START_MS = 1_800_000_000_000
FILE = Path(__file__).parent / "timelines.yaml"
ALWAYS_TOLD = ("firing", "withdrawn", "resolved", "ended", "no_data")
TOLD_TO_FOLLOWERS = ("confirmed", "amended")
_CALL = re.compile(r"(\w+)(?:\((.*)\))?")
_EVENTS = re.compile(r"(\d+) x (-?[\d.]+)")


class Filled(NamedTuple):
    """What one pane holds: so many events, each of one value."""

    events: int
    value: float = 0.0


class Wanted(NamedTuple):
    """Something that must be told within a span of processed-through."""

    kind: str
    from_ms: int
    to_ms: int
    besides: Mapping[str, Any]
    held: bool = False
    again: bool = False


class Moment(NamedTuple):
    """Something that happens: at an instant, its name, its arguments."""

    at_ms: int
    what: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """One timeline.

    Attributes:
        name: What it shows.
        rule: The rule.
        pane_ms, lateness_ms: Of the metric.
        moments: What happens, in order.
        wanted: What must be told, in order.
        follow: Whether confirmations and amendments are told.
    """

    name: str
    rule: Rule
    pane_ms: int
    lateness_ms: int
    moments: tuple[Moment, ...]
    wanted: tuple[Wanted, ...]
    follow: bool

    @property
    def changes(self) -> tuple[Wanted, ...]:
        """What the machine says, whoever is told of it."""
        return tuple(one for one in self.wanted if not one.again)

    @property
    def told(self) -> tuple[Wanted, ...]:
        """What a channel is told."""
        return tuple(one for one in self.wanted if not one.held)

    @property
    def step_ms(self) -> int:
        """From one window to the next."""
        return step_of(self.rule, self.pane_ms)


@dataclass
class World:
    """What panes hold at one moment of a timeline, and how far counting has come."""

    timeline: Timeline
    through_ms: int = START_MS
    panes: dict[int, Filled] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)
    stalled: bool = False

    @property
    def final_to_ms(self) -> int:
        """Return up to where windows are final."""
        final_ms = self.through_ms - self.timeline.lateness_ms
        return final_ms - final_ms % self.timeline.pane_ms

    def window(self, end_ms: int) -> Point:
        """Return the window that ends at an instant, counted plainly."""
        rule, pane_ms = self.timeline.rule, self.timeline.pane_ms
        ends = range(end_ms - rule.window.length + pane_ms, end_ms + 1, pane_ms)
        letters = "".join(self.states.get(end, "") for end in ends)
        if "r" in letters:
            return Point(end_ms, "r", None)
        filled = [self.panes.get(end, Filled(0)) for end in ends]
        events = sum(pane.events for pane in filled)
        value = aggregated(rule.aggregate, filled)
        state = letters[:1] or ("f" if end_ms <= self.final_to_ms else "p")
        return Point(end_ms, state, events, value, value, value)


def step_of(rule: Rule, pane_ms: int) -> int:
    """Return the step of a rule's windows: as written, or a tenth, in whole panes."""
    return rule.window.step or max(pane_ms, -(-rule.window.length // 10 // pane_ms) * pane_ms)


def aggregated(aggregate: str, filled: list[Filled]) -> float | None:
    """Return an aggregate of the events of panes."""
    values = sorted(pane.value for pane in filled for _ in range(pane.events))
    if aggregate == "count":
        return float(len(values))
    if not values:
        return None
    if aggregate == "avg":
        return math.fsum(values) / len(values)
    if aggregate in ("min", "max"):
        return values[0] if aggregate == "min" else values[-1]
    return values[math.ceil(float(aggregate[1:]) / 100 * len(values)) - 1]


def metric_of(timeline: Timeline, **members: Any) -> Metric:
    """Return a metric that a timeline's rule can be asked of."""
    pane = format_duration(timeline.pane_ms)
    aggregate = timeline.rule.aggregate
    measured = {} if aggregate == "count" else {"value": "data.v"}
    text = {
        "name": "m",
        "events": {"type": "t"},
        "aggregates": sorted({"count", aggregate}),
        "resolution": pane,
        "keep": {pane: "7d"},
        "allowed_lateness": format_duration(timeline.lateness_ms),
    }
    return Metric.model_validate({**text, **measured, **members})


def row_of(filled: Filled) -> Row:
    """Return what is stored of events that all have one value."""
    sketch = ds.kll_doubles_sketch(800)
    for _ in range(filled.events):
        sketch.update(filled.value)
    numbers = (filled.value * filled.events, filled.value, filled.value)
    return part(filled.events, numbers, None, sketch.serialize())


def timelines() -> list[Timeline]:
    """Return all timelines."""
    return [_timeline(one) for one in YAML(typ="safe", pure=True).load(FILE.read_text())]


def play(
    timeline: Timeline, until_ms: int = START_MS
) -> Iterator[tuple[World, tuple[Moment, ...]]]:
    """Yield the world at each observation, with what happened since the one before.

    There is one at the end of each pane and at each moment, in order. The last pane is
    that of the last moment or wanted thing, or that which ends at `until_ms` if it is later.
    """
    world = World(timeline)
    last_ms = max(
        [until_ms, *(m.at_ms for m in timeline.moments), *(w.to_ms for w in timeline.wanted)]
    )
    ticks = range(START_MS, last_ms + 1, timeline.pane_ms)
    current = Filled(0)
    for at_ms in sorted({*ticks, *(moment.at_ms for moment in timeline.moments)}):
        happened = tuple(m for m in timeline.moments if m.at_ms == at_ms)
        for moment in happened:
            if moment.what == "fill":
                current = moment.args[0]
            else:
                _happen(world, moment)
        if at_ms % timeline.pane_ms == 0:
            world.panes.setdefault(at_ms, current)
        if not world.stalled:
            world.through_ms = at_ms
        yield world, happened


def _happen(world: World, moment: Moment) -> None:
    if moment.what == "correct":
        world.panes[moment.args[0]] = moment.args[1]
    elif moment.what in ("rebuilding", "incomplete"):
        first, last = moment.args
        pane_ms = world.timeline.pane_ms
        world.states |= dict.fromkeys(range(first + pane_ms, last + 1, pane_ms), moment.what[0])
    elif moment.what == "rebuilt":
        world.states = {end: s for end, s in world.states.items() if s != "r"}
    elif moment.what in ("stall", "go"):
        world.stalled = moment.what == "stall"


def _timeline(given: dict[str, Any]) -> Timeline:
    text = {"kind": "rule", "name": "r", "aggregate": "count", "metric": "m", **given["rule"]}
    rule = Rule.model_validate(text)
    moments = [
        _moment(at, what)
        for at, events in given["at"].items()
        for what in (events if isinstance(events, list) else [events])
    ]
    return Timeline(
        name=given["name"],
        rule=rule,
        pane_ms=parse_duration_ms(given.get("pane", "1m")),
        lateness_ms=parse_duration_ms(given.get("lateness", "1m")),
        moments=tuple(moments),
        wanted=tuple(map(_wanted, given["want"])),
        follow=given.get("follow") == "all",
    )


def _moment(at: str, what: Any) -> Moment:
    if _is_filling(what):
        return Moment(_instant(at), "fill", (_filled(what),))
    name, args = _CALL.fullmatch(what).groups()  # type: ignore[union-attr]
    words = [word.strip() for word in args.split(",")] if args else []
    return Moment(_instant(at), name, tuple(map(_argument, words)))


def _is_filling(what: Any) -> bool:
    return isinstance(what, int) or bool(_EVENTS.fullmatch(what))


def _filled(what: Any) -> Filled:
    if isinstance(what, int):
        return Filled(what)
    events, value = _EVENTS.fullmatch(what).groups()  # type: ignore[union-attr]
    return Filled(int(events), float(value))


def _argument(word: str) -> Any:
    if word.isdigit():
        return Filled(int(word))
    return _filled(word) if _EVENTS.fullmatch(word) else _instant(word)


def _instant(text: str) -> int:
    return START_MS + parse_duration_ms(text)


def _wanted(one: dict[str, Any]) -> Wanted:
    besides = dict(one)
    kind = next(name for name in besides if name in (*ALWAYS_TOLD, *TOLD_TO_FOLLOWERS))
    first, last = map(_instant, besides.pop(kind))
    held, again = besides.pop("held", False), besides.pop("again", False)
    return Wanted(kind, first, last, besides, held, again)
