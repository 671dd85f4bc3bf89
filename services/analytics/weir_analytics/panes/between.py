"""What the driver does between live batches: slices of backfills, rebuilds and jobs.

One thread takes the turn for one slice after the other. A live batch waits for one slice
at most, and after each slice the thread lets go for as long as its share of the time says.

What fails waits, longer each time, and is told; the others go on, and so does live counting. What
the fence or a shard says ends the life of the driver, or what a start record has to say.

So does, after a while, what nobody expects: it may be of what this life knows, and then the next
one, which reads all anew, is rid of it. A part outside that is away is no reason for that: a new
life would find it away as well. Nor may an error that is always there end life after life, of which
each leaves a record for ever: until its work does what lasts, it has to come twice as often.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

import structlog
from pyspark import InheritableThread
from weir.clock import Clock

from weir_analytics.panes.cycle import Cycle
from weir_analytics.panes.passing import PASSING, ends_life, first_line
from weir_analytics.panes.turns import GivenUpError, Turns

LOG = structlog.get_logger()

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
# Who gives up what is tried does so again, as it may begin just then.
ASK_S: Final = 1.0
# How long what has failed waits, at first and at most.
FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 60.0
# So many unexpected failures of a work, one after the other, end a life: the first that does so,
# after a quarter of a minute. Each further one takes twice as many, up to some hours.
MOST_UNEXPECTED: Final = 5
MOST_DOUBLED: Final = 6


class Pace(NamedTuple):
    """How much slices may take from live counting.

    Attributes:
        share: Their share of the time.
        slice_s: How long one may take, about: a live batch waits for it.
        lost_s: How long one may take of what numbers have held: a rebuild, and what serves.
    """

    share: float
    slice_s: float
    lost_s: float


BUSY: Final = Pace(0.5, 0.2, 0.4)
"""Live batches bring events.

With slices of 0.4 s the numbers of one tenant were 1.3 times as old at the 99th percentile while
another one's metric was filled. What was lost has longer ones: until then no number is whole.
"""
BEHIND: Final = Pace(0.1, 0.2, 0.4)
"""Live counting is behind."""


def quiet(quiet_s: float) -> Pace:
    """Return how much slices may take while live batches bring ticks only.

    Where no event has come for long, none is expected soon.

    Args:
        quiet_s: For how long none has come.
    """
    lost_s = min(LOST_SLICE_S, max(QUIET_SLICE_S, quiet_s))
    return Pace(0.99, QUIET_SLICE_S, lost_s)


class Step(IntEnum):
    """What a work did with its turn; false if it has nothing to do."""

    IDLE = 0
    """Nothing was to be done."""
    SOON = 1
    """There is more to do, and nothing yet that lasts: a plan is wanted, a walk goes on."""
    DONE = 2
    """Something was done that no failure takes back: a slice was committed, a job ended."""


class Work(Protocol):
    """Something that is done in slices."""

    def prepare(self) -> None:
        """Do what takes long and needs no turn, such as making a plan; called before each step."""
        ...

    def step(self, cycle: Cycle) -> Step:
        """Do a slice that takes about as long as the pace says; the stores of `cycle` may be used.

        Raises:
            VerdictError: If a shard refused it: the driver begins again at S0, or ends.
            Exception: Whatever else: it is asked again after a while. One that is not in `PASSING`
                is told with where it came from, and ends the life if it comes again and again.
        """
        ...


@dataclass
class _Wait:
    """How long a work that has failed is left out.

    Attributes:
        unexpected: How often it has failed as nobody expects, with nothing done in between.
    """

    until_s: float = 0.0
    next_s: float = FIRST_WAIT_S
    unexpected: int = 0


@dataclass
class Between:
    """The thread of one life of a driver.

    Attributes:
        pace: How much slices may take now.
        failure: What ended the thread, if anything did.
        ending: Set when it is to end: what works try without the turn is given up.
        give_up: Ends what is being tried.
        ended: How many lives each work has ended with nothing done in between; outlives them.
    """

    cycle: Cycle
    works: Sequence[Work]
    turns: Turns
    clock: Clock
    pace: Callable[[], Pace]
    failure: BaseException | None = None
    ending: threading.Event = field(default_factory=threading.Event)
    give_up: Callable[[], None] = lambda: None
    ended: Counter[str] = field(default_factory=Counter)
    _waits: list[_Wait] = field(init=False)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._waits = [_Wait() for _work in self.works]

    def start(self) -> None:
        """Start the thread."""
        # Each thread of Python has one of the JVM, whose properties tell tasks their batch.
        self._thread = InheritableThread(target=self._run, name="between", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop after the slice at hand, and wait for that; what is only tried is given up."""
        self.ending.set()
        while self._thread is not None and self._thread.is_alive():
            self.give_up()
            self._thread.join(ASK_S)

    def _run(self) -> None:
        try:
            while not self.ending.is_set():
                self.ending.wait(self._round())
        except GivenUpError:
            return
        except BaseException as error:  # noqa: BLE001  the driver looks, and raises it itself
            self.failure = error

    def _round(self) -> float:
        """Give each work one slice; return how long to leave everything to live counting."""
        pauses: list[float] = []
        for work, wait in zip(self.works, self._waits, strict=True):
            if self.clock.monotonic_s() < wait.until_s:
                continue
            try:
                step = self._slice(work, pauses)
            except GivenUpError:
                raise
            except BaseException as error:
                if ends_life(error) or self._leave_out(work, wait, error):
                    raise
                continue
            if step is not Step.SOON:
                wait.next_s = FIRST_WAIT_S
            if step is Step.DONE:
                wait.unexpected = 0
                self.ended.pop(_name(work), None)
        return min(LONGEST_PAUSE_S, sum(pauses)) if pauses else IDLE_S

    def _slice(self, work: Work, pauses: list[float]) -> Step:
        """Give one work a slice; note how long to leave everything to live counting for it."""
        work.prepare()
        with self.turns.between(self.ending.is_set):
            # Not after the slice, when live counting has waited for it: it is not behind.
            pace, began_s, step = self.pace(), self.clock.monotonic_s(), Step.SOON
            try:
                step = work.step(self.cycle)
            finally:
                if step:
                    pauses.append(pause_s(self.clock.monotonic_s() - began_s, pace))
        return step

    def _leave_out(self, work: Work, wait: _Wait, error: BaseException) -> bool:
        """Let a work that has failed wait, longer each time; tell whether it is to end the life."""
        name = _name(work)
        if isinstance(error, PASSING):
            LOG.warning("work_waits", work=name, error=first_line(error), pause_s=wait.next_s)
            wait.unexpected = 0
        else:  # nobody expects it, so where it came from is all there is
            LOG.error("work_failed", work=name, error=repr(error)[:300], exc_info=error)
            wait.unexpected += 1
        if wait.unexpected >= MOST_UNEXPECTED << min(self.ended[name], MOST_DOUBLED):
            self.ended[name] += 1
            return True
        wait.until_s = self.clock.monotonic_s() + wait.next_s
        wait.next_s = min(2 * wait.next_s, LONGEST_WAIT_S)
        return False


def _name(work: Work) -> str:
    return type(work).__name__.lower()


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
