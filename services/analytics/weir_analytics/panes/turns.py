"""Turns: a live batch and the work between batches never run at once.

Two Spark jobs at the same time would share the cores, and a fair scheduler cannot take a
core back from a task: live batches beside an unbounded backfill took eight times as long.
So whoever works holds the turn, and a live batch that waits comes first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_S = 0.1


class GivenUpError(Exception):
    """Who waited for the turn was told to stop."""


class Turns:
    """One turn, which a live batch gets before all else."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held = False
        self._live_waiting = 0

    @contextmanager
    def live(self, given_up: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Hold the turn for a batch, or for ending the stream.

        Args:
            given_up: Asked while waiting; who stops the stream holds the turn and waits for
                its thread, so that one must not wait in turn.

        Raises:
            GivenUpError: If it says so.
        """
        with self._changed:
            self._live_waiting += 1
            try:
                self._wait(lambda: not self._held, given_up)
                self._held = True
            finally:
                self._live_waiting -= 1
        try:
            yield
        finally:
            self._release()

    @contextmanager
    def between(self, given_up: Callable[[], bool]) -> Iterator[None]:
        """Hold the turn for work that may wait: while no batch runs, or wants to.

        Raises:
            GivenUpError: If `given_up` says so.
        """
        with self._changed:
            self._wait(lambda: not self._held and not self._live_waiting, given_up)
            self._held = True
        try:
            yield
        finally:
            self._release()

    def _wait(self, free: Callable[[], bool], given_up: Callable[[], bool]) -> None:
        while True:
            if given_up():
                raise GivenUpError
            if free():
                return
            self._changed.wait(LOOK_S)

    def _release(self) -> None:
        with self._changed:
            self._held = False
            self._changed.notify_all()
