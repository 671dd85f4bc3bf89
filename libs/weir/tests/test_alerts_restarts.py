"""What rules of many groups tell when their job starts anew, or was away: no more and no less."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from weir.alerts import watch
from weir.alerts.present import Present
from weir.alerts.step import Series
from weir.alerts.watch import Watch
from weir.changed import ChangedPanes
from weir.definitions.metric import Metric
from weir.definitions.rule import Rule
from weir.problems import ProblemError, Reason
from weir.query import Facts, PaneKey, Served, Version
from weir.query.grouping import Group
from weir.rows import Row
from weir.series import encode_series

from .test_alerts import rule_of
from .test_alerts_watch import REGIONAL

MINUTE, DAY = 60_000, 1_440
START_MS = 1_700_006_400_000
VID = 7
METRIC = {**REGIONAL, "value": "data.v", "aggregates": ["count", "avg"], "keep": {"1m": "30d"}}
Told = list[tuple[str, str | None, int, int | None, str]]


class Job:
    """A job with one rule by region over panes of a minute, and what it has recorded."""

    def __init__(self, rule: Rule, **of_the_metric: Any) -> None:
        self.rule = rule
        metric = Metric.model_validate({**METRIC, **of_the_metric})
        self.metrics = {"m": Served((Version(vid=VID, number=1, metric=metric),))}
        self.panes: dict[PaneKey, dict[str, Row]] = {}
        self.watch = Watch(rule, START_MS - 1)
        self._records: dict[Group, bytes] = {}
        self.cursor_ms = 0
        self.narrowed = 0

    def put(self, minute: int, values: Mapping[str, float]) -> None:
        """Store the pane that begins at a minute: one event of each region."""
        key = (VID, 60, START_MS // 1000 + 60 * minute)
        self.panes[key] = {encode_series((r,)): Row(1, v, v, v) for r, v in values.items()}

    def look(self, minute: int, changed: frozenset[PaneKey] = frozenset()) -> Told:
        """Look at all that is due once everything up to a minute is counted."""
        through_ms = START_MS + MINUTE * minute
        facts = Facts(epoch=1, rev=1, processed_through_ms=through_ms, now_ms=through_ms)
        told: Told = []
        more = True
        while more:
            wanted = self.watch.look(self.metrics, facts, ChangedPanes(changed))
            try:
                changes, more = self.watch.see({k: self.panes.get(k) for k in wanted}, facts)
            except ProblemError as problem:
                if problem.reason is not Reason.QUERY_TOO_LARGE or not self.watch.narrow():
                    raise
                self.narrowed += 1
                continue
            for one in changes:
                if one.series is None:
                    self._records.pop(one.group, None)
                else:
                    self._records[one.group] = msgspec.json.encode(one.series)
                told += [
                    (
                        t.kind.value,
                        one.group[0] if one.group else None,
                        (t.at_ms - START_MS) // MINUTE,
                        t.key_ms and (t.key_ms - START_MS) // MINUTE,
                        t.reason,
                    )
                    for t in one.transitions
                ]
        return told

    def note(self) -> None:
        """Record how far the rule is settled."""
        self.cursor_ms = max(self.cursor_ms, self.watch.settled_ms)

    def restart(self) -> None:
        """Lose all but what was recorded."""
        series = {
            group: replace(msgspec.json.decode(text, type=Series), tail=())
            for group, text in self._records.items()
        }
        self.watch = Watch.again(self.rule, START_MS - 1, self.cursor_ms, series)


def drawn(chance: random.Random, minutes: int) -> list[dict[str, float]]:
    """Return by minute what each region sends: for some time beyond, within, or nothing."""
    found: list[dict[str, float]] = [{} for _ in range(minutes)]
    for region in ("eu", "us", "asia"):
        at = 0
        while at < minutes:
            value = chance.choice([20.0, 20.0, 9.0, 1.0, None])
            for minute in range(at, at := at + chance.choice([1, 2, 4, 8, 15, 40])):
                if minute < minutes and value is not None:
                    found[minute][region] = value
    return found


@pytest.mark.parametrize("seed", range(60))
def test_a_restart_tells_nothing_else(seed: int) -> None:
    """Whatever each region does: the same changes, each once, in the same order for each."""
    chance = random.Random(seed)  # noqa: S311
    rule = rule_of(
        aggregate="avg",
        window=chance.choice(["1m", {"length": "3m", "step": "1m"}]),
        above=10,
        by=["region"],
        recover=chance.choice([None, 5]),
        recover_for=chance.choice(["0s", "3m", "15m"]),
        no_data={"then": chance.choice(["keep", "fire"]), "tell_after": "10m", "end_after": "30m"},
        **{"for": chance.choice(["0s", "4m", "15m"])},
    )
    minutes = drawn(chance, 240)
    starts = {minute for minute in range(1, 240) if chance.random() < 0.05}
    # Cursors are recorded every minute; what was given up since the newest is not known any more.
    notes = {minute for minute in range(1, 240) if minute % 3 == 0}
    lateness = chance.choice(["0s", "5m"])
    assert run(rule, minutes, lateness, notes, starts) == run(rule, minutes, lateness, notes, set())


def run(
    rule: Rule,
    minutes: Sequence[Mapping[str, float]],
    lateness: str,
    notes: set[int],
    starts: set[int],
) -> dict[str | None, Told]:
    """Return what is told of each region, looked at minute by minute."""
    job = Job(rule, allowed_lateness=lateness)
    told: dict[str | None, Told] = {}
    for minute, values in enumerate(minutes):
        if minute in starts and job.cursor_ms:
            job.restart()
        job.put(minute, values)
        for one in job.look(minute + 1):
            told.setdefault(one[1], []).append(one)
        if minute in notes:
            job.note()
    return told


def test_what_changed_days_ago_is_not_told_again() -> None:
    """A restart looks back as far as a silence may be, not to what was told of a group last."""
    job = Job(rule_of(aggregate="avg", window="1m", above=10, by=["region"]))
    now = 5 * DAY
    for minute in range(now + 60):
        values = {"quiet": 1.0} if minute % 10 == 0 else {}
        values |= {"quiet": 20.0} if minute == 5 else {}
        values |= {"old": 20.0} if 600 <= minute < 605 else {}
        values |= {"firing": 20.0} if minute >= now - 1_200 else {}
        job.put(minute, values)
    told = [one for at in (10, 700, 2_100, 4_000, 6_100, now - 30, now) for one in job.look(at)]
    assert ("firing", "firing", now - 1_199, now - 1_199, "") in told
    job.note()
    job.restart()
    assert job.look(now + 1) == []
    assert job.look(now + 60) == []


def test_a_pause_ends_no_alert_that_goes_on() -> None:
    """Three days away: what fired then and fires now did so all along, look by look."""
    job = Job(rule_of(aggregate="avg", window="1m", above=10, by=["region"]))
    for minute in range(4 * DAY):
        job.put(minute, {"eu": 20.0})
    assert [one[0] for one in job.look(DAY)] == ["firing"]
    job.note()
    job.restart()
    assert job.look(4 * DAY) == []


def test_what_is_not_kept_is_no_silence() -> None:
    """Of two days of a pause the panes are gone: who fired is not ended for want of them."""
    job = Job(rule_of(aggregate="avg", window="1m", above=10, by=["region"]), keep={"1m": "1d"})
    for minute in (*range(60), *range(2 * DAY - 5, 3 * DAY)):
        job.put(minute, {"eu": 20.0})
    assert [one[0] for one in job.look(60)] == ["firing"]
    job.note()
    job.restart()
    job.panes = {key: rows for key, rows in job.panes.items() if key[2] > START_MS // 1000 + 3_600}
    assert job.look(3 * DAY) == []


@pytest.mark.parametrize("lateness", ["0s", "2h"])
def test_many_groups_are_caught_up_with(lateness: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answer holds few windows of them: they are taken in so many looks."""
    monkeypatch.setattr(watch, "MAX_WINDOWS", 2_000)
    job = Job(
        rule_of(aggregate="avg", window="1m", above=10, by=["region"]), allowed_lateness=lateness
    )
    everyone = dict.fromkeys((f"r{n}" for n in range(120)), 1.0)
    for minute in (0, 100, 2_060, 2_190):
        job.put(minute, everyone)
    job.put(2_070, {"hot": 99.0})
    job.look(20)
    assert job.look(2_075)[0][:2] == ("firing", "hot")
    assert job.narrowed > 0
    job.put(2_199, {"hotter": 99.0})
    assert ("firing", "hotter") in [one[:2] for one in job.look(2_200)]


def test_a_late_event_begins_no_group_in_windows_of_others() -> None:
    """What an alert of one rests on is read again; of who is new nothing of then is told."""
    job = Job(rule_of(aggregate="avg", window="1m", above=10, by=["region"]))
    for minute in range(10):
        job.put(minute, {"eu": 20.0})
    assert [one[:2] for one in job.look(10)] == [("firing", "eu")]
    job.put(0, {"eu": 20.0, "late": 20.0})
    job.put(10, {"eu": 20.0})
    assert job.look(11, frozenset({(VID, 60, START_MS // 1000)})) == []


@pytest.mark.parametrize("then", ["keep", "fire"])
def test_who_sends_now_and_then_is_not_silent(then: str) -> None:
    """A restart that meets an empty window first takes no silence of before for one that lasts."""
    rule = rule_of(
        aggregate="avg",
        window="1m",
        above=10,
        by=["region"],
        no_data={"then": then, "tell_after": "10m", "end_after": "30m"},
    )
    for starts in ({80}, {81}, {80, 81, 97}):
        sparse = [{"eu": 20.0} if minute % 2 == 0 else {} for minute in range(120)]
        notes = set(range(1, 120))
        assert run(rule, sparse, "1m", notes, starts) == run(rule, sparse, "1m", notes, set())


@pytest.mark.parametrize(("window", "at"), [("1m", 70), ("1h", 185)])
def test_a_silence_that_has_begun_is_found_again(window: str, at: int) -> None:
    """Its group had no record; the last window with events lies as far back as may be."""
    rule = rule_of(aggregate="avg", window=window, above=10, by=["region"])
    minutes = [{"eu": 1.0} if minute < 60 else {} for minute in range(300)]
    notes = set(range(1, at))
    assert run(rule, minutes, "0s", notes, {at}) == run(rule, minutes, "0s", notes, set())


def test_what_was_corrected_meanwhile_is_seen_in_narrower_looks() -> None:
    """While the job was down, the window that an alert rests on was corrected; groups are many."""
    no_data = {"tell_after": "30m", "end_after": "40m"}
    job = Job(rule_of(aggregate="avg", window="1m", above=10, by=["region"], no_data=no_data))
    everyone = dict.fromkeys((f"r{n}" for n in range(150)), 1.0)
    for minute in range(2 * DAY):
        job.put(minute, {**(everyone if minute % 20 == 0 else {}), "hot": 20.0})
    assert ("firing", "hot") in [one[:2] for one in job.look(100)]
    job.note()
    job.restart()
    job.panes[VID, 60, START_MS // 1000] = {encode_series(("hot",)): Row(2, 12.0, 1.0, 11.0)}
    told = [one[:2] for one in job.look(2 * DAY)]
    assert job.narrowed > 0
    assert ("withdrawn", "hot") in told


def test_a_look_is_as_wide_as_before_once_groups_are_fewer() -> None:
    """Nothing is told by what does not fit in any look; nor is it for ever."""
    job = Job(rule_of(aggregate="avg", window="1m", above=10, by=["region"]))
    job.put(0, dict.fromkeys((f"r{n}" for n in range(501)), 1.0))
    with pytest.raises(ProblemError):
        job.look(30)
    job.panes.clear()
    job.watch.forget()
    for minute in range(40, 50):
        job.look(minute)
    assert job.watch._most == watch.MAX_WINDOWS


def test_a_newcomer_begins_behind_old_windows() -> None:
    """A late event of it lies in a window that another's alert rests on: none of then is told."""
    job = Job(rule_of(aggregate="avg", window="1m", above=10, by=["region"]), allowed_lateness="5m")
    for minute in range(20):
        job.put(minute, {"eu": 20.0})
    job.look(20)
    job.put(20, {"eu": 20.0, "new": 1.0})
    job.look(21)
    job.put(0, {"eu": 20.0, "new": 20.0})
    assert job.look(22, frozenset({(VID, 60, START_MS // 1000)})) == []


def test_what_is_now_has_groups() -> None:
    """The preview of a rule shows the group that is worst."""
    job = Job(rule_of(aggregate="avg", window="1m", above=10, by=["region"]))
    for minute in range(5):
        job.put(minute, {"eu": 1.0, "us": 20.0})
    through_ms = START_MS + 5 * MINUTE
    facts = Facts(epoch=1, rev=1, processed_through_ms=through_ms, now_ms=through_ms)
    present = Present(job.rule, through_ms)
    present.run({key: job.panes.get(key) for key in present.ask(job.metrics, facts)})
    worst = present.worst()
    assert worst is not None
    assert (worst[0], worst[1].value) == (("us",), 20.0)
