"""Alerts as people look at them: folded from the records that the job writes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from timelines import START_MS, Timeline, play, timelines
from weir.alerts.channels import Standing
from weir.alerts.listing import MAX_ENDED, Alert, Happened, Listing
from weir.alerts.machine import Point
from weir.alerts.records import Acknowledgement, Attempt, Delivery, Look, decode, encode
from weir.alerts.step import Kind, Transition

from .test_alerts_fold import RULE_VID, TENANT, Job, look

BY_NAME = {timeline.name: timeline for timeline in timelines()}
ENDS = {"resolved", "ended", "withdrawn"}


def listed(timeline: Timeline) -> tuple[Job, Listing, list[Alert]]:
    """Return what is listed after a timeline, oldest first."""
    job = Job(timeline)
    for world, happened in play(timeline):
        for moment in happened:
            job.happen(moment)
        job.observe(world, world.through_ms)
    listing = Listing()
    for offset, record in enumerate(job.log):
        listing.apply(offset, record)
    return job, listing, sorted(listing.alerts(TENANT), key=lambda one: one.since_ms)


@pytest.mark.parametrize(
    "timeline",
    [t for t in timelines() if "back" not in {m.what for m in t.moments}],
    ids=lambda timeline: timeline.name,
)
def test_each_alert_stands_as_it_was_last_told(timeline: Timeline) -> None:
    """As many as fired, each in the state that was told last."""
    job, _, alerts = listed(timeline)
    wanted = [one for one in timeline.wanted if one.kind != "no_data"]
    notes = [message.notification for message in job.made]
    keys = {note.dedup_key for note in notes if note.kind == Kind.FIRING}

    assert {one.id for one in alerts} == keys
    if wanted and wanted[-1].kind in ENDS:
        assert wanted[-1].kind in {one.state for one in alerts}
    assert all(one.happened[0].kind == "firing" for one in alerts)


def test_what_happened_is_told_in_order() -> None:
    """Firing, delivered, recovering and so on, up to the end, with values and statuses."""
    _, _, (alert,) = listed(BY_NAME["a recovery must last its time"])

    assert alert.state == "resolved"
    assert [one.kind for one in alert.happened] == [
        *("firing", "delivered", "confirmed"),
        *("recovering", "relapsed", "recovering"),
        *("resolved", "delivered"),
    ]
    assert alert.happened[0].value == 12
    assert (alert.since_ms, alert.at_ms) == (START_MS + 60_000, START_MS + 8 * 60_000)


def test_an_amendment_changes_the_value() -> None:
    """The window that fired is told as it is now, and as it was then."""
    _, _, (alert,) = listed(BY_NAME["late events amend the value and leave the verdict"])

    assert alert.point is not None
    assert alert.point.value == 15
    assert [one.value for one in alert.happened if one.kind in ("firing", "amended")] == [12, 15]
    assert alert.confirmed


def test_what_was_told_has_its_bounds() -> None:
    """As the window had them, in what happened and where the series stands; silence has none."""
    point = Point(120_000, "p", 40, 617.2, 592.0, 648.1)
    fired = Transition(Kind.FIRING, 120_000, 120_000, 60_000, point=point)
    silent = Transition(Kind.NO_DATA, 180_000, 180_000, 60_000)
    listing = Listing()
    (alert,) = listing.apply(0, look(transitions=[fired], messages=[]))
    (told,) = alert.happened
    assert (told.value, told.low, told.high) == (617.2, 592.0, 648.1)
    (group,) = listing.groups[TENANT, RULE_VID].values()
    assert group.point == point

    (alert,) = listing.apply(1, look(transitions=[silent], messages=[]))
    told = alert.happened[-1]
    assert (told.kind, told.value, told.low, told.high) == ("no_data", None, None, None)


def test_a_record_without_bounds_is_told_without() -> None:
    """Ends are members that a window may lack; its value stands all the same."""
    fired = Transition(Kind.FIRING, 120_000, 120_000, 60_000, point=Point(120_000, "p", 40, 617.2))
    record = look(transitions=[fired], messages=[])
    without = record.replace(b"617.2,null,null]", b"617.2]")
    assert without != record
    (alert,) = Listing().apply(0, without)
    (told,) = alert.happened
    assert (told.value, told.low, told.high) == (617.2, None, None)


def test_where_series_stand() -> None:
    """The phase that was told last, of each series of a rule's version."""
    _, listing, _ = listed(
        BY_NAME["too few events for a percentile are no data, and no data keeps the state"]
    )

    (group,) = listing.groups[TENANT, RULE_VID].values()
    assert group.phase == "ok"


def test_who_has_taken_an_alert_on() -> None:
    """It stands beside the alert until it is given back or the alert is over."""
    listing = Listing()
    (alert,) = listing.apply(0, look())
    put = Acknowledgement(tenant=TENANT, alert=alert.id, op="put", by="ann", note="mine", at_ms=5)
    (taken,) = listing.apply(1, encode(put))
    assert taken.taken_on == put
    assert taken.happened[-1] == Happened("acknowledged", 5, by="ann", note="mine")

    (given_back,) = listing.apply(2, encode(replace(put, op="delete")))
    assert (given_back.taken_on, given_back.happened[-1].kind) == (None, "given_back")
    listing.apply(3, encode(put))
    (over,) = listing.apply(4, look(transitions=[transition(60, Kind.RESOLVED)], messages=[]))
    assert over.taken_on is None
    assert listing.apply(5, encode(put)) == []
    assert listing.apply(6, encode(replace(put, tenant="other"))) == []


def test_what_is_silenced_is_seen() -> None:
    """That it happened, and which silence hid it."""
    _, _, (alert,) = listed(BY_NAME["a silence hides an alert from its beginning to its end"])

    assert [one.kind for one in alert.happened] == ["firing", "silenced", "confirmed", "resolved"]
    assert alert.happened[1].note == "s"
    assert alert.silences == {"s"}


def test_of_much_the_first_and_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that flaps for days keeps how it began, and how many things are between is told."""
    monkeypatch.setattr("weir.alerts.listing.MAX_HAPPENED", 5)
    listing = Listing()
    (alert,) = listing.apply(0, look())
    seen = [*alert.happened]
    for n in range(1, 12):
        kind = Kind.RECOVERING if n % 2 else Kind.RELAPSED
        (alert,) = listing.apply(
            n, look(transitions=[Transition(kind, 60 + n, 60 + n, 60)], messages=[])
        )
        seen.append(alert.happened[-1])
        assert len(alert.happened) + alert.left_out == n + 1
    assert alert.happened == (seen[0], *seen[-4:])
    put = Acknowledgement(tenant=TENANT, alert=alert.id, op="put", by="ann", note="", at_ms=5)
    (taken,) = listing.apply(12, encode(put))
    assert (len(taken.happened), taken.left_out, taken.taken_on) == (5, 8, put)


class TestChannels:
    def test_from_a_failure_to_a_delivery(self) -> None:
        """It fails since the first try that failed, until something arrives."""
        listing = Listing()
        listing.apply(0, look())
        channels = listing.channels
        assert (channels.waiting(TENANT, "a"), channels.waiting(TENANT, "b")) == (1, 1)
        number = decoded(look()).messages[0].notification.id
        tried = Attempt(fence=1, tenant=TENANT, id=number, channel="a", status=503, at_ms=7)
        (alert,) = listing.apply(1, encode(tried))
        assert alert.happened[-1].kind == "failed"
        listing.apply(2, encode(replace(tried, at_ms=9)))
        found = channels.standing(TENANT, "a")
        assert (found.outcome, found.status, found.at_ms, found.failing_ms) == ("failed", 503, 9, 7)
        assert channels.waiting(TENANT, "a") == 1

        done = Delivery(fence=1, tenant=TENANT, id=number, channel="a", outcome="delivered")
        listing.apply(3, encode(replace(done, at_ms=11, status=204)))
        found = channels.standing(TENANT, "a")
        assert (found.outcome, found.status, found.failing_ms) == ("delivered", 204, None)
        assert (channels.waiting(TENANT, "a"), channels.waiting(TENANT, "b")) == (0, 1)
        assert channels.standing(TENANT, "b") == channels.standing("other", "a") == Standing()

    def test_a_refusal_is_a_failure(self) -> None:
        """Although it is not tried again: nobody was told."""
        listing = Listing()
        refused = Delivery(fence=1, tenant=TENANT, id="n", channel="a", outcome="refused", at_ms=3)
        listing.apply(0, encode(refused))

        assert listing.channels.standing(TENANT, "a").failing_ms == 3
        assert listing.channels.answer("n") == refused
        assert listing.channels.answer("m") is None


def test_nobody_sees_what_is_another_tenants() -> None:
    """By list and by id."""
    listing = Listing()
    (alert,) = listing.apply(0, look())

    assert listing.alert(TENANT, alert.id) == alert
    assert listing.alert("other", alert.id) is None
    assert listing.alerts("other") == []


def test_old_ends_are_forgotten() -> None:
    """Of what ended the newest thousand of a tenant are kept; what fires is never dropped."""
    listing = Listing()
    for n in range(MAX_ENDED + 10):
        at_ms = 60_000 * (n + 1)
        fired = transition(at_ms)
        listing.apply(2 * n, look(transitions=[fired], messages=[]))
        ended = transition(at_ms, Kind.RESOLVED)
        listing.apply(2 * n + 1, look(transitions=[ended], messages=[]))
    listing.apply(2 * n + 2, look(transitions=[transition(1)], messages=[]))

    alerts = listing.alerts(TENANT)
    assert len(alerts) == MAX_ENDED + 1
    assert alerts[0].state == "firing"
    assert listing.apply(2 * n + 3, b"what is this") == []


def transition(at_ms: int, kind: Kind = Kind.FIRING) -> Transition:
    """Return a transition of the alert that began at an instant."""
    return Transition(kind, at_ms, at_ms, at_ms)


def decoded(text: bytes) -> Look:
    """Return the look that a record holds."""
    record = decode(text)
    assert isinstance(record, Look)
    return record
