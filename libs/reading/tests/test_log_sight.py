"""What was seen of the log holds for a minute, and that nothing can be seen is told once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs
from weir.clock import ManualClock
from weir.log_left import LogLeft
from weir_reading.log_sight import UNREAD, LogSight

NOW_MS = 1_800_000_000_000
LEFT = LogLeft(0, 65_000, 90_000, needed_ms=70_000)
AWAY = KafkaException(KafkaError(KafkaError._TRANSPORT))


class Looks:
    """Sees what a test says, one after the other; the last of it again and again."""

    def __init__(self, *found: LogLeft | Exception | None) -> None:
        self._found = list(found)

    def __call__(self) -> LogLeft | None:
        """Look once."""
        found = self._found.pop(0) if len(self._found) > 1 else self._found[0]
        if isinstance(found, Exception):
            raise found
        return found


@pytest.mark.parametrize(
    ("miss", "why"),
    [
        (AWAY, str(AWAY)),
        (TimeoutError(), "TimeoutError"),
        (KeyError(3), "3"),
        (RecursionError(), "RecursionError"),
        (None, UNREAD),
    ],
)
def test_a_look_that_sees_nothing_is_told_once_and_ends_nothing(
    miss: Exception | None, why: str
) -> None:
    """Whatever kept it from that; what is no matter of Kafka's is told with its place."""
    sight = LogSight(Looks(miss, miss, LEFT, miss), ManualClock(NOW_MS))
    with capture_logs() as said:
        for _ in range(2):
            sight.once()
        assert (sight.now(), sight.lately(), sight.last()) == (None, None, None)
        sight.once()
        assert sight.now() == LEFT
        sight.once()
    assert [(line["event"], line["error"]) for line in said] == [("log_not_watched", why)] * 2
    is_strange = isinstance(miss, KeyError | RecursionError)
    assert {line["exc_info"] for line in said} == {miss if is_strange else None}


def test_what_was_seen_holds_for_a_minute() -> None:
    """A look that fails says nothing of the present; beyond that what was seen grows less."""
    clock = ManualClock(NOW_MS)
    sight = LogSight(Looks(LEFT, TimeoutError()), clock)
    sight.once()
    clock.advance(60_000)
    sight.once()
    then = replace(LEFT, ms=5_000, needed_ms=10_000)
    assert (sight.now(), sight.lately(), sight.last()) == (None, LEFT, then)
    clock.advance(1)
    then = replace(LEFT, ms=4_999, needed_ms=9_999)
    assert (sight.now(), sight.lately(), sight.last()) == (None, None, then)
    clock.advance(6_000)
    assert sight.last() == replace(LEFT, ms=0, needed_ms=3_999)


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
def test_a_clock_that_is_set_makes_nothing_older(step_ms: int) -> None:
    """Nor keeps for longer what is old."""
    clock = ManualClock(NOW_MS)
    sight = LogSight(Looks(LEFT), clock)
    sight.once()
    clock.step(step_ms)
    assert (sight.lately(), sight.last()) == (LEFT, LEFT)
    clock.advance(60_001)
    assert sight.lately() is None


def test_what_cannot_be_read_says_what_to_do() -> None:
    """The place of the panes driver is another release's; which of both is newer is not known."""
    assert "run the newer of both releases as the panes driver and here" in UNREAD
