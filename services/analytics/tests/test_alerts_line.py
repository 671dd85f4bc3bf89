"""Which message of a channel is next, and when."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from weir.alerts.due import Backlog, Due
from weir.alerts.messages import trial_message
from weir.alerts.records import Trial
from weir_analytics.alerts.line import (
    FAILED_IN_ROW,
    FIRST_PAUSE_S,
    GIVE_UP_MS,
    LONGEST_PAUSE_S,
    LOOK_EVERY_S,
    MOST_OLD,
    Line,
)

PLACE = ("t", "c")
AT_ONCE = 4
DAY_S = 86_400


class Scene:
    """A channel with what is due for it; a message is named by its alert."""

    def __init__(self, *alerts: str) -> None:
        self.backlog, self.line = Backlog(), Line()
        for alert in alerts:
            self.due(alert)

    def due(self, alert: str, rule: str = "", since_ms: int = 0) -> None:
        """Let a message be due; by itself each alert is of a rule of its own."""
        trial = trial_message(Trial(tenant="t", id=alert, channel="c", by="ann"))
        number = f"{alert} {len(self.backlog)}"
        self.backlog.put(("t", number, "c"), Due(replace(trial, rule=rule or alert), since_ms))

    def next(self, now_s: float) -> str | None:
        """Return the alert whose message is sent now."""
        found = self.line.next(self.backlog.heads(PLACE), now_s, AT_ONCE)
        return None if found is None else found[1].notification.dedup_key

    def begun(self, now_s: float) -> list[str]:
        """Return the alerts whose messages are sent now, all that may."""
        found = []
        while (alert := self.next(now_s)) is not None:
            found.append(alert)
        return found

    def wait_s(self, now_s: float) -> float | None:
        """Return for how long nothing is sent."""
        return self.line.wait_s(self.backlog.heads(PLACE), now_s, AT_ONCE)

    def taken(self, alert: str) -> None:
        """Let the message of an alert arrive."""
        key = next(k for k, one in self.backlog.heads(PLACE) if one.notification.dedup_key == alert)
        self.backlog.settle(key)
        self.line.ended(alert, answered=True)

    def too_old(self, now_s: float) -> list[str]:
        """Give up what is too old; return the alerts whose messages those were."""
        found = self.line.too_old(self.backlog.heads(PLACE), now_s, int(now_s * 1000))
        for key, _ in found:
            self.backlog.settle(key)
        alerts = [due.notification.dedup_key for _, due in found]
        for alert in alerts:
            self.line.ended(alert, answered=False)
        return alerts


@pytest.fixture(autouse=True)
def even(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pauses be as long as they are meant to be."""
    monkeypatch.setattr("random.random", lambda: 0.5)


def test_a_few_at_once() -> None:
    """A receiver is not flooded, and what is under way is not sent twice."""
    scene = Scene("a", "b", "c", "d", "e", "f")

    assert scene.begun(0) == ["a", "b", "c", "d"]
    assert scene.wait_s(0) is None
    scene.taken("b")
    assert scene.begun(0) == ["e"]


def test_what_fails_holds_up_its_alert_alone() -> None:
    """It is sent again after pauses that grow; others are not asked to wait."""
    scene = Scene("bad", "a")
    now_s = 0.0
    for pause_s in (1, 2, 4, 8, 16, 32, 60, 60):
        assert "bad" in scene.begun(now_s)
        scene.line.failed("bad", now_s, answered=True)
        scene.due("a")
        assert set(scene.begun(now_s)) <= {"a"}
        scene.taken("a")
        now_s += pause_s
        assert "bad" not in scene.begun(now_s - 0.01)
    assert scene.line.tries("bad") == 8
    scene.taken("bad")
    assert scene.line.tries("bad") == 0


def test_an_end_waits_for_its_beginning() -> None:
    """Also while that fails; once its outcome stands, whatever it is, the end goes."""
    scene = Scene("a", "a")
    assert scene.begun(0) == ["a"]
    scene.line.failed("a", 0, answered=True)
    assert scene.begun(FIRST_PAUSE_S - 0.01) == []
    assert scene.wait_s(FIRST_PAUSE_S - 0.25) == 0.25
    assert scene.begun(FIRST_PAUSE_S) == ["a"]
    scene.taken("a")
    assert scene.begun(FIRST_PAUSE_S) == ["a"]


def test_a_receiver_that_is_away_is_called_by_one() -> None:
    """Then pauses are the channel's, longer each time; the first answer ends them."""
    scene = Scene("a", "b", "c", "d", "e", "f", "g")
    for alert in scene.begun(0):
        scene.line.failed(alert, 10, answered=False)

    assert scene.line.is_away
    assert scene.begun(10 + FIRST_PAUSE_S - 0.01) == []
    assert scene.wait_s(10.25) == FIRST_PAUSE_S - 0.25
    # Those that were not tried yet go first: one that nothing ever answers holds up no other.
    assert scene.begun(11) == ["e"]
    scene.line.failed("e", 12, answered=False)
    assert scene.begun(13.99) == []
    assert scene.begun(14) == ["f"]
    scene.taken("f")
    assert not scene.line.is_away
    assert scene.begun(14) == ["g", "a", "b", "c"]


def test_pauses_of_a_receiver_that_is_away_have_a_bound() -> None:
    """It is found within a minute after it is back, give or take a half."""
    scene = Scene(*"abcdefghij")
    now_s = 0.0
    for _ in range(12):
        (alert, *others) = scene.begun(now_s)
        assert others == [] or now_s == 0
        for one in (alert, *others):
            scene.line.failed(one, now_s, answered=False)
        now_s += scene.wait_s(now_s) or 0
    assert scene.wait_s(now_s - LONGEST_PAUSE_S) == LONGEST_PAUSE_S


def test_one_alert_after_the_other_that_fails_is_the_receiver() -> None:
    """It answers, so the pause stays short; one that it takes ends that."""
    scene = Scene(*"abcdefgh")
    for alert in scene.begun(0)[: FAILED_IN_ROW - 1]:
        scene.line.failed(alert, 0, answered=True)
        assert not scene.line.is_away
    scene.line.failed("d", 0, answered=True)
    assert scene.line.is_away
    for now_s in (1, 2, 3):
        assert scene.begun(now_s - 0.01) == []
        (alert,) = scene.begun(now_s)
        scene.line.failed(alert, now_s, answered=True)
    (alert,) = scene.begun(4)
    scene.taken(alert)
    (alert, *others) = scene.begun(4)
    assert len(others) == AT_ONCE - 1
    scene.line.failed(alert, 4, answered=True)
    assert not scene.line.is_away


def test_alerts_of_one_series_go_in_their_order() -> None:
    """While nothing fails: the end of one is told before the next one fires."""
    scene = Scene()
    scene.due("first", rule="r")
    scene.due("second", rule="r")
    scene.due("other", rule="s")

    assert scene.begun(0) == ["first", "other"]
    assert scene.wait_s(0) is None
    scene.taken("first")
    assert scene.begun(0) == ["second"]


def test_what_is_a_day_old_is_given_up_untried() -> None:
    """A silent receiver is called once a minute at most; what waits for it has a bound."""
    scene = Scene()
    step_s, count = 300, 0
    for now_s in range(0, 2 * DAY_S, step_s):
        for _ in range(4):
            scene.due(f"a{count}", since_ms=now_s * 1000)
            count += 1
        scene.too_old(now_s)
        for alert in scene.begun(now_s):
            scene.line.failed(alert, now_s, answered=False)
        oldest_ms = min(due.since_ms for due in scene.backlog.values())
        assert now_s * 1000 - oldest_ms <= GIVE_UP_MS
        assert len(scene.backlog) <= 4 * (DAY_S // step_s + 1)
    assert count > 2_000


def test_what_is_given_up_and_what_not() -> None:
    """Nothing under way, some at a time, in the order of each alert; and not with each step."""
    scene = Scene("under way")
    assert scene.begun(0) == ["under way"]
    for n in range(MOST_OLD):
        scene.due(f"a{n}")
    scene.due("a0")
    scene.due("a0", since_ms=GIVE_UP_MS)
    assert scene.too_old(DAY_S) == []
    late_s = DAY_S + LOOK_EVERY_S
    assert scene.too_old(late_s - 0.01) == []
    assert scene.too_old(late_s) == [f"a{n}" for n in range(MOST_OLD)]
    assert scene.too_old(late_s) == ["a0"]
    assert scene.too_old(late_s) == []
    assert scene.next(late_s) == "a0"
    assert [due.since_ms for due in scene.backlog.values()] == [0, GIVE_UP_MS]


def test_ten_thousand_are_no_burden() -> None:
    """What is next is found without a walk over all that is due."""
    scene = Scene(*(f"a{n}" for n in range(10_000)))
    begun_s = time.process_time()
    sent = 0
    while (alert := scene.next(0)) is not None:
        scene.taken(alert)
        sent += 1

    assert sent == 10_000
    assert time.process_time() - begun_s < 2
