"""The keeper: a small process that starts a part again when it has ended.

It outlives the terminal. A part that ends comes back after 1 s, then 2, 4, … up to
30 s, and at 1 s again once it has stayed up for a minute. Each end is one line of
`run/keeper.jsonl`, which `make up` prints. The keeper keeps no state: after a crash
of its own the next `make up` starts another one.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from weir.clock import SystemClock

from weir_local.console import complain, in_words
from weir_local.process import Part, PartError
from weir_local.readiness import obituary
from weir_local.stack import Stack, limit_log

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from weir_local.home import Home

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
STABLE_AFTER_S = 60.0
LOOK_EVERY_S = 0.5
MOST_UNWRITTEN = 1000


@dataclass
class Restarts:
    """How often a part has ended lately, and when it may be started again.

    Pure: the instants come in as arguments.
    """

    pause_s: float = FIRST_PAUSE_S
    started_s: float = 0.0
    due_s: float | None = field(default=None)

    def ended(self, now_s: float) -> float:
        """Take note of an end; return the pause before the next start."""
        if now_s - self.started_s > STABLE_AFTER_S:
            self.pause_s = FIRST_PAUSE_S
        pause_s = self.pause_s
        self.due_s = now_s + pause_s
        self.pause_s = min(self.pause_s * 2, LONGEST_PAUSE_S)
        return pause_s

    def started(self, now_s: float) -> None:
        """Take note of a start."""
        self.started_s, self.due_s = now_s, None


class Keeper:
    """Watches the parts that are wanted."""

    def __init__(self, home: Home) -> None:
        """Take over a stack that `make up` has started."""
        self._stack = Stack(home)
        self._home = home
        self._restarts: dict[str, Restarts] = {}
        self._stopping = False
        self._unwritten: deque[str] = deque(maxlen=MOST_UNWRITTEN)

    def run(self) -> None:
        """Watch until SIGTERM, or until nothing is wanted any more."""
        signal.signal(signal.SIGTERM, self._on_term)
        while not self._stopping:
            wanted = self._home.wanted().get("parts", [])
            if not wanted:
                return
            for name in wanted:
                self._look(name, time.monotonic())
            time.sleep(LOOK_EVERY_S)

    def _on_term(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping = True

    def _look(self, name: str, now_s: float) -> None:
        restarts = self._restarts.setdefault(name, Restarts())
        if self._stack.parts[name].pid() is not None:
            limit_log(self._stack.parts[name])
            return
        if restarts.due_s is None:
            ended = obituary(self._stack.parts[name])
            pause_s = restarts.ended(now_s)
            self._note(f"{ended}. It starts again in {pause_s:g} s.")
        elif now_s >= restarts.due_s:
            self._start(name, restarts, now_s)

    def _start(self, name: str, restarts: Restarts, now_s: float) -> None:
        restarts.started(now_s)
        try:
            self._stack.launch(name)
            self._note(f"{name} was started again.")
        except (PartError, OSError) as error:
            self._note(f"{name} could not be started: {in_words(error)}")

    def _note(self, text: str) -> None:
        """Write a line; what finds no room goes to the log, and is written with the next."""
        line = json.dumps({"at_ms": SystemClock().now_ms(), "text": text})
        self._unwritten.append(line + "\n")
        try:
            with notes_path(self._home).open("a") as file:
                file.write("".join(self._unwritten))
        except OSError as error:
            self._unwritten.appendleft("\n")  # ends a line of which half was written
            with contextlib.suppress(OSError):  # the log may be on the same disk
                complain(f"{text} ({in_words(error)})")
        else:
            self._unwritten.clear()


def notes_path(home: Home) -> Path:
    """Return the file with one line for each end and each start of a part."""
    return home.run / "keeper.jsonl"


def keeper_part(home: Home) -> Part:
    """Return the keeper as a process."""
    env = {"WEIR_HOME": str(home.folder), "WEIR_PORT_BASE": str(home.port_base)}
    return Part("keeper", [sys.executable, "-m", "weir_local", "keep"], home.run, env)


def unwatched(home: Home) -> str:
    """Return a sentence if parts should run and nobody would start them again; else empty."""
    if not home.wanted() or keeper_part(home).pid() is not None:
        return ""
    return "The keeper has ended: what ends now is not started again. Run `make up`."
