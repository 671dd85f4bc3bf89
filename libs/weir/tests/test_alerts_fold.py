"""Alerts by their timelines, through the records of `weir.alerts` and the messages in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_record
from timelines import START_MS, Moment, Timeline, World, play, timelines
from weir.alerts.fold import MAX_TRIALS, Fold, Heard
from weir.alerts.machine import Episode, Point
from weir.alerts.messages import Watched, messages, reminders
from weir.alerts.records import (
    Acknowledgement,
    Attempt,
    Cursor,
    Delivery,
    Look,
    Message,
    Notification,
    Record,
    Trial,
    encode,
)
from weir.alerts.silences import Spell
from weir.alerts.step import Kind, Series, Told, Transition, end
from weir.alerts.watch import Change, Watch
from weir.definitions.silence import Silence, instant_text
from weir.query.grouping import Group

from .test_alerts import rule_of
from .test_alerts_watch import Watcher

TENANT = "default"
RULE_VID = 40


class Job(Watcher):
    """Watches a rule, writes records, and knows nothing after a restart but these."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        rule = timeline.rule.model_copy(
            update={"route": timeline.rule.route.model_copy(update={"channels": ("hook",)})}
        )
        followers = frozenset({"hook"}) if timeline.follow else frozenset[str]()
        self._watched = Watched(TENANT, RULE_VID, 1, rule, followers=followers)
        self.log: list[bytes] = []
        self._fold = Fold()
        self.sent: list[Notification] = []
        self.sent_ms: list[int] = []
        self.made: list[Message] = []
        self._through_ms = START_MS

    def observe(self, world: World, through_ms: int) -> None:
        """Look at the rule, and tell again what is to be told again."""
        self._through_ms = through_ms
        super().observe(world, through_ms)
        for group, series in self._fold.series(TENANT, RULE_VID).items():
            found = self._reminders(group, series)
            if found:
                self._record(Change(group, series, []), found)

    def happen(self, moment: Moment) -> None:
        """Do what people do."""
        until_ms = moment.args[0] if moment.args else 0
        if moment.what == "silence":
            given = {"name": "s", "rule": "r", "until": instant_text(until_ms)}
            made_ms = moment.args[1] if len(moment.args) > 1 else moment.at_ms
            silences = (Spell(Silence.model_validate(given), made_ms),)
            self._watched = replace(self._watched, silences=silences)
        elif moment.what == "unsilence":
            self._watched = replace(self._watched, silences=())
        elif moment.what in ("acknowledge", "unacknowledge"):
            op: Any = "put" if until_ms else "delete"
            for key in self._fold.told_to(TENANT, RULE_VID, ()):
                self.write(
                    Acknowledgement(tenant=TENANT, alert=key, op=op, by="a", until_ms=until_ms)
                )

    def take(self, change: Change) -> None:
        """Write what changed, read it back, and send what is due."""
        told_to = self._fold.told_to(TENANT, RULE_VID, change.group or ())
        group = change.group or ()
        self._record(change, messages(self._watched, group, change.transitions, told_to))

    def _reminders(self, group: Group, series: Series) -> list[Message]:
        through_ms = self._through_ms
        return reminders(
            self._watched,
            group or (),
            series,
            self._fold.told_to(TENANT, RULE_VID, group),
            through_ms,
            is_taken_on=lambda key: self._fold.is_taken_on(TENANT, key, through_ms),
        )

    def _record(self, change: Change, found: list[Message]) -> None:
        group = change.group or ()
        self.made += found
        kept = None if change.series is None else replace(change.series, tail=())
        self.write(
            Look(
                fence=1,
                tenant=TENANT,
                rule="r",
                vid=RULE_VID,
                group=list(group),
                transitions=change.transitions,
                series=kept,
                messages=found,
                through_ms=self._through_ms,
            )
        )
        for (tenant, number, channel), due in list(self._fold.due.items()):
            self.sent.append(due.notification)
            self.sent_ms.append(self._through_ms)
            self.write(
                Delivery(fence=1, tenant=tenant, id=number, channel=channel, outcome="delivered")
            )

    def write(self, record: Record) -> None:
        """Append a record and fold it."""
        self.log.append(encode(record))
        self._fold.apply(len(self.log) - 1, self.log[-1])

    def restart(self) -> None:
        """Fold the log anew."""
        self._fold = Fold()
        for offset, record in enumerate(self.log):
            self._fold.apply(offset, record)
        series = self._fold.series(TENANT, RULE_VID)
        self._watch = Watch(self.timeline.rule, START_MS - 1, series)


@pytest.mark.parametrize("timeline", timelines(), ids=lambda timeline: timeline.name)
def test_timeline(timeline: Timeline) -> None:
    """What arrives, from a job that is ended after each revision; one key an alert."""
    job = Job(timeline)
    for world, happened in play(timeline):
        for moment in happened:
            job.happen(moment)
            if moment.what == "back":
                job.observe(replace(world, panes={}), world.through_ms - moment.args[0] + START_MS)
                job.forget()
        job.observe(world, world.through_ms)
        job.restart()

    assert [note.kind for note in job.sent] == [wanted.kind for wanted in timeline.told]
    assert len({note.id for note in job.sent}) == len(job.sent)
    for at_ms, wanted in zip(job.sent_ms, timeline.told, strict=True):
        assert wanted.from_ms <= at_ms <= wanted.to_ms, wanted
    open_key = None
    for note, wanted in zip(job.sent, timeline.told, strict=True):
        assert {n: said(note, n) for n in wanted.besides} == wanted.besides
        if note.kind == Kind.FIRING:
            open_key = note.dedup_key
        elif note.kind in (Kind.RESOLVED, Kind.ENDED):
            assert note.dedup_key == open_key


def said(note: Notification, name: str) -> Any:
    """Return what a message says about something that a timeline may ask."""
    return note.verdict if name == "state" else getattr(note, name)


# ── who is told ─────────────────────────────────────────────────────────────

FIRING = Transition(Kind.FIRING, 60, 60, 60)


def watched(mode: str = "active", *channels: str, repeat: str = "4h", **members: Any) -> Watched:
    """Return a rule that tells some channels."""
    route = {"channels": list(channels), "repeat": repeat}
    rule = rule_of(aggregate="count", window="1m", above=1, mode=mode, route=route)
    return Watched(TENANT, RULE_VID, 3, rule, **members)


class TestMessages:
    def test_an_end_goes_to_whoever_was_told(self) -> None:
        """Also when the rule names other channels by now, or tells nobody any more."""
        (fired,) = messages(watched("active", "a", "b"), (), [FIRING], {})
        told_to = {fired.notification.dedup_key: Heard(fired.channels, 60)}

        for now in (watched("active", "c"), watched("shadow", "a"), watched("active")):
            for kind in (Kind.RESOLVED, Kind.WITHDRAWN, Kind.ENDED):
                ended = replace(FIRING, kind=kind, at_ms=120, through_ms=120)
                (message,) = messages(now, (), [ended], told_to)
                assert message.channels == ["a", "b"]
                assert message.notification.dedup_key == fired.notification.dedup_key

    def test_an_end_in_the_same_look_goes_there_too(self) -> None:
        """An alert that fired and ended while nobody looked is told whole."""
        ended = replace(FIRING, kind=Kind.RESOLVED, at_ms=120)
        found = messages(watched("active", "a"), (), [FIRING, ended], {})

        assert [(m.notification.kind, m.channels) for m in found] == [
            ("firing", ["a"]),
            ("resolved", ["a"]),
        ]

    def test_shadow_tells_nobody(self) -> None:
        """And so nobody hears of its end."""
        ended = replace(FIRING, kind=Kind.RESOLVED, at_ms=120)
        assert messages(watched("shadow", "a"), (), [FIRING, ended], {}) == []

    def test_followers_hear_more(self) -> None:
        """A confirmation goes to those who were told, and of these to who follows everything."""
        rule = watched("active", "a", "b", followers=frozenset({"b", "c"}))
        confirmed = replace(FIRING, kind=Kind.CONFIRMED)
        found = messages(rule, (), [FIRING, confirmed], {})

        assert [(m.notification.kind, m.channels) for m in found] == [
            ("firing", ["a", "b"]),
            ("confirmed", ["b"]),
        ]

    def test_what_goes_on_firing_is_told_again(self) -> None:
        """As often as the rule says, to whoever was told, under another id and the same key."""
        rule = watched("active", "a", repeat="1h")
        (fired,) = messages(rule, (), [FIRING], {})
        key = fired.notification.dedup_key
        episode = Episode(60, 60, (Point(60, "p", 5, 5.0),))
        firing = Series(told=(Told(60, episode),))
        hour_ms = 3_600_000

        heard = {key: Heard(["a"], 60)}
        assert reminders(rule, (), firing, heard, 59 + hour_ms) == []
        (again,) = reminders(rule, (), firing, heard, 60 + hour_ms)
        assert again.channels == ["a"]
        note = again.notification
        assert (note.kind, note.dedup_key, note.reason) == ("firing", key, "still firing")
        assert note.id != fired.notification.id
        ended = Series(told=(Told(60, replace(episode, ended_ms=120)),))
        for series, to, told in (
            (ended, rule, heard),
            (firing, watched("shadow", "a", repeat="1h"), heard),
            (firing, watched("active", "a", repeat="0s"), heard),
            (firing, rule, {}),
        ):
            assert reminders(to, (), series, told, 60 + 9 * hour_ms) == []

    def test_what_is_only_recorded(self) -> None:
        """Pending, recovering and such change the state and tell nobody."""
        quiet = [Kind.PENDING, Kind.CLEARED, Kind.RECOVERING, Kind.RELAPSED, Kind.DATA]
        changes = [replace(FIRING, kind=kind) for kind in quiet]

        assert messages(watched("active", "a"), (), changes, {}) == []


# ── the fold ────────────────────────────────────────────────────────────────


def look(fence: int = 1, **members: Any) -> bytes:
    """Return a record of a series that fired."""
    found = messages(watched("active", "a", "b"), (), [FIRING], {})
    whole = {
        "fence": fence,
        "tenant": TENANT,
        "rule": "r",
        "vid": RULE_VID,
        "group": [],
        "transitions": [FIRING],
        "series": Series(),
        "messages": found,
        **members,
    }
    return encode(Look(**whole))


class TestFold:
    def test_a_message_is_due_until_its_outcome_is_known(self) -> None:
        """On each channel by itself."""
        fold = Fold()
        fold.apply(0, look())
        (_, number, _), *_ = fold.due
        done = Delivery(fence=1, tenant=TENANT, id=number, channel="a", outcome="delivered")
        fold.apply(1, encode(done))

        assert [channel for _, _, channel in fold.due] == ["b"]

    def test_an_earlier_job_is_passed_over(self) -> None:
        """What a job writes after a later one has begun to write does not count."""
        fold = Fold()
        fold.apply(0, look(fence=5))
        due = dict(fold.due)

        assert fold.apply(1, look(fence=4, vid=41)) is None
        assert (dict(fold.due), fold.versions()) == (due, {(TENANT, RULE_VID)})

    def test_people_are_heard_whichever_job_works(self) -> None:
        """What they say has no fence, and passes none over."""
        fold = Fold()
        fold.apply(0, look(fence=5))
        put = Acknowledgement(tenant=TENANT, alert="k", op="put", by="a", until_ms=100)
        fold.apply(1, encode(put))

        assert fold.is_taken_on(TENANT, "k", 99)
        assert not fold.is_taken_on(TENANT, "k", 100)
        assert not fold.is_taken_on("other", "k", 99)
        assert fold.reader.fence == 5
        fold.apply(2, encode(replace_record(put, op="delete")))
        assert not fold.is_taken_on(TENANT, "k", 99)

    def test_a_test_is_asked_for_until_it_is_answered(self) -> None:
        """And not for ever: of many without an answer the newest are kept."""
        fold = Fold()
        for n in range(MAX_TRIALS + 1):
            trial = Trial(tenant=TENANT, id=f"t{n}", channel="a", by="b")
            fold.apply(n, encode(trial))
        assert next(iter(fold.trials)) == "t1"
        answer = Delivery(fence=1, tenant=TENANT, id="t1", channel="a", outcome="failed")
        fold.apply(n + 1, encode(answer))

        assert next(iter(fold.trials)) == "t2"

    def test_a_try_that_failed_leaves_its_message_due(self) -> None:
        """Only an outcome ends it."""
        fold = Fold()
        fold.apply(0, look())
        (_, number, _), *_ = fold.due
        fold.apply(1, encode(Attempt(fence=1, tenant=TENANT, id=number, channel="a")))

        assert [channel for _, _, channel in fold.due] == ["a", "b"]

    def test_again_is_nothing_new(self) -> None:
        """A reader that begins again folds nothing twice."""
        fold = Fold()
        assert fold.apply(3, look()) is not None
        assert fold.apply(3, look()) is None

    @pytest.mark.parametrize("text", [b"", b"{}", b'{"record":"later","v":9}', b"\xff"])
    def test_what_cannot_be_read_stops_nothing(self, text: bytes) -> None:
        """A record of nobody is passed over; of a later release as well, and that is told."""
        fold = Fold()

        assert fold.apply(0, text) is None
        assert fold.reader.next_offset == 1
        assert (fold.reader.newer.why is not None) is (b'"v":9' in text)

    def test_members_of_a_later_release_are_passed_over(self) -> None:
        """Unknown members do not stop an earlier release."""
        fold = Fold()
        text = look().replace(b'"v":1', b'"v":1,"colour":"red"')

        assert fold.apply(0, text) is not None


def test_the_end_of_a_rule_ends_its_alerts() -> None:
    """What fires under a rule that is edited or deleted is ended, once for each alert."""
    job = Job(next(t for t in timelines() if "outlasts" in t.name))
    for world, _ in play(job.timeline):
        if world.through_ms < START_MS + 120_000:
            job.observe(world, world.through_ms)
    series = job._fold.series(TENANT, RULE_VID)[()]

    ended = end(series, world.through_ms, "rule deleted")
    assert [(one.kind, one.reason) for one in ended] == [(Kind.ENDED, "rule deleted")]
    job.take(Change((), None, ended))
    assert [note.kind for note in job.sent] == ["firing", "ended"]
    assert job.sent[0].dedup_key == job.sent[1].dedup_key
    assert job._fold.versions() == set()


def test_a_cursor_says_where_to_go_on() -> None:
    """Of all rules of a tenant in one record; a later one moves those that it names."""
    fold = Fold()
    for offset, settled_ms in enumerate(({7: 1_000, 8: 2_000}, {7: 3_000})):
        fold.apply(offset, encode(Cursor(fence=1, tenant="default", settled_ms=settled_ms)))
    found = [fold.settled_ms(*rule) for rule in (("default", 7), ("default", 8), ("other", 7))]
    assert found == [3_000, 2_000, None]
