"""Runs what `weir send` runs, on a log in memory and a clock that tests move."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from weir.clock import ManualClock
from weir_cli.__main__ import parser
from weir_cli.sending.asked import Target, jobs_of, limits_of
from weir_cli.sending.pacing import Waits
from weir_cli.sending.posting import Post, Tried
from weir_cli.sending.progress import Line
from weir_cli.sending.resuming import State, StateFile
from weir_cli.sending.sender import Sender

from .ingesting import Log

NOW_MS = 1_800_000_000_000
KEY = "wk_aaaaaaaa_" + "b" * 43


class Told(Line):
    """Keeps what is told."""

    def __init__(self, told: list[str]) -> None:
        super().__init__(ManualClock())
        self.texts = told

    def tell(self, text: str) -> None:
        """Keep a text."""
        self.texts.append(text)


class KilledError(BaseException):
    """The process has ended, as by kill -9."""


@dataclass
class Desk:
    """What stays while processes come and go: files, the log, time.

    Attributes:
        folder: Where files lie.
        log: What ingest has.
        clock: What time it is.
        told: What was told.
    """

    folder: Path
    log: Log = field(default_factory=Log)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    told: list[str] = field(default_factory=list)
    key: str = KEY

    def write(self, name: str, raw: bytes) -> Path:
        """Write a file."""
        path = self.folder / name
        path.write_bytes(raw)
        return path

    @property
    def state(self) -> State:
        """What the resume file says."""
        return State.read((self.folder / "state").read_text())

    def sender(self, held: ExitStack, words: Sequence[str | Path], post: Post | None) -> Sender:
        """Return what sends the only input of a command line."""
        asked = parser().parse_args(["send", *map(str, words)])
        target = Target("http://ingest", self.key)
        (job,) = jobs_of(asked, target, self.clock.now_ms(), held)
        waits = Waits(self.clock, lambda length_s: self.clock.advance(round(length_s * 1_000) + 1))
        line = Told(self.told)
        return Sender(job, post or self.log.post, waits, limits_of(asked), line)

    def send(
        self, *words: str | Path, post: Post | None = None, is_kept: bool = True
    ) -> tuple[Sender, Tried | None]:
        """Send an input; return the sender, and what ended it before the input did."""
        state = ("--state", self.folder / "state") if is_kept else ("--no-state",)
        with ExitStack() as held:
            sender = self.sender(held, (*words, *state), post)
            return sender, sender.run()

    def send_killed(self, steps: int, *words: str | Path) -> bool:
        """Send with a process that ends after so many steps; return whether it did.

        A step is a moment before or behind what lasts: an event in the log, a place in the file.
        """
        left = [steps]

        def step() -> None:
            left[0] -= 1
            if left[0] < 0:
                raise KilledError

        def post(body: bytes, events: int, key: str) -> Tried:
            step()
            tried = self.log.post(body, events, key)
            step()
            return tried

        save = StateFile.save

        def stepped(file: StateFile, state: State) -> None:
            step()
            save(file, state)
            step()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(StateFile, "save", stepped)
            try:
                self.send(*words, post=post)
            except KilledError:
                return True
        return False
