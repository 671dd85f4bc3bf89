"""How many events may go now, how long to wait for more, and how long for another try."""

from __future__ import annotations

import math
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from weir.clock import Clock

FIRST_PAUSE_S: Final = 0.25
LONGEST_PAUSE_S: Final = 30.0
LONGEST_ASKED_S: Final = 60.0
"""The longest that `Retry-After` is obeyed: a wrong one must not hold up a run for hours."""
# Events of so long go together where there is a rate: it is smooth, and not a request for each.
TOGETHER_S: Final = 0.1
SLICE_S: Final = 0.05


class Waits:
    """Waits, until it is told to stop."""

    def __init__(self, clock: Clock, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take a clock.

        Args:
            clock: Tells the time.
            sleep: Waits so many seconds.
        """
        self.clock = clock
        self.is_stopped = False
        self._sleep = sleep

    def pause(self, length_s: float) -> None:
        """Wait; a stop ends it.

        In slices: what a signal sets is seen between them, and a lock that it took could be one
        that the wait holds.
        """
        until_s = self.clock.monotonic_s() + length_s
        while not self.is_stopped and (left_s := until_s - self.clock.monotonic_s()) > 0:
            self._sleep(min(left_s, SLICE_S))


class Pace:
    """Spreads events evenly: each has its instant, which no answer that is slow puts off."""

    def __init__(self, rate_per_s: float | None, now_s: float) -> None:
        """Begin.

        Args:
            rate_per_s: Events a second; None for as fast as it goes.
            now_s: Now, by the monotonic clock.
        """
        self._rate_per_s, self._start_s, self._taken = rate_per_s, now_s, 0

    def room(self, now_s: float) -> int | None:
        """Return how many events are due; None where there is no rate."""
        if self._rate_per_s is None:
            return None
        # An event whose instant is now is due, however it was rounded.
        due = math.floor((now_s - self._start_s) * self._rate_per_s + 1e-6) + 1
        return due - self._taken

    def wait_s(self, now_s: float, most: int) -> float:
        """Return how long to wait until enough are due to go together."""
        if self._rate_per_s is None:
            return 0.0
        wanted = max(1, min(most, int(self._rate_per_s * TOGETHER_S)))
        due_s = self._start_s + (self._taken + wanted - 1) / self._rate_per_s
        return max(0.0, due_s - now_s)

    def took(self, events: int) -> None:
        """Say that events go."""
        self._taken += events


class Patience:
    """How long what failed is tried again: until so long has gone by without progress."""

    def __init__(self, give_up_s: float, now_s: float) -> None:
        """Begin.

        Args:
            give_up_s: How long.
            now_s: Now, by the monotonic clock.
        """
        self._give_up_s = give_up_s
        self.progressed(now_s)

    def progressed(self, now_s: float) -> None:
        """Say that something was confirmed."""
        self._until_s, self._own_s = now_s + self._give_up_s, FIRST_PAUSE_S

    def pause_s(self, now_s: float, asked_s: float) -> float | None:
        """Return how long to wait for the next try; None if there is to be none.

        Somewhat at random, so that senders that failed together do not come back together.

        Args:
            now_s: Now, by the monotonic clock.
            asked_s: How long ingest asks to wait.
        """
        left_s = self._until_s - now_s
        if left_s <= 0:
            return None
        own_s, self._own_s = self._own_s, min(2 * self._own_s, LONGEST_PAUSE_S)
        least_s = min(asked_s, LONGEST_ASKED_S)
        wanted_s = least_s + own_s * random.SystemRandom().uniform(0.5, 1.0)
        # What asks for more than is left is tried once more at the end.
        return min(wanted_s, left_s)


@contextmanager
def stopped_by_ctrl_c(waits: Waits) -> Iterator[None]:
    """Let Ctrl-C stop the waits, and a second one end the process at once.

    It says nothing: it may have come while something was being written.
    """

    def stop(_signal: int, _frame: object) -> None:
        if waits.is_stopped:
            raise KeyboardInterrupt
        waits.is_stopped = True

    before = signal.getsignal(signal.SIGINT)
    # A shell has what it starts in the background pass over Ctrl-C.
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
