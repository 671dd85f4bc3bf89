"""A life of the stream: what ends it, what is told of that, and what stays behind."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from structlog.testing import capture_logs
from weir.commit import Verdict
from weir.formats import NewerFormatError
from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.holes import Hole, HoleError
from weir_analytics.panes.life import Life
from weir_analytics.panes.passing import StreamEndedError
from weir_analytics.panes.recovery import VerdictError


class Counting:
    """What counts the batches of a life, and fails."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error

    def on_batch(self) -> None:
        """Raise the error, with all that there is in a frame."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def fail(cycle: Any) -> None:
    """Count a batch that fails."""
    cycle.on_batch()


def test_what_was_raised_holds_nothing_once_the_failure_is_taken() -> None:
    """The JVM keeps the error for minutes; the life has clients of Kafka."""
    cycle: Any = Counting(TimeoutError("the log did not answer"))
    of: weakref.ref[Cycle] = weakref.ref(cycle)
    life = Life(of)
    with pytest.raises(StreamEndedError, match="the log did not answer") as kept:
        life.count(fail, 7)
    assert isinstance(life.take_failure(), TimeoutError)  # says more, where it is dealt with
    del cycle
    gc.collect()

    assert of() is None
    assert kept.tb is not None


def test_the_first_failure_is_what_ended_it() -> None:
    """Others follow from it: a driver that is fenced off ends by that."""
    fenced = VerdictError(Verdict.FENCED, "a newer driver runs")
    cycle: Any = Counting(fenced)
    life = Life(lambda: cycle)
    with pytest.raises(StreamEndedError):
        life.count(fail, 7)
    life.fail(TimeoutError("the stream did not end"))

    assert life.take_failure() is fenced
    assert life.take_failure() is None


def test_that_a_driver_must_end_comes_before_all_else() -> None:
    """The batch that was at hand may be the first to learn of it, when the life ends already."""
    life = Life(lambda: None)
    life.fail(StreamEndedError("the clock was set back"))
    life.fail(VerdictError(Verdict.FENCED, "a newer driver runs"))
    life.fail(NewerFormatError("mark must be older"))

    assert isinstance(life.failure, VerdictError)


def test_every_shard_that_is_short_is_named() -> None:
    """Whoever begins again counts them anew; the second to fail is the only one to know of its."""
    life = Life(lambda: None)
    life.fail(NewerFormatError("mark must be older"))
    life.fail(VerdictError(Verdict.LOST, "shard 0 is counted anew", {0}))
    life.fail(VerdictError(Verdict.LOST, "shard 2 is counted anew", {2}))

    assert isinstance(life.failure, NewerFormatError)
    assert life.short == {0, 2}


@pytest.mark.parametrize("is_first", [True, False])
def test_a_hole_is_kept_beside_what_ends_it(is_first: bool) -> None:
    """Counting has passed it, and meets it no more; told again it is no second one."""
    life, hole = Life(lambda: None), HoleError([Hole(0, 1, 2)])
    other = VerdictError(Verdict.BEHIND, "went back") if is_first else StreamEndedError("away")
    for error in (hole, other, hole) if is_first else (other, hole, other):
        life.fail(error)

    assert life.holes() == [hole]
    assert life.take_failure() is other
    assert life.holes() == []


def test_what_is_told_twice_is_logged_once() -> None:
    """Whoever follows the stream tells it, and whoever waits for the slice at hand."""
    life, error = Life(lambda: None), KeyError("shard")
    with capture_logs() as logs:
        life.fail(error)
        life.fail(error)

    assert len(logs) == 1


@pytest.mark.parametrize(
    ("error", "is_told"), [(KeyError("shard"), True), (TimeoutError("redis is away"), False)]
)
def test_where_an_error_came_from_that_nobody_expects_is_logged(
    error: Exception, is_told: bool
) -> None:
    """Of what may pass, its first line is enough."""
    cycle: Any = Counting(error)
    life = Life(lambda: cycle)
    with capture_logs() as logs, pytest.raises(StreamEndedError):
        life.count(fail, 7)

    assert [line["exc_info"] for line in logs] == [error] * is_told
    assert isinstance(life.failure, StreamEndedError if is_told else TimeoutError)
