"""CPU of a process tree in which processes end that take their CPU along.

`harness.tree_cpu_s` has that of a child that has ended in its parent's `children_*` times, if
that one heeds its end. The daemon of Spark's Python workers ignores it.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import harness
import psutil

# How often it is looked at what processes have used that may end.
LOOK_S = 0.2


class TreeCpu:
    """The CPU of processes and all their descendants, also of those that take it along.

    Spark ends workers that nobody has needed for a minute, and one may die. What such a process
    had used is what was seen of it last, at most `LOOK_S` before its end.

    Attributes:
        ended: How many took their CPU along.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        """Begin to look."""
        self._pids, self.ended = list(pids), 0
        self._seen: dict[psutil.Process, float] = {}
        self._heirs: dict[psutil.Process, psutil.Process | None] = {}
        self._gone_s = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._began_s = self._look()
        self._thread.start()

    def stop(self) -> float:
        """Return the CPU seconds that were used since the beginning."""
        self._end.set()
        self._thread.join()
        return self._look() - self._began_s

    def _follow(self) -> None:
        while not self._end.wait(LOOK_S):
            self._look()

    def _look(self) -> float:
        """Return what all have used so far, those that are gone with it."""
        now = harness.used_s(self._pids)
        for process in self._seen.keys() - now.keys():
            # Else whoever heeded its end has its CPU among his own.
            if self._heirs[process] not in now:
                self._gone_s += self._seen[process]
                self.ended += 1
        for process in now.keys() - self._seen.keys():
            self._heirs[process] = _heir(process)
        self._seen = now
        return sum(now.values(), self._gone_s)


def _heir(process: psutil.Process) -> psutil.Process | None:
    """Return who counts the CPU of a process once it ends; None if nobody."""
    with suppress(psutil.NoSuchProcess, OSError):
        parent = process.parent()
        if parent and not _ignores_ends(parent.pid):
            return parent
    return None


def _ignores_ends(pid: int) -> bool:
    ignored = re.search(r"^SigIgn:\s+(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return ignored is None or bool(int(ignored[1], 16) >> (signal.SIGCHLD - 1) & 1)
