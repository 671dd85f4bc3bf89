"""Alerts by their timelines, over stored panes and through the query engine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from timelines import START_MS, Timeline, World, metric_of, play, row_of, timelines
from weir import changed as changed_module
from weir.alerts import watch
from weir.alerts.step import Series, Transition
from weir.alerts.watch import Change, Watch, check_rule, step_of
from weir.changed import ChangedPanes, folded
from weir.definitions.metric import Metric
from weir.definitions.rule import Rule
from weir.problems import ProblemError
from weir.query import Facts, PaneKey, Served, Span, Version
from weir.rows import Row
from weir.series import OTHER, encode_series

from .test_alerts import judged, rule_of

VID = 7


class Watcher:
    """Shows a rule the panes of a world, as the job does."""

    def __init__(self, timeline: Timeline, most_listed: int = 500) -> None:
        self.timeline = timeline
        self.told: list[Transition] = []
        self.metrics = {"m": Served((Version(vid=VID, number=1, metric=metric_of(timeline)),))}
        self._records: dict[Any, bytes] = {}
        self.held: dict[PaneKey, dict[str, Row]] = {}
        self._changed = ChangedPanes()
        self._most_listed = most_listed
        self._watch = Watch(timeline.rule, START_MS - 1)

    def observe(self, world: World, through_ms: int) -> None:
        """Give the rule what it asks for, until it asks no more."""
        self._changed.add(ChangedPanes(*folded(self._store(world), self._most_listed)))
        facts = self._facts(world, through_ms)
        if not self._watch.is_due(self.metrics, facts, self._changed):
            return
        changed, self._changed = self._changed, ChangedPanes()
        self._watch.doubt(changed.spans.values())
        more = True
        while more:
            wanted = self._watch.look(self.metrics, facts, changed)
            panes = {key: self.held.get(key) for key in wanted}
            changes, more = self._watch.see(panes, facts)
            for change in changes:
                self.take(change)

    def take(self, change: Change) -> None:
        """Keep what a record would hold."""
        self.told += change.transitions
        self._records[change.group] = msgspec.json.encode(change.series)

    def restart(self) -> None:
        """Lose all but what the records of `weir.alerts` hold."""
        series = {
            group: replace(msgspec.json.decode(text, type=Series), tail=())
            for group, text in self._records.items()
        }
        self._watch = Watch(self.timeline.rule, START_MS - 1, series)

    def forget(self) -> None:
        """Begin a new epoch: what was read before is void."""
        self._watch.forget()

    def _store(self, world: World) -> set[PaneKey]:
        pane_s = self.timeline.pane_ms // 1000
        held = {
            (VID, pane_s, end_ms // 1000 - pane_s): {"": row_of(filled)}
            for end_ms, filled in world.panes.items()
            if filled.events
        }
        before, self.held = self.held, held
        return {key for key in before | held if before.get(key) != held.get(key)}

    def _facts(self, world: World, through_ms: int) -> Facts:
        pane_ms = self.timeline.pane_ms
        spans = [Span(end_ms - pane_ms, end_ms) for end_ms, s in world.states.items() if s == "r"]
        lost = [end_ms for end_ms, s in world.states.items() if s == "i"]
        return Facts(
            epoch=1,
            rev=1,
            processed_through_ms=through_ms,
            now_ms=through_ms,
            incomplete_before_ms=max(lost, default=0),
            rebuilding=tuple(spans),
        )


@pytest.mark.parametrize(
    ("short", "most_listed"), [(8, 500), (8, 0), (0, 0)], ids=["", "short spans", "spans"]
)
@pytest.mark.parametrize("always_restart", [False, True], ids=["", "restarts"])
@pytest.mark.parametrize("timeline", timelines(), ids=lambda timeline: timeline.name)
def test_timeline(
    timeline: Timeline,
    always_restart: bool,
    most_listed: int,
    short: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is told, and when; also by a job that is ended after each revision, and of spans."""
    monkeypatch.setattr(changed_module, "SHORT", short)
    watcher = Watcher(timeline, most_listed)
    for world, happened in play(timeline):
        for moment in happened:
            if moment.what == "restart":
                watcher.restart()
            if moment.what == "back":
                watcher.forget()
                behind_ms = world.through_ms - (moment.args[0] - START_MS)
                watcher.observe(replace(world, panes={}), behind_ms)
                watcher.forget()
        watcher.observe(world, world.through_ms)
        if always_restart:
            watcher.restart()
    judged(timeline, watcher.told)


# ── groups ──────────────────────────────────────────────────────────────────

MINUTE = 60_000
REGIONAL: dict[str, Any] = {
    "name": "m",
    "events": {"type": "t"},
    "by": ["data.region"],
    "aggregates": ["count"],
    "resolution": "1m",
    "keep": {"1m": "7d"},
    "allowed_lateness": "0s",
}


class Regions:
    """A rule by region over panes of a minute, looked at minute by minute."""

    def __init__(self, rule: Rule, *, at: int = 0) -> None:
        version = Version(vid=VID, number=1, metric=Metric.model_validate(REGIONAL))
        self.metrics = {"m": Served((version,))}
        self.panes: dict[PaneKey, dict[str, Row]] = {}
        self.at = at
        self.watch = Watch(rule, START_MS - 1)

    def minute(self, **events: int) -> list[tuple[str, str | None]]:
        """Store a pane and look; return kind and region of what is told."""
        key = (VID, 60, START_MS // 1000 + 60 * self.at)
        self.panes[key] = {encode_series((name,)): Row(n) for name, n in events.items()}
        self.at += 1
        return self.look({key})

    @staticmethod
    def facts(through_ms: int, rebuilding: tuple[Span, ...] = ()) -> Facts:
        """Return facts at which everything is counted up to an instant."""
        return Facts(
            epoch=1,
            rev=1,
            processed_through_ms=through_ms,
            now_ms=through_ms,
            rebuilding=rebuilding,
        )

    def look(
        self, changed: set[PaneKey], rebuilding: tuple[Span, ...] = ()
    ) -> list[tuple[str, str | None]]:
        """Look at all that is due."""
        facts = self.facts(START_MS + MINUTE * self.at, rebuilding)
        told, more = [], True
        while more:
            wanted = self.watch.look(self.metrics, facts, ChangedPanes(changed))
            changes, more = self.watch.see({key: self.panes.get(key) for key in wanted}, facts)
            told += [
                (one.kind.value, c.group[0]) for c in changes for one in c.transitions if c.group
            ]
        return told


class TestGroups:
    def test_each_has_a_state_of_its_own(self) -> None:
        """What one region does changes nothing for another."""
        regions = Regions(rule_of(aggregate="count", window="1m", above=10, by=["region"]))

        assert regions.minute(eu=12, us=3) == [("firing", "eu")]
        assert regions.minute(eu=12, us=20) == [("firing", "us")]
        assert regions.minute(eu=3, us=20) == [("resolved", "eu")]

    def test_one_begins_with_its_first_events(self) -> None:
        """Before a region ever sent anything it was not below a limit."""
        regions = Regions(rule_of(aggregate="count", window="1m", below=5, by=["region"]))
        for _ in range(3):
            assert regions.minute(eu=9) == []

        assert regions.minute(eu=9, us=8) == []
        assert regions.minute(eu=9) == [("firing", "us")]

    def test_one_that_sends_no_more_is_given_up(self) -> None:
        """Its alert ends, and it is forgotten: it may never come again."""
        rule = rule_of(
            aggregate="count",
            window="1m",
            below=5,
            by=["region"],
            no_data={"tell_after": "2m", "end_after": "3m"},
        )
        regions = Regions(rule)
        regions.minute(eu=9, us=9)

        assert regions.minute(eu=9) == [("firing", "us")]
        assert regions.minute(eu=9) == []
        assert regions.minute(eu=9) == [("ended", "us")]
        assert regions.watch.series.keys() == {("eu",)}

    def test_the_rest_of_a_capped_metric_is_nobody(self) -> None:
        """The row of all series that have none of their own fires nothing."""
        regions = Regions(rule_of(aggregate="count", window="1m", above=10, by=["region"]))
        key = (VID, 60, START_MS // 1000)
        regions.panes[key] = {OTHER: Row(99)}
        regions.at = 1

        assert regions.look({key}) == []
        assert not regions.watch.series

    def test_what_is_counted_again_is_waited_for(self) -> None:
        """Nobody is known while all panes are away; what they held is seen when they are back."""
        regions = Regions(rule_of(aggregate="count", window="1m", above=10, by=["region"]))
        everything = (Span(0, START_MS + 60 * MINUTE),)
        for _ in range(3):
            regions.at += 1
            assert regions.look(set(), everything) == []

        key = (VID, 60, START_MS // 1000 + 60)
        regions.panes[key] = {encode_series(("eu",)): Row(12)}
        assert regions.look({key}) == [("firing", "eu"), ("resolved", "eu")]


def test_a_long_pause_is_caught_up_look_by_look() -> None:
    """After days away all windows are looked at, 2,000 at a time, and each episode is told."""
    regions = Regions(rule_of(aggregate="count", window="1m", above=10, by=["region"]))
    for at in (5, 3_000, 4_500):
        key = (VID, 60, START_MS // 1000 + 60 * at)
        regions.panes[key] = {encode_series(("eu",)): Row(12)}
    regions.at = 5_000

    told = regions.look(set())
    assert [kind for kind, _ in told] == ["firing", "resolved"] * 3


def test_most_batches_need_no_look() -> None:
    """Events of a window that has not ended tell nothing; its end does, and late events do."""
    regions = Regions(rule_of(aggregate="count", window="1m", above=10, by=["region"]))
    regions.minute(eu=3)
    newest = (VID, 60, START_MS // 1000 + 60)
    ended = (VID, 60, START_MS // 1000)
    facts = regions.facts(through_ms=START_MS + MINUTE + 30_000)

    assert not regions.watch.is_due(regions.metrics, facts, ChangedPanes({newest}))
    assert not regions.watch.is_due(regions.metrics, facts, ChangedPanes({(VID + 1, *ended[1:])}))
    assert regions.watch.is_due(regions.metrics, facts, ChangedPanes({ended}))
    later = regions.facts(through_ms=START_MS + 2 * MINUTE)
    assert regions.watch.is_due(regions.metrics, later, ChangedPanes())


def test_a_version_before_that_waits_longer_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its panes are not final for half an hour; beyond the windows of one look is an alert."""
    monkeypatch.setattr(watch, "MAX_WINDOWS", 10)
    window = {"length": "5m", "step": "1m"}
    regions = Regions(rule_of(aggregate="count", window=window, above=10, by=["region"]))
    old = Metric.model_validate({**REGIONAL, "allowed_lateness": "30m"})
    new = replace(regions.metrics["m"].newest, number=2, cut={60: START_MS // 1000})
    regions.metrics = {"m": Served((Version(vid=VID - 1, number=1, metric=old), new))}
    for _minute in range(20):
        assert regions.minute(eu=1) == []
    assert regions.minute(eu=20) == [("firing", "eu")]


class TestCheck:
    @pytest.mark.parametrize(
        ("members", "said"),
        [
            ({"metric": "nope"}, "one that is served"),
            ({"aggregate": "p95"}, "one that m keeps"),
            ({"by": ["zone"]}, "a dimension of m"),
            ({"where": "zone = 'x'"}, "a dimension of m"),
            ({"window": "90s"}, "whole panes of 1m"),
            ({"window": {"length": "5m", "step": "90s"}}, "whole panes of 1m"),
            ({"for": "9h"}, "at most 500 steps"),
        ],
    )
    def test_refusals(self, members: dict[str, Any], said: str) -> None:
        """A rule asks only what its metric has, over whole panes, for so long as is kept."""
        regions = Regions(rule_of(aggregate="count", window="1m", above=1))
        rule = rule_of(**{"aggregate": "count", "window": "1m", "above": 1, **members})
        with pytest.raises(ProblemError, match=said):
            check_rule(rule, regions.metrics, START_MS)

    def test_a_step_left_out_is_a_tenth(self) -> None:
        """In whole panes, and never less than one."""
        regions = Regions(rule_of(aggregate="count", window="1m", above=1))
        metric = regions.metrics["m"].newest.metric
        lengths = {"1m": MINUTE, "5m": MINUTE, "15m": 2 * MINUTE, "1h": 6 * MINUTE}

        for length, each_ms in lengths.items():
            assert step_of(rule_of(aggregate="count", window=length, above=1), metric) == each_ms
