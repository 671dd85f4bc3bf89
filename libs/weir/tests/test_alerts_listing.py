"""Alerts as people look at them: folded from the records that the job writes."""

from __future__ import annotations

import pytest
from timelines import START_MS, Timeline, play, timelines
from weir.alerts.listing import MAX_ENDED, Alert, Listing
from weir.alerts.step import Kind, Transition

from .test_alerts_fold import RULE_VID, TENANT, Job, look

BY_NAME = {timeline.name: timeline for timeline in timelines()}
ENDS = {"resolved", "ended", "withdrawn"}


def listed(timeline: Timeline) -> tuple[Job, Listing, list[Alert]]:
    """Return what is listed after a timeline, oldest first."""
    job = Job(timeline)
    for world, _ in play(timeline):
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
    keys = {note.dedup_key for note in job.sent if note.kind == Kind.FIRING}

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


def test_where_series_stand() -> None:
    """The phase that was told last, of each series of a rule's version."""
    _, listing, _ = listed(
        BY_NAME["too few events for a percentile are no data, and no data keeps the state"]
    )

    (group,) = listing.groups[TENANT, RULE_VID].values()
    assert group.phase == "ok"


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
