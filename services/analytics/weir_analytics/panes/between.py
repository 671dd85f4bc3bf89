"""What the driver does between live batches: slices of backfills, rebuilds and jobs.

One thread takes the turn for one slice after the other. A live batch waits for one slice
at most, and after each slice the thread lets go for as long as its share of the time says.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from pyspark import InheritableThread
from weir.clock import Clock

from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.turns import GivenUpError, Turns

# How long to wait until asking again, when there was nothing to do.
IDLE_S: Final = 0.25
# Below so many events a second nobody notices that a batch waits for a longer slice.
QUIET_PER_S: Final = 1.0
# Nor once none has come for so long: after a load the mean of its last batches falls slowly, and
# what was lost with it would be counted again at half the pace for half a minute.
QUIET_S: Final = 2.0
# A slice of a quiet time takes so long. Of what was lost it may take longer, up to twice: its rows
# are merged once then and not twice, and until they are there nobody sees the numbers anyway.
QUIET_SLICE_S: Final = 1.5
LOST_SLICE_S: Final = 3.0
# After a slice that took very long, such as the first of a plan on a busy machine.
LONGEST_PAUSE_S: Final = 5.0


class Pace(NamedTuple):
    """How much slices may take from live counting.

    Attributes:
        share: Their share of the time.
        slice_s: How long one may take, about: a live batch waits for it.
        lost_s: How long one of a rebuild may take.
    """

    share: float
    slice_s: float
    lost_s: float


BUSY: Final = Pace(0.5, 0.4, 0.4)
"""Live batches bring events."""
BEHIND: Final = Pace(0.1, 0.4, 0.4)
"""Live counting is behind."""


def quiet(quiet_s: float) -> Pace:
    """Return how much slices may take while live batches bring ticks only.

    Where no event has come for long, none is expected soon.

    Args:
        quiet_s: For how long none has come.
    """
    lost_s = min(LOST_SLICE_S, max(QUIET_SLICE_S, quiet_s))
    return Pace(0.99, QUIET_SLICE_S, lost_s)


class Work(Protocol):
    """Something that is done in slices."""

    def prepare(self) -> None:
        """Do what takes long and needs no turn, such as making a plan; called before each step."""
        ...

    def step(self, cycle: Cycle) -> bool:
        """Do a slice that takes about as long as the pace says; the stores of `cycle` may be used.

        Returns:
            Whether anything was done.

        Raises:
            VerdictError: And what else a batch raises: the driver begins again at S0.
        """
        ...


@dataclass
class Between:
    """The thread of one life of a driver.

    Attributes:
        pace: How much slices may take now.
        failure: What ended the thread, if anything did.
    """

    cycle: Cycle
    works: Sequence[Work]
    turns: Turns
    clock: Clock
    pace: Callable[[], Pace]
    failure: BaseException | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        # Each thread of Python has one of the JVM, whose properties tell tasks their batch.
        self._thread = InheritableThread(target=self._run, name="between", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop after the slice at hand, and wait for that."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._stop.wait(self._round())
        except GivenUpError:
            return
        except BaseException as error:  # noqa: BLE001  the driver looks, and raises it itself
            self.failure = error

    def _round(self) -> float:
        """Give each work one slice; return how long to leave everything to live counting."""
        pauses: list[float] = []
        for work in self.works:
            work.prepare()
            with self.turns.between(self._stop.is_set):
                # Not after the slice, when live counting has waited for it: it is not behind.
                pace, began_s = self.pace(), self.clock.monotonic_s()
                if work.step(self.cycle):
                    pauses.append(pause_s(self.clock.monotonic_s() - began_s, pace))
        return min(LONGEST_PAUSE_S, sum(pauses)) if pauses else IDLE_S


def pace_of(received_per_s: float, quiet_s: float, *, waits: bool, is_behind: bool) -> Pace:
    """Return how much slices may take now.

    Args:
        received_per_s: Events that come in a second.
        quiet_s: For how long no batch has brought one.
        waits: Whether some may wait in the log, for a batch that is not planned yet. If none does,
            numbers are older than usual because of a slice, and nobody is behind.
        is_behind: Whether live numbers are older than they are when all is well.
    """
    if waits:
        return BEHIND if is_behind else BUSY
    is_quiet = received_per_s < QUIET_PER_S or quiet_s >= QUIET_S
    return quiet(quiet_s) if is_quiet else BUSY


def pause_s(took_s: float, pace: Pace) -> float:
    """Return how long to leave everything to live counting after a slice.

    Args:
        took_s: How long it took.
        pace: How much slices may take.
    """
    return min(LONGEST_PAUSE_S, took_s * (1 / pace.share - 1))
