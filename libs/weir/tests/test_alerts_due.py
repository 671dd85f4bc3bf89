"""What is due, by channel and alert."""

from __future__ import annotations

from weir.alerts.due import Backlog, Due, DueKey
from weir.alerts.messages import trial_message
from weir.alerts.records import Trial


def put(backlog: Backlog, number: str, *, alert: str = "k", channel: str = "c") -> DueKey:
    """Add a message of an alert; return its key."""
    trial = Trial(tenant="t", id=alert, channel=channel, by="ann")
    key = ("t", number, channel)
    backlog.put(key, Due(trial_message(trial), len(backlog)))
    return key


def heads(backlog: Backlog, channel: str = "c") -> list[str]:
    """Return the ids of what may be sent now on a channel."""
    return [number for (_, number, _), _ in backlog.heads(("t", channel))]


def test_of_one_alert_one_message_at_a_time() -> None:
    """What comes after it waits for its outcome, in each channel by itself."""
    backlog = Backlog()
    fired = put(backlog, "fired")
    put(backlog, "other", alert="l")
    put(backlog, "resolved")
    put(backlog, "fired", channel="d")

    assert heads(backlog) == ["fired", "other"]
    backlog.settle(fired)
    assert heads(backlog) == ["resolved", "other"]
    assert heads(backlog, "d") == ["fired"]
    assert heads(backlog, "nobody") == []


def test_what_is_settled_is_gone() -> None:
    """Channels that nothing is due for are not listed, and an outcome that comes twice is none."""
    backlog = Backlog()
    key = put(backlog, "fired")
    other = put(backlog, "fired", channel="d")
    assert (list(backlog), list(backlog.places())) == ([key, other], [("t", "c"), ("t", "d")])
    backlog.settle(key)
    backlog.settle(key)

    assert (list(backlog), list(backlog.places())) == ([other], [("t", "d")])
    assert backlog[other].since_ms == 1
