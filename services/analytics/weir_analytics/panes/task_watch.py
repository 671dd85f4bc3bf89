"""A worker judges its task: one that takes long goes on, one that takes no step is ended.

Spark sees only what a worker sends, and a task that counts sends nothing while it reads and
computes: with large records, after an outage, that is minutes. So a task notes each of its steps:
some records that were read or decoded, a piece that was counted, an answer that came. The longest
that were found take seconds (docs/decisions/0033). A thread of the worker ends the process once
there was none for a minute, and Spark gives the task to another worker.

A task is judged only while it is at work: not between tasks, nor while Spark takes its rows or has
not handed over its input. Only forks of `daemon.py` are judged: the driver and tests take the
same steps, and nobody looks.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, wraps
from itertools import islice
from pathlib import Path
from traceback import walk_stack
from typing import Final, ParamSpec, TypeVar

import structlog
from weir.clock import SystemClock

LOG = structlog.get_logger()
# Longer than any call of a task waits for its answer.
SILENT_S: Final = 60.0
# How often a thread looks within that time.
LOOKS: Final = 60
# Of the frames that a task stands in, so many are told.
FRAMES: Final = 12
EXIT_SILENT: Final = 70
# Longest wait for the line that says so to be written.
TELLING_S: Final = 5.0

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Steps:
    """What the tasks of this process do; written by their thread, read by the one that looks.

    Attributes:
        taken: How many steps there were, of all tasks together.
        at_work: Whether a task has work to do, and nobody but itself to wait for.
        most_silent_s: How long a task may take no step; None: for ever.
    """

    taken: int = 0
    at_work: bool = False
    most_silent_s: float | None = None


HERE: Final = Steps()


def note_step() -> None:
    """Note that a task came further, by as much as never takes long."""
    HERE.taken += 1


def arm(most_silent_s: float = SILENT_S) -> None:
    """Have this process and its forks ended by the first task that takes no step for so long."""
    HERE.most_silent_s = most_silent_s


def watched(task: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Have a task judged from when its rows are asked for until they are there.

    One that makes its rows of those of another is at work while that is.
    """

    @wraps(task)
    def begin(*args: P.args, **given: P.kwargs) -> Iterator[T]:
        if HERE.most_silent_s is not None:
            _look_after(os.getpid(), HERE.most_silent_s)
        return _each(task(*args, **given), at_work=True)

    return begin


def awaited(rows: Iterable[T]) -> Iterator[T]:
    """Yield what a task is handed; how long it waits for that is no silence of its own."""
    return _each(rows, at_work=False)


def _each(rows: Iterable[T], *, at_work: bool) -> Iterator[T]:
    """Yield rows; whoever makes them is at work or not, and then again whoever was before."""
    rows = iter(rows)
    while True:
        before, HERE.at_work = HERE.at_work, at_work
        HERE.taken += 1
        try:
            row = next(rows)
        except StopIteration:
            return
        finally:
            HERE.at_work = before
        yield row
        del row  # not to be held while the next one is made


class Silence:
    """For how long a task has taken no step, from look to look; reads no clock."""

    def __init__(self, most_s: float = SILENT_S) -> None:
        self._most_s = most_s
        self._lasts_s = 0.0
        self._taken = -1
        self._at_s = 0.0

    def is_over(self, taken: int, at_work: bool, now_s: float) -> bool:
        """Tell whether a task is to be ended, and remember what was seen.

        A look that comes late counts like one that is a little late: the whole process may have
        stood still, or the task may have held the interpreter and be about to take its step.

        Args:
            taken: How many steps there were.
            at_work: Whether a task has work to do.
            now_s: The clock that never steps back.
        """
        since_s, self._at_s = now_s - self._at_s, now_s
        if not at_work or taken != self._taken:
            self._taken, self._lasts_s = taken, 0.0
            return False
        self._lasts_s += min(since_s, 2 * self._most_s / LOOKS)
        return self._lasts_s >= self._most_s


@cache
def _look_after(_process: int, most_s: float) -> None:
    """Begin to look, once a process: a fork has none of the threads of its parent."""
    threading.Thread(target=_look, args=(most_s,), name="task-watch", daemon=True).start()


def _look(most_s: float) -> None:
    silence, clock, pause = Silence(most_s), SystemClock(), threading.Event()
    while not silence.is_over(HERE.taken, HERE.at_work, clock.monotonic_s()):
        pause.wait(most_s / LOOKS)
    where = _where()
    # The task may hang where it writes a line itself, and hold what writes lines.
    telling = threading.Thread(
        target=lambda: LOG.error("task_silent", silent_s=most_s, where=where), daemon=True
    )
    try:
        telling.start()
        telling.join(TELLING_S)
    finally:
        os._exit(EXIT_SILENT)


def _where() -> list[str]:
    """Return the lines of code at which the task stands, the innermost first."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    inner = islice(walk_stack(frame), FRAMES) if frame is not None else ()
    return [f"{Path(of.f_code.co_filename).name}:{line}" for of, line in inner]
